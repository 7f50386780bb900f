"""How a run of `Reflexion` goes: attempt, verdict, reflection, until one passes or none is left."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from antiphon.agent import Agent, RunResult
from antiphon.agent._cost import Reached
from antiphon.agent._start import Start
from antiphon.agent._telling import Shown
from antiphon.errors import ModelError, RunError
from antiphon.events import (
    AttemptEvent,
    LimitEvent,
    ReflectionEvent,
    RunStopReason,
    TextEvent,
    Trajectory,
)
from antiphon.memory import head_tail
from antiphon.messages import Message, TextPart, dump_json
from antiphon.strategies._course import StrategyCourse, answered, no_answer_reason, text_of
from antiphon.strategies._plan import plan_of
from antiphon.strategies._prompts import told_tasks

if TYPE_CHECKING:
    from antiphon.strategies._evaluators import Verdict
    from antiphon.strategies._reflexion import Reflexion

_MESSAGE_TOKENS = 300
_ATTEMPT_TOKENS = 2000

REFLECTOR = """\
An attempt at a task has failed. You are shown the task, the attempt and why it failed. Write, in a
few sentences to whoever tries next, what went wrong and what to do differently. Do not solve the
task and do not repeat the attempt.

Example.
Task: Which river is longer, the Po or the Tiber?
Attempt: Searched "Po Tiber", read about the Tiber only, answered "the Tiber".
Why it failed: the answer 'the Tiber' is wrong
Reflection: I answered after reading about one of the two rivers. Next time look each of them up on
its own, note both lengths, and compare them before answering.

Example.
Task: Write a function that returns the second largest number of a list.
Attempt: return sorted(numbers)[-2]
Why it failed: f([5, 5, 3]) gave 5, expected 3
Reflection: I took equal numbers for different ones. Next time remove duplicates before ordering,
and think of lists in which the largest number occurs twice."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt that was judged."""

    n: int
    score: float
    text: str
    value: Any
    agent: Agent


class ReflexionCourse(StrategyCourse):
    """The state of one run of `Reflexion`."""

    def __init__(self, how: "Reflexion", start: Start, shown: Shown) -> None:
        """Set up; nothing begins."""
        super().__init__(start, shown, strategy=how)
        self.how = how
        self.reflections: list[str] = []
        self.attempts: list[_Attempt] = []
        self._last_failed = ""
        if start.earlier is not None:
            self._take_up(start.earlier)

    async def pursue(self) -> RunStopReason:
        """Try until an attempt passes, cannot be judged, or was the last one."""
        for n in range(len(self.attempts) + 1, self.how.max_attempts + 1):
            if not self.goes_on(f"attempt:{n}") and (n > 1 or self.start.earlier is not None):
                await self._prepare(n)
            result = await self._attempt(n)
            if result.stop_reason in ("error", "refused", "cancelled"):
                self.error, self.reason = result.error, no_answer_reason(result)
                return result.stop_reason
            stop = await self._judge(n, result)
            if stop is not None:
                return stop
        await self.emit(LimitEvent("max_attempts", self.how.max_attempts))
        return await self._best("failed")

    async def settle(self, reached: Reached) -> RunStopReason:
        """End with the best of the attempts that there were."""
        return await self._best(reached.stop)

    async def _attempt(self, n: int) -> RunResult:
        """An attempt, which is judged by what it has where the budget ends it."""
        self.mind_budget()
        key = f"attempt:{n}"
        run = self.part(self.how.actor, self._task(), role="actor", key=key, history=self.before)
        return self.not_waiting(key, await run)

    def _task(self) -> Message:
        """What an attempt is asked: what was learned, as a block of its own, and the task."""
        parts: list[str] = []
        shown = self.reflections[-self.how.max_reflections :]
        if shown:
            told = "\n".join(f"{n}. {text}" for n, text in enumerate(shown, 1))
            parts.append(f"[Reflections on failed attempts at this task]\n{told}\n[End]\n\n")
        if self.how.show_last_attempt and self._last_failed:
            parts.append(
                f"[Answer of the last attempt, which failed]\n{self._last_failed}\n[End]\n\n"
            )
        return Message.user([*(TextPart(part) for part in parts), TextPart(self.goal)])

    async def _judge(self, n: int, result: RunResult) -> RunStopReason | None:
        """Judge an attempt; why the run ends with it, if it does."""
        verdict = await self._verdict(n, result)
        if verdict is None:
            return "evaluator_error"
        words = {True: "passed", False: "failed", None: "unverified"}
        await self.emit(
            AttemptEvent(
                n,
                cast("Any", words[verdict.ok]),
                result.text,
                verdict.score,
                verdict.feedback,
            )
        )
        self.attempts.append(_Attempt(n, verdict.score, result.text, result.value, result.agent))
        if verdict.ok is False:
            self._last_failed = result.text
            return None
        if verdict.ok is None:
            self.mind_budget()  # used up, perhaps before there was a verdict
        await self._say(self.attempts[-1])
        return "answer" if verdict.ok else "unverified"

    async def _verdict(self, n: int, result: RunResult) -> "Verdict | None":
        """The evaluator's verdict; ``None`` where it broke, which is no verdict."""
        try:
            made = self.how.evaluator(result)
            return await made if inspect.isawaitable(made) else made
        except Exception as error:  # an evaluator is a user's function, as a tool is
            text = str(error) or type(error).__name__
            self.reason = f"the evaluator failed: {text}"
            self.error = (
                error if isinstance(error, ModelError | RunError) else RunError(self.reason)
            )
            await self.emit(AttemptEvent(n, "error", result.text, feedback=text))
            return None

    async def _say(self, attempt: _Attempt) -> None:
        """Make an attempt's answer the run's."""
        self.output, self.output_text = attempt.value, attempt.text
        self.agent = attempt.agent
        if attempt.text:
            await self.emit(TextEvent(0, attempt.text))

    async def _best(self, stop: RunStopReason) -> RunStopReason:
        """End with the best of failed attempts: of equal ones, the last that has an answer."""
        if self.attempts:
            await self._say(max(self.attempts, key=lambda a: (a.score, bool(a.text), a.n)))
        return stop

    # Between attempts

    async def _prepare(self, n: int) -> None:
        """Reflect on the last attempt and put the world back."""
        if self.how.reset is not None:
            made = self.how.reset()
            if inspect.isawaitable(made):
                await made
        if self.how.reflect and len(self.reflections) < n - 1:
            await self._reflect(n - 1)

    async def _reflect(self, n: int) -> None:
        attempt = next(c for c in self.record.children if c.call_id == f"attempt:{n}")
        verdict = next(
            e
            for e in reversed(self.record.events)
            if isinstance(e, AttemptEvent) and e.attempt == n
        )
        parts = [f"Task: {self.goal}", f"Attempt:\n{await _told(attempt)}"]
        parts.append(f"Why it failed: {verdict.feedback or 'it was not accepted'}")
        earlier = self.reflections[-self.how.max_reflections :]
        if earlier:
            told = "\n".join(f"- {text}" for text in earlier)
            parts.append(f"Reflections on earlier attempts:\n{told}")
        result = await self.ask(
            self._reflector(), "\n\n".join(parts), role="reflector", key=f"reflector:{n}"
        )
        if not answered(result):
            raise result.error or RunError(f"no reflection: {no_answer_reason(result)}")
        text = head_tail(result.text.strip(), self.how.reflection_tokens)
        self.reflections.append(text)
        await self.emit(ReflectionEvent(n, text))

    def _reflector(self) -> Agent:
        given = self.how.reflector
        if isinstance(given, Agent):
            return replace(given, instructions=f"{text_of(given)}\n\n{REFLECTOR}".strip())
        return Agent(
            name="reflector",
            instructions=REFLECTOR,
            model=self.model_of(given),
            settings=self.how.root.settings,
            timeout=self.how.root.timeout,
        )

    # Going on from a record

    def _take_up(self, earlier: Trajectory) -> None:
        for event in earlier.events:
            match event:
                case ReflectionEvent(text=text):
                    self.reflections.append(text)
                case AttemptEvent(attempt=n, verdict="failed", output=text, score=score):
                    self.attempts.append(_Attempt(n, score, text, text, self.how.root))
                    self._last_failed = text
                case _:
                    pass


async def _told(attempt: Trajectory) -> str:
    """An attempt, compressed: what was said and done, and what came of it."""
    plan = plan_of(attempt)
    lines: Sequence[str]
    if plan is not None:
        lines = [await told_tasks(plan.tasks, _MESSAGE_TOKENS), f"Answer: {attempt.output}"]
    else:
        messages = attempt.conversation.messages
        asked = max((n for n, m in enumerate(messages) if m.role == "user"), default=-1)
        first = next((n for n, m in enumerate(messages) if m.role == "assistant"), asked + 1)
        lines = [_line(message) for message in messages[first:]]
        if not lines or attempt.output not in lines[-1]:
            lines = [*lines, f"Answer: {attempt.output}"]
    return head_tail("\n".join(lines), _ATTEMPT_TOKENS)


def _line(message: Message) -> str:
    calls = "".join(f"\n[calls {c.name} {dump_json(c.arguments)}]" for c in message.tool_calls)
    return f"{message.role}: {head_tail(message.text, _MESSAGE_TOKENS)}{calls}"
