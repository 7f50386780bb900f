"""What Qwen-Agent's prompts share: four words in stars, and the tools as sections.

    ✿FUNCTION✿: get_weather
    ✿ARGS✿: {"city": "Lima"}
    ✿RESULT✿:{"celsius": 19}
    It is 19 degrees.

The word ``✿RETURN✿:``, which the prompts name and the text does not write, is left out where a
model writes it.  Source: ms-swift 4.6 ``agent_template/qwen.py``.
"""

from collections.abc import Sequence

from antiphon.formats import _react as react
from antiphon.messages import ToolSpec

WORDS = react.Words("✿FUNCTION✿:", "✿ARGS✿:", "✿RESULT✿:", None, ("✿RETURN✿: ", "✿RETURN✿:"))


def prompt_en(tools: Sequence[ToolSpec], how: str) -> str:
    """The tools in English, and how to call them."""
    listing = "\n\n".join(
        f"### {spec.name}\n\n{spec.name}: {spec.description} Parameters: "
        f"{react.parameters_json(spec)} Format the arguments as a JSON object."
        for spec in tools
    )
    return f"# Tools\n\n## You have access to the following tools:\n\n{listing}\n\n{how}"


def prompt_zh(tools: Sequence[ToolSpec], how: str) -> str:
    """The tools in Chinese, and how to call them."""
    listing = "\n\n".join(
        f"### {spec.name}\n\n{spec.name}: {spec.description} 输入参数："
        f"{react.parameters_json(spec)} 此工具的输入应为JSON对象。"
        for spec in tools
    )
    return f"# 工具\n\n## 你拥有如下工具：\n\n{listing}\n\n{how}"
