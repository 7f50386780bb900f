"""DeepSeek R1 (0528): as `deepseek_v3`, with reasoning in <think> and the tools listed in front.

    <｜User｜>Weather?<｜Assistant｜><think>
    They ask for the weather.
    </think>

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Lima"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>

The model opens its reasoning itself, when it answers a user.  Earlier reasoning is dropped.

Differs from upstream: reasoning of the last message is shown as the model wrote it, where it
answers a user; the template never shows any.
Source: the template for DeepSeek-R1-0528 with tools, as xinference 4.1 ships it (deepseek-r1-0528).
The first R1 is left out: its template does not list tools and does not close a single call.
"""

from dataclasses import dataclass

from antiphon.formats import _deepseek as ds
from antiphon.formats import _deepseek_fenced as fenced
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

_SYNTAX = ds.syntax(ds.FENCED, space="\n")


@dataclass(frozen=True, slots=True)
class DeepSeekR1(Family):
    """The DeepSeek R1 family."""

    name = "deepseek_r1"
    models = ("deepseek-ai/DeepSeek-R1-0528",)
    aliases = {"deepseek_r1_0528": {}}
    signs = ("<｜tool▁outputs▁begin｜>", "FUNCTION_NAME", "last_index")
    stop = (ds.EOS,)
    prefix_stable = False
    specials = ds.SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return ds.call_form(ds.fenced, between="\n", thinking=("<think>\n", "\n</think>\n\n"))

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        return fenced.render(w, conversation, _SYNTAX, reasons=True, generate=generate)


FORMAT = DeepSeekR1()
