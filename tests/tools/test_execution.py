"""Whatever a tool does, the call comes back with an answer, in time, and siblings with theirs."""

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from antiphon.errors import ToolDefinitionError, ToolError, UsageError
from antiphon.messages import ToolCall, ToolResult
from antiphon.tools import RunContext, Tool, late_tools, tool, unknown_tool_result


def call(made: Tool[..., Any], **arguments: Any) -> ToolResult:
    return asyncio.run(made.call(arguments))


def test_plain_functions_of_one_step_run_at_the_same_time() -> None:
    """openai-agents-python#2386"""
    both = threading.Barrier(2, timeout=5)

    @tool
    def meet() -> str:
        both.wait()
        return "met"

    async def run() -> list[ToolResult]:
        return list(await asyncio.gather(meet.call("{}"), meet.call("{}")))

    assert [r.text for r in asyncio.run(run())] == ["met", "met"]


def test_a_blocking_function_does_not_hold_up_the_loop() -> None:
    ticked = threading.Event()

    @tool
    def wait() -> bool:
        return ticked.wait(5)

    async def run() -> ToolResult:
        pending = asyncio.create_task(wait.call("{}"))
        for _ in range(20):
            await asyncio.sleep(0)
        ticked.set()
        return await pending

    assert asyncio.run(run()).text == "true"


def test_a_function_that_hangs_is_answered_in_time_and_its_thread_is_accounted_for() -> None:
    release = threading.Event()

    @tool(timeout=0.05)
    def hang() -> str:
        release.wait(10)
        return "late"

    result = call(hang)

    assert result.is_error
    assert result.text.startswith("hang gave no answer within 0.05 s")
    assert late_tools() == ("hang",)
    release.set()


def test_a_late_thread_leaves_the_account_when_it_is_done() -> None:
    release, done = threading.Event(), threading.Event()

    @tool(timeout=0.02)
    def slow() -> None:
        release.wait(10)

    async def run() -> None:
        await slow.call("{}")
        release.set()
        for _ in range(1000):
            if "slow" not in late_tools():
                done.set()
                return
            await asyncio.sleep(0.002)

    asyncio.run(run())

    assert done.is_set()


def test_a_function_that_says_nothing_of_its_time_is_given_up_after_ten_seconds() -> None:
    """A run of the defaults must end, whatever its tools do."""
    assert tool(lambda: None, name="hang").timeout == 10.0


def test_a_coroutine_that_hangs_is_cancelled_in_time() -> None:
    seen: list[str] = []

    @tool(timeout=0.02)
    async def hang(context: RunContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(f"cancelled: {context.cancelled}")
        return "late"

    result = call(hang)

    assert "no answer within 0.02 s" in result.text
    assert seen == ["cancelled: True"]


def test_a_coroutine_that_refuses_to_be_cancelled_is_left_behind() -> None:
    async def run() -> ToolResult:
        release = asyncio.Event()

        @tool(timeout=0.02)
        async def stubborn() -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return "late"

        result = await stubborn.call("{}")
        release.set()
        await asyncio.sleep(0.01)
        return result

    assert "no answer within" in asyncio.run(run()).text


def test_a_coroutine_that_never_yields_is_interrupted() -> None:
    @tool(timeout=0.1)
    async def spin() -> None:
        while True:
            pass

    async def run() -> list[ToolResult]:
        return list(await asyncio.gather(spin.call("{}"), quick.call("{}")))

    @tool
    async def quick() -> str:
        return "quick"

    spun, other = asyncio.run(run())

    assert "no answer within 0.1 s" in spun.text
    assert other.text == "quick"


def test_an_async_tool_may_block_in_a_thread_of_its_own() -> None:
    both = threading.Barrier(2, timeout=5)

    @tool(threaded=True)
    async def meet() -> str:
        both.wait()
        return "met"

    async def run() -> list[ToolResult]:
        return list(await asyncio.gather(meet.call("{}"), meet.call("{}")))

    assert [r.text for r in asyncio.run(run())] == ["met", "met"]


class Odd(BaseException):
    """No Exception."""


def deep(n: int = 0) -> int:
    return deep(n + 1) + 1


def exits() -> None:
    sys.exit(3)


def raises(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize("threaded", [True, False])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (raises(ValueError("disk on fire")), "t failed: ValueError: disk on fire"),
        (exits, "t failed: SystemExit: 3"),
        (raises(KeyboardInterrupt()), "t failed: KeyboardInterrupt"),
        (raises(GeneratorExit()), "t failed: GeneratorExit"),
        (raises(StopIteration()), "t failed: StopIteration"),
        (raises(asyncio.CancelledError()), "t failed: CancelledError"),
        (raises(Odd("odd")), "t failed: Odd: odd"),
        (raises(ToolError("no such city")), "no such city"),
        (deep, "t failed: RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_whatever_a_function_raises_is_an_answer(
    body: Callable[[], None], text: str, threaded: bool
) -> None:
    made = tool(lambda: body(), name="t", threaded=threaded)

    result = call(made)

    assert result.is_error
    assert result.text.startswith(text)


@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), Odd("odd"), KeyError("k")],
)
def test_whatever_a_coroutine_raises_is_an_answer(
    error: BaseException, timeout: float | None
) -> None:
    @tool(timeout=timeout)
    async def t() -> None:
        raise error

    result = call(t)

    assert result.is_error
    assert result.text.startswith(f"t failed: {type(error).__name__}")


def test_the_text_of_an_exception_can_be_kept_from_the_model() -> None:
    @tool(show_errors=False)
    def t() -> None:
        raise ValueError("password=hunter2")

    assert call(t).text == "t failed"


def test_one_failure_hides_no_sibling() -> None:
    """openai-agents-python#2584"""

    @tool
    def inverse(n: int) -> float:
        return 1 / n

    async def run() -> list[ToolResult]:
        return list(await asyncio.gather(*(inverse.call({"n": n}) for n in (1, 0, 2))))

    results = asyncio.run(run())

    assert [r.is_error for r in results] == [False, True, False]
    assert [r.text for r in results[::2]] == ["1.0", "0.5"]


def test_a_thousand_calls_at_once_are_all_answered() -> None:
    @tool
    def double(n: int) -> int:
        return 2 * n

    async def run() -> list[ToolResult]:
        return list(
            await asyncio.gather(*(double.call({"n": n}, call_id=str(n)) for n in range(1000)))
        )

    assert [r.value for r in asyncio.run(run())] == [2 * n for n in range(1000)]


def test_cancelling_the_caller_passes_through_and_tells_the_tool() -> None:
    told = threading.Event()
    started = threading.Event()

    @tool
    def wait(context: RunContext) -> None:
        started.set()
        while not context.stop.wait(5):
            pass
        told.set()

    async def run() -> None:
        task = asyncio.create_task(wait.call("{}"))
        while not started.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())

    assert told.wait(5)


def test_a_tool_that_forks_answers_once() -> None:
    @tool
    def forks() -> int:
        child = os.fork()
        if child == 0:
            return 0
        _, status = os.waitpid(child, 0)
        return 100 + os.waitstatus_to_exitcode(status)

    assert call(forks).text == "100"


def test_what_a_tool_prints_is_kept_apart_from_its_siblings() -> None:
    both = threading.Barrier(2, timeout=5)

    @tool(capture_stdout=True)
    def shout(word: str) -> None:
        print(word)
        both.wait()
        print(word.upper())

    async def run() -> list[ToolResult]:
        return list(await asyncio.gather(*(shout.call({"word": w}) for w in ("a", "b"))))

    assert [r.text for r in asyncio.run(run())] == ["a\nA\n", "b\nB\n"]


def test_a_generator_gives_its_parts_as_they_come_and_its_text_at_the_end() -> None:
    parts: list[object] = []

    @tool
    def count(n: int) -> Iterator[str]:
        for i in range(n):
            yield f"{i} "

    result = asyncio.run(count.call({"n": 3}, RunContext(emit=parts.append)))

    assert parts == ["0 ", "1 ", "2 "]
    assert result.text == "0 1 2 "


def test_an_async_generator_ends_with_its_last_value() -> None:
    parts: list[object] = []

    @tool
    async def count(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    result = asyncio.run(count.call({"n": 3}, RunContext(emit=parts.append)))

    assert parts == [0, 1, 2]
    assert result.value == 2


def test_a_generator_that_never_ends_is_stopped_at_its_time() -> None:
    @tool(timeout=0.05)
    def forever() -> Iterator[int]:
        while True:
            yield 1

    assert "no answer within" in asyncio.run(forever.call("{}", RunContext())).text


def test_no_more_calls_run_at_once_than_allowed() -> None:
    running = 0
    most = 0

    @tool(max_concurrent=2)
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1

    async def run() -> None:
        await asyncio.gather(*(work.call("{}") for _ in range(10)))

    asyncio.run(run())
    asyncio.run(run())  # a second event loop has its own limit

    assert most == 2


def test_an_idempotent_tool_may_be_tried_again() -> None:
    tries: list[int] = []

    @tool(retries=2, idempotent=True)
    def flaky() -> str:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError("broken")
        return "fine"

    assert call(flaky).text == "fine"
    assert len(tries) == 2


def test_retries_need_a_tool_that_may_run_twice() -> None:
    with pytest.raises(ToolDefinitionError, match="idempotent"):
        tool(lambda: None, name="pay", retries=1)


def test_the_context_cannot_be_forged() -> None:
    @tool
    def who(context: RunContext[str], n: int = 1) -> str:
        return context.deps

    async def run(arguments: dict[str, Any]) -> ToolResult:
        return await who.call(arguments, RunContext(deps="ann"), "c1")

    assert asyncio.run(run({})).text == "ann"
    forged = asyncio.run(run({"context": {"deps": "eve"}}))
    assert forged.is_error
    assert "'context' is not a parameter" in forged.text
    assert "context" not in who.spec.parameters["properties"]


def test_tools_of_one_run_share_its_state() -> None:
    @tool
    def put(context: RunContext, value: int) -> None:
        context.state["value"] = value

    context = RunContext[Any]()
    asyncio.run(put.call({"value": 7}, context))

    assert context.state == {"value": 7}


class Shop:
    """A shop with one price."""

    def __init__(self, price: int) -> None:
        self.price = price

    @tool
    def total(self, n: int) -> int:
        """What some cost.

        Args:
            n: How many.
        """
        return n * self.price


def test_a_method_is_a_tool_of_its_instance() -> None:
    assert call(Shop(3).total, n=4).text == "12"
    assert call(Shop(5).total, n=4).text == "20"
    assert list(Shop.total.spec.parameters["properties"]) == ["n"]


def test_a_method_without_an_instance_is_a_mistake_of_the_program() -> None:
    with pytest.raises(UsageError, match="instance"):
        call(Shop.total, n=4)


def test_a_tool_is_still_the_function_it_was() -> None:
    @tool
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    assert double(21) == 42
    assert double.__doc__ == "Twice."


def test_a_sync_function_that_returns_a_coroutine_is_awaited() -> None:
    async def later(n: int) -> int:
        return n + 1

    @tool
    def now(n: int) -> Any:
        return later(n)

    assert call(now, n=1).text == "2"
    assert call(now.with_options(threaded=False), n=1).text == "2"


def test_an_unknown_tool_is_answered_with_the_nearest_name() -> None:
    @tool
    def get_weather(city: str) -> str:
        return city

    result = unknown_tool_result(ToolCall("get_wether", {}, "c1"), [get_weather])

    assert result == ToolResult(
        "c1",
        "get_wether",
        "unknown tool 'get_wether'; the tools are: get_weather. Did you mean 'get_weather'?",
        is_error=True,
    )


def test_inspection_sees_the_function_of_a_tool_and_the_class_of_tools() -> None:
    @tool
    def double(n: int) -> int:
        """Twice."""
        return 2 * n

    assert list(inspect.signature(double).parameters) == ["n"]
    assert "function" in inspect.signature(Tool).parameters
    assert "offered to a model" in (inspect.getdoc(Tool) or "")
    assert list(inspect.signature(Shop(3).total).parameters) == ["n"]
