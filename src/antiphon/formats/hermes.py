"""Hermes calls in ChatML: the text that ms-swift trains Qwen2.5 and many others on.

    <|im_start|>assistant
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_call><|im_end|>

As `qwen2_5`, but reasoning is kept where it was written (``<think>`` on lines of its own), the
default system text can be chosen or left out, images, audio and video can be shown, and the text
ends with the mark that ends the last turn: line feeds stand between turns, not behind them.

Differs from upstream: text before a call is followed by a line feed, as the models' own templates
have it and ms-swift's agent template has not; with no system text the turn starts at ``# Tools``.
Source: ms-swift 4.6 ``agent_template/hermes.py`` with template ``qwen2_5``; the seed samples; for
audio and video the templates in transformers 5.24 ``processing_qwen2_audio.py`` and of
Qwen/Qwen2.5-Omni-7B.
"""

from dataclasses import dataclass
from functools import partial

from antiphon.formats import _qwen as qwen
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._render import CHATML, Writer, check_written, refuse_media, split_system
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Usuals
from antiphon.formats.qwen2_5 import DEFAULT_SYSTEM
from antiphon.messages import Conversation

_ASSISTANT = "You are a helpful assistant."
_SEEING = ("qwen2_vl", "qwen2_5_vl", "Qwen/Qwen2-VL-*", "Qwen/Qwen2.5-VL-*")
_HEARING = ("qwen2_audio", "Qwen/Qwen2-Audio-*")
_OMNI = ("qwen2_5_omni", "Qwen/Qwen2.5-Omni-*")


@dataclass(frozen=True, slots=True)
class Hermes(Family):
    """Hermes calls in ChatML turns."""

    default_system: str = DEFAULT_SYSTEM
    """The system text where a conversation has none; ``""`` for none."""
    vision: bool = False
    """Whether images and video can be shown, as Qwen2-VL and Qwen2.5-VL write them."""
    hearing: bool = False
    """Whether audio can be: with `vision` as Qwen2.5-Omni writes all three, else as Qwen2-Audio."""

    name = "hermes"
    models = ("NousResearch/Hermes-*", "NousResearch/*Hermes*")
    aliases = {
        "qwen3_json": {},
        **{name: {"vision": True, "default_system": _ASSISTANT} for name in _SEEING},
        **{name: {"hearing": True, "default_system": _ASSISTANT} for name in _HEARING},
        **{name: {"vision": True, "hearing": True, "default_system": _ASSISTANT} for name in _OMNI},
        "trinity": {},
    }
    signs = ("You are a function calling AI model", "<tool_call>")
    stop = ("<|im_end|>",)
    turns = CHATML
    specials = CHATML.specials | qwen.CALL_MARKS | qwen.MEDIA_MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return qwen.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            open="<tool_call>\n",
            close="\n</tool_call>",
            thinking=("<think>\n", "\n</think>\n"),
        )

    @property
    def _media(self) -> qwen.Marks:
        if self.hearing:
            return qwen.MEDIA["omni" if self.vision else "audio"]
        return qwen.MEDIA["vision" if self.vision else ""]

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_media(w, messages, shows=tuple(self._media))
        self._system(w, conversation)
        first = split_system(conversation)[1]
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            self._message(w, conversation, index)
        if generate:
            CHATML.begin(w, "assistant", None)
        else:
            w.take_back(CHATML.between)
        return w.done()

    def _system(self, w: Writer, conversation: Conversation) -> None:
        system, first = split_system(conversation)
        index = 0 if first else None
        text = self.default_system if system is None else system
        if not text and not conversation.tools:
            return
        CHATML.begin(w, "system", index)
        w.text(text, "frame" if system is None else "given", index)
        if conversation.tools:
            w.text("\n\n" if text else "", "frame", index)
            qwen.write_tools(w, conversation.tools, index)
        CHATML.finish(w, "system", index)

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        messages = conversation.messages
        if messages[index].role == "tool":
            qwen.write_result(w, messages, index, media=self._media)
            return
        role = messages[index].role
        CHATML.begin(w, role, index)
        if role == "assistant":
            message = qwen.as_written(w, messages[index], index)
            since = len(w.pieces)
            if message.reasoning:
                w.text(f"<think>\n{message.reasoning}\n</think>\n", "written", index)
            w.text(message.text, "written", index)
            qwen.write_calls(w, message, index, after_text=bool(message.text))
            check_written(
                w, self.syntax, message, index,
                since=since, tools=conversation.tools,
            )  # fmt: skip
        else:
            qwen.write_content(w, messages, index, self._media)
        CHATML.finish(w, role, index)


_USUAL = Usuals(partial(qwen.usual, specials=Hermes.specials))
FORMAT = Hermes()
