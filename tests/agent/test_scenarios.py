"""Scenarios that users of other runtimes reported, where no other test here has them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise, product
from typing import Any

import pytest

from antiphon.agent import Agent, Retrieve
from antiphon.events import CallEvent, Event, TextEvent, ThinkingEvent
from antiphon.formats import get_format
from antiphon.messages import Completion, Conversation, Message, ToolCall
from antiphon.models import ModelOutput, ModelSettings, ScriptedModel
from antiphon.strategies import run_in_virtual_time
from antiphon.tools import Tool, tool
from models.loopback import Loopback, Reply, Request, body, stream


@tool(idempotent=True)
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


TWO_CALLS = {
    "hermes": [
        'Both:\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {"a": 3, "b": 4}}\n</tool_call>',
        "3 and 7.",
    ],
    "react_en": [
        'Action: add\nAction Input: {"a": 1, "b": 2}\n'
        'Action: add\nAction Input: {"a": 3, "b": 4}\n',
        "Thought: I now know the final answer\nFinal Answer: 3 and 7.",
    ],
}


@pytest.mark.parametrize("family", TWO_CALLS)
def test_two_calls_written_as_text_run_in_one_turn_in_order(family: str) -> None:
    """huggingface/smolagents#1899."""
    model = ScriptedModel(TWO_CALLS[family], format=get_format(family))

    result = Agent(model=model, tools=[add]).run_sync("1+2 and 3+4?")

    assert [m.text for m in result.messages if m.role == "tool"] == ["3", "7"]
    assert (result.output, len(result.trajectory.steps)) == ("3 and 7.", 2)


@pytest.mark.parametrize("chunk_chars", [1, 3, 7])
def test_no_piece_of_a_call_written_as_text_is_shown_as_text(chunk_chars: int) -> None:
    """QwenLM/Qwen-Agent#229."""

    def agent() -> Agent:
        model = ScriptedModel(
            TWO_CALLS["hermes"], format=get_format("hermes"), chunk_chars=chunk_chars
        )
        return Agent(model=model, tools=[add])

    async def streamed() -> tuple[list[Event], Any]:
        run = agent().run("go")
        return [event async for event in run], await run

    events, result = asyncio.run(streamed())
    text = "".join(e.text for e in events if isinstance(e, TextEvent | ThinkingEvent))
    assert text.replace("\n", "") == "Both:3 and 7."
    assert [e.call.name for e in events if isinstance(e, CallEvent)] == ["add", "add"]
    assert result.messages == agent().run_sync("go").messages


def test_a_heartbeat_beats_while_plain_tools_wait() -> None:
    """openai/openai-agents-python#2386: plain tools wait for what only a free loop can do."""
    beaten = threading.Event()

    def wait() -> str:
        return f"waited: {beaten.wait(10)}"

    async def beat() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        beaten.set()

    async def main() -> Any:
        heart = asyncio.create_task(beat())
        calls = [ToolCall("wait", {}, f"c{i}") for i in range(8)]
        script = [Message.assistant(tool_calls=calls), "ok"]
        result = await Agent(model=ScriptedModel(script), tools=[wait]).run("go")
        await heart
        return result

    result = asyncio.run(main())

    tools = [m for m in result.messages if m.role == "tool"]
    assert [m.text for m in tools] == ["waited: True"] * 8
    assert [m.tool_call_id for m in tools] == [f"c{i}" for i in range(8)]


class Response:
    """What an HTTP client hangs on its exception."""

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Refused(ConnectionError):
    """As the exceptions of HTTP clients, in any of their shapes."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("429")
        vars(self).update(fields)


@pytest.mark.parametrize(
    ("refused", "waited"),
    [
        (Refused(response=Response(Retry_After="1")), 1.0),
        (Refused(retry_after=2.5), 2.5),
        (Refused(headers={"retry-after": "3"}), 3.0),
        (Refused(response=Response(Retry_After="Wed, 21 Oct 2026 07:28:00 GMT")), 0.1),
        (Refused(), 0.1),
    ],
)
def test_a_tool_that_fails_once_is_retried_within_the_step(refused: Refused, waited: float) -> None:
    """pydantic/pydantic-ai#928."""
    tries: list[float] = []

    @tool(idempotent=True, retries=2)
    async def flaky() -> str:
        tries.append(asyncio.get_running_loop().time())
        if len(tries) == 1:
            raise refused
        return "fine"

    model = ScriptedModel([Message.assistant(tool_calls=[ToolCall("flaky", {}, "c1")]), "ok"])
    result = run_in_virtual_time(awaited(Agent(model=model, tools=[flaky]).run("go")))

    assert [m.text for m in result.messages if m.role == "tool"] == ["fine"]
    assert (len(tries), len(model.conversations)) == (2, 2)
    assert tries[1] - tries[0] == pytest.approx(waited)


def test_a_service_that_asks_to_wait_too_long_is_told_of_instead() -> None:
    @tool(idempotent=True, retries=2)
    async def busy() -> str:
        raise Refused(retry_after=3600)

    result = run_in_virtual_time(busy.call("{}"))

    assert "429" in result.text


async def awaited(run: Any) -> Any:
    return await run


def test_agents_that_are_tools_answer_at_the_same_time_under_one_run() -> None:
    """openai/openai-agents-python#2056: each takes 300 ms, all of them no longer."""

    async def slowly(conversation: Conversation) -> str:
        await asyncio.sleep(0.3)
        return conversation.messages[-1].text.upper()

    workers = [Agent(name=name, model=Slow(slowly)).as_tool(description="Works.") for name in "abc"]
    asks = [ToolCall(name, {"question": f"{name}?"}, f"c{name}") for name in "abc"]
    boss = Agent(
        name="boss",
        model=ScriptedModel([Message.assistant(tool_calls=asks), "Done."]),
        tools=workers,
    )

    async def main() -> tuple[Any, float]:
        clock = asyncio.get_running_loop().time
        began = clock()
        return await boss.run("go"), clock() - began

    result, took = run_in_virtual_time(main())

    assert took == pytest.approx(0.3)
    assert [m.text for m in result.messages if m.role == "tool"] == ["A?", "B?", "C?"]
    children = result.trajectory.children
    assert sorted((child.call_id, child.stop_reason) for child in children) == [
        ("ca", "answer"),
        ("cb", "answer"),
        ("cc", "answer"),
    ]
    assert result.usage.n_requests == 5


class Slow:
    """A model whose answer takes its time."""

    spec = "slow"

    def __init__(self, answer: Callable[[Conversation], Awaitable[str]]) -> None:
        self._answer = answer

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        yield Completion(Message.assistant(await self._answer(conversation)), "stop")

    async def close(self) -> None:
        return None


def subject_tool(subject: str) -> Tool[..., Any]:
    """One of many tools that differ in one word."""

    def count(place: str) -> str:
        return f"{subject} of {place}: 7"

    return tool(count, name=f"count_{subject}", description=f"How many {subject} a place has.")


SUBJECTS = [*map("".join, product("bdfgkp", "aeiou", "lmnrt", "ae")), "bridges", "zoos"]


def test_of_302_tools_few_are_shown_and_what_was_found_stays() -> None:
    """langchain-ai/deepagents#2052: needed tools are found by their words, one after the other."""
    script = [
        Message.assistant(tool_calls=[ToolCall("count_bridges", {"place": "Lima"}, "c1")]),
        Message.assistant(tool_calls=[ToolCall("search_tools", {"query": "zoos"}, "c2")]),
        Message.assistant(tool_calls=[ToolCall("count_zoos", {"place": "Lima"}, "c3")]),
        Message.assistant(tool_calls=[ToolCall("count_bridges", {"place": "Oslo"}, "c4")]),
        "Seven of each.",
    ]
    model = ScriptedModel(script)
    tools = [subject_tool(subject) for subject in SUBJECTS]
    agent = Agent(model=model, tools=tools, select=Retrieve(k=5))

    result = agent.run_sync("How many bridges has Lima?")

    shown = [[spec.name for spec in asked.tools] for asked in model.conversations]
    assert all(len(names) <= 11 for names in shown)
    assert "count_bridges" in shown[0]
    assert "count_zoos" not in shown[0]
    assert "count_zoos" in shown[2]
    for before, after in pairwise(shown):
        assert after[: len(before)] == before  # the prefix that a server has cached
    answers = [m.text for m in result.messages if m.role == "tool"]
    assert [answers[0], *answers[2:]] == [
        "bridges of Lima: 7",
        "zoos of Lima: 7",
        "bridges of Oslo: 7",
    ]


@pytest.mark.parametrize("family", ["hermes", "react_en"])
def test_a_server_that_knows_no_tools_serves_the_same_program(family: str) -> None:
    """pydantic/pydantic-ai#2170: tools are described in the prompt, calls are read from text."""
    left = list(TWO_CALLS[family])

    def server(request: Request) -> Reply:
        if request.path.endswith("/models"):
            return body({"data": [{"id": "m", "owned_by": "someone"}]})
        if not request.path.endswith("/completions") or "tools" in request.json:
            return body({"error": {"message": "tools are not supported"}}, 400)
        event = {"choices": [{"text": left.pop(0), "finish_reason": "stop"}]}
        return stream(event)

    async def main() -> tuple[Any, list[str]]:
        async with Loopback(server) as loopback:
            spec = f"{loopback.url}/v1#m?format={family}"
            result = await Agent(model=spec, tools=[add]).run("1+2 and 3+4?")
            asked = [r for r in loopback.requests if r.path.endswith("/completions")]
            return result, [request.json["prompt"] for request in asked]

    result, prompts = asyncio.run(main())

    assert [m.text for m in result.messages if m.role == "tool"] == ["3", "7"]
    assert result.output == "3 and 7."
    assert "Adds two numbers." in prompts[0]
    assert "7" in prompts[1].removeprefix(prompts[0])


def test_the_cost_of_a_step_does_not_grow_with_the_steps_before_it() -> None:
    """Each step shows the model the same message objects as the one before, and adds its own."""
    script = [Message.assistant(tool_calls=[ToolCall("add", {"a": i, "b": 1})]) for i in range(40)]
    model = ScriptedModel([*script, "done"])

    Agent(model=model, tools=[add], max_steps=50).run_sync("go")

    for before, after in zip(model.conversations, model.conversations[1:], strict=False):
        assert all(a is b for a, b in zip(before.messages, after.messages, strict=False))
        assert after.tools is before.tools
