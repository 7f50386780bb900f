"""A model that goes round in a circle is told so, and stopped; tools that must not race do not."""

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.errors import UsageError
from antiphon.events import FeedbackEvent, LimitEvent
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.store import SqliteStore
from antiphon.strategies import run_in_virtual_time
from antiphon.tools import tool


@tool
def ls(path: str) -> str:
    """Lists a folder."""
    return "a b"


def call(name: str, **arguments: Any) -> Message:
    return Message.assistant(tool_calls=[ToolCall(name, arguments)])


def lister(answers: list[Any], **options: Any) -> Agent:
    return Agent(model=ScriptedModel(answers), tools=[ls], max_repeats=5, **options)


def test_the_third_equal_call_with_an_equal_result_earns_a_notice() -> None:
    result = lister([call("ls", path=".")] * 3 + ["a and b"]).run_sync("files?")

    notices = [e for e in result.trajectory.events if isinstance(e, FeedbackEvent)]

    assert [(e.step, "3 times" in e.text) for e in notices] == [(2, True)]
    assert result.output == "a and b"


def test_the_fifth_ends_the_run() -> None:
    result = lister([call("ls", path=".")] * 9).run_sync("files?")

    limits = [(e.limit, e.value) for e in result.trajectory.events if isinstance(e, LimitEvent)]
    assert (result.stop_reason, result.text, limits) == ("stuck", "", [("max_repeats", 5)])
    assert len(result.trajectory.steps) == 5


def test_equal_results_of_other_calls_are_no_circle() -> None:
    """vstorm-co/pydantic-deepagents#208."""
    answers: list[Any] = [call("ls", path=f"{n}") for n in range(8)]

    result = lister([*answers, "all alike"]).run_sync("files?")

    assert (result.stop_reason, result.output) == ("answer", "all alike")
    assert not [e for e in result.trajectory.events if isinstance(e, FeedbackEvent)]


def test_without_a_limit_a_tool_may_be_polled() -> None:
    model = ScriptedModel([*[call("ls", path=".")] * 9, "still a b"])

    assert Agent(model=model, tools=[ls]).run_sync("files?").output == "still a b"


def test_a_resumed_run_remembers_what_it_repeated() -> None:
    store = SqliteStore("")
    first = lister([call("ls", path=".")] * 2, max_steps=2).run("files?", store=store)
    assert first.wait().stop_reason == "step_limit"

    again = lister([call("ls", path=".")] * 9).resume(first.id, store=store).wait()

    assert (again.stop_reason, len(again.trajectory.steps)) == ("stuck", 5)
    store.close()


def test_a_limit_that_leaves_no_room_for_a_notice_is_refused() -> None:
    with pytest.raises(UsageError, match="max_repeats of agent 'agent' is 2"):
        Agent(max_repeats=2)


def test_serial_tools_run_one_at_a_time_in_call_order_beside_the_others() -> None:
    """microsoft/agent-framework#7386."""
    spans: dict[str, tuple[float, float]] = {}

    def slow(name: str, seconds: float, *, serial: bool) -> Any:
        async def act() -> str:
            clock = asyncio.get_running_loop().time
            started = clock()
            await asyncio.sleep(seconds)
            spans[name] = (started, clock())
            return name

        return tool(act, name=name, description="Acts.", serial=serial)

    tools = [slow("write", 2, serial=True), slow("read", 3, serial=False)]
    tools.append(slow("commit", 1, serial=True))
    calls = [ToolCall(name, {}) for name in ("write", "read", "commit")]
    model = ScriptedModel([Message.assistant(tool_calls=calls), "done"])

    async def main() -> Any:
        return await Agent(model=model, tools=tools).run("go")

    result = run_in_virtual_time(main())

    assert spans == {"write": (0, 2), "read": (0, 3), "commit": (2, 3)}
    assert [m.text for m in result.messages if m.role == "tool"] == ["write", "read", "commit"]
