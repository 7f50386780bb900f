"""JSON Schema (2020-12) of parameters, and what it is made from: Python annotations.

Plain types (scalars, Literal, lists, dicts and unions of them) are written here directly; all
others by pydantic, which is imported only then.  The schema is plain: no titles, definitions
written in place unless they repeat or recurse.
"""

import json
import math
import types
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal

from antiphon.errors import ToolDefinitionError
from antiphon.tools._annotations import field_texts, readable, with_texts
from antiphon.tools._docstring import parse_docstring
from antiphon.tools._signature import EMPTY, Parameter, Signature

Schema = dict[str, Any]
_SCALARS: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    None: "null",
}


def parameters_schema(signature: Signature) -> Schema:
    """The schema of a callable's arguments: an object.

    Raises:
        ToolDefinitionError: A parameter has a type that JSON cannot carry.
    """
    shown = [(p.wire_name, p) for p in signature.parameters if p.kind != "context"]
    properties: dict[str, Schema] = {}
    definitions: Schema = {}
    slow: list[Parameter] = []
    for name, parameter in shown:
        schema = plain_schema(parameter.annotation)
        properties[name] = {} if schema is None else schema
        if schema is None:
            slow.append(parameter)
    if slow:
        made, definitions = _pydantic_schemas(signature, slow)
        properties.update(made)
    for name, parameter in shown:
        _decorate(properties[name], parameter)
    root: Schema = {"type": "object", "properties": properties}
    required = [name for name, parameter in shown if parameter.required]
    if required:
        root["required"] = required
    if definitions:
        root["$defs"] = definitions
    return root


def _decorate(schema: Schema, parameter: Parameter) -> None:
    """Write a parameter's description and default into its schema, which is nobody else's yet."""
    if parameter.description:
        schema.pop("description", None)
        for member in schema.get("anyOf") or ():
            if member.get("description") == parameter.description:
                del member["description"]
        schema["description"] = parameter.description
    if parameter.default is not EMPTY and parameter.default is not None:
        found, value = json_default(parameter.default)
        if found:
            schema["default"] = value


def plain_schema(annotation: Any) -> Schema | None:
    """The schema of an annotation made of plain types only; ``None`` for all others."""
    scalar = _SCALARS.get(annotation) if _hashable(annotation) else None
    if scalar is not None:
        return {"type": scalar}
    if annotation is Any or annotation is object:
        return {}
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if annotation is list or (origin is list and not arguments):
        return {"type": "array", "items": {}}
    if annotation is dict or (origin is dict and not arguments):
        return {"type": "object", "additionalProperties": True}
    if origin is Literal:
        return _literal_schema(arguments)
    if origin is list:
        items = plain_schema(arguments[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and arguments[0] is str:
        values = plain_schema(arguments[1])
        if values is None:
            return None
        return {"type": "object", "additionalProperties": values or True}
    if origin is typing.Union or origin is types.UnionType:
        return _union_schema(arguments)
    if origin is typing.Annotated and all(isinstance(m, str) for m in annotation.__metadata__):
        plain = plain_schema(arguments[0])
        return None if plain is None else {**plain, "description": annotation.__metadata__[-1]}
    return None


def _hashable(annotation: Any) -> bool:
    return isinstance(annotation, type) or annotation is None


def _literal_schema(values: Sequence[Any]) -> Schema | None:
    if any(isinstance(v, bytes | Enum) for v in values):
        return None
    kinds = {_SCALARS[type(v)] for v in values}
    schema: Schema = {"type": kinds.pop()} if len(kinds) == 1 else {}
    return {**schema, "enum": list(values)}


def _union_schema(members: Sequence[Any]) -> Schema | None:
    schemas = [plain_schema(m) for m in members]
    if any(s is None for s in schemas):
        return None
    if {} in schemas:
        return {}
    return {"anyOf": schemas}


def json_default(value: object) -> tuple[bool, Any]:
    """A default as JSON, where JSON can say it: whether it can, and the value."""
    if isinstance(value, Enum):
        return json_default(value.value)
    if isinstance(value, str | bool | int):
        return True, value
    if isinstance(value, float):
        return math.isfinite(value), value
    try:
        from pydantic_core import to_jsonable_python

        made = to_jsonable_python(value, by_alias=True)
        json.dumps(made, allow_nan=False)
    except Exception:  # a sentinel, an object, inf: left for Python to fill in
        return False, None
    return True, made


def returns_schema(signature: Signature) -> Schema | None:
    """The schema of the result, where the return annotation says one."""
    annotation = signature.returns
    if annotation is EMPTY or annotation is type(None) or signature.is_generator:
        return None
    schema = plain_schema(annotation)
    if schema is None:
        try:
            from pydantic import TypeAdapter

            made = TypeAdapter(annotation).json_schema(
                schema_generator=_generator(), mode="serialization"
            )
        except Exception:  # a class of the user's own: the result has no schema, the tool works
            return None
        schema = tidy(made)
    if schema and signature.returns_text and "description" not in schema:
        schema = {**schema, "description": signature.returns_text}
    return schema or None


def _pydantic_schemas(
    signature: Signature, parameters: Sequence[Parameter]
) -> tuple[dict[str, Schema], Schema]:
    from pydantic import TypeAdapter

    adapters: list[tuple[str, Any, Any]] = []
    for parameter in parameters:
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                # an alias is read here, and means nothing to an adapter by itself
                adapter: Any = TypeAdapter(with_texts(parameter.annotation))
            adapter.json_schema(schema_generator=_generator())
        except Exception as error:
            raise undescribable(signature, parameter, error) from error
        adapters.append((parameter.wire_name, "validation", adapter))
    keyed, whole = TypeAdapter.json_schemas(adapters, schema_generator=_generator())
    schemas: dict[str, Schema] = {key[0]: dict(schema) for key, schema in keyed.items()}
    root = tidy({"properties": schemas, "$defs": whole.get("$defs", {})})
    return root["properties"], root.get("$defs", {})


def undescribable(
    signature: Signature, parameter: Parameter, error: Exception
) -> ToolDefinitionError:
    """The error for a parameter that JSON cannot carry."""
    kind = getattr(parameter.annotation, "__qualname__", None) or repr(parameter.annotation)
    module = getattr(parameter.annotation, "__module__", "builtins")
    full = kind if module in ("builtins", "typing") else f"{module}.{kind}"
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ToolDefinitionError(
        f"{signature.where}: tool {signature.name!r}: parameter {parameter.name!r} has type "
        f"{full}, which no JSON can carry ({reason[:120]}); give it a type a model can write, "
        "or bind it with functools.partial"
    )


_GENERATOR: list[type] = []


def _generator() -> Any:
    """pydantic's schema generator without generated titles; made once pydantic is needed."""
    if not _GENERATOR:
        from pydantic.json_schema import GenerateJsonSchema

        class Untitled(GenerateJsonSchema):
            ignored_warning_kinds: typing.ClassVar[Any] = {
                "skipped-choice",
                "non-serializable-default",
            }

            def field_title_should_be_set(self, schema: Any) -> bool:
                return False

            def encode_default(self, dft: Any) -> Any:
                found, value = json_default(dft)
                if not found:
                    raise ValueError("no JSON for this default")
                return value

            def model_schema(self, schema: Any) -> Any:
                kind = schema["cls"]
                return _documented(super().model_schema(schema), kind, _wire_names(kind))

            def dataclass_schema(self, schema: Any) -> Any:
                return _documented(super().dataclass_schema(schema), schema["cls"], {})

            def typed_dict_schema(self, schema: Any) -> Any:
                made, kind = super().typed_dict_schema(schema), schema.get("cls")
                return made if kind is None else _documented(made, kind, {})

            def call_schema(self, schema: Any) -> Any:  # how older pydantic has named tuples
                return _documented_items(super().call_schema(schema), schema["function"])

            def named_tuple_schema(self, schema: Any) -> Any:
                made: Any = super()
                return _documented_items(made.named_tuple_schema(schema), schema["cls"])

        _GENERATOR.append(Untitled)
    return _GENERATOR[0]


def _documented(made: Schema, kind: type, names: Mapping[str, str]) -> Schema:
    """A class's schema with what its source, docstring and annotations say of it and its fields."""
    doc = parse_docstring(kind.__dict__.get("__doc__"))
    if made.get("description") and doc.parameters:
        made["description"] = doc.description
        if not doc.description:
            del made["description"]
    fields: dict[str, Schema] = made.get("properties") or {}
    for name, text in field_texts(kind).items():
        if names.get(name, name) in fields:
            fields[names.get(name, name)].setdefault("description", text)
    return made


def _documented_items(made: Schema, kind: Any) -> Schema:
    """A named tuple's schema, likewise; what it says nothing of is described by its name."""
    names: Any = getattr(kind, "_fields", None)
    if isinstance(kind, type) and names:
        texts = field_texts(kind)
        for name, item in zip(names, made.get("prefixItems", ()), strict=False):
            item.setdefault("description", texts.get(name, name))
    return made


def _wire_names(kind: type) -> dict[str, str]:
    """What a model calls its fields in JSON, where that is another name."""
    fields = typing.cast("dict[str, Any]", getattr(kind, "model_fields", {}))
    return {n: f.validation_alias for n, f in fields.items() if isinstance(f.validation_alias, str)}


_MAPS = ("properties", "$defs", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONES = ("items", "additionalProperties", "not", "contains", "propertyNames")


def children(schema: Schema) -> list[Schema]:
    """The schemas directly inside one: a parameter named ``title`` or ``items`` is not mistaken."""
    out: list[Any] = []
    for key in _MAPS:
        out.extend(schema.get(key, {}).values())
    for key in _LISTS:
        out.extend(schema.get(key, ()))
    out.extend(schema[key] for key in _ONES if key in schema)
    return [child for child in out if isinstance(child, dict)]


def map_children(schema: Schema, change: Callable[[Any], Any]) -> Schema:
    """A copy of a schema with `change` applied to each schema directly inside it."""
    out = dict(schema)
    for key in _MAPS:
        if isinstance(out.get(key), dict):
            out[key] = {name: change(child) for name, child in out[key].items()}
    for key in _LISTS:
        if isinstance(out.get(key), list):
            out[key] = [change(child) for child in out[key]]
    for key in _ONES:
        if isinstance(out.get(key), dict):
            out[key] = change(out[key])
    return out


def tidy(root: Schema) -> Schema:
    """Without titles, and with definitions written in place where they are used once."""
    definitions: Schema = root.get("$defs", {})
    uses: dict[str, int] = dict.fromkeys(definitions, 0)
    _count_references(root, uses)
    recursive = {name for name in definitions if _reaches(name, name, definitions, set())}

    def change(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        schema = typing.cast("Schema", node)
        schema = {k: v for k, v in schema.items() if k != "title" or not isinstance(v, str)}
        name = _reference(schema)
        if name in definitions and name not in recursive and uses.get(name, 0) == 1:
            return {**change(definitions[name]), **{k: v for k, v in schema.items() if k != "$ref"}}
        return map_children(schema, change)

    kept = {n: change(d) for n, d in definitions.items() if n in recursive or uses[n] > 1}
    out = change({k: v for k, v in root.items() if k != "$defs"})
    if kept:
        out["$defs"] = kept
    return out


def _reference(schema: Schema) -> str:
    target = schema.get("$ref")
    return target.removeprefix("#/$defs/") if isinstance(target, str) else ""


def _count_references(node: Schema, uses: dict[str, int]) -> None:
    name = _reference(node)
    if name in uses:
        uses[name] += 1
    for child in children(node):
        _count_references(child, uses)


def _reaches(start: str, goal: str, definitions: Schema, seen: set[str]) -> bool:
    names: dict[str, int] = dict.fromkeys(definitions, 0)
    _count_references(definitions[start], names)
    for name, count in names.items():
        if count and name == goal:
            return True
        if count and name not in seen:
            seen.add(name)
            if _reaches(name, goal, definitions, seen):
                return True
    return False


def class_schema(kind: type) -> Schema:
    """The schema of a class whose fields are the arguments.

    Raises:
        ToolDefinitionError: A field has a type that JSON cannot carry.
    """
    from pydantic import TypeAdapter

    try:
        made = TypeAdapter[Any](readable(kind)).json_schema(schema_generator=_generator())
    except Exception as error:
        raise ToolDefinitionError(
            f"class {kind.__qualname__} cannot be described as a tool "
            f"({str(error).splitlines()[0]}); give its fields types that a model can write"
        ) from error
    root = tidy(made)
    if "$ref" in root:  # a class that contains itself
        root = {**root["$defs"][_reference(root)], "$defs": root["$defs"]}
    root.pop("description", None)
    return root
