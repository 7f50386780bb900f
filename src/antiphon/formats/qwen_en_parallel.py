"""Qwen-Agent's prompt in English for parallel calls; ms-swift's ``qwen_en_parallel``.

    <|im_start|>assistant
    ✿FUNCTION✿: get_weather
    ✿ARGS✿: {"city": "Lima"}
    ✿RESULT✿:{"celsius": 19}
    It is 19 degrees.<|im_end|>

The tools stand in the system turn, behind the system's own text.  The family does not reason:
reasoning is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: see `_react.py`; its slip "he result of tool N" is kept.
Source: ms-swift 4.6 ``agent_template/qwen.py``.
"""

from collections.abc import Sequence

from antiphon.formats import _qwen_agent as qwen
from antiphon.formats import _react as react
from antiphon.messages import ToolSpec


class QwenEnParallel(react.React):
    """Qwen-Agent's prompt in English for parallel calls."""

    __slots__ = ()
    name = "qwen_en_parallel"
    words = qwen.WORDS

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
        return qwen.prompt_en(
            tools,
            "## Insert the following command in your reply when you need to call N tools in "
            "parallel:\n\n"
            f"✿FUNCTION✿: The name of tool 1, should be one of [{react.names_of(tools)}]\n"
            "✿ARGS✿: The input of tool 1\n"
            "✿FUNCTION✿: The name of tool 2\n"
            "✿ARGS✿: The input of tool 2\n...\n"
            "✿FUNCTION✿: The name of tool N\n"
            "✿ARGS✿: The input of tool N\n"
            "✿RESULT✿: The result of tool 1\n"
            "✿RESULT✿: The result of tool 2\n...\n"
            "✿RESULT✿: he result of tool N\n"
            "✿RETURN✿: Reply based on tool results. Images need to be rendered as ![](url)",
        )


FORMAT = QwenEnParallel()
