"""One call of a tool: in a thread or a task, within its time, whatever the function does.

Nothing that a function raises leaves this module, ``SystemExit`` and ``KeyboardInterrupt``
included; it becomes part of an `Outcome`.  Only the cancellation of the caller passes through.
"""

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, Never, cast

from antiphon.tools._context import RunContext
from antiphon.tools._stdout import capture
from antiphon.tools._watchdog import HeldUp, Watched
from antiphon.tools._workers import workers

_GRACE_SECONDS = 0.25
_LATE_TASKS: set[asyncio.Task[Any]] = set()


class TimedOut(Exception):
    """The function did not return in time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: a value, or an exception."""

    value: Any = None
    error: BaseException | None = None
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One call about to be made."""

    label: str
    """The tool's name."""
    invoke: Callable[[], Any]
    """The function with its arguments."""
    timeout: float | None
    """Seconds until it is given up."""
    context: RunContext[Any] | None
    """Takes partial output, and is told when nobody waits any more."""
    capture_stdout: bool = False
    """Whether what it prints is kept."""


N_FORKS = [0]
"""How often this process was made by a fork: a call that sees it change is in a child."""


def _count_fork() -> None:
    N_FORKS[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def leave() -> Never:
    """End this process: the tool forked, and the child must not answer a second time."""
    os._exit(0)


def run_inline(job: Job) -> Outcome:
    """Call a plain function here and now."""
    forks = N_FORKS[0]
    printed = contextlib.nullcontext() if not job.capture_stdout else capture()
    buffer = None
    try:
        with printed as buffer:
            value = job.invoke()
            if inspect.isgenerator(value):
                value = _drain(cast("Generator[Any, Any, Any]", value), job)
        outcome = Outcome(value)
    except BaseException as error:
        outcome = Outcome(error=error)
    if N_FORKS[0] != forks:
        leave()
    return outcome if buffer is None else Outcome(outcome.value, outcome.error, buffer.getvalue())


async def run_in_thread(job: Job) -> Outcome:
    """Call a plain function in a thread; return in time even where it does not."""
    emit = _emit_from_thread(job)
    work = workers().submit(lambda: run_inline(emit), job.label)
    try:
        done, _ = await asyncio.wait({work.future}, timeout=job.timeout)
    except asyncio.CancelledError:
        _give_up(job)
        workers().abandon(work)
        raise
    if not done:
        _give_up(job)
        workers().abandon(work)
        return Outcome(error=TimedOut())
    outcome, error = work.future.result()
    return Outcome(error=error) if error is not None else outcome


def _emit_from_thread(job: Job) -> Job:
    """The same job, whose partial output reaches the event loop's thread in order."""
    if job.context is None:
        return job
    loop, emit = asyncio.get_running_loop(), job.context.emit

    def hand_over(output: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(emit, output)

    job.context.emit = hand_over
    return job


async def run_async(job: Job) -> Outcome:
    """Await a function's coroutine or drain its async generator, within its time."""
    if job.timeout is None:
        return await _guarded(job)
    task: asyncio.Task[Outcome] = asyncio.create_task(Watched(_guarded(job), job.timeout))
    try:
        done, _ = await asyncio.wait({task}, timeout=job.timeout)
    except asyncio.CancelledError:
        _give_up(job)
        await _cancel(task)
        raise
    if done and task.exception() is None and not isinstance(task.result().error, HeldUp):
        return task.result()
    _give_up(job)
    await _cancel(task)
    return Outcome(error=TimedOut())


async def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task; one that refuses is counted as late and no longer waited for."""
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=_GRACE_SECONDS)
    if not done:
        _LATE_TASKS.add(task)
        task.add_done_callback(_LATE_TASKS.discard)


def run_async_in_thread(job: Job) -> Awaitable[Outcome]:
    """Give an async function an event loop and a thread of its own."""

    def invoke() -> Any:
        outcome = asyncio.run(_guarded(job))
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    return run_in_thread(Job(job.label, invoke, job.timeout, job.context, job.capture_stdout))


async def finish(job: Job, outcome: Outcome) -> Outcome:
    """Await what a plain function returned, where that is an awaitable or an async generator."""
    value = outcome.value
    if outcome.error is None and (inspect.isawaitable(value) or inspect.isasyncgen(value)):
        return await run_async(
            Job(job.label, lambda: value, job.timeout, job.context, job.capture_stdout)
        )
    return outcome


async def _guarded(job: Job) -> Outcome:
    printed = contextlib.nullcontext() if not job.capture_stdout else capture()
    buffer = None
    try:
        with printed as buffer:
            value = job.invoke()
            if inspect.isasyncgen(value):
                value = await _drain_async(cast("AsyncGenerator[Any, Any]", value), job)
            elif inspect.isawaitable(value):
                value = await value
        outcome = Outcome(value)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        outcome = Outcome(error=error)  # the tool raised it: nobody cancelled this call
    except BaseException as error:
        outcome = Outcome(error=error)
    return outcome if buffer is None else Outcome(outcome.value, outcome.error, buffer.getvalue())


def _give_up(job: Job) -> None:
    if job.context is not None:
        job.context.stop.set()


def _drain(generator: Generator[Any, Any, Any], job: Job) -> Any:
    parts = _Parts()
    while True:
        try:
            output = next(generator)
        except StopIteration as end:
            return parts.value(end.value)
        parts.add(output)
        if job.context is not None:
            if job.context.cancelled:
                generator.close()
                return None
            job.context.emit(output)


async def _drain_async(generator: AsyncGenerator[Any, Any], job: Job) -> Any:
    parts = _Parts()
    async for output in generator:
        parts.add(output)
        if job.context is not None:
            job.context.emit(output)
    return parts.value(None)


class _Parts:
    """What a generator yielded: text that adds up, or values of which the last one counts."""

    def __init__(self) -> None:
        self.texts: list[str] | None = []
        self.last: Any = None

    def add(self, output: Any) -> None:
        if self.texts is not None and isinstance(output, str):
            self.texts.append(output)
        else:
            self.texts = None
        self.last = output

    def value(self, returned: Any) -> Any:
        if returned is not None:
            return returned
        if self.texts:
            return "".join(self.texts)
        return self.last


def asked_to_wait(error: BaseException) -> float:
    """How long an exception asks to wait before another try, in seconds; 0 where it does not say.

    Exceptions of ours and of API clients have a `retry_after`; those of HTTP clients the response
    with its headers.  A date in them is not read: clocks differ.
    """
    response = getattr(error, "response", None)
    headers: Any = getattr(response, "headers", None) or getattr(error, "headers", None)
    asked: Any = getattr(error, "retry_after", None)
    if asked is None and hasattr(headers, "get"):
        asked = headers.get("Retry-After") or headers.get("retry-after")
    if not isinstance(asked, str | int | float):
        return 0.0
    try:
        seconds = float(asked)
    except ValueError:
        return 0.0
    return seconds if seconds >= 0.0 else 0.0  # NaN, too, is no time


def late_tasks() -> int:
    """How many async calls were cancelled and go on all the same."""
    return len(_LATE_TASKS)


def error_text(name: str, error: BaseException, *, show: bool, timeout: float | None) -> str:
    """What the model is told of an exception."""
    if isinstance(error, TimedOut):
        return (
            f"{name} gave no answer within {timeout:g} s and is no longer waited for; "
            "it may still have done its work"
        )
    if not show:
        return f"{name} failed"
    kind = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception whose own text raises
        text = ""
    if len(text) > 500:
        text = f"{text[:400]}...{text[-80:]}"
    return f"{name} failed: {kind}: {text}" if text else f"{name} failed: {kind}"
