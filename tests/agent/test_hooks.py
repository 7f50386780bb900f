"""Hooks look, change and stop; guardrails check what goes in and what comes out."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from antiphon.agent import Again, Agent, Ask, Guardrail, Hooks, Replace, RunResult, Stop
from antiphon.errors import ModelConnectionError
from antiphon.events import Trajectory
from antiphon.messages import Completion, Conversation, Message, TextDelta, ToolCall, ToolResult
from antiphon.models import ModelSettings, ScriptedModel
from antiphon.tools import RunContext

Context = RunContext[Any]
ADD = Message.assistant(tool_calls=[ToolCall("add", {"a": 1, "b": 2}, "c1")])


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def ask(answers: list[Any], **options: Any) -> RunResult:
    given: dict[str, Any] = {"tools": [add]} | options
    return Agent(model=ScriptedModel(answers), **given).run_sync("go")


def test_hooks_see_every_model_call_tool_and_end_in_order() -> None:
    seen: list[str] = []

    def before_model(_: Context, conversation: Conversation) -> None:
        seen.append(f"ask {len(conversation.messages)}")

    async def after_model(_: Context, completion: Completion) -> None:
        seen.append(f"reply {completion.stop_reason}")

    def before_tool(context: Context, call: ToolCall) -> None:
        seen.append(f"call {call.name} {context.call_id}")

    def after_tool(_: Context, call: ToolCall, result: ToolResult) -> None:
        seen.append(f"result {result.text}")

    def on_end(_: Context, trajectory: Trajectory) -> None:
        seen.append(f"end {trajectory.output}")

    hooks = Hooks(
        before_model=before_model,
        after_model=after_model,
        before_tool=before_tool,
        after_tool=after_tool,
        on_end=on_end,
    )
    ask([ADD, "3"], hooks=[hooks])

    assert seen == [
        *("ask 1", "reply tool_calls", "call add c1", "result 3"),
        *("ask 3", "reply stop", "end 3"),
    ]


def test_a_hook_may_change_a_call_and_its_result() -> None:
    def double(_: Context, call: ToolCall) -> ToolCall:
        return replace(call, arguments={"a": 10, "b": 20})

    def mask(_: Context, call: ToolCall, result: ToolResult) -> ToolResult:
        return replace(result, text=f"<{result.text}>")

    result = ask([ADD, "ok"], hooks=[Hooks(before_tool=double, after_tool=mask)])

    assert result.messages[2].text == "<30>"


def test_a_hook_may_answer_a_call_itself() -> None:
    def cached(_: Context, call: ToolCall) -> ToolResult:
        return ToolResult("", call.name, "from the cache")

    result = ask([ADD, "ok"], hooks=[Hooks(before_tool=cached)])

    assert (result.messages[2].text, result.messages[2].tool_call_id) == ("from the cache", "c1")


def test_a_hook_may_let_a_person_decide() -> None:
    result = ask([ADD], hooks=[Hooks(before_tool=lambda _, call: Ask())])

    assert (result.stop_reason, [call.id for call in result.pending]) == ("pending", ["c1"])


@pytest.mark.parametrize("where", ["before_model", "after_model", "before_tool", "after_tool"])
def test_a_hook_may_stop_the_run_anywhere_and_the_record_is_whole(where: str) -> None:
    def stop(*_: object) -> Stop:
        return Stop("not today")

    hooks: dict[str, Any] = {where: stop}
    result = ask([ADD, "3"], hooks=[Hooks(**hooks)])

    assert (result.stop_reason, result.output) == ("refused", "not today")
    n_calls = sum(len(m.tool_calls) for m in result.messages)
    assert n_calls == sum(m.role == "tool" for m in result.messages)


def test_a_hook_may_change_what_the_model_is_shown_and_the_record_tells() -> None:
    def shorten(_: Context, conversation: Conversation) -> Conversation:
        return replace(conversation, messages=(Message.user("shorter"),))

    model = ScriptedModel(["ok"])
    result = Agent(model=model, hooks=[Hooks(before_model=shorten)]).run_sync("a long question")

    assert model.conversations[0].messages == (Message.user("shorter"),)
    assert result.messages[0].text == "a long question"
    assert result.trajectory.steps[0].shown == (Message.user("shorter"),)


def test_a_hook_may_send_a_reply_back() -> None:
    def no_sorry(_: Context, completion: Completion) -> Again | None:
        return Again("Do not be sorry.") if "Sorry" in completion.message.text else None

    result = ask(["Sorry.", "Done."], hooks=[Hooks(after_model=no_sorry)])

    assert result.output == "Done."
    assert result.messages[2].text == "Do not be sorry."


def test_a_handoff_may_be_stopped() -> None:
    target = Agent(name="expert", model=ScriptedModel(["never"]))
    hand_over = Message.assistant(tool_calls=[ToolCall("transfer_to_expert", {}, "c1")])

    result = Agent(
        model=ScriptedModel([hand_over]),
        handoffs=[target],
        hooks=[Hooks(on_handoff=lambda _, source, to: Stop(f"{source} may not reach {to}"))],
    ).run_sync("go")

    assert result.output == "agent may not reach expert"


class Endless:
    """A model that writes and never ends."""

    spec = "endless"
    closed = False

    async def stream(self, conversation: Conversation, settings: ModelSettings | None = None):
        if conversation.tools:
            yield TextDelta("x")
        try:
            await asyncio.Event().wait()
        finally:
            self.closed = True

    async def close(self) -> None:
        return None


def test_an_input_check_runs_beside_the_model_and_cancels_it() -> None:
    async def check(_: Context, question: str) -> Stop:
        await asyncio.sleep(0)
        return Stop(f"no answer to {question!r}")

    model = Endless()
    result = Agent(model=model, guardrails=[Guardrail(check=check)]).run_sync("how to cheat")

    assert (result.stop_reason, result.output) == ("refused", "no answer to 'how to cheat'")
    assert model.closed


def test_an_input_check_that_passes_lets_the_answer_through() -> None:
    assert ask(["Hi."], guardrails=[Guardrail(check=lambda _, text: None)]).output == "Hi."


def test_a_broken_model_beside_a_check_is_still_the_models_error() -> None:
    result = ask([ModelConnectionError("gone")], guardrails=[Guardrail(check=lambda _, q: None)])

    assert isinstance(result.error, ModelConnectionError)


def test_an_input_check_may_replace_the_question() -> None:
    model = ScriptedModel(["ok"])
    hide = Guardrail(check=lambda _, text: Replace(text.replace("4711", "####")), beside=False)

    result = Agent(model=model, instructions="Be brief.", guardrails=[hide]).run_sync("PIN 4711")

    assert [m.text for m in model.conversations[0].messages] == ["Be brief.", "PIN ####"]
    assert result.messages[0].text == "PIN ####"


def test_an_output_check_may_replace_send_back_and_stop() -> None:
    def check(_: Context, text: str) -> Any:
        return {"a": Replace("A"), "b": Again("not b"), "c": Stop("no c")}.get(text)

    guard = [Guardrail(on="output", check=check)]

    assert ask(["a"], guardrails=guard).output == "A"
    assert ask(["b", "ok"], guardrails=guard).output == "ok"
    assert ask(["c"], guardrails=guard).stop_reason == "refused"
