"""Judging an attempt: exact match, a predicate, unit tests, a model with a rubric.

An evaluator is a function of a `RunResult` that gives a `Verdict`.  It may have nothing to judge by
(``ok`` is ``None``) or break (it raises); neither counts as a pass.
"""

import inspect
import json
import re
import string
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from antiphon.agent import Agent, RunResult
from antiphon.errors import RunError, UsageError
from antiphon.memory import head_tail
from antiphon.models import Model
from antiphon.strategies._unit_tests import run_tests

_MAX_FEEDBACK_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an evaluator found."""

    ok: bool | None
    """Whether the attempt passes; ``None`` where there is nothing to judge by."""
    score: float = 0.0
    """How good it is, from 0 to 1."""
    feedback: str = ""
    """What is wrong, for whoever reflects on it."""


Evaluator: TypeAlias = Callable[[RunResult], Verdict | Awaitable[Verdict]]
"""Judges an attempt."""


def exact(*expected: str, normalise: Callable[[str], str] | None = None) -> Evaluator:
    """Passes an answer that is one of those expected.

    Args:
        expected: Right answers.
        normalise: Makes equal what counts as equal; by default case, punctuation, articles and
            spaces do not count, as in the evaluation of SQuAD and HotpotQA.
    """
    made = normalised if normalise is None else normalise
    right = {made(text) for text in expected}

    def evaluate(result: RunResult) -> Verdict:
        if not right:
            return Verdict(None, feedback="there is no expected answer to compare with")
        ok = made(result.text) in right
        return Verdict(ok, float(ok), "" if ok else f"the answer {result.text!r} is wrong")

    return evaluate


_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """A text without what does not count in an exact match.

    >>> normalised(" The  answer: Lima! ")
    'answer lima'
    """
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def contains(*texts: str) -> Evaluator:
    """Passes an answer in which all texts occur, whatever their case.

    Args:
        texts: What must be said.
    """

    def evaluate(result: RunResult) -> Verdict:
        if not texts:
            return Verdict(None, feedback="there is no text to look for")
        said = result.text.casefold()
        missing = [text for text in texts if text.casefold() not in said]
        score = 1 - len(missing) / len(texts)
        told = ", ".join(repr(text) for text in missing)
        return Verdict(not missing, score, f"the answer does not say {told}" if missing else "")

    return evaluate


def predicate(
    check: Callable[[RunResult], bool | Awaitable[bool]], feedback: str = ""
) -> Evaluator:
    """Passes what a function says yes to.

    Args:
        check: Says whether an attempt passes.
        feedback: What is told of one that does not.
    """

    async def evaluate(result: RunResult) -> Verdict:
        made = check(result)
        ok = bool(await made if inspect.isawaitable(made) else made)
        return Verdict(ok, float(ok), "" if ok else feedback or "the answer was not accepted")

    return evaluate


def heuristic() -> Evaluator:
    """Passes every attempt that ended with an answer: not stuck, not at a limit, not empty."""

    def evaluate(result: RunResult) -> Verdict:
        ok = result.stop_reason in ("answer", "stopped_by_tool") and bool(result.text.strip())
        why = f"the attempt ended without an answer: {result.stop_reason.replace('_', ' ')}"
        return Verdict(ok, float(ok), "" if ok else why)

    return evaluate


def unit_tests(
    tests: Sequence[str],
    *,
    prompt: str = "",
    entry_point: str = "",
    timeout: float = 10.0,
    memory_mb: int = 512,
) -> Evaluator:
    """Passes an answer whose code passes all tests.

    Each test runs with the code in a fresh process without network, within time and memory (see
    `antiphon.tools.builtin`): nothing of one candidate or test is there for the next, and a test
    that is never reached has not passed.

    Args:
        tests: Programs that raise where the code is wrong, such as ``assert f(2) == 4``.
        prompt: What the code goes on from, put before an answer that does not define `entry_point`
            by itself.
        entry_point: The function that the code must define.
        timeout: Seconds that one test may take.
        memory_mb: The most memory that it may take, in megabytes.

    Raises:
        UsageError: A limit is not positive.
    """
    if timeout <= 0 or memory_mb < 64:
        raise UsageError(
            f"unit_tests need a positive timeout and at least 64 MB, got {timeout} s and "
            f"{memory_mb} MB"
        )

    async def evaluate(result: RunResult) -> Verdict:
        if not tests:
            return Verdict(None, feedback="there are no tests to judge by")
        code = candidate(result.text, prompt, entry_point)
        failures = await run_tests(code, tests, timeout=timeout, memory_mb=memory_mb)
        failed = [(test, why) for test, why in zip(tests, failures, strict=True) if why]
        score = 1 - len(failed) / len(tests)
        told = "\n".join(f"{test.strip()}\n  {why}" for test, why in failed[:3])
        feedback = f"{len(failed)} of {len(tests)} tests failed:\n{told}" if failed else ""
        return Verdict(not failed, score, head_tail(feedback, _MAX_FEEDBACK_TOKENS))

    return evaluate


_CODE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


def candidate(answer: str, prompt: str = "", entry_point: str = "") -> str:
    """The program in an answer.

    Args:
        answer: Code, alone or in a Markdown fence.
        prompt: What it goes on from.
        entry_point: The function that it must define.

    >>> candidate("    return 2 * n", "def double(n):\\n", "double")
    'def double(n):\\n    return 2 * n'
    """
    blocks = _CODE.findall(answer)
    code = max(blocks, key=len) if blocks else answer
    defines = entry_point and re.search(
        rf"^(?:async )?def {re.escape(entry_point)}\b", code, re.MULTILINE
    )
    return code if defines or not prompt else prompt + code


_JUDGE = """\
You judge an answer by a rubric. Reply with JSON alone:
{"score": a number from 0 (useless) to 1 (all that is asked for), "feedback": "what is wrong"}"""


def judge(model: Model | str, rubric: str = "", *, threshold: float = 0.5) -> Evaluator:
    """Passes what a model scores high enough.

    Args:
        model: Who judges.
        rubric: What a good answer is like.
        threshold: The least score that passes.
    """
    about = f"{_JUDGE}\n\nRubric: {rubric}" if rubric else _JUDGE
    agent = Agent(name="judge", instructions=about, model=model, max_steps=3)

    async def evaluate(result: RunResult) -> Verdict:
        messages = result.trajectory.conversation.messages
        question = next((m.text for m in messages if m.role == "user"), "")
        run = agent.run(
            f"Question:\n{question}\n\nAnswer:\n{result.text}", metadata={"role": "judge"}
        )
        attempt = result.trajectory.call_id.partition(":")[2]
        verdict = await run.under(f"judge:{attempt}")
        if verdict.stop_reason in ("step_limit", "token_limit", "cost_limit"):
            limit = verdict.stop_reason.replace("_", " ")
            return Verdict(None, feedback=f"the judge gave no verdict: {limit}")
        if verdict.stop_reason != "answer":
            raise RunError(verdict.trajectory.error or f"the judge: {verdict.stop_reason}")
        score, feedback = _score_in(verdict.text)
        return Verdict(score >= threshold, score, feedback)

    return evaluate


def _score_in(text: str) -> tuple[float, str]:
    """The score and feedback that a judge wrote.

    Raises:
        RunError: There is no score from 0 to 1 in it.
    """
    found = re.search(r"\{.*\}", text, re.DOTALL)
    row: Any = None
    if found is not None:
        try:
            row = json.loads(found[0])
        except (ValueError, RecursionError):
            row = None
    if isinstance(row, dict):
        fields = cast("dict[str, Any]", row)
        score = fields.get("score")
        if isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1:
            return float(score), str(fields.get("feedback", ""))
    raise RunError(f"the judge gave no score from 0 to 1: {text[:200]!r}")


def all_of(*evaluators: Evaluator) -> Evaluator:
    """Passes what all evaluators pass; the score is the least of theirs.

    Args:
        evaluators: Asked in this order, until one says no.
    """

    async def evaluate(result: RunResult) -> Verdict:
        verdicts: list[Verdict] = []
        for one in evaluators:
            made = one(result)
            verdicts.append(await made if inspect.isawaitable(made) else made)
            if verdicts[-1].ok is False:
                break
        if not verdicts:
            return Verdict(None, feedback="there is no evaluator")
        ok = False if verdicts[-1].ok is False else None
        if ok is None and all(v.ok for v in verdicts):
            ok = True
        feedback = "\n".join(v.feedback for v in verdicts if v.feedback)
        return Verdict(ok, min(v.score for v in verdicts), feedback)

    return evaluate
