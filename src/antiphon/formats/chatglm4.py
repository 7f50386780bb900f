"""ChatGLM4 (GLM-4-9B-Chat): as `glm4`, with an identity before the tools, a name alone on its line.

    <|user|>
    Weather in Lima?<|assistant|>get_weather
    {"city": "Lima"}<|observation|>
    19<|assistant|>
    It is 19 degrees.

Differs from upstream: an empty message is a turn; the template leaves it out.
Source: the template of THUDM/glm-4-9b-chat as xinference 4.1 ships it (glm4-chat).
"""

from dataclasses import dataclass

from antiphon.formats import _glm as glm
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

_TOOLS = (
    "你是一个名为 ChatGLM 的人工智能助手。你是基于智谱AI训练的语言模型 GLM-4 模型开发的，"
    "你的任务是针对用户的问题和要求提供适当的答复和支持。\n\n# 可用工具"
)


@dataclass(frozen=True, slots=True)
class ChatGLM4(Family):
    """The ChatGLM4 family."""

    name = "chatglm4"
    models = ("THUDM/glm-4-9b-chat*", "zai-org/glm-4-9b-chat*")
    aliases = {"glm4_chat": {}}
    signs = ("[gMASK]<sop>", "可用工具", "名为 ChatGLM 的人工智能助手")
    stop = glm.STOP
    specials = glm.SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return glm.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return glm.call_form("")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        return glm.render(w, conversation, tools=_TOOLS, space="", generate=generate)


FORMAT = ChatGLM4()
