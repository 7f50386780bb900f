"""DeepSeek V3 (0324): turns without white space, each call as a name and a JSON fence in marks.

    <｜User｜>Weather?<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Lima"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>

Results follow between marks of their own and the model goes on behind them.  System messages are
joined in front, wherever they stood.  The family does not reason: reasoning is left out and its
messages are listed in `Rendered.changed`.

Differs from upstream: its template lists no tools; they are listed in the words of R1-0528
(`deepseek_r1`), whose calls are the same.
Source: ``tokenizer_config.json`` of deepseek-ai/DeepSeek-V3-0324 as xinference 4.1 ships it
(deepseek-v3-0324).
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

_SYNTAX = ds.syntax(ds.FENCED)


@dataclass(frozen=True, slots=True)
class DeepSeekV3(Family):
    """The DeepSeek V3 family."""

    name = "deepseek_v3"
    models = ("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3-0324*")
    aliases = {"deepseekv3": {}, "deepseek_v3_0324": {}}
    signs = ("<｜tool▁outputs▁begin｜>", "is_last_user")
    stop = (ds.EOS,)
    prefix_stable = False  # a question right behind results leaves their block open
    specials = ds.SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return ds.call_form(ds.fenced, between="\n", thinking=None)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        return fenced.render(w, conversation, _SYNTAX, reasons=False, generate=generate)


FORMAT = DeepSeekV3()
