"""Answers by rule: the calls that a task wants, and numbers that nobody said.

A task that a rule wrote knows its right calls; they are looked for in each turn, in any order that
what they need of each other allows.
"""

import re
from collections.abc import Iterator, Sequence

from antiphon.evaluation import same_call
from antiphon.messages import JsonObject, JsonValue, Message, ToolCall, ToolSpec, dump_json
from antiphon.synthesis import ScriptTurn, Task, resolved, result_value
from antiphon.verification._verdict import Sample, Verdict, passed, turns_of

LAYER = "answer"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def check_answers(sample: Sample) -> Iterator[Verdict]:
    """What can be checked without a judge."""
    if sample.task is not None and sample.task.script:
        yield from _calls(sample, sample.task)
    if sample.task is not None and sample.task.targets:
        yield from _targets(sample, sample.task.targets)
    yield from _numbers(sample.conversation.messages)


def _calls(sample: Sample, task: Task) -> Iterator[Verdict]:
    messages = sample.conversation.messages
    turns = turns_of(messages)
    if len(turns) != len(task.script):
        reason = f"the task has {len(task.script)} turns and the conversation {len(turns)}"
        yield Verdict(LAYER, "calls", "fail", reason)
        return
    verdicts = [
        verdict
        for turn, (start, end) in zip(task.script, turns, strict=True)
        for verdict in _turn(turn, list(_made(messages, start, end)), sample.conversation.tools)
    ]
    yield from verdicts
    if not any(v.check == "calls" for v in verdicts):
        yield passed(LAYER, "calls")


_Call = tuple[int, ToolCall, JsonValue]
"""The message that made a call, the call, and what was answered."""


def _turn(turn: ScriptTurn, made: list[_Call], tools: Sequence[ToolSpec]) -> Iterator[Verdict]:
    """The calls of a turn beside those that its script wants."""
    results: list[list[JsonValue]] = []
    for step in turn.steps:
        found: list[JsonValue] = []
        for wanted in step:
            arguments = resolved(wanted.arguments, results)
            same = _same(wanted.name, arguments, made, tools)
            if not same:
                reason = f"{_spelled(wanted.name, arguments)} was not called"
                yield Verdict(LAYER, "calls", "fail", reason)
            made = [m for m in made if m not in same]
            found.append(same[-1][2] if same else None)  # the last try is the one that worked
        results.append(found)
    for index, call, _ in made:
        reason = f"{_spelled(call.name, call.arguments)} was not asked for"
        yield Verdict(LAYER, "needless_call", "fail", reason, index)


def _same(
    name: str, arguments: "JsonObject | None", made: Sequence[_Call], tools: Sequence[ToolSpec]
) -> list[_Call]:
    if arguments is None:
        return []
    wanted = ToolCall(name, arguments)
    return [m for m in made if same_call(wanted, m[1], tools)]


def _made(messages: Sequence[Message], start: int, end: int) -> Iterator[_Call]:
    answers = {m.tool_call_id: m for m in messages[start:end] if m.role == "tool"}
    for index in range(start, end):
        for call in messages[index].tool_calls:
            answer = answers.get(call.id)
            bare = ToolCall(call.name, call.arguments)
            yield index, bare, None if answer is None else result_value(answer.text)


def _spelled(name: str, arguments: "dict[str, JsonValue] | None") -> str:
    return f"{name}({'?' if arguments is None else dump_json(arguments)})"


def _targets(sample: Sample, targets: Sequence[str]) -> Iterator[Verdict]:
    called = {c.name for m in sample.conversation.messages for c in m.tool_calls}
    missing = [name for name in targets if name not in called]
    if missing:
        reason = f"the writer of the task expects {', '.join(missing)} to be called"
        yield Verdict(LAYER, "targets", "unsure", reason)
    else:
        yield passed(LAYER, "targets")


def _numbers(messages: Sequence[Message]) -> Iterator[Verdict]:
    """Numbers in an answer behind a result that stand nowhere before it: perhaps made up."""
    known = ""
    strange: list[str] = []
    has_results = False
    for message in messages:
        if message.role == "assistant" and has_results and not message.tool_calls:
            strange += [n for n in _NUMBER.findall(message.text) if not _is_in(n, known)]
        has_results = has_results or message.role == "tool"
        calls = " ".join(dump_json(call.arguments) for call in message.tool_calls)
        known += f" {message.text} {calls}"
    if strange:
        yield Verdict(LAYER, "numbers", "unsure", f"{', '.join(strange[:5])} stands nowhere before")
    elif has_results:
        yield passed(LAYER, "numbers")


def _is_in(number: str, text: str) -> bool:
    return number in text or number.replace(",", "") in text.replace(",", "")
