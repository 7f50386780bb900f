"""One row through the checks, cheapest first, and what the verdicts come to as a reward.

A file of rows goes through `_stages.py`; here is what it does to each, for whoever has a single run
in hand, such as a trainer that learns from rewards.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antiphon.events import Trajectory
from antiphon.synthesis import Task
from antiphon.tools import Tool
from antiphon.verification._answers import check_answers
from antiphon.verification._execution import check_execution
from antiphon.verification._format import check_format
from antiphon.verification._judge import Judge, check_by_judge
from antiphon.verification._tests import TestFunction, check_by_tests
from antiphon.verification._verdict import Sample, Verdict


async def check_sample(
    sample: Sample,
    *,
    tools: Mapping[str, Tool[..., Any]] | None = None,
    tests: Sequence[tuple[str, TestFunction]] = (),
    judge: Judge | None = None,
) -> list[Verdict]:
    """Layer after layer, until one says that the row is wrong.

    Args:
        sample: The row.
        tools: Tools by name, in their first state, on which its calls are made again.
        tests: Functions of the record, with their names.
        judge: A model that judges what the other layers let through.

    Raises:
        ModelError: The judge cannot be asked.
    """
    verdicts = list(check_format(sample))
    if is_wrong(verdicts):
        return verdicts
    verdicts += await check_execution(sample, tools or {})
    verdicts += check_answers(sample)
    verdicts += await check_by_tests(sample, tests, tools or {})
    if judge is not None and not is_wrong(verdicts):
        verdicts += await check_by_judge(sample, judge)
    return verdicts


def is_wrong(verdicts: Iterable[Verdict]) -> bool:
    """Whether a verdict says that the row as a whole is wrong."""
    return any(v.outcome == "fail" and v.message is None for v in verdicts)


async def reward(
    run: Trajectory,
    *,
    task: Task | None = None,
    tools: Iterable[Tool[..., Any]] = (),
    tests: Sequence[tuple[str, TestFunction]] = (),
    judge: Judge | None = None,
) -> float:
    """What a run is worth to a trainer: 0 where it is wrong, else the share of right messages.

    Args:
        run: The record.
        task: What was asked and what is right; what the record says of it by default.
        tools: See `check_sample`.
        tests: See `check_sample`.
        judge: See `check_sample`.

    Returns:
        Between 0 and 1; what no check can tell takes nothing away.

    Raises:
        ModelError: The judge cannot be asked.
    """
    read = Sample.read(run.to_row())
    sample = read if task is None else Sample(read.row, read.conversation, run, task)
    named = {tool.name: tool for tool in tools}
    verdicts = await check_sample(sample, tools=named, tests=tests, judge=judge)
    if is_wrong(verdicts):
        return 0.0
    wrong = {v.message for v in verdicts if v.outcome == "fail"}
    n_written = sum(m.role == "assistant" for m in sample.conversation.messages)
    return 1.0 - len(wrong) / max(1, n_written)
