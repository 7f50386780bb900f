"""Qwen-Agent's prompt in Chinese; the text that ms-swift calls ``qwen_zh``.

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


class QwenZh(react.React):
    """Qwen-Agent's prompt in Chinese."""

    __slots__ = ()
    name = "qwen_zh"
    words = qwen.WORDS

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
        return qwen.prompt_zh(
            tools,
            "## 你可以在回复中插入零次、一次或多次以下命令以调用工具：\n\n"
            f"✿FUNCTION✿: 工具名称，必须是[{react.names_of(tools)}]之一。\n"
            "✿ARGS✿: 工具输入\n"
            "✿RESULT✿: 工具结果\n"
            "✿RETURN✿: 根据工具结果进行回复，需将图片用![](url)渲染出来",
        )


FORMAT = QwenZh()
