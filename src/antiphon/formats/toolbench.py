"""ToolBench: ReAct with the task and its rules in the prompt; ms-swift's text of that name.

    <|im_start|>assistant
    Thought: I should look at the weather.
    Action: get_weather
    Action Input: {"city": "Lima"}
    Observation:{"celsius": 19}
    It is 19 degrees.<|im_end|>

The tools stand in the system turn as one JSON list, behind the system's own text.  Reasoning is a
thought; an answer without reasoning is written as it is.

Differs from upstream: see `_react.py`.
Source: ms-swift 4.6 ``agent_template/toolbench.py``.
"""

from collections.abc import Sequence

from antiphon.formats import _react as react
from antiphon.messages import ToolSpec, dump_json


class ToolBench(react.React):
    """ToolBench's prompt."""

    __slots__ = ()
    name = "toolbench"

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
        listing = dump_json([spec.to_openai()["function"] for spec in tools])
        return (
            "You can use many tools(functions) to do the following task.\n"
            "First I will give you the task description, and your task start.\n"
            "At each step, you need to give your thought to analyze the status now and what to do "
            "next, with a function call to actually execute your step. Your output should follow "
            "this format:\nThought:\nAction:\nAction Input:\n\n"
            "After the call, you will get the call result, and you are now in a new state.\n"
            "Then you will analyze your status now, then decide what to do next...\n"
            "After many (Thought-call) pairs, you finally perform the task, then you can give your "
            "final answer.\nRemember:\n"
            "1.the state change is irreversible, you can't go back to one of the former state, if "
            'you want to restart the task, say "I give up and restart".\n'
            "2.All the thought is short, at most in 5 sentence.\n"
            "3.You can do more then one try, so if your plan is to continuously try some "
            "conditions, you can do one of the conditions per try.\n"
            "Let's Begin!\n"
            "Task description: You should use functions to help handle the real time user queries. "
            "Remember:\n"
            '1.ALWAYS call "Finish" function at the end of the task. And the final answer should '
            "contain enough information to show to the user,If you can't handle the task, or you "
            "find that function calls always fail(the function is not valid now), use function "
            "Finish->give_up_and_restart.\n"
            "2.Do not use origin tool names, use only subfunctions' names.\n"
            f"Specifically, you have access to the following APIs: {listing}"
        )


FORMAT = ToolBench()
