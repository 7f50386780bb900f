"""SmolLM2: ChatML turns, calls as one JSON array between <tool_call> and </tool_call>.

    <|im_start|>assistant
    <tool_call>[
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    ]</tool_call><|im_end|>

Two ways to list the tools: as the family publishes it (JSON in a long instruction, `compact` off), and
as one signature a line under a short instruction (`compact` on), which is what the embedded model
`local` is trained on: a fifth of the tokens.  Calls and results are the same in both.

Differs from upstream: several calls are joined by ",\\n" (the published Ollama template writes no
separator, so its own array is not JSON), and text before a call is kept.
Source: Ollama library ``smollm2:1.7b-instruct`` template, layer dfebd0343bdd (tools, calls and results).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from antiphon.errors import RenderError
from antiphon.formats._signature import signature
from antiphon.formats._types import Piece, Rendered
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec, dump_json

_PUBLISHED = """\
You are an expert in composing functions. You are given a question and a set of possible functions.
Based on the question, you will need to make one or more function/tool calls to achieve the purpose.
If none of the functions can be used, point it out and refuse to answer.
If the given question lacks the parameters required by the function, also point it out.
You have access to the following tools:
<tools>{tools}</tools>
The output MUST strictly adhere to the following format, and NO other text MUST be included.
The example format is as follows. Please make sure the parameter type is correct. \
If no function call is needed, please make the tool calls an empty list '[]'.
<tool_call>[
{{"name": "func_name1", "arguments": {{"argument1": "value1", "argument2": "value2"}}}},
(more tool calls as required)
]</tool_call>"""

_COMPACT = """\
Tools:
{tools}
To use tools, answer only <tool_call>[
{{"name": ..., "arguments": {{...}}}}
]</tool_call>. Else answer in plain text."""


@dataclass(frozen=True, slots=True)
class SmolLM2:
    """The SmolLM2 family."""

    compact: bool = False
    """Whether tools are listed as signatures, as the embedded model reads them."""
    name: str = "smollm2"
    """The family's name."""
    models: tuple[str, ...] = ("HuggingFaceTB/SmolLM2-*",)
    """Model ids that this format is for."""
    stop: tuple[str, ...] = ("<|im_end|>",)
    """Texts that end a turn."""
    prefix_stable: bool = True
    """Whether a longer conversation extends the text of a shorter one."""

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        return Rendered(tuple(self._pieces(conversation, generate)))

    def _pieces(self, conversation: Conversation, generate: bool) -> Iterator[Piece]:
        messages = conversation.messages
        first = 1 if messages and messages[0].role == "system" else 0
        system = messages[0].text if first else ""
        if system or conversation.tools:
            yield from _turn_start("system", 0 if first else None)
            yield from self._system(system, conversation.tools, 0 if first else None)
            yield from _turn_end("given", 0 if first else None)
        for index in range(first, len(messages)):
            yield from _message(self.name, messages, index)
        if generate:
            yield from _turn_start("assistant", None)

    def _system(
        self, system: str, tools: Sequence[ToolSpec], index: int | None
    ) -> Iterator[Piece]:
        if system:
            yield Piece(system, "given", index)
        if tools:
            yield Piece(("\n\n" if system else "") + self._tools_text(tools), "frame", index)

    def _tools_text(self, tools: Sequence[ToolSpec]) -> str:
        if self.compact:
            return _COMPACT.format(tools="\n".join(signature(spec) for spec in tools))
        return _PUBLISHED.format(tools=dump_json([spec.to_openai() for spec in tools]))


def _turn_start(role: str, index: int | None) -> Iterator[Piece]:
    yield Piece("<|im_start|>", "frame", index, special=True)
    yield Piece(f"{role}\n", "frame", index)


def _turn_end(author: str, index: int | None) -> Iterator[Piece]:
    yield Piece("<|im_end|>", "written" if author == "written" else "frame", index, special=True)
    yield Piece("\n", "frame", index)


def _message(family: str, messages: Sequence[Message], index: int) -> Iterator[Piece]:
    message = messages[index]
    if message.images:
        raise RenderError("images cannot be shown; this family reads text only", format=family, index=index)
    if message.role == "system":
        raise RenderError(
            "a system message must come first; join system messages into one", format=family, index=index
        )
    if message.role == "tool":
        yield from _result(messages, index)
        return
    yield from _turn_start(message.role, index)
    if message.role == "user":
        yield Piece(message.text, "given", index)
        yield from _turn_end("given", index)
        return
    if message.reasoning:
        raise RenderError(
            "reasoning cannot be written; drop the thinking parts", format=family, index=index
        )
    yield Piece(message.text + _calls_text(message.tool_calls), "written", index)
    yield from _turn_end("written", index)


def _result(messages: Sequence[Message], index: int) -> Iterator[Piece]:
    if messages[index - 1].role != "tool" or index == 0:
        yield from _turn_start("user", index)
    else:
        yield Piece("\n", "frame", index)
    yield Piece("<tool_response>\n", "frame", index)
    yield Piece(messages[index].text, "given", index)
    yield Piece("\n</tool_response>", "frame", index)
    if index + 1 == len(messages) or messages[index + 1].role != "tool":
        yield from _turn_end("given", index)


def _calls_text(calls: Sequence[ToolCall]) -> str:
    if not calls:
        return ""
    lines = ",\n".join(
        dump_json({"name": call.name, "arguments": call.arguments}) for call in calls
    )
    return f"<tool_call>[\n{lines}\n]</tool_call>"


FORMAT = SmolLM2()
