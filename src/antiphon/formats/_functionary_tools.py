"""Functionary 3.2's tools: TypeScript types in a namespace, with what is known of them in comments.

    // Weather in a city.
    type get_weather = (_: {
    // City name.
    city: string,
    unit?: "celsius" | "fahrenheit",
    }) => any;

Source: the macros of ``meetkai-functionary-medium-v3.2.jinja``, their slips kept: arrays of enums
have no comma of their own, inner arrays lose the depth of their declaration.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.messages import ToolSpec

_NUMBERS = ("integer", "float")
_BOUNDS = (
    ("maximum", "Maximum"),
    ("minimum", "Minimum"),
    ("maxLength", "Maximum length"),
    ("minLength", "Minimum length"),
)


def namespace(tools: Sequence[ToolSpec]) -> str:
    """The tools as a namespace."""
    functions = "".join(map(_function, tools))
    return (
        "// Supported function definitions that should be called when necessary.\n"
        f"namespace functions {{\n\n{functions}}} // namespace functions"
    )


def _function(spec: ToolSpec) -> str:
    parameters = spec.parameters
    head = f"// {spec.description}\ntype {spec.name}"
    properties = _mapping(parameters.get("properties"))
    if not properties:
        return f"{head} = () => any;\n\n"
    members = _members(properties, parameters.get("required") or (), 0)
    return f"{head} = (_: {{{members}\n}}) => any;\n\n"


def _members(properties: Mapping[str, Any], required: Sequence[str], depth: int) -> str:
    return "".join(
        _member(name, cast("Mapping[str, Any]", schema), name in required, depth)
        for name, schema in properties.items()
        if isinstance(schema, Mapping)
    )


def _member(name: str, schema: Mapping[str, Any], required: bool, depth: int) -> str:
    offset = "\n" + "    " * depth
    declared = name if required else name + "?"
    kind = _type(schema)
    items = _mapping(schema.get("items"))
    nests = kind == "object" or (kind == "array" and "type" in items)
    comment = _comment(name, schema, offset, nests=nests)
    if kind == "object":
        inner = _members(
            _mapping(schema.get("properties")), schema.get("required") or (), depth + 1
        )
        return f"{comment}{offset}{declared}: {{{inner}{offset}}},"
    if kind == "array":
        if not nests:
            return f"{comment}{offset}{declared}: [],"
        array = _array(declared, schema, depth)
        return comment + array + ("" if array.endswith(",") else ",")
    if "enum" in schema:
        kind = _options(schema["enum"])
    if schema.get("nullable"):
        kind += " | null"
    return f"{comment}{offset}{declared}: {kind},"


def _array(name: str | None, schema: Mapping[str, Any], depth: int) -> str:
    offset = "\n" + "    " * depth
    items = _mapping(schema.get("items"))
    head = offset + (f"{name}: " if name else "")
    if not items:
        return f"{head}[]"
    kind = _type(items)
    if kind == "object":
        inner = _members(_mapping(items.get("properties")), items.get("required") or (), depth + 1)
        return f"{head}{{{inner}{offset}}}[]"
    if kind == "array":
        inner = _array(None, items, depth + 1)
        return f"{head}{inner.strip()}[]" if name else f"\n{inner}[]"
    if "enum" in items:
        options = _options(items["enum"])
        return f"{head}({options})[]" if name else f"({options})[]"
    return f"{head}{kind}[]," if name else f"\n{kind}[]"


def _comment(name: str, schema: Mapping[str, Any], offset: str, *, nests: bool) -> str:
    """What is said of a parameter, and its examples; those alone only where it nests others."""
    text = _said(schema)
    examples = cast("Sequence[Any]", schema.get("examples") or ()) if "examples" in schema else ()
    if not text and not nests:
        return ""
    lines = [text] if text else []
    if "examples" in schema:
        lines.append(f"// Example {name}:")
        lines += ["// " + str(example).replace("'", '"') for example in examples]
    return "".join(offset + line for line in lines)


def _said(schema: Mapping[str, Any]) -> str:
    format = _format(schema)
    bounded = any(schema.get(key) for key, _ in _BOUNDS)
    if not ("description" in schema or "default" in schema or format is not None or bounded):
        return ""
    text = "//"
    if "description" in schema:
        description = str(schema["description"])
        text += " " + description + ("" if description.endswith(".") else ".")
    if "default" in schema:
        default = schema["default"]
        quoted = f'"{default}"' if schema.get("type") == "string" else str(default)
        text += f" Default={quoted}."
    if format is not None:
        text += f" Format={format}"
    return text + "".join(f" {word}={schema[key]}" for key, word in _BOUNDS if key in schema)


def _format(schema: Mapping[str, Any]) -> str | None:
    if "format" in schema:
        return str(schema["format"])
    if "oneOf" not in schema:
        return None
    options = [_mapping(option) for option in schema["oneOf"]]
    last = options[-1].get("format") if options else None
    found = [str(option["format"]) for option in options if "format" in option]
    return "".join(f if f == last else f"{f} or " for f in found)


def _type(schema: Mapping[str, Any]) -> str:
    kind: Any = schema.get("type")
    if kind is not None:
        kind = (
            " | ".join(map(str, cast("list[Any]", kind))) if isinstance(kind, list) else str(kind)
        )
    elif "oneOf" in schema:
        kinds = [str(_mapping(o)["type"]) for o in schema["oneOf"] if "type" in _mapping(o)]
        kind = " | ".join(dict.fromkeys(kinds))
    else:
        return ""  # a slip of the template: it means to say ``any``
    return "number" if kind in _NUMBERS else kind


def _options(values: Sequence[Any]) -> str:
    texts = [f'"{value}"' if isinstance(value, str) else str(value) for value in values]
    last = values[-1] if values else None
    return "".join(t if v == last else f"{t} | " for t, v in zip(texts, values, strict=True))


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
