"""An answer as a value of a type: offered as a final tool, read from text, checked, explained.

The type's schema and checks are pydantic's; every type that it knows will do.  Text around the JSON
and a Markdown fence are allowed: models write them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from antiphon.errors import UsageError, clip
from antiphon.messages import JsonObject, dump_json
from antiphon.tools import Tool, tool

FINAL_TOOL = "final_answer"
"""The name of the tool that gives an answer of an `output_type`."""

OutputMode = Literal["tool", "text", "native"]
"""How a model is told the type: by a final tool, in the instructions, or by the server's own
``response_format``."""

_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_MAX_ERRORS = 5


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a text is no answer of the type."""

    reason: str
    """What is wrong, in words a model can act on."""


class Output:
    """An output type, prepared once."""

    def __init__(self, type: Any, mode: OutputMode) -> None:
        """Prepare.

        Raises:
            UsageError: pydantic does not know the type.
        """
        self.mode = mode
        self._adapter: TypeAdapter[Any] = _adapter(type)
        self.schema: JsonObject = self._adapter.json_schema()
        self.is_object = self.schema.get("type") == "object"
        self.tool: Tool[..., Any] | None = None if mode != "tool" else self._final_tool(type)

    def _final_tool(self, type: Any) -> Tool[..., Any]:
        def final_answer(answer: Any) -> Any:
            return answer

        final_answer.__annotations__["answer"] = type
        return tool(
            final_answer,
            name=FINAL_TOOL,
            description="Give the final answer. Call this once, when the work is done.",
            threaded=False,
        )

    def instructions(self) -> str:
        """What is added to the instructions in mode ``text``."""
        return f"Answer with JSON alone that fits this JSON Schema:\n{dump_json(self.schema)}"

    def response_format(self) -> JsonObject:
        """What is asked of the server in mode ``native``."""
        schema: JsonObject = {"name": FINAL_TOOL, "schema": self.schema, "strict": True}
        return {"type": "json_schema", "json_schema": schema}

    def read(self, text: str) -> Any:
        """The value that a text holds, or why it holds none.

        Args:
            text: An answer: JSON, with or without a fence and text around it.
        """
        reason = "there is no JSON in it"
        for found in _json_in(text):
            try:
                return self._adapter.validate_json(json.dumps(found))
            except ValidationError as error:
                reason = _explained(error)
        return Unfit(reason)

    def feedback(self, unfit: Unfit) -> str:
        """What the model is told of an answer of the wrong type."""
        how = f"Call {FINAL_TOOL}, or answer" if self.tool is not None else "Answer"
        return (
            f"Your answer is not of the kind asked for: {unfit.reason}. {how} with JSON alone that "
            f"fits this JSON Schema: {dump_json(self.schema)}"
        )

    def text(self, value: Any) -> str:
        """A value as JSON text, for the record."""
        return self._adapter.dump_json(value).decode("utf-8", "replace")


def _adapter(type: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(type)
    except Exception as error:  # pydantic raises many kinds for a type that it cannot describe
        raise UsageError(
            f"output_type {clip(type)} cannot be described: {error}".splitlines()[0]
        ) from error


def _explained(error: ValidationError) -> str:
    parts = [
        f"{'.'.join(str(place) for place in e['loc']) or 'the value'}: {e['msg'].lower()}"
        for e in error.errors(include_url=False)[:_MAX_ERRORS]
    ]
    return "; ".join(parts)


def _json_in(text: str) -> Iterator[Any]:
    """The JSON values in a text: the whole of it, a fence's, then the first object or list."""
    for candidate in (text, *(found[1] for found in _FENCE.finditer(text))):
        try:
            yield json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder()
    for found in re.finditer(r"[\[{]", text):
        try:
            yield decoder.raw_decode(text, found.start())[0]
        except (ValueError, RecursionError):
            continue
        return
