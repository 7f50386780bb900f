"""Judges a tool by what its schema accepts and rejects, and by what its function received.

A case is a Python source, the name of a callable in it, and expectations.  Schemas are compared by
meaning: argument objects that must be accepted or rejected, never by spelling.  Descriptions are
compared without regard to white space.
"""

import asyncio
import json
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema

from antiphon.messages import ToolResult, ToolSpec
from antiphon.tools import Tool, ToolDefinitionError, tool

CASES = Path(__file__).parent / "cases"
Json = Any
_HIDDEN = {"self", "cls", "ctx"}


def load(name: str) -> list[dict[str, Json]]:
    """The cases of one file that this Python can run."""
    lines = (CASES / name).read_text("utf-8").splitlines()
    cases: list[dict[str, Json]] = [json.loads(line) for line in lines]
    return [c for c in cases if _version(c["min_python"]) <= sys.version_info[:2]]


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


class Bench:
    """One case: its module, its tool, and what the function received in each call."""

    def __init__(self, case: dict[str, Json], folder: Path) -> None:
        self.case = case
        self.expect: dict[str, Json] = case["expect"]
        self.received: list[dict[str, str]] = []
        self.module = self._module(folder)
        self.made: Tool[..., Any] | None = None

    def _module(self, folder: Path) -> types.ModuleType:
        source = self.case["python"].replace("CTX_IMPORT", "from antiphon.tools import RunContext")
        source = source.replace("CTX_NAME", "ctx").replace("CTX_TYPE", "RunContext")
        name = f"case_{self.case['id']}"
        path = folder / f"{name}.py"
        path.write_text(source, "utf-8")
        module = types.ModuleType(name)
        module.__file__ = str(path)
        module.__dict__["_got"] = self._got
        sys.modules[name] = module
        exec(compile(source, str(path), "exec"), module.__dict__)
        return module

    def _got(self, values: dict[str, object]) -> str:
        shown = {k: repr(v) for k, v in values.items()}
        self.received.append(
            {k: v for k, v in shown.items() if k not in _HIDDEN and not k.startswith("__")}
        )
        return "ok"

    def tool(self) -> Tool[..., Any]:
        """The case's callable as a tool."""
        function: Any = getattr(self.module, self.case["entry"])
        return tool(function)

    def problems(self) -> list[str]:
        """Everything about the case that is not as expected."""
        if self.expect.get("build_error"):
            try:
                made = self.tool()
            except ToolDefinitionError:
                return []
            return [f"a tool was made: {made.spec.parameters}"]
        made = self.tool()
        return [*_Judge(made.spec).problems(self.expect), *self._call_problems(made)]

    def _call_problems(self, made: Tool[..., Any]) -> Iterator[str]:
        for call in self.expect.get("calls", ()):
            texts: list[str] = (
                [call["raw"]]
                if "raw" in call
                else [
                    json.dumps(a, ensure_ascii=False)
                    for a in call.get("args_any", [call.get("args")])
                ]
            )
            outcomes = [self._call(made, text) for text in texts]
            if not any(_as_expected(call, got) for _, got in outcomes):
                yield f"call {texts}: {outcomes}"

    def _call(self, made: Tool[..., Any], text: str) -> tuple[ToolResult, dict[str, str] | None]:
        before = len(self.received)
        result = asyncio.run(made.call(text))
        return result, self.received[-1] if len(self.received) > before else None


def _as_expected(call: dict[str, Json], got: dict[str, str] | None) -> bool:
    if call.get("error"):
        return got is None
    if "any_of" in call:
        return any(got is None if a == "error" else _matches(a, got) for a in call["any_of"])
    return _matches(call["got"], got)


def _matches(want: dict[str, Json], got: dict[str, str] | None) -> bool:
    if got is None:
        return False
    return all(got.get(k) in (v if isinstance(v, list) else [v]) for k, v in want.items())


def _flat(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


class _Judge:
    """What a spec says, against what it should."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec
        self.schema: dict[str, Json] = spec.parameters
        self.properties: dict[str, Json] = self.schema["properties"]

    def problems(self, expect: dict[str, Json]) -> Iterator[str]:
        json.dumps(self.spec.to_openai(), allow_nan=False)
        jsonschema.Draft202012Validator.check_schema(self.schema)
        yield from self._name(expect.get("name"))
        yield from self._description(expect.get("desc", {}))
        yield from self._names(expect)
        yield from self._instances(expect, self.schema)
        for name, want in expect.get("params", {}).items():
            yield from self._parameter(name, want)
        if "returns" in expect:
            if not self.spec.returns:
                yield "no schema of the result"
            else:
                yield from self._instances(expect["returns"], self.spec.returns)

    def _name(self, want: Json) -> Iterator[str]:
        name = self.spec.name
        if isinstance(want, str) and name != want:
            yield f"name {name!r} is not {want!r}"
        if isinstance(want, dict) and name not in cast("dict[str, Json]", want).get("any", [name]):
            yield f"name {name!r} is not one of {want}"
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            yield f"name {name!r} is not valid"

    def _description(self, want: dict[str, Json]) -> Iterator[str]:
        raw = self.spec.description
        text = _flat(raw)
        if "eq" in want and text != _flat(want["eq"]):
            yield f"description {text!r}"
        yield from (f"description lacks {h!r}" for h in want.get("has", ()) if _flat(h) not in text)
        yield from (f"description has {h!r}" for h in want.get("lacks", ()) if _flat(h) in text)
        yield from (f"description has {h!r}" for h in want.get("raw_lacks", ()) if h in raw)

    def _names(self, expect: dict[str, Json]) -> Iterator[str]:
        shown = sorted(self.properties)
        required = sorted(self.schema.get("required", []))
        if "props" in expect and shown != sorted(expect["props"]):
            yield f"properties {shown}"
        if "params_any" in expect and not any(
            shown == sorted(o["props"]) for o in expect["params_any"]
        ):
            yield f"properties {shown}"
        yield from (f"{a} is shown" for a in expect.get("absent", ()) if a in shown)
        if "required" in expect and required != sorted(expect["required"]):
            yield f"required {required}"
        yield from (
            f"{r} is not required" for r in expect.get("required_has", ()) if r not in required
        )

    def _instances(self, expect: dict[str, Json], schema: dict[str, Json]) -> Iterator[str]:
        validator = jsonschema.Draft202012Validator(schema)

        def valid(instance: Json) -> bool:
            return validator.is_valid(instance)  # pyright: ignore[reportUnknownMemberType]

        yield from (f"rejects {i}" for i in expect.get("accepts", ()) if not valid(i))
        yield from (f"accepts {i}" for i in expect.get("rejects", ()) if valid(i))
        for key, right in (("accepts_any", True), ("rejects_any", False)):
            groups: list[list[Json]] = expect.get(key, [])
            if groups and not any(all(valid(i) is right for i in group) for group in groups):
                yield f"{key} {groups}"

    def _parameter(self, name: str, want: dict[str, Json]) -> Iterator[str]:
        node = self._find(name)
        if node is None:
            yield f"no property {name}"
            return
        full = self._resolved(node)
        text = _flat(
            _own_description(node) or _own_description(full)
            if "$ref" not in node
            else node.get("description")
        )
        if "desc_eq" in want and text != _flat(want["desc_eq"]):
            yield f"{name}: description {text!r}"
        yield from (
            f"{name}: {text!r} lacks {h!r}"
            for h in want.get("desc_has", ())
            if _flat(h) not in text
        )
        if "default" in want and full.get("default", "__absent__") != want["default"]:
            yield f"{name}: default {full.get('default')!r}"
        if "default_any" in want and full.get("default", "__absent__") not in want["default_any"]:
            yield f"{name}: default {full.get('default')!r}"
        if "format" in want and want["format"] not in {
            v.get("format") for v in self._variants(node)
        }:
            yield f"{name}: no format {want['format']}"

    def _find(self, dotted: str) -> dict[str, Json] | None:
        node: dict[str, Json] = self.schema
        for part in dotted.split("."):
            found = [
                v["properties"][part]
                for v in self._variants(node)
                if part in v.get("properties", {})
            ]
            if not found:
                return None
            node = found[0]
        return node

    def _variants(self, node: dict[str, Json]) -> list[dict[str, Json]]:
        full = self._resolved(node)
        inner = [s for key in ("anyOf", "oneOf") for s in full.get(key, ())]
        return [full, *(v for s in inner for v in self._variants(s))]

    def _resolved(self, node: dict[str, Json]) -> dict[str, Json]:
        if "$ref" not in node:
            return node
        target = self.schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return {**self._resolved(target), **{k: v for k, v in node.items() if k != "$ref"}}


def _own_description(node: dict[str, Json]) -> str | None:
    if node.get("description"):
        return node["description"]
    inner: list[dict[str, Json]] = node.get("anyOf", [])
    return next((s["description"] for s in inner if s.get("description") and "$ref" not in s), None)
