"""Results that are too long for a model, read in full by it, and put into its answer whole."""

from typing import Any

from antiphon.agent import Agent
from antiphon.events import InsertionEvent, Trajectory
from antiphon.memory import Compaction, Observations, n_tokens
from antiphon.messages import Message, TextPart, ToolCall
from antiphon.models import ScriptedModel
from antiphon.store import SqliteStore
from antiphon.tools import tool

TEXT = "\n".join(f"line {n}" for n in range(20_000))


@tool(max_chars=10_000_000)
def log() -> str:
    """A log of 0.2 MB."""
    return TEXT


def call(name: str, id: str = "", **arguments: Any) -> Message:
    return Message.assistant(tool_calls=[ToolCall(name, arguments, id)])


def reader(answers: list[Any], **how: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(answers)
    observations = Observations(max_tokens=1000, **how)
    return Agent(model=model, tools=[log], observations=observations), model


def test_a_result_of_8_mb_leaves_the_prompt_within_its_budget_and_can_be_read_in_full() -> None:
    pages: list[str] = []

    def next_page(conversation: Any) -> Message:
        last = conversation.messages[-1].text
        if last.startswith("[characters"):
            pages.append(last.partition("]\n")[2])
        offset = sum(map(len, pages))
        return call("read_result", call_id="c1", offset=offset) if len(pages) < 5 else END

    END = Message.assistant("read")
    text = TEXT * 40

    def log() -> str:
        """A log of 8 MB."""
        return text

    model = ScriptedModel([call("log", "c1"), *[next_page] * 6])
    how = Observations(max_tokens=1000)
    agent = Agent(model=model, tools=[tool(log, max_chars=10_000_000)], observations=how)

    result = agent.run_sync("What is in the log?")

    assert result.output == "read"
    assert text.startswith("".join(pages))
    assert sum(map(len, pages)) > 15_000
    shown = [m.text for m in model.conversations[-1].messages if m.role == "tool"]
    assert max(map(n_tokens, shown)) <= 1000
    assert result.trajectory.steps[0].results[0].full_text == text


def test_a_text_is_found_in_a_long_result() -> None:
    agent, model = reader([call("log", "c1"), call("read_result", call_id="c1", find="19998"), "."])

    agent.run_sync("The end?")

    assert model.conversations[-1].messages[-1].text.endswith("19998\nline 19999")


def test_a_resumed_run_reads_what_an_earlier_part_of_it_was_given() -> None:
    store = SqliteStore("")
    agent, _ = reader([call("log", "c1")])
    first = agent.run("go", store=store)
    assert first.wait().stop_reason == "error"  # the script is over
    again, model = reader([call("read_result", call_id="c1", find="line 7\n"), "found"])

    result = again.resume(first.id, store=store).wait()

    assert result.output == "found"
    assert "line 7\nline 8" in model.conversations[-1].messages[-1].text
    store.close()


def test_a_result_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    agent, model = reader([call("log", "c1"), call("read_result", call_id="c9"), "."])

    agent.run_sync("go")

    assert model.conversations[-1].messages[-1].text == (
        "there is no result 'c9'; the last ones are: c1"
    )


def test_results_of_one_step_share_its_budget() -> None:
    calls = Message.assistant(tool_calls=[ToolCall("log", {}, f"c{n}") for n in range(4)])
    agent, model = reader([calls, "."], max_step_tokens=1200)

    agent.run_sync("go")

    shown = [m.text for m in model.conversations[-1].messages if m.role == "tool"]
    assert sum(map(n_tokens, shown)) <= 1200
    assert min(map(n_tokens, shown)) > 250


def test_a_model_summarises_with_the_question_and_its_call_is_recorded() -> None:
    summariser = ScriptedModel(["600,000 lines, nothing else"])
    agent, model = reader([call("log", "c1"), "."], mode="summary", summariser=summariser)

    result = agent.run_sync("What is in the log?")

    assert "600,000 lines, nothing else" in model.conversations[-1].messages[-1].text
    assert "What is in the log?" in summariser.conversations[0].messages[-1].text
    assert [c.metadata["role"] for c in result.trajectory.children] == ["summariser"]
    assert result.usage.n_requests == 3


def test_a_hundred_steps_stay_within_a_context_and_what_was_pinned_stays() -> None:
    def go_on(_conversation: Any) -> Message:
        n = len(model.conversations)
        return Message.assistant("done") if n == 99 else call("log", f"c{n}")

    model = ScriptedModel(go_on)
    agent = Agent(
        model=model,
        tools=[log],
        max_steps=100,
        observations=Observations(max_tokens=300),
        compaction=Compaction(2000, keep_steps=2),
    )
    rule = Message("user", (TextPart("RULE: never pay"),), metadata={"pinned": True})

    result = agent.run_sync([Message.user("TASK: read the log"), rule])

    assert (result.output, len(result.trajectory.steps)) == ("done", 100)
    for conversation in model.conversations:
        texts = [m.text for m in conversation.messages]
        assert {"TASK: read the log", "RULE: never pay"} <= set(texts)
        assert n_tokens("".join(texts)) <= 2600
        called = {c.id for m in conversation.messages for c in m.tool_calls}
        assert called == {m.tool_call_id for m in conversation.messages if m.role == "tool"}


def test_a_placeholder_takes_the_whole_result_and_training_sees_what_was_written() -> None:
    written = "Here:\n{{result:c1}}\n{{result:zz}}"
    model = ScriptedModel([call("table", "c1"), written])

    def table() -> str:
        """A table."""
        return "a|b\n1|2 {{result:c1}}"

    result = Agent(model=model, tools=[tool(table)], insert_results=True).run_sync("table?")

    assert result.output == "Here:\na|b\n1|2 {{result:c1}}\n{{result:zz}}"
    assert result.messages[-1].text == written
    told = [e for e in result.trajectory.events if isinstance(e, InsertionEvent)]
    assert [(e.call_id, e.found) for e in told] == [("c1", True), ("zz", False)]
    assert model.conversations[1].messages[-1].text.endswith("[ID c1]")
    assert Trajectory.from_json(result.trajectory.to_json()).output == result.output
