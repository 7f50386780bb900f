"""What a model is shown of a long conversation, and what a run may cost."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.agent import Agent
from antiphon.agent._record import Record
from antiphon.agent._view import View
from antiphon.errors import ContextLengthError, UsageError
from antiphon.events import CompactionEvent, Trajectory
from antiphon.memory import Compacted, Compaction, compact, count_tokens, summarise_with
from antiphon.messages import Completion, Conversation, Message, ToolCall, Usage
from antiphon.models import ModelOutput, ModelSettings, Price, ReplayModel, ScriptedModel


def turn(n: int, n_chars: int = 400) -> list[Message]:
    """A call and its answer."""
    return [
        Message.assistant(tool_calls=[ToolCall("look", {"n": n}, f"c{n}")]),
        Message.tool("x" * n_chars, call_id=f"c{n}", name="look"),
    ]


def long(n_turns: int, n_chars: int = 400) -> list[Message]:
    return [Message.user("go"), *(m for n in range(n_turns) for m in turn(n, n_chars))]


def made(messages: Sequence[Message], **how: Any) -> Compacted | None:
    return asyncio.run(compact(messages, Compaction(**how)))


def test_old_tool_results_are_left_out_first() -> None:
    messages = long(5)

    result = made(messages, max_tokens=500, keep_messages=2)

    assert result is not None
    assert (result.method, result.n_messages) == ("tool_results", 4)
    assert "400 characters in all" in result.messages[2].text
    assert result.messages[-2:] == tuple(messages[-2:])


def test_old_messages_are_left_out_where_that_is_not_enough() -> None:
    result = made(long(30), max_tokens=200, keep_messages=2)

    assert result is not None
    assert (result.method, result.n_messages) == ("truncate", 58)
    assert [m.text for m in result.messages[:2]] == ["go", "[58 earlier messages are not shown.]"]


def test_a_summary_may_stand_for_what_is_left_out() -> None:
    model = ScriptedModel(["They looked 29 times."])

    result = made(long(30), max_tokens=200, keep_messages=2, summarise=summarise_with(model))

    assert result is not None
    assert result.messages[1].text == "[What was said before]\nThey looked 29 times."
    assert "[calls look" in model.conversations[0].messages[1].text


def test_nothing_is_left_out_of_what_is_kept() -> None:
    assert made(long(1), max_tokens=1, keep_messages=9) is None


@given(st.integers(0, 12), st.integers(1, 9), st.integers(1, 400))
def test_no_result_ever_loses_its_call(n_turns: int, keep: int, max_tokens: int) -> None:
    result = made(long(n_turns), max_tokens=max_tokens, keep_messages=keep)

    if result is not None:
        asked = {c.id for m in result.messages for c in m.tool_calls}
        answered = {m.tool_call_id for m in result.messages if m.role == "tool"}
        assert asked == answered


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="must be 1 or more"):
        Compaction(max_tokens=0)


def looker(answers: Sequence[Any], **options: Any) -> tuple[Agent, ScriptedModel]:
    def look(n: int) -> str:
        return "x" * 400

    model = ScriptedModel(answers)
    return Agent(model=model, tools=[look], **options), model


def script(n_turns: int) -> list[Any]:
    return [*(turn(n)[0] for n in range(n_turns)), "done"]


def test_a_run_shows_less_and_records_everything() -> None:
    compaction = Compaction(max_tokens=400, keep_messages=2)
    agent, model = looker(script(8), compaction=compaction)

    result = agent.run_sync("go")

    assert all(count_tokens(c.messages) <= 420 for c in model.conversations)
    assert len(result.messages) == 18
    assert all(len(m.text) == 400 for m in result.messages if m.role == "tool")
    assert any(isinstance(e, CompactionEvent) for e in result.trajectory.events)


def test_a_run_that_showed_less_survives_its_file_and_a_replay() -> None:
    compaction = Compaction(max_tokens=400, keep_messages=2)
    agent, _ = looker(script(8), compaction=compaction)
    record = agent.run_sync("go").trajectory

    read_back = Trajectory.from_json(record.to_json())
    again = Agent(model=ReplayModel(read_back), tools=agent.tools, compaction=compaction).run_sync(
        "go"
    )

    assert (read_back.steps, read_back.events) == (record.steps, record.events)
    assert again.messages == record.conversation.messages


def test_a_run_ends_before_it_costs_more() -> None:
    cost = Usage(1000, 100, 0, 1)
    answers = [Completion(turn(n)[0], "tool_calls", cost, "big") for n in range(9)]
    prices = {"big": Price(input=10.0, output=20.0)}
    agent, _ = looker(answers, prices=prices, max_cost=0.03)

    result = agent.run_sync("go")

    assert (result.stop_reason, len(result.trajectory.steps)) == ("cost_limit", 3)
    assert abs(result.cost(prices) - 0.036) < 1e-9


class Small(ScriptedModel):
    """A model that reads no more than so many tokens."""

    def __init__(self, answers: Sequence[Any], n_context: int) -> None:
        super().__init__(answers)
        self.n_context = n_context
        self.refused = 0

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        if count_tokens(conversation.messages) > self.n_context:
            self.refused += 1
            raise ContextLengthError("the conversation is too long for 'small'")
        async for output in super().stream(conversation, settings):
            yield output


@pytest.mark.parametrize("n_context", [150, 300, 600])
def test_a_context_that_is_full_is_emptied_and_the_run_goes_on(n_context: int) -> None:
    agent, _ = looker(())
    model = Small(script(8), n_context)

    result = Agent(model=model, tools=agent.tools).run_sync("go")

    assert (result.output, len(result.messages)) == ("done", 18)
    assert model.refused > 0
    told = [e for e in result.trajectory.events if isinstance(e, CompactionEvent)]
    assert len(told) == model.refused
    for conversation in model.conversations:
        known = {c.id for m in conversation.messages for c in m.tool_calls}
        assert all(m.tool_call_id in known for m in conversation.messages if m.role == "tool")


def test_a_question_that_no_context_holds_ends_the_run_as_an_error() -> None:
    model = Small(["never"], 10)

    result = Agent(model=model).run_sync("go " * 100)

    assert result.stop_reason == "error"
    assert "too long" in result.trajectory.error


def test_what_is_shown_is_counted_once() -> None:
    """The cost of a step with compaction does not depend on the steps before it."""
    counted: list[int] = []

    class Counting(list[Message]):
        def __getitem__(self, at: Any) -> Any:
            found = cast("Any", super()).__getitem__(at)
            if isinstance(at, slice):
                counted.append(len(found))
            return found

    record = Record("r", "", messages=Counting())
    view = View(record)
    for _ in range(50):
        view.say(*turn(0))
        asyncio.run(view.compact(Compaction(max_tokens=10**9)))

    assert max(counted) == len(turn(0))
