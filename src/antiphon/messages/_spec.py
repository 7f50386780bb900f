"""What a model sees of a tool: its name, its description, and the JSON Schema of its arguments.

`ToolSpec.parameters` is plain JSON Schema 2020-12.  The spellings of the APIs are renderings of it,
made here and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from antiphon.errors import DataError, clip


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

    def to_openai(self) -> dict[str, Any]:
        """The spelling of OpenAI's Chat Completions, which most templates are given."""
        function = self.original
        if function is None:
            function = {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            }
        return {"type": "function", "function": function}

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
