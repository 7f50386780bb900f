"""ReAct in English, inside any family's turns; the text that ms-swift calls ``react_en``.

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
Source: ms-swift 4.6 ``agent_template/react.py`` (react_en); the seed sample
``parallel_aqi/react_en``.
"""

from collections.abc import Sequence

from antiphon.formats import _react as react
from antiphon.messages import ToolSpec


class ReactEn(react.React):
    """ReAct in English."""

    __slots__ = ()
    name = "react_en"
    aliases = {"react": {}}

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
        return (
            "Answer the following questions as best you can. You have access to the following "
            f"tools:\n\n{react.listing_en(tools)}\n\nUse the following format:\n\n"
            "Question: the input question you must answer\n"
            "Thought: you should always think about what to do\n"
            f"Action: the action to take, should be one of [{react.names_of(tools)}]\n"
            "Action Input: the input to the action\n"
            "Observation: the result of the action\n"
            "... (this Thought/Action/Action Input/Observation can be repeated zero or more "
            "times)\n"
            "Thought: I now know the final answer\n"
            "Final Answer: the final answer to the original input question\n\nBegin!\n"
        )


FORMAT = ReactEn()
