"""DeepSeek-V4.1: as DeepSeek-V4, with a space in its tags, a mark of system turns, and an effort.

    <｜System｜>Reasoning Effort: 50 (range 1-100, ...)

    <｜User｜>Weather in Lima?<｜Assistant｜><think>Look it up.</think>

    <｜DSML｜ calls>
    <｜DSML｜ invoke name="get_weather">
    <｜DSML｜ parameter name="city" string="true">Lima</｜DSML｜ parameter>
    </｜DSML｜ invoke>
    </｜DSML｜ calls><｜end▁of▁sentence｜>

A system message may stand anywhere; behind the first one it opens a turn of the model as a user's
does.  Reasoning and results are as in `deepseek_v4`.

Differs from upstream: nothing.
Source: ``encoding_dsv41.py`` of deepseek-ai/DeepSeek-V4.1, as SGLang 0.5.23 ships it.
"""

from dataclasses import dataclass

from antiphon.formats import _dsml as dsml
from antiphon.formats._dsml_turns import DsmlTurns, render
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._scan import Syntax
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

_TAGS = dsml.tags("calls", space=" ")
_SYNTAX = dsml.syntax(_TAGS)
_SYSTEM = "<｜System｜>"


@dataclass(frozen=True, slots=True)
class DeepSeekV41(Family):
    """The DeepSeek-V4.1 family."""

    thinking: bool = True
    """Whether the model is asked to reason."""
    effort: int = 50
    """How much it is asked to reason: 1 to 100; low is 25, high 50, xhigh 75, max 100."""

    name = "deepseek_v4_1"
    models = ("deepseek-ai/DeepSeek-V4.1*",)
    aliases = {"deepseek_v41": {}, "deepseekv41": {}}
    signs = ("｜DSML｜", "<｜System｜>")
    stop = (dsml.END,)
    prefix_stable = False
    specials = dsml.SPECIALS | {_SYSTEM}

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
        head = (
            f"Reasoning Effort: {self.effort} "
            "(range 1-100, the higher the value, the more thorough the reasoning)\n\n"
            if self.thinking
            else ""
        )
        turns = DsmlTurns(
            self.name, self.specials, _TAGS, _SYNTAX, self.thinking, head=head, system=_SYSTEM
        )
        return render(turns, conversation, generate=generate)


FORMAT = DeepSeekV41()
