"""GLM-4 (0414) and GLM-Z1: role marks without end marks, a call's name on the line of its role.

    <|user|>
    Weather in Lima?<|assistant|>get_weather
    {"city": "Lima"}<|observation|>
    19<|assistant|>
    It is 19 degrees.

Tools stand in a first system turn, system messages in turns of their own behind it, wherever they
stood.  Parallel calls follow each other behind ``<|assistant|>``.  The family's text has no
reasoning: it is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: nothing; a call is what its template writes of a message with ``metadata``.
Source: the template of THUDM/GLM-4-0414 as xinference 4.1 ships it (glm4-0414).
"""

from dataclasses import dataclass

from antiphon.formats import _glm as glm
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation


@dataclass(frozen=True, slots=True)
class GLM4(Family):
    """The GLM-4-0414 family."""

    name = "glm4"
    models = ("THUDM/GLM-4-*-0414", "THUDM/GLM-Z1-*", "zai-org/GLM-4-*-0414", "zai-org/GLM-Z1-*")
    aliases = {"glm4_0414": {}, "glm_z1": {}}
    signs = ("[gMASK]<sop>", "可用工具", "metadata")
    stop = glm.STOP
    specials = glm.SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return glm.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return glm.call_form(" ")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        return glm.render(w, conversation, tools="# 可用工具\n", space=" ", generate=generate)


FORMAT = GLM4()
