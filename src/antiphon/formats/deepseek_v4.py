"""DeepSeek-V4: DSML calls in a ``tool_calls`` block, results in user turns.

    <｜User｜>Weather in Lima?<｜Assistant｜><think>Look it up.</think>

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Lima</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls><｜end▁of▁sentence｜><｜User｜><tool_result>19 degrees</tool_result>

All reasoning is shown again while there are tools; without tools only that behind the last user
turn.  Messages that are not written as they once were are listed in `Rendered.changed`.  Results
stand in the order of their calls; what a user says behind them joins their turn.

Differs from upstream: nothing.
Source: ``encoding_dsv4.py`` of deepseek-ai/DeepSeek-V4, as SGLang 0.5.23 ships it.
"""

from dataclasses import dataclass
from typing import Literal

from antiphon.formats import _dsml as dsml
from antiphon.formats._dsml_turns import DsmlTurns, render
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._scan import Syntax
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

Effort = Literal["high", "max"]

_TAGS = dsml.tags("tool_calls")
_SYNTAX = dsml.syntax(_TAGS)
_MAX = (
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to "
    "resolve the root cause, rigorously stress-testing your logic against all potential paths, "
    "edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, "
    "considered alternative, and rejected hypothesis to ensure absolutely no assumption is left "
    "unchecked.\n\n"
)


@dataclass(frozen=True, slots=True)
class DeepSeekV4(Family):
    """The DeepSeek-V4 family."""

    thinking: bool = False
    """Whether the model is asked to reason."""
    effort: Effort = "high"
    """How much it is asked to reason."""

    name = "deepseek_v4"
    models = ("deepseek-ai/DeepSeek-V4*",)
    aliases = {"deepseekv4": {}}
    signs = ("｜DSML｜", "<tool_result>")
    stop = (dsml.END,)
    prefix_stable = False
    specials = dsml.SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _TAGS, self.specials,
            before="\n\n", end=self.stop, always=True, thinking=("<think>", "</think>"),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        head = _MAX if self.thinking and self.effort == "max" else ""
        turns = DsmlTurns(self.name, self.specials, _TAGS, _SYNTAX, self.thinking, head=head)
        return render(turns, conversation, generate=generate)


FORMAT = DeepSeekV4()
