"""AG-UI on the wire: its own package reads every event, and its rules of order hold."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from antiphon.messages import Conversation, Message, ThinkingPart
from serve.serving import Client, Got
from serve.test_agents import ADDS, PAID, PAYS, with_clerk

core: Any = pytest.importorskip("ag_ui.core")

USER = {"id": "m1", "role": "user", "content": "1 + 2?"}
ASKED: dict[str, Any] = {"threadId": "t1", "runId": "r1", "messages": [USER]}


def events(got: Got) -> list[Any]:
    """Each event, as AG-UI's own package reads it."""
    assert got.status == 200, got.text
    return [TypeAdapter(core.Event).validate_python(row) for row in got.events]


def names(read: list[Any]) -> list[str]:
    return [event.type.value for event in read]


def ask(*answers: Any, **fields: Any) -> list[Any]:
    return with_clerk(
        lambda client: _post(client, **fields),
        *answers,
    )


async def _post(client: Client, **fields: Any) -> list[Any]:
    return events(await client.post("/v1/agent/ag-ui", ASKED | fields))


def test_a_run_is_told_in_ag_uis_words() -> None:
    thinks = Message("assistant", (ThinkingPart("Hm."), *ADDS.parts), tool_calls=ADDS.tool_calls)

    read = ask(thinks, "It is 3.")

    shown = [name for name in names(read) if not name.endswith("_CONTENT")]
    assert shown == [
        "RUN_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    end = read[-1]
    assert (end.thread_id, end.run_id, end.result) == ("t1", "r1", "It is 3.")
    assert end.outcome.type == "success"


def test_what_was_said_before_is_history() -> None:
    before = [
        {"id": "m0", "role": "user", "content": "My name is Ada."},
        {"id": "a0", "role": "assistant", "content": "Hello Ada."},
        {"id": "x0", "role": "reasoning", "content": "She is Ada."},
    ]

    def repeat(conversation: Conversation) -> str:
        return " | ".join(message.text for message in conversation.messages)

    read = ask(repeat, messages=[*before, USER])

    assert read[-1].result == "My name is Ada. | Hello Ada. | 1 + 2?"


@pytest.mark.parametrize(("payload", "paid"), [(True, [5]), ({"approved": False}, [])])
def test_a_call_that_needs_consent_interrupts_and_is_answered(payload: Any, paid: Any) -> None:
    async def pays(client: Client) -> tuple[list[Any], list[Any]]:
        first = await _post(client)
        (interrupt,) = first[-1].outcome.interrupts
        entry = {"interruptId": interrupt.id, "status": "resolved", "payload": payload}
        return first, await _post(client, runId="r2", resume=[entry])

    PAID.clear()
    first, second = with_clerk(pays, PAYS, "Done.")

    interrupt = first[-1].outcome.interrupts[0]
    assert (interrupt.tool_call_id, interrupt.reason) == ("c1", "tool_approval")
    assert names(second)[0] == "RUN_STARTED"
    assert "TOOL_CALL_RESULT" in names(second)
    assert (second[-1].run_id, second[-1].result) == ("r2", "Done.")
    assert paid == PAID


WRONG: dict[str, dict[str, Any]] = {
    "no id": {"messages": [{"role": "user"}]},
    "nothing": {"messages": []},
    "tools": {"tools": [{"name": "x", "description": "", "parameters": {}}]},
    "an unknown run": {"resume": [{"interruptId": "nobody/c1", "status": "resolved"}]},
    "two runs": {"resume": [{"interruptId": x, "status": "cancelled"} for x in ("a/c", "b/c")]},
}


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_refused(fields: dict[str, Any]) -> None:
    got: Got = with_clerk(lambda client: client.post("/v1/agent/ag-ui", ASKED | fields))

    assert got.status in (400, 404)
    assert got.json["error"]["message"]


def test_a_model_without_an_answer_ends_in_an_error_without_its_address() -> None:
    from antiphon.errors import ModelError

    def fail(conversation: Any) -> str:
        raise ModelError("http://10.1.2.3 is gone")

    read = ask(fail)

    assert names(read)[-1] == "RUN_ERROR"
    assert "10.1.2.3" not in read[-1].message
