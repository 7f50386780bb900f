"""Two calls at once, from the run to the tokens a model would be trained on.

A model asks for the air of two cities in one reply, both calls run together, and the recorded run
is encoded: the calls and the answer are trained, everything else is masked.  The model's text is
scripted in the spelling of Hermes; the encoding needs the extra ``tokenizers``.

    python examples/air_quality.py
"""

from antiphon import Agent, ScriptedModel, Trajectory, tool
from antiphon.formats import get_format

AIR = {
    "北京": {"city": "北京", "aqi": "10", "unit": "celsius"},
    "上海": {"city": "上海", "aqi": "72", "unit": "fahrenheit"},
}

REPLIES = [
    '<tool_call>\n{"name": "realtime_aqi", "arguments": {"city": "北京"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "realtime_aqi", "arguments": {"city": "上海"}}\n</tool_call>',
    "根据天气预报工具，北京今天的空气质量指数为10，属于良好水平；"
    "上海今天的空气质量指数为72，属于轻度污染水平。",
]


@tool
def realtime_aqi(city: str) -> dict[str, str]:
    """天气预报。获取实时空气质量。当前空气质量，PM2.5，PM10信息

    Args:
        city: 城市名，例如：上海
    """
    return AIR[city]


def record() -> Trajectory:
    """Run the agent and keep what happened."""
    model = ScriptedModel(REPLIES, format=get_format("hermes"))
    return Agent(model=model, tools=[realtime_aqi]).run_sync("北京和上海今天的天气情况").trajectory


def masked_runs(labels: list[int]) -> list[int]:
    """The lengths of the runs of masked tokens."""
    runs, length = list[int](), 0
    for label in [*labels, 0]:
        if label == -100:
            length += 1
        elif length:
            runs.append(length)
            length = 0
    return runs


def main() -> None:
    """Run, then print the text and which tokens of it are trained."""
    trajectory = record()
    print(get_format("hermes").render(trajectory.conversation).text)

    from antiphon.encode import Encoder, load_tokenizer

    example = Encoder(load_tokenizer("qwen2_5"), get_format("hermes")).encode(
        trajectory.conversation
    )
    print(f"{len(example.token_ids)} tokens, masked runs: {masked_runs(example.labels.tolist())}")


if __name__ == "__main__":
    main()
