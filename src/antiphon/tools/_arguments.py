"""From the JSON a model wrote to the Python values of a call, or to an answer it can act on.

Strict first: what is right costs one pass.  What is not is read again leniently, then with JSON
text unpacked where an array or object was expected; each slip that was mended is recorded.  Text
for a text parameter is never touched, and text that is not JSON is never guessed at.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from antiphon.errors import ToolDefinitionError
from antiphon.messages._json_schema import resolve
from antiphon.messages._restore import restore
from antiphon.tools._annotations import readable
from antiphon.tools._answers import (
    Rejected,
    article,
    brief,
    clip_json,
    kind_of,
    path_text,
    rejection,
)
from antiphon.tools._schema import Schema, plain_schema, undescribable
from antiphon.tools._signature import Parameter, Signature

Values = dict[str, Any]
_MAX_UNPACKED = 3  # JSON text in JSON text in JSON text
_SCALAR_TYPES = frozenset({"string", "integer", "number", "boolean", "null"})
_CONTAINER_ERRORS = frozenset(
    {
        "list_type",
        "tuple_type",
        "set_type",
        "frozen_set_type",
        "iterable_type",
        "dict_type",
        "mapping_type",
        "model_type",
        "model_attributes_type",
        "dataclass_type",
        "dataclass_exact_type",
        "named_tuple_type",
        "arguments_type",
        "union_tag_not_found",
        "union_tag_invalid",
    }
)


class ArgumentReader:
    """Reads the arguments of one tool; the validator is built on first use and kept.

    Args:
        name: The tool's name, for answers.
        schema: The JSON Schema that the model was shown.
        signature: What the function takes.
        whole: A class whose instance the arguments make, in place of a signature.
    """

    def __init__(
        self, name: str, schema: Schema, signature: Signature, whole: type | None = None
    ) -> None:
        self.name = name
        self.schema = schema
        self.signature = signature
        self.whole = whole
        self.properties: dict[str, Schema] = schema.get("properties", {})
        self._scalar = False
        self._optional: set[str] = set()
        self._validator: Any = None

    def read(self, arguments: str | bytes | Mapping[str, Any] | None) -> tuple[Values, list[str]]:
        """The values to call the function with, and what was mended to get them.

        Only what the model sent is in the values: defaults are left to Python.

        Raises:
            Rejected: They cannot be used.
        """
        validator = self._validator or self._build()
        try:
            if isinstance(arguments, str | bytes):
                if (
                    "NaN" in arguments or "Infinity" in arguments
                    if isinstance(arguments, str)
                    else b"N" in arguments
                ):
                    self._refuse_nan(arguments)
                return validator.validate_json(arguments, strict=True), []
            if arguments is None:
                return validator.validate_json("{}", strict=True), []
            if self._scalar:
                return validator.validate_python(arguments, strict=True), []
            return validator.validate_json(self._dump(arguments), strict=True), []
        except ValueError as error:
            return self._mend(arguments, error)

    def prepare(self) -> None:
        """Build the validator now.

        Raises:
            ToolDefinitionError: pydantic cannot build one.
        """
        if self._validator is None:
            self._build()

    def _build(self) -> Any:
        from typing import NotRequired, Required

        from pydantic import ConfigDict, TypeAdapter
        from typing_extensions import TypedDict

        if self.whole is not None:
            self._validator = TypeAdapter[Any](readable(self.whole)).validator
            return self._validator
        parameters = self.signature.parameters
        self._scalar = all(_is_scalar(p) for p in parameters)
        self._optional = {p.wire_name for p in parameters if not p.required and not _takes_null(p)}
        fields: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.kind != "context":
                wrap: Any = Required if parameter.required else NotRequired
                fields[parameter.name] = wrap[self._checked(parameter)]
        shape: Any = TypedDict("Arguments", fields)  # type: ignore[operator]  # fields are made here
        shape.__pydantic_config__ = ConfigDict(
            extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
        )
        try:
            self._validator = TypeAdapter[Any](shape).validator
        except Exception as error:
            raise self._blame(error) from error
        return self._validator

    def _checked(self, parameter: Parameter) -> Any:
        """The type of a parameter; ``**`` ones may not stand for others, contexts least of all."""
        if parameter.kind != "double_star":
            return parameter.annotation
        from pydantic import AfterValidator

        taken = {p.name for p in self.signature.parameters if p.kind != "positional"}

        def check(given: Values) -> Values:
            for name in given:
                if name in taken:
                    raise ValueError(f"may not hold {name!r}, which is a name of its own")
            return given

        return Annotated[parameter.annotation, AfterValidator(check)]

    def _blame(self, error: Exception) -> ToolDefinitionError:
        from pydantic import TypeAdapter

        for parameter in self.signature.parameters:
            try:
                TypeAdapter[Any](parameter.annotation)
            except Exception as cause:
                return undescribable(self.signature, parameter, cause)
        return ToolDefinitionError(
            f"{self.signature.where}: tool {self.name!r} has no validator ({error})"
        )

    def _dump(self, arguments: Mapping[str, Any]) -> bytes:
        from pydantic_core import to_json

        try:
            return to_json(arguments, inf_nan_mode="constants")
        except (ValueError, TypeError) as error:
            raise self._rejected(
                [f"they cannot be written as JSON ({error})"], arguments
            ) from error

    def _refuse_nan(self, text: str | bytes) -> None:
        """NaN and Infinity are not JSON, though many parsers take them."""

        def refuse(name: str) -> Any:
            raise self._rejected([f"{name} is not JSON"], text)

        try:
            json.loads(text, parse_constant=refuse)
        except (ValueError, RecursionError):
            return  # the validator says what is wrong, with the position

    def _mend(
        self, arguments: str | bytes | Mapping[str, Any] | None, error: ValueError
    ) -> tuple[Values, list[str]]:
        if isinstance(error, UnicodeError):
            raise self._rejected([f"they are not valid UTF-8 ({error.reason})"], arguments)  # type: ignore[attr-defined]
        if not hasattr(error, "errors"):
            raise error
        problems = _errors(error)
        if isinstance(arguments, str | bytes):
            if not arguments.strip():
                return self.read("{}")
            if problems and problems[0]["type"] == "json_invalid":
                reason = problems[0]["msg"].removeprefix("Invalid JSON: ")
                raise self._rejected([f"they are not valid JSON ({reason})"], arguments)
            given: Any = json.loads(arguments)
        else:
            given = arguments
        repairs: list[str] = []
        if isinstance(given, str) and given.lstrip().startswith("{"):
            given = _json_inside(given)
            repairs.append("arguments: JSON text unpacked")
        if given is None and not self.properties:
            return {}, ["arguments: null read as none"]
        if not isinstance(given, Mapping):
            kind = "null" if given is None else kind_of(given)
            raise self._rejected([f"they must be one JSON object, not {article(kind)}"], arguments)
        given = dict(cast("Mapping[str, Any]", given))
        return self._leniently(given, repairs, arguments)

    def _leniently(
        self, given: Values, repairs: list[str], sent: object
    ) -> tuple[Values, list[str]]:
        validator = self._validator
        for name in [n for n in given if given[n] is None and n in self._optional]:
            del given[name]
            repairs.append(f"{name}: null left out, the default is used")
        for depth in range(_MAX_UNPACKED + 1):
            try:
                strict = validator.validate_json(self._dump(given), strict=True)
                return strict, repairs
            except ValueError as error:
                slips = _errors(error)
            try:
                values = validator.validate_json(self._dump(given))
                return values, repairs + _slip_records(slips)
            except ValueError as error:
                problems = _errors(error)
                if depth == _MAX_UNPACKED or not (
                    _unpack(given, problems, repairs) or self._unpair(given, repairs)
                ):
                    raise self._rejected(self._explain(given, problems), sent) from error
        raise AssertionError("the last pass returns or raises")

    def _unpair(self, given: Values, repairs: list[str]) -> bool:
        """Undo what a strict rendering of the schema asked for; whether there was any of it."""
        restored = restore(self.schema, given)
        if restored == given:
            return False
        given.clear()
        given.update(restored)
        repairs.append("arguments: key-value pairs read as objects")
        return True

    def _explain(self, given: Values, problems: Sequence[dict[str, Any]]) -> list[str]:
        out: list[str] = []
        unions: set[Any] = set()
        for problem in problems:
            loc: tuple[Any, ...] = problem["loc"]
            top = loc[0] if loc else ""
            schema = self.properties.get(top, {}) if isinstance(top, str) else {}
            schema = resolve(schema, self.schema) if "$ref" in schema else schema
            if not _is_open_union(schema, problem) or problem["type"] == "extra_forbidden":
                out.append(self._sentence(problem, _written_loc(given, loc)))
            elif top not in unions:
                unions.add(top)
                sent = _walk_top(problems, top)
                out.append(f"'{top}' should be {brief(schema, root=self.schema)}{sent}")
        return out

    def _sentence(self, problem: dict[str, Any], loc: tuple[Any, ...]) -> str:
        path = path_text(loc)
        if problem["type"] == "missing":
            return f"'{path}' is missing"
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(path, self.properties, n=1) if len(loc) == 1 else []
            hint = f", did you mean '{near[0]}'?" if near else ""
            return f"'{path}' is not a parameter{hint}"
        message = str(problem["msg"]).removeprefix("Input ").removeprefix("Value error, ")
        message = message[:1].lower() + message[1:]
        return f"'{path}' {message}, got {clip_json(problem.get('input'))}"

    def _rejected(self, problems: Sequence[str], sent: object) -> Rejected:
        return rejection(self.name, self.schema, problems, sent)


def _is_scalar(parameter: Parameter) -> bool:
    if parameter.kind == "context":
        return True
    schema = plain_schema(parameter.annotation)
    if schema is None:
        return False
    return schema.get("type") in _SCALAR_TYPES or "enum" in schema


def _takes_null(parameter: Parameter) -> bool:
    from antiphon.tools._signature import allows_none

    return parameter.annotation is Any or allows_none(parameter.annotation)


def _errors(error: ValueError) -> list[dict[str, Any]]:
    details: Any = error
    return details.errors(include_url=False, include_context=False)


def _slip_records(slips: Sequence[dict[str, Any]]) -> list[str]:
    """What the strict pass refused and the lenient one took."""
    records: list[str] = []
    for slip in slips:
        expected = str(slip["type"]).removesuffix("_type").removesuffix("_parsing")
        record = f"{path_text(slip['loc'])}: {kind_of(slip.get('input'))} read as {expected}"
        if record not in records:
            records.append(record)
    return records


def _unpack(given: Values, problems: Sequence[dict[str, Any]], repairs: list[str]) -> bool:
    """Parse JSON text where an array or object was expected; whether there was any."""
    found = False
    for problem in problems:
        if problem["type"] not in _CONTAINER_ERRORS or not isinstance(problem.get("input"), str):
            continue
        holder, key = _place(given, problem["loc"])
        if holder is None or not isinstance(holder[key], str):
            continue
        inside = _json_inside(holder[key])
        if isinstance(inside, list | dict):
            holder[key] = inside
            repairs.append(f"{path_text(problem['loc'][:1])}: JSON text unpacked")
            found = True
    return found


def _place(given: Any, loc: Sequence[Any]) -> tuple[Any, Any]:
    """Where in the arguments an error lies; the names of union members in its path are skipped."""
    holder: Any = None
    key: Any = None
    here: Any = given
    for part in loc:
        below = _below(here, part)
        if below is not _NOTHING:
            holder, key, here = here, part, below
    return holder, key


def _is_open_union(schema: Schema, problem: Mapping[str, Any]) -> bool:
    """Whether several variants are possible, and it is not known which one was meant."""
    variants = schema.get("anyOf") or schema.get("oneOf") or ()
    real = [variant for variant in variants if variant.get("type") != "null"]
    if len(real) == 1:  # or null: of the wrong kind as a whole, or wrong in itself
        return len(problem["loc"]) == 1 and problem["type"].endswith(("_type", "_parsing"))
    return len(real) > 1 and "discriminator" not in schema


def _written_loc(given: Any, loc: Sequence[Any]) -> tuple[Any, ...]:
    """A place as the model wrote it: without the names of variants that its checks went through."""
    here: Any = given
    kept: list[Any] = []
    for at, part in enumerate(loc):
        below = _below(here, part)
        if below is not _NOTHING:
            here = below
        if below is not _NOTHING or at == len(loc) - 1:
            kept.append(part)
    return tuple(kept)


_NOTHING: Any = object()


def _below(holder: Any, part: Any) -> Any:
    """What an object or array holds at a key or position."""
    if isinstance(holder, dict):
        return cast("dict[Any, Any]", holder).get(part, _NOTHING)
    if isinstance(holder, list) and isinstance(part, int):
        items = cast("list[Any]", holder)
        return items[part] if part < len(items) else _NOTHING
    return _NOTHING


def _json_inside(text: str) -> Any:
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _walk_top(problems: Sequence[dict[str, Any]], top: Any) -> str:
    for problem in problems:
        if problem["loc"][:1] == (top,):
            return f", got {clip_json(problem.get('input'))}"
    return ""
