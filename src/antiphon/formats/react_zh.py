"""ReAct in Chinese, inside any family's turns; the text that ms-swift calls ``react_zh``.

    <|im_start|>assistant
    Thought: I should look at the weather.
    Action: get_weather
    Action Input: {"city": "Lima"}
    Observation:{"celsius": 19}
    Thought: I now know the final answer
    Final Answer: It is 19 degrees.<|im_end|>

The tools stand in the system turn, behind the system's own text.  Reasoning is a thought; an answer
without reasoning is written as it is.  Where a message has reasoning, text and calls, the text
joins the thought and the message is listed in `Rendered.changed`.

Differs from upstream: arguments are JSON (``arguments="python"`` writes upstream's Python
literals), the system's own text is kept, and text before an action stands on a line of its own.
Source: ms-swift 4.6 ``agent_template/react.py`` (react_zh); the texts of its own conversations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from antiphon.formats import _react as react
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec


def prompt(tools: Sequence[ToolSpec]) -> str:
    """How to use the tools."""
    listing = "\n\n".join(
        f"{spec.name}: 调用此工具与 {spec.name} API 进行交互。{spec.name} 有什么用？"
        f"{spec.description} 输入参数：{react.parameters_json(spec)} 此工具的输入应为JSON对象。"
        for spec in tools
    )
    return (
        f"尽可能地回答以下问题。你可以使用以下工具:\n\n{listing}\n\n请按照以下格式进行:\n\n"
        "Question: 需要你回答的输入问题\n"
        "Thought: 你应该总是思考该做什么\n"
        f"Action: 需要使用的工具，应该是[{react.names_of(tools)}]中的一个\n"
        "Action Input: 传入工具的内容\n"
        "Observation: 行动的结果\n"
        "... (这个Thought/Action/Action Input/Observation可以重复N次)\n"
        "Thought: 我现在知道最后的答案\n"
        "Final Answer: 对原始输入问题的最终答案\n\n现在开始！\n"
    )


@dataclass(frozen=True, slots=True)
class ReactZh(Family):
    """ReAct in Chinese."""

    frame: str = "chatml"
    """The family whose turns are used."""
    arguments: react.Arguments = "json"
    """How arguments are written."""
    stop: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Texts that end a model's turn."""

    name = "react_zh"

    def __post_init__(self) -> None:
        end = react.turns_of(self.frame).end
        object.__setattr__(self, "stop", ("\n" + react.OBSERVATION, end))

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return react.SYNTAX[self.arguments]

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return react.call_form(react.turns_of(self.frame).specials)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        turns = react.turns_of(self.frame)
        return react.render(
            Writer(self.name, turns.specials),
            conversation,
            turns=turns,
            prompt=prompt(conversation.tools) if conversation.tools else "",
            arguments=self.arguments,
            generate=generate,
        )


FORMAT = ReactZh()
