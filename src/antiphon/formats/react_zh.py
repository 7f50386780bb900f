"""ReAct in Chinese, inside any family's turns; the text that ms-swift calls ``react_zh``.

    <|im_start|>assistant
    Thought: I should look at the weather.
    Action: get_weather
    Action Input: {"city": "Lima"}
    Observation:{"celsius": 19}
    Thought: I now know the final answer
    Final Answer: It is 19 degrees.<|im_end|>

The tools stand in the system turn, behind the system's own text.  Reasoning is a thought; an answer
without reasoning is written as it is.

Differs from upstream: see `_react.py`.
Source: ms-swift 4.6 ``agent_template/react.py`` (react_zh).
"""

from collections.abc import Sequence

from antiphon.formats import _react as react
from antiphon.messages import ToolSpec


class ReactZh(react.React):
    """ReAct in Chinese."""

    __slots__ = ()
    name = "react_zh"

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
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


FORMAT = ReactZh()
