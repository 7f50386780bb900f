"""Hunyuan V3 (Hy3): marks that carry the checkpoint's name, all calls in one block, a tag each.

    <｜hy_Assistant:opensource｜><think:opensource>A question.</think:opensource>Look.
    <tool_calls:opensource>
    <tool_call:opensource>get_weather<tool_sep:opensource>
    <arg_key:opensource>city</arg_key:opensource>
    <arg_value:opensource>Lima</arg_value:opensource>
    </tool_call:opensource>
    </tool_calls:opensource><｜hy_eos:opensource｜><tool_responses:opensource>
    <tool_response:opensource>
    19 degrees
    </tool_response:opensource>
    </tool_responses:opensource>

(The block of calls stands right behind the text.)  Every mark ends with the checkpoint's `suffix`.
System messages are joined in front, wherever they stood, and an `effort` is named behind them.
With tools reasoning is shown in every turn, without tools only behind the last user message
(`preserve` shows it always); a turn that shows none has an empty block.  Messages that are not
written as they once were are listed in `Rendered.changed`.

Differs from upstream: the last message ends with its mark, as every other; the template leaves one
without calls open unless ``is_training`` is set.
Source: ``tencent-Hy3.jinja`` in the source of llama-cpp-python 0.3.36; ms-swift 4.6 (``hy_v3``,
``hy_v3_preview``) for the marks without a suffix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    is_first_result,
    is_last_result,
    last_user,
    moved_up,
    of_tools,
    refuse_images,
    with_parts,
    write_reasoning,
)
from antiphon.formats._scan import Block, Syntax, Thinking, Unmarked
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

Effort = Literal["no_think", "low", "high"]

_TAGS = (
    "think", "/think", "tool_calls", "/tool_calls", "tool_call", "/tool_call", "tool_sep",
    "arg_key", "/arg_key", "arg_value", "/arg_value", "tool_responses", "/tool_responses",
    "tool_response", "/tool_response",
)  # fmt: skip
_ROLES = ("eos", "begin_of_sentence", "User", "Assistant")


@cache
def _marks(suffix: str) -> dict[str, str]:
    """The family's marks by their names."""
    return (
        {tag: f"<{tag}{suffix}>" for tag in _TAGS}
        | {role: f"<｜hy_{role}{suffix}｜>" for role in _ROLES}
        | {"mode": f"<｜reasoning_mode{suffix}｜>"}
        | ({} if suffix else {"begin_of_sentence": "<｜hy_begin▁of▁sentence｜>"})
    )


@cache
def _tags(suffix: str) -> Tagged:
    m = _marks(suffix)
    return Tagged(
        open=m["tool_calls"] + "\n",
        close=m["/tool_calls"],
        several=True,
        call=m["tool_call"],
        named=m["tool_sep"] + "\n",
        call_close=m["/tool_call"] + "\n",
        key=m["arg_key"],
        keyed=m["/arg_key"] + "\n",
        value=m["arg_value"],
        value_close=m["/arg_value"] + "\n",
    )


@cache
def _syntax(suffix: str) -> Syntax:
    m = _marks(suffix)
    thinking = Thinking(m["think"], m["/think"], after_open="", before_close="", after_close="")
    return Syntax(
        blocks=(
            Block(m["tool_calls"], _tags(suffix)),
            Block(m["tool_call"], _tags(suffix), lost=True),
        ),
        thinking=(thinking,),
        unmarked=Unmarked(_tags(suffix), (m["tool_sep"],)),
        doubled=(m["/tool_calls"], m["/tool_call"]),
    )


@dataclass(frozen=True, slots=True)
class HunyuanV3(Family):
    """The Hunyuan V3 family."""

    effort: Effort = "no_think"
    """How much the model is asked to reason."""
    preserve: bool = False
    """Whether reasoning of earlier turns is shown again without tools, too."""
    suffix: str = ":opensource"
    """What every mark of the checkpoint ends with."""

    name = "hunyuan_v3"
    models = ("tencent/Hy3*", "tencent/Hunyuan-V3*")
    aliases = {"hy_v3": {}, "hy3": {}, "hy_v3_preview": {"suffix": ""}}
    signs = ("hy_Assistant", "reasoning_mode", "tool_sep")

    @property
    def stop(self) -> tuple[str, ...]:  # type: ignore[override]  # depends on the checkpoint
        """Texts that end a model's turn."""
        return (_marks(self.suffix)["eos"],)

    @property
    def specials(self) -> frozenset[str]:
        """Marks that are single tokens."""
        return frozenset(_marks(self.suffix).values())

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]  # depends on a variant
        """Whether a longer conversation extends the text of a shorter one."""
        return self.preserve

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _syntax(self.suffix)

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        m = _marks(self.suffix)
        return tagged_form(
            _tags(self.suffix), self.specials,
            before="",
            end=(m["eos"], m["User"], m["Assistant"]),
            thinking=(m["think"], m["/think"]),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        m = _marks(self.suffix)
        messages, tools = conversation.messages, conversation.tools
        refuse_images(w, messages)
        w.put(m["begin_of_sentence"], "frame")
        self._system(w, conversation)
        last = -1 if tools or self.preserve else last_user(messages)
        for index in w.walk(self, messages, tools=tools, shown_from=last):
            message = messages[index]
            if message.role == "user":
                w.put(m["User"], "frame", index)
                w.text(message.text, "given", index)
            elif message.role == "tool":
                self._result(w, messages, index)
            elif message.role == "assistant":
                w.put(m["Assistant"], "frame", index)
                self._assistant(w, conversation, index, shows=index > last)
        if not generate:
            return w.done()
        thinks = self.effort != "no_think"
        w.put(m["Assistant"] + m["think"] + ("" if thinks else m["/think"]), "frame")
        return w.done(start="reasoning" if thinks else "content")

    def _system(self, w: Writer, conversation: Conversation) -> None:
        """All system messages, wherever they stood, the tools, and the effort."""
        said = [(i, m) for i, m in enumerate(conversation.messages) if m.role == "system"]
        for n, (index, message) in enumerate(said):
            w.text(message.text, "given", index)
            moved_up(w, index, n)
        if conversation.tools:
            w.text("\n\n" if any(message.text for _, message in said) else "", "frame")
            w.text(of_tools(_tools_text, conversation.tools), "frame")
            w.put(self._how(), "frame")
        w.put(_marks(self.suffix)["mode"], "frame")
        w.text(f"reasoning_effort:{self.effort}", "frame")

    def _how(self) -> str:
        m = _marks(self.suffix)
        argument = (
            f"{m['arg_key']}{{arg-key-N}}{m['/arg_key']}\n"
            f"{m['arg_value']}{{arg-value-N}}{m['/arg_value']}\n"
        )
        return (
            f"For function call returns, you should first print {m['tool_calls']}\n"
            "For each function call, you should return object like:\n"
            f"{m['tool_call']}{{function-name}}{m['tool_sep']}\n"
            f"{argument.replace('N', '1')}{argument.replace('N', '2')}...\n{m['/tool_call']}\n"
            f"At the end of function call returns, you should print {m['/tool_calls']}"
        )

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        m = _marks(self.suffix)
        given = conversation.messages[index]
        split = inline_reasoning(given, open=m["think"], close=m["/think"])
        message = split if shows else with_parts(split, reasoning="", text=split.text)
        if message is not given:
            w.changed.append(index)
        since = len(w.pieces)
        start = write_reasoning(
            w, message.reasoning, index, (m["think"], m["/think"]),
            empty=m["think"] + m["/think"], asks=self.effort != "no_think",
        )  # fmt: skip
        w.text(message.text, "written", index)
        tags = _tags(self.suffix)
        write_calls(w, tags, message, index, before="")
        check_calls(
            w, tags, self.syntax, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip
        w.put(m["eos"], "written", index)

    def _result(self, w: Writer, messages: Sequence[Message], index: int) -> None:
        """One tool result; a run of them stands in one block."""
        m = _marks(self.suffix)
        if is_first_result(messages, index):
            w.put(m["tool_responses"] + "\n", "frame", index)
        w.put(m["tool_response"] + "\n", "frame", index)
        w.text(messages[index].text, "given", index)
        w.put("\n" + m["/tool_response"] + "\n", "frame", index)
        if is_last_result(messages, index):
            w.put(m["/tool_responses"], "frame", index)


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    lines = "\n".join(dump_json(spec.to_openai()) for spec in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>\n{lines}\n</tools>\n\n"
    )


FORMAT = HunyuanV3()
