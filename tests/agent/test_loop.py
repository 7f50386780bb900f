"""The loop: what a run does with what a model writes and tools answer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from antiphon.agent import Agent, RunResult
from antiphon.errors import ModelConnectionError, RunError, UsageError
from antiphon.events import (
    CallEvent,
    Event,
    LimitEvent,
    ResultEvent,
    RunEnd,
    StepEnd,
    StepStart,
    TextEvent,
)
from antiphon.messages import (
    Completion,
    Conversation,
    InvalidToolCall,
    Message,
    TextDelta,
    ToolCall,
    Usage,
)
from antiphon.models import ModelOutput, ModelSettings, ScriptedModel
from antiphon.tools import tool


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def calls(*given: ToolCall, text: str = "") -> Message:
    return Message.assistant(text, tool_calls=given)


def add_call(a: int, b: int, id: str = "c1") -> ToolCall:
    return ToolCall("add", {"a": a, "b": b}, id=id)


def run(answers: Sequence[Any], question: str = "go", **options: Any) -> RunResult:
    given: dict[str, Any] = {"tools": [add]} | options
    return Agent(model=ScriptedModel(answers), **given).run_sync(question)


def results(result: RunResult) -> list[str]:
    return [m.text for m in result.messages if m.role == "tool"]


def test_an_answer_without_calls_ends_the_run() -> None:
    result = run(["Hello."])

    assert (result.output, result.stop_reason) == ("Hello.", "answer")
    assert [m.role for m in result.messages] == ["user", "assistant"]


def test_a_call_is_executed_and_its_result_shown_to_the_next_step() -> None:
    def second(conversation: Conversation) -> str:
        return f"It is {conversation.messages[-1].text}."

    result = run([calls(add_call(1, 2)), second])

    assert result.output == "It is 3."
    assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.messages[2].tool_call_id == "c1"


def test_a_dependent_call_sees_the_result_before_it() -> None:
    def second(conversation: Conversation) -> Message:
        return calls(add_call(int(conversation.messages[-1].text), 10, "c2"))

    result = run([calls(add_call(1, 2)), second, "13"])

    assert results(result) == ["3", "13"]


def test_text_and_reasoning_beside_calls_are_kept() -> None:
    message = Message.assistant("Let me see.", reasoning="hm", tool_calls=[add_call(1, 2)])

    result = run([message, "3"])

    assert (result.messages[1].text, result.messages[1].reasoning) == ("Let me see.", "hm")


def test_whitespace_before_a_call_is_no_answer() -> None:
    """pydantic/pydantic-ai#7688."""
    result = run([calls(add_call(1, 2), text=" \n"), "3"])

    assert (result.output, results(result)) == ("3", ["3"])


def test_calls_of_one_step_run_together_and_answer_in_their_order() -> None:
    first_may_end = asyncio.Event()

    async def slow() -> str:
        await first_may_end.wait()
        return "slow"

    async def quick() -> str:
        first_may_end.set()
        return "quick"

    result = run(
        [calls(ToolCall("slow", {}, "c1"), ToolCall("quick", {}, "c2")), "done"],
        tools=[slow, quick],
        timeout=5,
    )

    assert results(result) == ["slow", "quick"]


def test_one_failing_call_leaves_the_others_their_results() -> None:
    """langchain-ai/langgraph#6486."""

    def boom() -> None:
        raise ValueError("disk full")

    result = run(
        [calls(add_call(1, 2, "c1"), ToolCall("boom", {}, "c2"), add_call(3, 4, "c3")), "done"],
        tools=[add, boom],
    )

    answers = [m for m in result.messages if m.role == "tool"]
    assert [m.is_error for m in answers] == [False, True, False]
    assert [m.text for m in answers][::2] == ["3", "7"]
    assert "ValueError" in answers[1].text
    assert "disk full" in answers[1].text


def test_an_unknown_tool_is_answered_with_the_names_there_are() -> None:
    """google/adk-python#2933."""
    result = run([calls(ToolCall("ad", {}, "c7")), "sorry"])

    answer = result.messages[2]
    assert (answer.tool_call_id, answer.is_error) == ("c7", True)
    assert "add" in answer.text
    assert result.output == "sorry"


def test_wrong_arguments_are_answered_and_not_executed() -> None:
    result = run([calls(ToolCall("add", {"a": "one"}, "c1")), "sorry"])

    assert result.messages[2].is_error
    assert "b" in result.messages[2].text


def test_an_invalid_call_is_answered_with_the_reason() -> None:
    """QwenLM/Qwen-Agent#558."""
    bad = InvalidToolCall('{"a": 1, "b": 2}}', "extra '}' at character 17", name="add")

    result = run([Message.assistant("Hm.", invalid_tool_calls=[bad]), "3"])

    answer = result.messages[2]
    assert answer.is_error
    assert "extra '}' at character 17" in answer.text
    assert answer.tool_call_id == result.messages[1].invalid_tool_calls[0].id != ""


@pytest.mark.parametrize("id", ["c1", ""])
def test_repeated_and_missing_ids_become_distinct_ones(id: str) -> None:
    """huggingface/smolagents#2683."""
    result = run([calls(add_call(1, 2, id), add_call(3, 4, id)), "done"])

    asked = [call.id for call in result.messages[1].tool_calls]
    assert [m.tool_call_id for m in result.messages[2:4]] == asked
    assert len(set(asked)) == 2
    assert all(asked)
    assert results(result) == ["3", "7"]


def test_ids_are_distinct_over_the_whole_run() -> None:
    result = run([calls(add_call(1, 2, "")), calls(add_call(3, 4, "call_1")), "done"])

    ids = [m.tool_call_id for m in result.messages if m.role == "tool"]
    assert len(set(ids)) == 2


def test_the_step_limit_ends_the_run_with_every_result() -> None:
    """openai/openai-agents-python#719."""
    model = ScriptedModel(lambda _: calls(add_call(1, 2, "")))

    result = Agent(model=model, tools=[add], max_steps=5).run_sync("go")

    assert (len(model.conversations), result.stop_reason) == (5, "step_limit")
    assert len(results(result)) == 5
    limits = [e for e in result.trajectory.events if isinstance(e, LimitEvent)]
    assert [(e.limit, e.value) for e in limits] == [("max_steps", 5)]


def test_a_limited_run_can_be_another_agents_history() -> None:
    model = ScriptedModel(lambda _: calls(add_call(1, 2, "")))
    first = Agent(model=model, tools=[add], max_steps=2, instructions="a").run_sync("go")

    second = Agent(model=ScriptedModel(["Done."]), instructions="b").run_sync(
        "Sum up.", history=first.messages
    )

    assert second.output == "Done."
    assert second.trajectory.conversation.messages[0] == Message.system("b")
    assert [m.text for m in second.new_messages] == ["Done."]


def test_there_is_a_finite_limit_by_default() -> None:
    """strands-agents/harness-sdk#259."""
    result = Agent(model=ScriptedModel(lambda _: calls(add_call(1, 2, ""))), tools=[add]).run_sync(
        "go"
    )

    assert result.stop_reason == "step_limit"
    assert len(result.trajectory.steps) <= 100


def test_the_token_limit_ends_the_run_before_the_next_step() -> None:
    cost = Usage(11, 7, 0, 1)
    answers = [Completion(calls(add_call(1, 2, "")), "tool_calls", cost) for _ in range(9)]

    result = run(answers, max_tokens=30)

    assert (result.stop_reason, len(result.trajectory.steps)) == ("token_limit", 2)


@pytest.mark.parametrize("cut", [True, False])
def test_a_reply_cut_by_the_token_limit_never_executes_its_calls(cut: bool) -> None:
    """strands-agents/harness-sdk#4135; the arguments happen to be whole, or are not."""
    paid: list[int] = []

    def pay(amount: int = 1000) -> str:
        paid.append(amount)
        return "paid"

    message = (
        Message.assistant(invalid_tool_calls=[InvalidToolCall('{"amount": ', "cut", name="pay")])
        if cut
        else calls(ToolCall("pay", {"amount": 10}, "c1"))
    )

    result = run([Completion(message, "length", Usage(5, 64)), "Sorry."], tools=[pay])

    assert paid == []
    assert "output token limit (length) after 64 tokens" in result.messages[2].text
    assert result.output == "Sorry."


def test_replies_that_are_always_cut_end_the_run() -> None:
    model = ScriptedModel(lambda _: Completion(calls(add_call(1, 2, "")), "length"))

    result = Agent(model=model, tools=[add], max_mends=2).run_sync("go")

    assert (result.stop_reason, len(result.trajectory.steps)) == ("token_limit", 3)


def test_an_answer_cut_by_the_token_limit_is_named_as_cut() -> None:
    result = run([Completion(Message.assistant("Once upon"), "length", Usage(5, 2))])

    assert (result.output, result.stop_reason) == ("Once upon", "token_limit")


def test_an_empty_reply_is_asked_for_again() -> None:
    result = run(["", "Hello."])

    assert result.output == "Hello."
    assert [m.role for m in result.messages] == ["user", "user", "assistant"]
    assert "feedback" in [e.type for e in result.trajectory.events]


def test_endless_empty_replies_are_an_error_that_names_itself() -> None:
    result = Agent(model=ScriptedModel(lambda _: ""), max_mends=1).run_sync("go")

    assert result.stop_reason == "error"
    with pytest.raises(RunError, match="empty"):
        _ = result.output


def test_a_refusal_is_a_stop_reason_and_keeps_its_text() -> None:
    result = run([Completion(Message.assistant("I will not."), "refusal")])

    assert (result.stop_reason, result.output) == ("refused", "I will not.")


def test_a_filtered_reply_is_never_passed_off_as_an_answer() -> None:
    result = run([Completion(Message.assistant("partial te"), "content_filter")])

    assert (result.stop_reason, result.text) == ("refused", "partial te")
    with pytest.raises(RunError, match="content_filter"):
        _ = result.output


def test_an_iterated_run_raises_after_its_end_where_it_has_no_answer() -> None:
    seen: list[Event] = []

    async def main() -> None:
        async for event in Agent(model=ScriptedModel([ModelConnectionError("gone")])).run("go"):
            seen.append(event)

    with pytest.raises(RunError, match="gone"):
        asyncio.run(main())
    assert isinstance(seen[-1], RunEnd)


def test_a_call_written_as_text_is_not_executed_and_asked_for_again() -> None:
    text = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'

    result = run([text, calls(add_call(1, 2)), "3"])

    assert result.output == "3"
    assert "as text" in result.messages[2].text


def test_markup_that_names_no_tool_is_an_answer() -> None:
    assert run(["Qwen writes <tool_call> before JSON."]).stop_reason == "answer"


def test_calls_beside_a_refusal_are_answered_and_not_executed() -> None:
    result = run([Completion(calls(add_call(1, 2)), "content_filter")])

    assert result.messages[2].is_error
    assert "content_filter" in result.messages[2].text


def test_a_model_that_breaks_ends_the_run_and_keeps_what_was_done() -> None:
    result = run([calls(add_call(1, 2)), ModelConnectionError("no server at :1")])

    assert result.stop_reason == "error"
    assert isinstance(result.error, ModelConnectionError)
    assert results(result) == ["3"]
    with pytest.raises(RunError, match="no server at :1"):
        print(result)


def test_a_final_tool_ends_the_run_with_its_result() -> None:
    result = run([calls(add_call(1, 2))], final_tools=["add"])

    assert (result.output, result.stop_reason) == (3, "stopped_by_tool")


def test_a_failed_final_tool_does_not_end_the_run() -> None:
    result = run([calls(ToolCall("add", {}, "c1")), "Sorry."], final_tools=["add"])

    assert (result.output, result.stop_reason) == ("Sorry.", "answer")


def test_long_output_is_cut_by_an_event_and_stays_whole_for_the_program() -> None:
    """strands-agents/harness-sdk#167."""

    @tool(max_chars=1000)
    def big() -> str:
        return "HEAD" + "x" * 500_000 + "TAIL"

    result = run([calls(ToolCall("big", {}, "c1")), "ok"], tools=[big])

    text = results(result)[0]
    assert text.startswith("HEAD")
    assert text.endswith("TAIL")
    assert "500008" in text
    assert len(text) < 1200
    assert len(result.trajectory.steps[0].results[0].full_text or "") == 500_008
    assert "output_chars" in [
        e.limit for e in result.trajectory.events if isinstance(e, LimitEvent)
    ]


def test_events_tell_the_run_in_order() -> None:
    result = run([calls(add_call(1, 2), text="So:"), "3"])

    assert [e.type for e in result.trajectory.events] == [
        *("run_start", "step_start", "text_delta", "tool_call_delta", "tool_call_delta"),
        *("tool_call", "tool_result", "step_end"),
        *("step_start", "text_delta", "step_end", "run_end"),
    ]


def test_streamed_and_awaited_runs_make_the_same_events() -> None:
    script = [calls(add_call(1, 2), add_call(3, 4, "c2"), text="So:"), "", "3"]

    async def streamed() -> list[Event]:
        agent = Agent(model=ScriptedModel(script), tools=[add])
        return [event async for event in agent.stream("go")]

    awaited = run(script).trajectory.events

    assert timeless(asyncio.run(streamed())) == timeless(awaited)


def timeless(events: Sequence[Event]) -> list[dict[str, Any]]:
    from antiphon.events import event_to_row

    return [
        {k: v for k, v in event_to_row(e).items() if k not in ("time", "duration")} for e in events
    ]


def test_a_stream_without_a_completion_is_no_answer() -> None:
    class Silent(ScriptedModel):
        async def stream(
            self, conversation: Conversation, settings: ModelSettings | None = None
        ) -> AsyncIterator[ModelOutput]:
            yield TextDelta("half")

    result = Agent(model=Silent(["never"])).run_sync("go")

    assert result.stop_reason == "error"
    assert "without a completion" in result.trajectory.error


def test_a_time_limit_ends_the_run_and_answers_its_calls() -> None:
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    result = run(
        [calls(add_call(1, 2), ToolCall("hang", {}, "c2"))], tools=[add, hang], timeout=0.2
    )

    assert result.stop_reason == "time_limit"
    assert results(result)[0] == "3"
    assert "cancelled" in results(result)[1]
    assert [type(e) for e in result.trajectory.events[-2:]] == [LimitEvent, RunEnd]


def test_instructions_may_be_a_function_of_the_context() -> None:
    model = ScriptedModel(["Hi."])
    agent = Agent(model=model, instructions=lambda c: f"You serve {c.state['user']}.")

    agent.run_sync("Hello", state={"user": "Ada"})

    assert model.conversations[0].messages[0] == Message.system("You serve Ada.")


def test_a_programs_own_mistake_raises_and_the_record_is_kept() -> None:
    def broken(_: object) -> str:
        raise KeyError("user")

    run = Agent(model=ScriptedModel(["Hi."]), instructions=broken).run("Hello")

    with pytest.raises(KeyError):
        run.wait()
    assert run.trajectory.stop_reason == "error"


def test_tool_results_stay_with_their_calls_behind_a_summary() -> None:
    """pydantic/pydantic-ai#4827."""
    model = ScriptedModel(["ok"])
    history = [
        Message.system("Summary: they met."),
        calls(add_call(1, 2)),
        Message.tool("3", call_id="c1", name="add"),
    ]

    Agent(model=model, instructions="Be brief.").run_sync("go on", history=history)

    assert [m.role for m in model.conversations[0].messages] == [
        *("system", "system", "assistant", "tool", "user")
    ]


def test_the_steps_record_what_was_shown_and_what_came_back() -> None:
    result = run([calls(add_call(1, 2)), "3"], instructions="Be brief.")

    first, second = result.trajectory.steps
    assert (first.n_prompt_messages, second.n_prompt_messages) == (1, 3)
    assert (first.system, first.tools, first.agent) == ("Be brief.", ("add",), "agent")
    assert first.results[0].value == 3
    assert result.trajectory.conversation.messages[0] == Message.system("Be brief.")
    assert result.trajectory.agents[0]["model"] == "script"


def test_usage_is_summed_over_steps() -> None:
    cost = Usage(11, 7, 1, 1)

    result = run(
        [
            Completion(calls(add_call(1, 2)), "tool_calls", cost, "m"),
            Completion(Message.assistant("3"), "stop", cost, "m"),
        ]
    )

    assert result.usage == Usage(22, 14, 2, 2)
    assert result.usage_by_agent == {"agent": result.usage}
    assert result.usage_by_model == {"m": result.usage}


def test_plain_tools_do_not_hold_up_the_event_loop() -> None:
    """openai/openai-agents-python#2386."""
    both = threading.Barrier(8, timeout=5)

    def meet() -> int:
        return both.wait()

    result = run([calls(*(ToolCall("meet", {}, f"c{i}") for i in range(8))), "done"], tools=[meet])

    assert sorted(int(r) for r in results(result)) == list(range(8))


def test_a_run_of_many_steps_ends() -> None:
    n = 300
    answers = [calls(add_call(i, 1, "")) for i in range(n)]

    result = run([*answers, "done"], max_steps=n + 1)

    assert len([e for e in result.trajectory.events if isinstance(e, StepEnd | StepStart)]) == 602
    assert results(result) == [str(i + 1) for i in range(n)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": ""}, "needs a name"),
        ({"max_steps": 0}, "max_steps"),
        ({"tools": [add, add]}, "two tools named 'add'"),
        ({"final_tools": ["sub"]}, "final_tools"),
    ],
)
def test_an_agent_that_cannot_work_is_refused_when_it_is_made(
    options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        Agent(**options)


def test_a_run_needs_a_message() -> None:
    with pytest.raises(UsageError, match="at least one message"):
        Agent().run([])


def test_call_events_come_before_any_result_of_the_step() -> None:
    result = run([calls(add_call(1, 2), add_call(3, 4, "c2")), "done"])

    kinds = [type(e) for e in result.trajectory.events if isinstance(e, CallEvent | ResultEvent)]
    assert kinds == [CallEvent, CallEvent, ResultEvent, ResultEvent]


def test_text_events_are_the_answers_text() -> None:
    result = run(["a long answer in several pieces"])

    pieces = [e.text for e in result.trajectory.events if isinstance(e, TextEvent)]
    assert len(pieces) > 1
    assert "".join(pieces) == result.output
