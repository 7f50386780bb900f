"""ReAct with reasoning in <think>, for reinforcement; the text that ms-swift calls ``react_grpo``.

    <|im_start|>assistant
    <think>I should look at the weather.</think>
    Action: get_weather
    Action Input: {"city": "Lima"}
    Observation:{"celsius": 19}
    <think>I know it now.</think>
    It is 19 degrees.<|im_end|>

The tools stand in the system turn, behind the system's own text.  The words ``Final Answer:``,
which the prompt names and upstream's own text does not write, are left out where a model writes
them.

Differs from upstream: see `_react.py`; a line feed stands behind the reasoning, as in the prompt.
Source: ms-swift 4.6 ``agent_template/extra.py``.
"""

from collections.abc import Sequence

from antiphon.formats import _react as react
from antiphon.messages import ToolSpec


class ReactGrpo(react.React):
    """ReAct with reasoning in marks."""

    __slots__ = ()
    name = "react_grpo"
    words = react.Words(
        thought=("<think>", "</think>\n", ""), dropped=("Final Answer: ", "Final Answer:")
    )

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
        return (
            "A conversation for tool calling between User and Assistant. The user asks a question "
            "which may be solved by calling tools, and the Assistant solves it. The assistant "
            "first thinks about the reasoning process in the mind and then provides the user with "
            "the answer. The reasoning process should be enclosed within <think> </think>tags and "
            "answer should follow the ReACT format(Action:xxx\nAction Input:xxx), i.e., <think> "
            "reasoning process here </think> Action: action here\nAction Input: parameters here"
            "\n\nAnswer the following questions as best as you can. You have access to the "
            f"following tools:\n\n{react.listing_en(tools)}\n\nUse the following format:\n\n"
            "<think>you should always think about what to do</think>\n"
            f"Action: the action to take, should be one of [{react.names_of(tools)}]\n"
            "Action Input: the input to the action\n"
            "Observation: the result of the action, given by the actual calling\n"
            "... (this Thought/Action/Action Input/Observation can be repeated zero or more "
            "times)\n"
            "Final Answer: the final answer to the original input question\n\nBegin!\n"
        )


FORMAT = ReactGrpo()
