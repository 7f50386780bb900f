"""A Run: awaited, iterated, waited for, broken off, cancelled; nothing stays behind."""

import asyncio
import threading
from typing import Any

import pytest

from antiphon.agent import Agent, run_sync
from antiphon.errors import RunError, UsageError
from antiphon.events import Event, RunEnd, TextEvent, Trajectory, event_to_row
from antiphon.messages import Message, ToolCall
from antiphon.models import ReplayModel, ScriptedModel
from antiphon.tools import tool


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


ADD = Message.assistant("So:", tool_calls=[ToolCall("add", {"a": 1, "b": 2}, "c1")])


def agent(*answers: Any, **options: Any) -> Agent:
    given: dict[str, Any] = {"tools": [add]} | options
    return Agent(model=ScriptedModel(answers), **given)


def timeless(events: tuple[Event, ...] | list[Event]) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in event_to_row(e).items() if k not in ("time", "duration")} for e in events
    ]


def test_a_run_can_be_awaited_twice() -> None:
    async def main() -> None:
        run = agent("Hi.").run("Hello")
        first = await run

        assert (await run).trajectory == first.trajectory

    asyncio.run(main())


def test_iterating_after_the_end_gives_the_recorded_events() -> None:
    async def main() -> None:
        run = agent(ADD, "3").run("1+2?")
        result = await run

        assert tuple([event async for event in run]) == result.trajectory.events

    asyncio.run(main())


def test_awaiting_after_iterating_gives_the_result() -> None:
    async def main() -> None:
        run = agent(ADD, "3").run("1+2?")
        events = [event async for event in run]

        assert (await run).trajectory.events == tuple(events)

    asyncio.run(main())


def test_two_readers_see_the_same_events() -> None:
    async def main() -> None:
        run = agent(ADD, "3").run("1+2?")

        async def read() -> list[Event]:
            return [event async for event in run]

        first, second = await asyncio.gather(read(), read())
        assert first == second
        assert isinstance(first[-1], RunEnd)

    asyncio.run(main())


def test_wait_and_run_sync_serve_plain_code() -> None:
    assert agent("Hi.").run("Hello").wait().output == "Hi."
    assert run_sync(agent("Hi.").run("Hello")).output == "Hi."
    assert str(agent("Hi.").run_sync("Hello")) == "Hi."


def test_waiting_inside_an_event_loop_says_what_to_do() -> None:
    async def main() -> None:
        with pytest.raises(RunError, match=r"await agent\.run"):
            agent("Hi.").run_sync("Hello")

    asyncio.run(main())


def test_breaking_off_starts_no_further_request_and_no_tool() -> None:
    """openai/openai-agents-python#574."""
    ran: list[int] = []

    def note() -> str:
        ran.append(1)
        return "noted"

    model = ScriptedModel([Message.assistant("Well.", tool_calls=[ToolCall("note", {}, "c1")])] * 9)

    async def main() -> Trajectory:
        run = Agent(model=model, tools=[note]).run("go")
        async for event in run:
            if isinstance(event, TextEvent):
                break
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        return run.trajectory

    trajectory = asyncio.run(main())

    assert (len(model.conversations), ran) == (1, [])
    assert trajectory.stop_reason == "cancelled"


def test_a_reader_sets_the_pace() -> None:
    model = ScriptedModel([ADD, "3"])

    async def main() -> None:
        async for event in Agent(model=model, tools=[add]).run("go"):
            if event.type == "step_end":
                for _ in range(50):
                    await asyncio.sleep(0)
                assert len(model.conversations) == event.step + 1  # pyright: ignore[reportAttributeAccessIssue]

    asyncio.run(main())


def cancelled_run(make_tool: Any, *, during: str = "tool_call") -> tuple[Trajectory, int]:
    async def main() -> tuple[Trajectory, int]:
        script = [Message.assistant("", tool_calls=[ADD.tool_calls[0], ToolCall("hang", {}, "c2")])]
        run = Agent(model=ScriptedModel(script), tools=[add, make_tool]).run("go")
        asyncio.get_running_loop().call_later(5, run.cancel)  # never waited for in full
        waiting = asyncio.ensure_future(run)
        await started.wait()
        run.cancel()
        result = await waiting
        return result.trajectory, len(asyncio.all_tasks())

    started = make_tool.started = asyncio.Event()
    return asyncio.run(main())


def test_cancelling_keeps_finished_results_and_answers_the_rest() -> None:
    """agentscope-ai/agentscope#1806."""

    async def hang() -> str:
        hang.started.set()  # type: ignore[attr-defined]  # set by cancelled_run
        await asyncio.Event().wait()
        return "never"

    trajectory, n_tasks = cancelled_run(hang)

    assert (trajectory.stop_reason, n_tasks) == ("cancelled", 1)
    tools = [m for m in trajectory.conversation.messages if m.role == "tool"]
    assert [m.tool_call_id for m in tools] == ["c1", "c2"]
    assert "cancelled" in tools[1].text
    assert isinstance(trajectory.events[-1], RunEnd)


def test_the_next_run_works_after_a_cancelled_one() -> None:
    async def hang() -> str:
        hang.started.set()  # type: ignore[attr-defined]  # set by cancelled_run
        await asyncio.Event().wait()
        return "never"

    trajectory, _ = cancelled_run(hang)
    result = agent("Gone on.").run_sync("go on", history=trajectory.conversation.messages)

    assert result.output == "Gone on."
    assert [m.role for m in result.messages] == [
        *("user", "assistant", "tool", "tool", "user", "assistant")
    ]


def test_cancelling_whoever_awaits_stops_the_run_and_keeps_the_record() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def hang() -> str:
            begun.set()
            await asyncio.Event().wait()
            return "never"

        script = [Message.assistant("", tool_calls=[ToolCall("hang", {}, "c1")])]
        run = Agent(model=ScriptedModel(script), tools=[hang]).run("go")

        async def caller() -> None:
            await run

        task = asyncio.create_task(caller())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1
        assert run.trajectory.stop_reason == "cancelled"
        assert Trajectory.from_json(run.trajectory.to_json()).steps

    asyncio.run(main())


def test_a_run_cancelled_before_it_begins_does_nothing() -> None:
    model = ScriptedModel(["Hi."])
    run = Agent(model=model).run("Hello")
    run.cancel()

    assert run.wait().stop_reason == "cancelled"
    assert model.conversations == []


def test_a_run_can_be_cancelled_from_another_thread() -> None:
    begun = threading.Event()

    async def hang() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    script = [Message.assistant("", tool_calls=[ToolCall("hang", {}, "c1")])]
    run = Agent(model=ScriptedModel(script), tools=[hang]).run("go")
    threading.Thread(target=lambda: (begun.wait(5), run.cancel()), daemon=True).start()

    assert run.wait().stop_reason == "cancelled"


def test_a_record_can_be_read_at_any_moment() -> None:
    async def main() -> None:
        run = agent(ADD, "3").run("1+2?")
        async for _ in run:
            text = run.trajectory.to_json()
            assert Trajectory.from_json(text).events == run.trajectory.events

    asyncio.run(main())


def test_a_replayed_run_makes_the_same_events() -> None:
    script = [ADD, "", Message.assistant("3", reasoning="sum")]
    recorded = agent(*script, instructions="Be brief.").run_sync("1+2?").trajectory
    read_back = Trajectory.from_json(recorded.to_json())

    replayed = Agent(model=ReplayModel(read_back), tools=[add], instructions="Be brief.")
    again = replayed.run_sync("1+2?").trajectory

    assert timeless(again.events[1:]) == timeless(recorded.events[1:])
    assert again.conversation == recorded.conversation


def test_a_finished_run_is_not_resumed() -> None:
    trajectory = agent("Hi.").run_sync("Hello").trajectory

    with pytest.raises(UsageError, match="history"):
        agent("Hi.").resume(trajectory)


def test_a_run_that_broke_off_goes_on_where_it_stopped() -> None:
    from antiphon.errors import ModelConnectionError

    broken = agent(ADD, ModelConnectionError("gone")).run_sync("1+2?").trajectory
    whole = agent(ADD, "3").run_sync("1+2?").trajectory

    resumed = run_sync(agent("3").resume(Trajectory.from_json(broken.to_json()))).trajectory

    assert resumed.output == "3"
    assert resumed.conversation == whole.conversation
    assert len(resumed.steps) == 2
