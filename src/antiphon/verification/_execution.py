"""Execution: the recorded calls are made again, in order, on tools in their first state.

A tool that answers the same is right.  One that answers something else of the same shape tells the
time, or the weather: nobody can say.  One that fails now and did not then, or the other way round,
is wrong.  Calls that the tool refused are wrong messages, unless the tool was out of order on
purpose.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from antiphon.messages import JsonValue, Message, ToolCall
from antiphon.synthesis import result_value
from antiphon.tools import Tool
from antiphon.verification._verdict import Sample, Verdict, passed

LAYER = "execution"


async def check_execution(sample: Sample, tools: Mapping[str, Tool[..., Any]]) -> list[Verdict]:
    """Make the calls again.

    Args:
        sample: The row.
        tools: Tools by name, in their first state; calls of others are passed over.
    """
    verdicts: list[Verdict] = []
    faults = {fault.tool: fault.times for fault in sample.task.faults} if sample.task else {}
    n_replayed = 0
    for index, call, answer in recorded_calls(sample):
        if faults.get(call.name, 0) > 0:
            faults[call.name] -= 1
            continue
        if answer.is_error:
            reason = f"{call.name} refused it: {answer.text[:200]}"
            verdicts.append(Verdict(LAYER, "refused", "fail", reason, index))
        if call.name in tools:
            n_replayed += 1
            verdicts += await _replayed(tools[call.name], call, answer)
    if n_replayed and not any(v.check == "replay" for v in verdicts):
        verdicts.append(passed(LAYER, "replay"))
    return verdicts


def recorded_calls(sample: Sample) -> Iterator[tuple[int, ToolCall, Message]]:
    """Every call with its answer, and the number of the message that made it."""
    messages = sample.conversation.messages
    for index, message in enumerate(messages):
        answers = {m.tool_call_id: m for m in messages[index + 1 :] if m.role == "tool"}
        for call in message.tool_calls:
            if call.id in answers:
                yield index, call, answers[call.id]


async def _replayed(tool: Tool[..., Any], call: ToolCall, answer: Message) -> list[Verdict]:
    result = await tool.call(call.arguments)
    if result.is_error == answer.is_error and result.text == answer.text:
        return []
    what = f"{call.name} answered {answer.text[:100]!r} and answers {result.text[:100]!r} now"
    if result.is_error != answer.is_error:
        return [Verdict(LAYER, "replay", "fail", what)]
    same = _shape(result_value(result.text)) == _shape(result_value(answer.text))
    return [Verdict(LAYER, "replay", "unsure" if same else "fail", what)]


def _shape(value: JsonValue) -> object:
    """The keys and types of a value, without what it says."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in cast("dict[str, JsonValue]", value).items()}
    if isinstance(value, list):
        return [_shape(cast("list[JsonValue]", value)[0])] if value else []
    return "number" if isinstance(value, int | float) else type(value).__name__
