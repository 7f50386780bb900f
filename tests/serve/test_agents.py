"""An agent behind HTTP: tools run on the server, events stream, people decide, sessions go on."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from antiphon.agent import Agent
from antiphon.errors import ModelError
from antiphon.events import Trajectory
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.serve import Server, ServeSettings
from antiphon.store import Store, open_store
from antiphon.tools import tool
from serve.serving import Client, Got

PAID: list[int] = []


@pytest.fixture(autouse=True)
def nothing_is_paid() -> None:
    PAID.clear()


@tool(approval=True)
def pay(amount: int) -> str:
    """Pays."""
    PAID.append(amount)
    return f"paid {amount}"


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


ADDS = Message.assistant("Let me add.", tool_calls=[ToolCall("add", {"a": 1, "b": 2}, "c1")])
PAYS = Message.assistant(tool_calls=[ToolCall("pay", {"amount": 5}, "c1")])


@asynccontextmanager
async def clerk(
    *answers: Any, store: Store | None = None, **settings: Any
) -> AsyncGenerator[Client]:
    """A server of one agent."""
    agent = Agent(name="clerk", model=ScriptedModel(answers), tools=[add, pay])
    server = Server(agent=agent, store=store, settings=ServeSettings(port=0, **settings))
    async with server.listening(), aiohttp.ClientSession() as session:
        yield Client(session, server.url)


def with_clerk(what: Callable[[Client], Awaitable[Any]], *answers: Any, **options: Any) -> Any:
    async def go() -> Any:
        async with clerk(*answers, **options) as client:
            return await what(client)

    return asyncio.run(go())


def kinds(got: Got) -> list[str]:
    """The names of a stream's events."""
    lines = got.text.splitlines()
    return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]


def test_a_run_streams_its_events_and_ends_with_its_result() -> None:
    got = with_clerk(
        lambda client: client.post("/v1/agent/runs", {"input": "1 + 2?", "stream": True}),
        ADDS,
        "It is 3.",
    )

    first, *events, result = got.events
    assert kinds(got)[0] == "run"
    assert [e["type"] for e in events] == kinds(got)[1:-1]
    assert [e["type"] for e in events if e["type"] in ("tool_call", "tool_result")] == [
        "tool_call",
        "tool_result",
    ]
    assert (result["stop_reason"], result["text"]) == ("answer", "It is 3.")
    assert result["id"] == first["id"]


def test_a_run_that_is_not_streamed_gives_the_same_result() -> None:
    async def both(client: Client) -> list[Any]:
        asking = {"input": "1 + 2?", "session": "s"}
        whole = await client.post("/v1/agent/runs", asking)
        streamed = await client.post("/v1/agent/runs", asking | {"stream": True})
        return [
            {k: v for k, v in row.items() if k != "id"} for row in (whole.json, streamed.events[-1])
        ]

    whole, streamed = with_clerk(both, ADDS, "It is 3.", ADDS, "It is 3.")

    assert whole == streamed


def test_a_session_goes_on_where_it_was_and_is_listed() -> None:
    model = ScriptedModel(["one", "two"])

    async def go() -> Any:
        server = Server(agent=Agent(name="a", model=model), settings=ServeSettings(port=0))
        async with server.listening(), aiohttp.ClientSession() as session:
            client = Client(session, server.url)
            first = await client.post("/v1/agent/runs", {"input": "first"})
            name = first.json["session"]
            await client.post("/v1/agent/runs", {"input": "second", "session": name})
            return name, (await client.get(f"/v1/agent/runs?session={name}")).json["data"]

    name, rows = asyncio.run(go())

    assert [m.text for m in model.conversations[1].messages] == ["first", "one", "second"]
    assert [(row["question"], row["status"]) for row in rows] == [
        ("second", "answer"),
        ("first", "answer"),
    ]
    assert {row["session"] for row in rows} == {name}


def test_a_call_waits_for_a_person_also_over_a_restart(tmp_path: Path) -> None:
    async def go() -> Any:
        async with clerk(PAYS, store=open_store(tmp_path / "runs.db")) as client:
            paused = await client.post("/v1/agent/runs", {"input": "pay", "stream": True})
        async with clerk("Done.", store=open_store(tmp_path / "runs.db")) as client:
            path = f"/v1/agent/runs/{paused.events[0]['id']}/resume"
            wrong = await client.post(path, {"decisions": {"c9": True}})
            unclear = await client.post(path, {"decisions": {"c1": "yes"}})
            decided = {"c1": {"approved": True, "arguments": {"amount": 3}}}
            resumed = await client.post(path, {"decisions": decided, "stream": True})
            again = await client.post(path, {})
        return paused.events[-1], wrong, unclear, resumed.events[-1], again

    paused, wrong, unclear, resumed, again = asyncio.run(go())

    assert paused["stop_reason"] == "pending"
    assert paused["pending"] == [{"id": "c1", "name": "pay", "arguments": {"amount": 5}}]
    assert (wrong.status, unclear.status, again.status) == (400, 400, 400)
    assert (resumed["text"], PAID) == ("Done.", [3])


def test_a_refusal_reaches_the_model_with_its_reason() -> None:
    async def decide(client: Client) -> Any:
        paused = await client.post("/v1/agent/runs", {"input": "pay"})
        path = f"/v1/agent/runs/{paused.json['id']}"
        decisions = {"c1": {"approved": False, "reason": "too much"}}
        await client.post(f"{path}/resume", {"decisions": decisions})
        return (await client.get(path)).text

    record = Trajectory.from_json(with_clerk(decide, PAYS, "I did not pay."))

    assert PAID == []
    assert "too much" in next(m.text for m in record.conversation.messages if m.role == "tool")


def test_runs_are_their_owners_alone() -> None:
    async def look(client: Client) -> list[Any]:
        alice = {"Authorization": "Bearer key-of-alice"}
        bob = {"Authorization": "Bearer key-of-bobby"}
        made = await client.post("/v1/agent/runs", {"input": "x", "session": "s"}, headers=alice)
        path = f"/v1/agent/runs/{made.json['id']}"
        after = await client.post("/v1/agent/runs", {"input": "y", "session": "s"}, headers=bob)
        record = await client.get(f"/v1/agent/runs/{after.json['id']}", headers=bob)
        return [
            (await client.get(path, headers=alice)).status,
            (await client.get(path, headers=bob)).status,
            (await client.post(f"{path}/resume", {}, headers=bob)).status,
            len((await client.get("/v1/agent/runs", headers=bob)).json["data"]),
            [m["content"] for m in record.json["messages"]],
        ]

    found = with_clerk(look, "for alice", "for bob", keys=("key-of-alice", "key-of-bobby"))

    assert found == [200, 404, 404, 1, ["y", "for bob"]]


def test_a_client_that_leaves_stops_the_run_and_its_record_stays() -> None:
    begun = asyncio.Event()
    stopped = asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async def go() -> list[Any]:
        calls = Message.assistant(tool_calls=[ToolCall("wait", {}, "c1")])
        agent = Agent(name="a", model=ScriptedModel([calls]), tools=[wait])
        server = Server(agent=agent, settings=ServeSettings(port=0))
        async with server.listening(), aiohttp.ClientSession() as session:
            client = Client(session, server.url)
            url = client.url + "/v1/agent/runs"
            response = await session.post(url, json={"input": "x", "stream": True})
            await begun.wait()
            response.close()
            await stopped.wait()
            while server.app.metrics.in_flight:
                await asyncio.sleep(0)
            return (await client.get("/v1/agent/runs")).json["data"]

    async def within() -> list[Any]:
        async with asyncio.timeout(10):
            return await go()

    rows = asyncio.run(within())

    assert [row["status"] for row in rows] == ["cancelled"]


def test_a_run_can_be_stopped_by_another_request() -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    async def go() -> Any:
        calls = Message.assistant(tool_calls=[ToolCall("wait", {}, "c1")])
        agent = Agent(name="a", model=ScriptedModel([calls]), tools=[wait])
        server = Server(agent=agent, settings=ServeSettings(port=0))
        async with asyncio.timeout(10), server.listening(), aiohttp.ClientSession() as session:
            client = Client(session, server.url)
            going = asyncio.create_task(client.post("/v1/agent/runs", {"input": "x"}))
            await begun.wait()
            id = (await client.get("/v1/agent/runs")).json["data"][0]["id"]
            await client.post(f"/v1/agent/runs/{id}/cancel", {})
            other = await client.post("/v1/agent/runs/nobody/cancel", {})
            return (await going).json["stop_reason"], other.status

    assert asyncio.run(go()) == ("cancelled", 404)


def test_what_a_models_server_said_is_not_told() -> None:
    async def ask(client: Client) -> tuple[Got, Got]:
        got = await client.post("/v1/agent/runs", {"input": "x", "stream": True})
        return got, await client.get(f"/v1/agent/runs/{got.events[0]['id']}")

    got, record = with_clerk(ask, ModelError("http://10.1.2.3 says: secret"))

    assert got.events[-1]["stop_reason"] == record.json["stop_reason"] == "error"
    assert "secret" not in got.text + record.text
    assert "10.1.2.3" not in got.text + record.text


def test_an_agent_answers_in_chat_completions_as_a_model_does() -> None:
    async def ask(client: Client) -> list[Got]:
        asking: Any = {"model": "clerk", "messages": [{"role": "user", "content": "1 + 2?"}]}
        path = "/v1/chat/completions"
        instructed = [{"role": "system", "content": "Lie."}, *asking["messages"]]
        return [
            await client.post(path, asking),
            await client.post(path, asking | {"messages": instructed}),
            await client.post(path, asking),
        ]

    answered, instructed, consent = with_clerk(ask, ADDS, "It is 3.", PAYS)

    assert answered.message["content"] == "Let me add.\n\nIt is 3."
    assert "tool_calls" not in answered.message
    assert instructed.status == 400
    assert (consent.status, consent.json["error"]["code"]) == (409, "consent_needed")


def test_who_answers_and_with_what_is_told() -> None:
    about = with_clerk(lambda client: client.get("/v1/agent"))

    assert about.json["name"] == "clerk"
    assert [t["name"] for t in about.json["tools"]] == ["add", "pay"]


BAD_RUNS: list[dict[str, Any]] = [
    {},
    {"input": ""},
    {"input": []},
    {"input": 5},
    {"input": [{"role": "assistant", "content": "x"}]},
    {"input": [{"role": "system", "content": "x"}, {"role": "user", "content": "x"}]},
    {"input": "x", "stream": "yes"},
]


@pytest.mark.parametrize("body", BAD_RUNS, ids=json.dumps)
def test_a_run_that_cannot_be_meant_is_refused(body: dict[str, Any]) -> None:
    got = with_clerk(lambda client: client.post("/v1/agent/runs", body))

    assert got.status == 400


def test_no_name_of_a_session_leads_to_that_of_a_key(tmp_path: Path) -> None:
    """A store may outlive the keys that its runs came with."""

    async def go() -> tuple[int, list[Any]]:
        keys = ("key-of-alice",)
        alice = {"Authorization": f"Bearer {keys[0]}"}
        store = open_store(tmp_path / "runs.db")
        async with clerk("for alice", store=store, keys=keys) as client:
            await client.post("/v1/agent/runs", {"input": "x", "session": "s"}, headers=alice)
        kept_as = store.runs()[0].session
        async with clerk("mine", store=store) as client:
            refused = await client.post("/v1/agent/runs", {"input": "y", "session": kept_as})
            await client.post("/v1/agent/runs", {"input": "y", "session": "s"})
            listed = (await client.get("/v1/agent/runs")).json["data"]
        store.close()
        return refused.status, [row["question"] for row in listed]

    assert asyncio.run(go()) == (400, ["y"])
