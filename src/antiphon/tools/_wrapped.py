"""Tools made for LangChain or smolagents, used as ours.

They are known by their shape, so that neither package is imported here: their own objects say what
the model sees and run what it calls.
"""

from collections.abc import Mapping
from typing import Any

from antiphon.errors import ToolDefinitionError
from antiphon.messages import ToolSpec
from antiphon.messages._json_schema import Schema, as_schema
from antiphon.tools._names import valid_name
from antiphon.tools._schema import tidy
from antiphon.tools._tool import Tool

Values = dict[str, Any]

_OPTIONS: Values = {"timeout": 60.0}  # theirs mostly ask a network


def is_wrappable(value: object) -> bool:
    """Whether this is a tool object of LangChain or smolagents."""
    return _is_langchain(value) or _is_smolagents(value)


def wrap_tool(value: object, **options: Any) -> Tool[..., Any]:
    """A tool of LangChain or smolagents as one of ours.

    Args:
        value: An instance of LangChain's ``BaseTool`` or of smolagents' ``Tool``.
        options: See `Tool`: ``timeout`` (60 s here), ``approval``, and so on.

    Raises:
        ToolDefinitionError: It is neither.
    """
    if _is_langchain(value):
        return _from_langchain(value, options)
    if _is_smolagents(value):
        return _from_smolagents(value, options)
    raise ToolDefinitionError(
        f"{type(value).__name__} is no tool of LangChain or smolagents; "
        "wrap a function with tool(...)"
    )


def _is_langchain(value: object) -> bool:
    return all(hasattr(value, name) for name in ("name", "description", "args_schema", "ainvoke"))


def _is_smolagents(value: object) -> bool:
    inputs: Any = getattr(value, "inputs", None)
    return isinstance(inputs, Mapping) and all(
        hasattr(value, name) for name in ("name", "description", "output_type", "forward")
    )


def _from_langchain(value: Any, options: Values) -> Tool[..., Any]:
    # What the model may write: without the arguments that LangChain injects.
    shape: Any = getattr(value, "tool_call_schema", None) or value.args_schema
    schema: Schema = as_schema(shape) or shape.model_json_schema()
    schema = tidy({k: v for k, v in schema.items() if k != "description"})
    schema = {"type": "object", "properties": {}, **schema}

    async def call(values: Values) -> Any:
        return await value.ainvoke(values)

    return Tool.from_spec(_spec(value, schema), call, **(_OPTIONS | options))


def _from_smolagents(value: Any, options: Values) -> Tool[..., Any]:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for name, row in value.inputs.items():
        shown = {k: v for k, v in row.items() if k not in ("nullable", "required")}
        if shown.get("type") == "any":
            del shown["type"]
        properties[name] = shown
        if not row.get("nullable"):
            required.append(name)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required

    def call(values: Values) -> Any:
        return value(**values)

    return Tool.from_spec(_spec(value, schema), call, **(_OPTIONS | options))


def _spec(value: Any, schema: Schema) -> ToolSpec:
    return ToolSpec(valid_name(str(value.name)), str(value.description or ""), schema)
