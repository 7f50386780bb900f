"""The seed's samples: the text, and the lengths of the runs that are not trained.

Text and numbers are those of ms-swift 3.x: the line feed behind the end mark is the server's and is
not trained, which later versions train.
"""

from typing import Any

from antiphon.datasets import read_row
from antiphon.encode import Encoder, FastTokenizer
from antiphon.formats import get_format

CALL = '{"name": "realtime_aqi", "arguments": {"city": "%s"}}'
RESULT = '{"city": "%s", "aqi": "%s", "unit": "%s"}'
TOOLS = (
    '[{"type": "function", "function": {"name": "realtime_aqi", "description": "天气预报。获取实时'
    '空气质量。当前空气质量，PM2.5，PM10信息", "parameters": {"type": "object", "properties": '
    '{"city": {"type": "string", "description": "城市名，例如：上海"}}, "required": ["city"]}}}]'
)
ANSWER = (
    "根据天气预报工具，北京今天的空气质量指数为10，属于良好水平；"
    "上海今天的空气质量指数为72，属于轻度污染水平。"
)
PARALLEL: dict[str, Any] = {
    "tools": TOOLS,
    "messages": [
        {"role": "user", "content": "北京和上海今天的天气情况"},
        {"role": "tool_call", "content": CALL % "北京"},
        {"role": "tool_call", "content": CALL % "上海"},
        {"role": "tool_response", "content": RESULT % ("北京", "10", "celsius")},
        {"role": "tool_response", "content": RESULT % ("上海", "72", "fahrenheit")},
        {"role": "assistant", "content": ANSWER},
    ],
}

HERMES_TRAINED = """\
⟦<tool_call>
{"name": "realtime_aqi", "arguments": {"city": "北京"}}
</tool_call>
<tool_call>
{"name": "realtime_aqi", "arguments": {"city": "上海"}}
</tool_call><|im_end|>⟧
<|im_start|>user
<tool_response>
{"city": "北京", "aqi": "10", "unit": "celsius"}
</tool_response>
<tool_response>
{"city": "上海", "aqi": "72", "unit": "fahrenheit"}
</tool_response><|im_end|>
<|im_start|>assistant
⟦根据天气预报工具，北京今天的空气质量指数为10，属于良好水平；上海今天的空气质量指数为72，属于轻度污染水平。<|im_end|>⟧"""


def test_sample_one_in_hermes_has_masked_runs_of_195_and_67(qwen2_5: FastTokenizer) -> None:
    example = Encoder(qwen2_5, get_format("hermes")).encode(read_row(PARALLEL))

    assert example.masked_runs() == [195, 67]
    assert example.show(color=False).endswith("<|im_start|>assistant\n" + HERMES_TRAINED)
