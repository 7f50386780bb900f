"""Qwen-Agent's prompt in English; the text that ms-swift calls ``qwen_en``.

    <|im_start|>assistant
    ✿FUNCTION✿: get_weather
    ✿ARGS✿: {"city": "Lima"}
    ✿RESULT✿:{"celsius": 19}
    It is 19 degrees.<|im_end|>

The tools stand in the system turn, behind the system's own text.  The family does not reason:
reasoning is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: see `_react.py`.
Source: ms-swift 4.6 ``agent_template/qwen.py``.
"""

from collections.abc import Sequence

from antiphon.formats import _qwen_agent as qwen
from antiphon.formats import _react as react
from antiphon.messages import ToolSpec


class QwenEn(react.React):
    """Qwen-Agent's prompt in English."""

    __slots__ = ()
    name = "qwen_en"
    words = qwen.WORDS

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
        return qwen.prompt_en(
            tools,
            "## When you need to call a tool, please insert the following command in your reply, "
            "which can be called zero or multiple times according to your needs:\n\n"
            "✿FUNCTION✿: The tool to use, should be one of "
            f"[{react.names_of(tools)}]\n"
            "✿ARGS✿: The input of the tool\n"
            "✿RESULT✿: Tool results\n"
            "✿RETURN✿: Reply based on tool results. Images need to be rendered as ![](url)",
        )


FORMAT = QwenEn()
