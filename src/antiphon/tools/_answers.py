"""What a model is told when its arguments cannot be used: what is wrong, and the way back."""

import json
from collections.abc import Sequence
from typing import Any, cast

Schema = dict[str, Any]
_KINDS = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "text"), (list, "array"))


class Rejected(Exception):
    """The arguments cannot be used; the message is what the model is told."""


def rejection(name: str, schema: Schema, problems: Sequence[str], sent: object) -> Rejected:
    """The answer to arguments that cannot be used.

    Args:
        name: The tool's name.
        schema: What it expects.
        problems: What is wrong, a clause each.
        sent: What the model sent.
    """
    shown = list(problems[:5])
    if len(problems) > 5:
        shown.append(f"and {len(problems) - 5} more")
    missing = [p.split("'")[1] for p in problems if p.endswith("' is missing")]
    again = "Call it again with " + (
        "the required " + ", ".join(f'"{m}"' for m in missing[:5])
        if missing
        else "arguments of that shape"
    )
    return Rejected(
        f"{name} rejected its arguments: {'; '.join(shown)}. "
        f"You sent {_clip_sent(sent)}; expected {brief(schema)}. {again}."
    )


def kind_of(value: object) -> str:
    """What a JSON value is, in a word."""
    if value is None:
        return "null"
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "object")


def article(kind: str) -> str:
    """A kind with its article."""
    if kind in ("null", "text"):
        return kind
    return f"an {kind}" if kind[0] in "aio" else f"a {kind}"


def path_text(loc: Sequence[Any]) -> str:
    """A place in the arguments, as in ``lines[1].depth``."""
    out = ""
    for part in loc:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            out += f".{part}" if out else str(part)
    return out or "arguments"


def clip_json(value: object, limit: int = 80) -> str:
    """A value as JSON text, shortened in the middle."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 20]}...{text[-15:]}"


def _clip_sent(sent: object, limit: int = 300) -> str:
    if sent is None:
        return "nothing"
    text = (
        sent.decode("utf-8", "replace")
        if isinstance(sent, bytes)
        else sent
        if isinstance(sent, str)
        else clip_json(sent, limit)
    )
    return text if len(text) <= limit else f"{text[: limit - 50]}...{text[-40:]}"


def brief(schema: Schema, depth: int = 0, root: Schema | None = None) -> str:
    """A schema in a few words, for an answer to the model.

    Args:
        schema: The schema.
        depth: How deep it stands.
        root: Where its definitions are; in itself where not given.

    >>> brief({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
    '{"city": string}'
    """
    root = schema if root is None else root
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name and depth < 3 and name in root.get("$defs", {}):
        schema = root["$defs"][name]
    if "enum" in schema:
        return " | ".join(json.dumps(v, ensure_ascii=False) for v in schema["enum"][:12])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(brief(s, depth + 1, root) for s in schema[key][:6]))
    kind = schema.get("type")
    if kind == "object" and schema.get("properties") and depth < 3:
        required = schema.get("required", ())
        inside = ", ".join(
            f'"{name}"{"" if name in required else "?"}: {brief(s, depth + 1, root)}'
            for name, s in list(schema["properties"].items())[:20]
        )
        return "{" + inside + "}"
    if kind == "array":
        items = schema.get("items")
        known = isinstance(items, dict) and depth < 4
        return f"[{brief(cast('Schema', items), depth + 1, root) if known else 'any'}]"
    if isinstance(kind, list):
        return " | ".join(cast("list[str]", kind))
    if kind == "object" and depth == 0:
        return "{}"
    if "format" in schema and kind == "string":
        return f"string ({schema['format']})"
    return kind if isinstance(kind, str) else ("object" if "$ref" in schema else "any")
