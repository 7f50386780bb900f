"""A plan in a run: people, failures, streams, resumption, agents within, and what is recorded."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from antiphon.agent import Agent, Guardrail, Retrieve, Stop
from antiphon.errors import ModelError, UsageError
from antiphon.events import (
    ApprovalEvent,
    LimitEvent,
    PlanEvent,
    TaskEvent,
    TextEvent,
    Trajectory,
)
from antiphon.messages import Completion, Conversation, Message, TextDelta, ToolCall
from antiphon.models import ModelOutput, ModelSettings, ScriptedModel
from antiphon.store import SqliteStore
from antiphon.strategies import (
    Opinion,
    Plan,
    PlanAndExecute,
    Review,
    Task,
    model_calls,
    run_in_virtual_time,
)
from antiphon.tools import tool


def planned(*tasks: dict[str, Any]) -> str:
    return json.dumps({"tasks": list(tasks)})


def step(id: str, name: str = "look", **arguments: Any) -> dict[str, Any]:
    return {"id": id, "tool": name, "arguments": arguments or {"q": id}}


class Desk:
    """Tools that remember what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def look(self, q: str) -> str:
        """Looks something up."""
        self.done.append(q)
        return f"found {q}"

    async def fail(self, q: str) -> str:
        """Never works."""
        self.done.append(q)
        raise ValueError(f"no {q}")

    def tools(self, **options: Any) -> list[Any]:
        made = [tool(self.look, **options), tool(self.fail)]
        return [*made, tool(self.look, name="pay", description="Pays.", approval=True)]


def strategy(answers: list[Any], desk: Desk | None = None, **how: Any) -> PlanAndExecute:
    desk = desk or Desk()
    model = ScriptedModel(answers)
    return PlanAndExecute(Agent(name="clerk", model=model, tools=desk.tools()), **how)


def says(opinion: Opinion) -> Review:
    """A person with one opinion."""

    def review(_plan: Plan) -> Opinion:
        return opinion

    return review


def states(record: Trajectory) -> dict[str, str]:
    plan = Plan.of(record)
    return {} if plan is None else {task.id: task.status for task in plan}


def test_a_person_refuses_a_plan_with_a_reason_that_the_planner_reads() -> None:
    opinions: list[Opinion] = ["too many tasks", True]

    def review(_plan: Plan) -> Opinion:
        return opinions.pop(0)

    how = strategy(
        [planned(step("a"), step("b")), planned(step("a")), "done"],
        review=review,
    )

    result = how.run_sync("go")

    assert (result.output, states(result.trajectory)) == ("done", {"a": "completed"})
    model = how.agent.model
    assert isinstance(model, ScriptedModel)
    assert "too many tasks" in model.conversations[1].messages[-1].text


def test_a_person_ends_the_run_at_a_plan() -> None:
    desk = Desk()

    result = strategy([planned(step("a"))], desk, review=says(False)).run_sync("go")

    assert (result.stop_reason, desk.done) == ("refused", [])


def test_a_person_changes_the_plan_while_it_runs() -> None:
    desk = Desk()

    def watch(plan: Plan) -> Opinion | None:
        if plan["a"].status == "completed" and "b" in plan and plan["b"].status == "pending":
            return Plan.from_row({"tasks": [step("c", q="${a} again")]})
        return None

    how = strategy(
        [planned(step("a"), step("b", q="${a}")), "done"], desk, watch=watch, max_parallel=1
    )

    result = how.run_sync("go")

    assert desk.done == ["a", "found a again"]
    assert states(result.trajectory) == {"a": "completed", "c": "completed"}
    told = [e.state for e in result.trajectory.events if isinstance(e, PlanEvent)]
    assert told == ["proposed", "edited"]


def test_an_edit_that_cannot_be_run_is_refused_as_any_plan() -> None:
    edited = Plan.from_row({"tasks": [step("a", "nothing")]})

    result = strategy([planned(step("a"))], review=says(edited)).run_sync("go")

    assert (result.stop_reason, type(result.error).__name__) == ("error", "PlanError")


def test_what_does_not_need_a_failed_task_goes_on() -> None:
    desk = Desk()
    plan = planned(step("x", "fail"), step("y"), step("z", q="${x}"))

    result = strategy([plan], desk, max_replans=0).run_sync("go")

    assert states(result.trajectory) == {"x": "failed", "y": "completed", "z": "skipped"}
    assert result.stop_reason == "failed"
    assert "no answer after 0 replans: task x failed" in result.trajectory.error
    assert [e.limit for e in result.trajectory.events if isinstance(e, LimitEvent)] == [
        "max_replans"
    ]


def test_a_failure_stops_the_rest_at_once_where_that_is_asked_for() -> None:
    async def slow() -> str:
        """Takes a day."""
        await asyncio.sleep(86_400)
        return "done"

    async def fail() -> str:
        """Fails soon."""
        await asyncio.sleep(1)
        raise ValueError("no")

    plan = planned({"id": "s", "tool": "slow"}, {"id": "f", "tool": "fail"})
    agent = Agent(model=ScriptedModel([plan]), tools=[tool(slow, timeout=None), tool(fail)])
    how = PlanAndExecute(agent, on_failure="now", max_replans=0)

    async def main() -> tuple[Any, float]:
        return await how.run("go"), asyncio.get_running_loop().time()

    result, took = run_in_virtual_time(main())

    assert (took, states(result.trajectory)) == (1.0, {"s": "failed", "f": "failed"})


def test_the_joiner_asks_for_more_and_gets_it_within_the_limit() -> None:
    asks = Message.assistant(tool_calls=[ToolCall("replan", {"feedback": "b is missing"})])
    how = strategy([planned(step("a")), asks, planned(step("b")), "a and b"], max_replans=1)

    result = how.run_sync("go")

    assert (result.output, states(result.trajectory)) == (
        "a and b",
        {"a": "completed", "b": "completed"},
    )
    assert [call.role for call in model_calls(result.trajectory)] == [
        *("planner", "joiner", "planner", "joiner")
    ]


def test_a_plan_after_each_task_sees_what_the_task_found() -> None:
    desk = Desk()
    how = strategy(
        [planned(step("a"), step("b")), planned(step("c", q="${a}")), "done"],
        desk,
        replan="each_task",
    )

    result = how.run_sync("go")

    assert (result.output, desk.done) == ("done", ["a", "found a"])


def test_planner_output_that_is_no_plan_ends_with_the_reason_and_the_record() -> None:
    result = strategy(["I would rather talk.", "No."]).run_sync("go")

    assert (result.stop_reason, type(result.error).__name__) == ("error", "PlanError")
    assert "is no plan: 'No.'" in result.trajectory.error
    assert [call.weight for call in model_calls(result.trajectory)] == [0.0, 1.0]


class Stream:
    """A planner that writes a text piece by piece, then breaks or ends."""

    spec = "stream"

    def __init__(self, pieces: list[str], *, breaks: bool = False) -> None:
        self.pieces, self.breaks = pieces, breaks
        self.prompts: list[str] = []

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Write."""
        self.prompts.append(conversation.messages[-1].text)
        pieces = self.pieces if len(self.prompts) == 1 else ["2. look($1)\n3. join()\n"]
        for piece in pieces:
            yield TextDelta(piece)
            await asyncio.sleep(1)
        if self.breaks and len(self.prompts) == 1:
            raise ModelError("the line went dead")
        yield Completion(Message.assistant("".join(pieces)), "stop")

    async def close(self) -> None:
        """Nothing is held."""


def compiled(planner: Stream, **how: Any) -> tuple[PlanAndExecute, Desk]:
    desk = Desk()
    agent = Agent(model=ScriptedModel(["done"]), tools=desk.tools())
    return PlanAndExecute.compiler(agent, planner=planner, **how), desk


@pytest.mark.parametrize(("timeout", "stop"), [(None, "answer"), (60.0, "error")])
def test_planner_and_joiner_may_take_as_long_as_their_agent(
    timeout: float | None, stop: str
) -> None:
    slow = Stream(['1. look("a")\n', *["\n"] * 700, "2. join()\n"])
    agent = Agent(model=ScriptedModel(["done"]), tools=Desk().tools(), timeout=timeout)
    how = PlanAndExecute.compiler(agent, planner=slow, max_plan_repairs=0)

    result = run_in_virtual_time(_awaited(how))

    assert result.stop_reason == stop
    assert result.trajectory.error == (
        "" if stop == "answer" else "the planner's answer broke off: time limit"
    )


@pytest.mark.parametrize(
    ("planner", "said"),
    [
        (Stream(['1. look("a")\n2. look("b")', "garbage("], breaks=True), "broke off"),
        (Stream(['1. look("a")\n', '2. look("$9")\n3. join()\n']), "unknown task '9'"),
        (Stream(['1. look("a")\n', '1. look("b")\n2. join()\n']), "duplicate id"),
    ],
)
def test_a_stream_that_breaks_or_goes_wrong_keeps_what_ran(planner: Stream, said: str) -> None:
    how, desk = compiled(planner)

    result = run_in_virtual_time(_awaited(how))

    assert result.output == "done"
    assert desk.done[0] == "a"
    assert desk.done.count("a") == 1
    assert said in planner.prompts[1]
    assert "found a" in planner.prompts[1]
    assert result.trajectory.stop_reason == "answer"


async def _awaited(how: PlanAndExecute) -> Any:
    return await how.run("go")


def test_a_call_that_needs_consent_waits_and_goes_on_in_another_process() -> None:
    store, desk = SqliteStore(""), Desk()
    plan = planned(step("a"), step("p", "pay", q="10 for ${a}"), step("c", q="after ${p}"))
    first = strategy([plan], desk).run("go", store=store)
    paused = first.wait()
    assert (paused.stop_reason, desk.done) == ("pending", ["a"])
    [waiting] = paused.pending
    assert waiting.arguments == {"q": "10 for found a"}
    again = strategy(["paid"], desk)

    result = again.resume(first.id, {waiting.id: True}, store=store).wait()

    assert (result.output, desk.done[1]) == ("paid", "10 for found a")
    assert desk.done.count("a") == 1
    assert states(result.trajectory) == {"a": "completed", "p": "completed", "c": "completed"}
    assert sum(isinstance(e, ApprovalEvent) for e in result.trajectory.events) == 1
    assert states(store.load(first.id)) == states(result.trajectory)
    store.close()


def test_a_refused_call_is_a_failed_task_whose_reason_the_planner_reads() -> None:
    how = strategy([planned(step("p", "pay", q="10")), planned(step("a")), "unpaid"])

    def refuse(_call: ToolCall) -> bool:
        return False

    result = how.run_sync("go", approve=refuse)

    assert result.output == "unpaid"
    model = how.agent.model
    assert isinstance(model, ScriptedModel)
    assert "a person refused this call" in model.conversations[1].messages[-1].text


@pytest.mark.parametrize("n_kept", range(2, 12))
def test_a_run_that_was_killed_anywhere_goes_on_without_repeating_a_task(n_kept: int) -> None:
    desk = Desk()
    answers = [planned(step("a"), step("b", q="${a}")), "done"]
    whole = strategy(answers).run_sync("go").trajectory
    record = Trajectory.from_json(whole.to_json())
    children = record.children if n_kept > 3 else ()
    broken = replace(
        record,
        conversation=whole.conversation,
        events=record.events[:n_kept],
        children=children[:1],
        output="",
        stop_reason="cancelled",
    )
    planned_already = any(isinstance(e, PlanEvent) for e in broken.events)
    done = {e.task for e in broken.events if isinstance(e, TaskEvent) and e.status == "completed"}
    begun = {e.task for e in broken.events if isinstance(e, TaskEvent)} - done
    if any(e.type == "run_end" for e in broken.events) or begun:
        return  # finished; or under way, which the next test has
    again = strategy(answers[1:] if planned_already else answers, desk)

    result = again.resume(broken).wait()

    assert result.output == "done"
    assert desk.done == [q for id, q in (("a", "a"), ("b", "found a")) if id not in done]


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_task_under_way_when_the_process_died_is_done_again_only_if_that_is_harmless(
    idempotent: bool,
) -> None:
    desk = Desk()
    whole = strategy([planned(step("a")), "done"]).run_sync("go").trajectory
    at = next(n for n, e in enumerate(whole.events) if isinstance(e, TaskEvent))
    broken = Trajectory(
        whole.conversation, events=whole.events[: at + 1], stop_reason="cancelled", id="r1"
    )
    model = ScriptedModel(["done"] if idempotent else [planned(step("b")), "done"])
    agent = Agent(name="clerk", model=model, tools=desk.tools(idempotent=idempotent))

    result = PlanAndExecute(agent).resume(broken).wait()

    assert (result.output, desk.done) == ("done", ["a"] if idempotent else ["b"])
    if not idempotent:
        assert "unknown" in model.conversations[0].messages[-1].text


def test_a_session_goes_on_and_the_planner_knows_what_was_said() -> None:
    """huggingface/smolagents#1262."""
    store = SqliteStore("")
    strategy([planned(step("a")), "The first."]).run("one?", store=store, session="s").wait()
    how = strategy([planned(), "The second."])

    how.run("two?", store=store, session="s").wait()

    model = how.agent.model
    assert isinstance(model, ScriptedModel)
    said = [m.text for m in model.conversations[0].messages[1:]]
    assert said[:2] == ["one?", "The first."]
    store.close()


def test_a_task_in_words_is_done_by_the_agent_that_it_names_with_goal_and_results() -> None:
    """langchain-ai/langchain#5400: the executor loses the original request."""
    poet_model = ScriptedModel(["roses"])
    poet = Agent(name="poet", description="Writes.", model=poet_model)
    plan = planned(step("a"), {"id": "w", "prompt": "rhyme on ${a}", "agent": "poet"})
    how = strategy([plan, "here: roses"], agents=[poet])

    result = how.run_sync("a poem on a")

    told = poet_model.conversations[0].messages[-1].text
    assert "Goal of the whole plan: a poem on a" in told
    assert "Your task: rhyme on found a" in told
    assert result.output == "here: roses"
    [written] = [c for c in result.trajectory.children if c.call_id == "task:w:1"]
    assert written.metadata["role"] == "executor"


def test_a_plan_is_a_tool_of_an_agent_and_its_record_a_child() -> None:
    how = strategy([planned(step("a")), "planned answer"], name="planner_tool")
    asks = Message.assistant(tool_calls=[ToolCall("planner_tool", {"question": "a?"}, "c1")])
    boss = Agent(model=ScriptedModel([asks, "ok"]), tools=[how.as_tool(description="Plans.")])

    result = boss.run_sync("go")

    [child] = result.trajectory.children
    assert (child.output, child.call_id, result.output) == ("planned answer", "c1", "ok")
    assert result.usage.n_requests == 4


def test_events_are_the_same_streamed_and_awaited_and_the_answer_streams() -> None:
    answers = [planned(step("a"), step("b")), "the answer in more than one piece"]

    async def streamed() -> list[Any]:
        return [event async for event in strategy(answers).stream("go")]

    def bare(events: Any) -> list[Any]:
        return [(e.type, getattr(e, "task", ""), getattr(e, "text", "")) for e in events]

    events = asyncio.run(streamed())

    assert bare(events) == bare(strategy(answers).run_sync("go").trajectory.events)
    assert sum(isinstance(e, TextEvent) for e in events) > 1


def test_leaving_the_iteration_stops_the_plan() -> None:
    desk = Desk()

    async def main() -> None:
        run = strategy([planned(step("a"), step("b", q="${a}"))], desk).run("go")
        async for event in run:
            if isinstance(event, TaskEvent) and event.status == "completed":
                break
        assert (await run).stop_reason == "cancelled"

    asyncio.run(main())

    assert desk.done == ["a"]


def test_a_guardrail_of_the_agent_looks_at_the_answer_of_a_plan() -> None:
    check = Guardrail(check=lambda _context, text: Stop("not said"), on="output")
    model = ScriptedModel([planned(), "a secret"])

    result = PlanAndExecute(Agent(model=model, guardrails=[check])).run_sync("go")

    assert result.stop_reason == "refused"


def test_results_of_tasks_are_put_into_the_answer_whole() -> None:
    model = ScriptedModel([planned(step("a", q="$$")), "It says: {{result:a}} {{result:z}}"])
    agent = Agent(model=model, tools=Desk().tools(), insert_results=True)

    result = PlanAndExecute(agent).run_sync("go")

    assert result.output == "It says: found $ {{result:z}}"
    joiner = result.trajectory.children[-1]
    assert joiner.output == "It says: {{result:a}} {{result:z}}"


def test_a_planner_is_told_of_the_tools_that_fit_where_there_are_many() -> None:
    many = [tool(Desk().look, name=f"svc_{n}", description=f"Service {n}.") for n in range(60)]
    model = ScriptedModel([planned(step("a")), "done"])
    agent = Agent(model=model, tools=[*many, *Desk().tools()], select=Retrieve(k=3))

    result = PlanAndExecute(agent).run_sync("look something up")

    told = model.conversations[0].messages[0].text
    assert (result.output, "- look(" in told, told.count("svc_") <= 6) == ("done", True, True)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_task_in_words_that_broke_off_is_done_again_only_if_that_is_harmless(
    idempotent: bool,
) -> None:
    desk = Desk()
    row = Plan("g", (Task("w", prompt="pay"),)).to_row()
    broken = Trajectory(
        Conversation((Message.user("go"),)),
        events=(PlanEvent("proposed", row), TaskEvent("w", "in_progress")),
        stop_reason="cancelled",
        id="r1",
    )
    answers = ["paid", "done"] if idempotent else [planned(step("b")), "done"]
    agent = Agent(model=ScriptedModel(answers), tools=[tool(desk.look, idempotent=idempotent)])

    result = PlanAndExecute(agent).resume(broken).wait()

    assert (result.output, desk.done) == ("done", [] if idempotent else ["b"])


def test_a_record_survives_its_file() -> None:
    record = strategy([planned(step("a")), "done"]).run_sync("go").trajectory

    again = Trajectory.from_json(record.to_json())

    assert (again.events, Plan.of(again)) == (record.events, Plan.of(record))


@pytest.mark.parametrize("how", [{"max_parallel": 0}, {"max_replans": -1}, {"max_tasks": 0}])
def test_limits_that_leave_nothing_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(how))} of 'plan' is"):
        PlanAndExecute(Agent(), **how)
