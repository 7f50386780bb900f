"""What a model sees of a tool: its name, its description, and the JSON Schema of its arguments.

`ToolSpec.parameters` is plain JSON Schema 2020-12.  The spellings of the APIs are renderings of it,
made here and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from antiphon.errors import DataError, clip
from antiphon.messages._gemini import gemini
from antiphon.messages._restore import restore
from antiphon.messages._strict import ANTHROPIC, OPENAI, strict_schema


def _no_parameters() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    """What a call names."""
    description: str = ""
    """What the tool does and when to use it."""
    parameters: dict[str, Any] = field(default_factory=_no_parameters)
    """JSON Schema (2020-12) of the arguments: an object."""
    returns: dict[str, Any] | None = None
    """JSON Schema of the result, where it is known."""
    original: dict[str, Any] | None = field(default=None, compare=False)
    """The function object as it came from elsewhere: `to_openai` gives it back as it was, so that a
    template that prints it prints the same bytes."""
    wrapped: bool = True
    """Whether it came as ``{"type": "function", "function": ...}``; some families show which."""

    def to_openai(self, *, strict: bool = False) -> dict[str, Any]:
        """The spelling of OpenAI's Chat Completions, which most templates are given.

        Args:
            strict: Whether to use the strict mode, where this tool can be said in it; see
                `strict_problem`.  Arguments that come back go through `restore_arguments`.

        Raises:
            RenderError: The schema is nested too deep.
        """
        if strict:
            schema, _ = strict_schema(self.parameters, OPENAI, self.name)
            if schema is not None:
                function = {"name": self.name, "description": self.description}
                return {
                    "type": "function",
                    "function": {**function, "parameters": schema, "strict": True},
                }
        function = self.original
        if function is None:
            function = {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            }
        return {"type": "function", "function": function}

    def to_anthropic(self, *, strict: bool = False) -> dict[str, Any]:
        """The spelling of Anthropic's Messages.

        Args:
            strict: Whether to use the strict mode, where this tool can be said in it.

        Raises:
            RenderError: The schema is nested too deep.
        """
        tool = {"name": self.name, "description": self.description}
        if strict:
            schema, _ = strict_schema(self.parameters, ANTHROPIC, self.name)
            if schema is not None:
                return {**tool, "input_schema": schema, "strict": True}
        return {**tool, "input_schema": self.parameters}

    def to_gemini(self, *, json_schema: bool = False) -> dict[str, Any]:
        """The spelling of a Gemini function declaration.

        Args:
            json_schema: Whether to send JSON Schema (``parametersJsonSchema``), which newer models
                take, instead of the OpenAPI subset.

        Raises:
            RenderError: The schema is nested too deep.
        """
        tool = {"name": self.name, "description": self.description}
        if json_schema:
            return {**tool, "parametersJsonSchema": self.parameters}
        return {**tool, "parameters": gemini(self.parameters, self.name)}

    def to_mcp(self) -> dict[str, Any]:
        """The spelling of the Model Context Protocol's ``tools/list``."""
        schema = self.parameters
        if not schema.get("properties") and "additionalProperties" not in schema:
            schema = {"type": "object", "additionalProperties": False}
        tool = {"name": self.name, "description": self.description, "inputSchema": schema}
        return tool if self.returns is None else {**tool, "outputSchema": self.returns}

    def strict_problem(self, dialect: Literal["openai", "anthropic"] = "openai") -> str:
        """Why this tool cannot be said in an API's strict mode; empty where it can.

        Raises:
            RenderError: The schema is nested too deep.
        """
        rules = OPENAI if dialect == "openai" else ANTHROPIC
        return strict_schema(self.parameters, rules, self.name)[1]

    def restore_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as `parameters` has them, from a model that was shown any of the renderings.

        >>> schema = {"type": "object", "properties": {"days": {"type": "integer", "default": 3}}}
        >>> ToolSpec("forecast", "", schema).restore_arguments({"days": None})
        {}
        """
        return restore(self.parameters, arguments)

    @classmethod
    def from_openai(cls, spec: Mapping[str, Any]) -> "ToolSpec":
        """Read a spec in OpenAI's spelling, with or without the ``function`` wrapper.

        Args:
            spec: ``{"type": "function", "function": {...}}`` or the inner object.

        Raises:
            DataError: There is no name, or a field has the wrong type.
        """
        inner: object = spec.get("function", spec)
        function: Mapping[str, Any] = (
            cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {}
        )
        if not isinstance(function.get("name"), str):
            raise DataError(
                f"a tool spec needs a name, got {clip(spec)}; "
                'expected {"type": "function", "function": {"name": ..., "parameters": {...}}}'
            )
        parameters: object = function.get("parameters")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise DataError(
                f"parameters of tool {function['name']!r} must be a JSON Schema object, "
                f"got {clip(parameters)}"
            )
        return cls(
            name=function["name"],
            description=function.get("description") or "",
            parameters=_no_parameters()
            if parameters is None
            else dict(cast("Mapping[str, Any]", parameters)),
            original=dict(function),
            wrapped="function" in spec,
        )

    @classmethod
    def from_anthropic(cls, spec: Mapping[str, Any]) -> "ToolSpec":
        """Read a tool in Anthropic's spelling.

        Raises:
            DataError: There is no name, or a field has the wrong type.
        """
        return _from_flat(spec, "input_schema", None)

    @classmethod
    def from_mcp(cls, spec: Mapping[str, Any]) -> "ToolSpec":
        """Read a tool as an MCP server lists it.

        Raises:
            DataError: There is no name, or a field has the wrong type.
        """
        return _from_flat(spec, "inputSchema", "outputSchema")


def _from_flat(spec: Mapping[str, Any], key: str, returns_key: str | None) -> ToolSpec:
    name = spec.get("name")
    if not isinstance(name, str) or not name:
        raise DataError(
            f'a tool needs a name, got {clip(spec)}; expected {{"name": ..., "{key}": ...}}'
        )
    schemas: list[dict[str, Any] | None] = []
    for field_name in (key, returns_key):
        schema: Any = spec.get(field_name) if field_name else None
        if schema is not None and not isinstance(schema, Mapping):
            raise DataError(
                f"{field_name} of tool {name!r} must be a JSON Schema object, got {clip(schema)}"
            )
        schemas.append(None if schema is None else dict(cast("Mapping[str, Any]", schema)))
    parameters, returns = schemas
    return ToolSpec(
        name=name,
        description=spec.get("description") or "",
        parameters=_no_parameters() if parameters is None else parameters,
        returns=returns,
    )
