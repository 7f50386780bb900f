"""The clients that people have, unchanged, against the server: each is its own real package.

`openai` and `anthropic` come with the `dev` extra; the others run where they are installed.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from antiphon.errors import RenderError
from antiphon.formats import Format
from antiphon.messages import Conversation, Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.serve import Served
from formats.format_cases import VARIANTS, variant, written
from formats.format_strategies import TOOLS
from serve.serving import ADD, Client, serving

pytestmark = pytest.mark.slow  # importing the clients takes seconds

T = TypeVar("T")

FUNCTION: Any = ADD["function"]
SCHEMA = FUNCTION["parameters"]
ASKED: Any = [{"role": "user", "content": "What is 1 + 2?"}]
CALL = "<think>\nI should add.\n</think>\n\n" + "\n".join(
    f'<tool_call>\n{{"name": "add", "arguments": {{"a": {n}, "b": 2}}}}\n</tool_call>'
    for n in (1, 5)
)


def answer(conversation: Conversation) -> str:
    """What a model of the Qwen3 family would write: two calls, then the answer."""
    results = [m.text for m in conversation.messages if m.role == "tool"]
    return f"It is {results[-1]}." if results else CALL


def model(chunk_chars: int = 5) -> ScriptedModel:
    return ScriptedModel(answer, format="qwen3", chunk_chars=chunk_chars)


def against(what: Callable[[Client], Awaitable[T]], scripted: ScriptedModel | None = None) -> T:
    async def go() -> T:
        async with serving(scripted or model()) as client:
            return await what(client)

    return asyncio.run(go())


@pytest.mark.parametrize("chunk_chars", [1, 3, 1000])
def test_openai_chat_streams_what_it_returns(chunk_chars: int) -> None:
    openai = pytest.importorskip("openai")

    async def ask(server: Client) -> tuple[Any, Any]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            asking = {"model": "m", "messages": ASKED, "tools": [ADD]}
            whole = await client.chat.completions.create(**asking)
            async with client.chat.completions.stream(**asking) as stream:
                async for _ in stream:
                    pass
                return whole, await stream.get_final_completion()

    whole, streamed = against(ask, model(chunk_chars))

    for got in (whole, streamed):
        choice = got.choices[0]
        calls = [(c.function.name, c.function.arguments) for c in choice.message.tool_calls]
        assert calls == [("add", '{"a": 1, "b": 2}'), ("add", '{"a": 5, "b": 2}')]
        assert choice.message.content is None
        assert choice.message.reasoning_content == "I should add."
        assert choice.finish_reason == "tool_calls"


FIND_TWICE = [ToolCall("find", {"q": f'"x" é {n}', "n": n}, f"call_{n}") for n in range(2)]
CHUNKS = (1, 7, 1000)


@pytest.mark.parametrize("name", VARIANTS)
def test_openais_client_puts_any_familys_stream_together_as_the_whole_answer(name: str) -> None:
    """However the model's server cuts what it sends."""
    openai = pytest.importorskip("openai")
    fmt = variant(name)
    text = _written(fmt)
    served = [
        Served(f"m{n}", ScriptedModel(lambda _: text, format=fmt, chunk_chars=n)) for n in CHUNKS
    ]
    asking: Any = {"messages": ASKED, "tools": [spec.to_openai() for spec in TOOLS]}

    async def go() -> list[Any]:
        async with (
            serving(*served) as server,
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
        ):
            got = [await client.chat.completions.create(model="m1", **asking)]
            for n in CHUNKS:
                async with client.chat.completions.stream(model=f"m{n}", **asking) as stream:
                    async for _ in stream:
                        pass
                    got.append(await stream.get_final_completion())
            return got

    whole, *streamed = [_said(completion) for completion in asyncio.run(go())]

    assert whole["calls"][0] == ("find", FIND_TWICE[0].arguments)
    assert streamed == [whole] * len(CHUNKS)


def _written(fmt: Format) -> str:
    """An answer with calls as a family writes it: two where it can, else one."""
    for calls in (FIND_TWICE, FIND_TWICE[:1]):
        asked = Conversation((Message.user("Go."), Message.assistant(tool_calls=calls)), TOOLS)
        try:
            return written(fmt.render(asked), 1, fmt)[0]
        except RenderError:
            continue
    pytest.skip(f"{fmt.name} writes no such call")


def _said(completion: Any) -> dict[str, Any]:
    choice = completion.choices[0]
    calls = choice.message.tool_calls or ()
    return {
        "content": choice.message.content,
        "reasoning": getattr(choice.message, "reasoning_content", None),
        "calls": [(call.function.name, json.loads(call.function.arguments)) for call in calls],
        "texts": [call.function.arguments for call in calls],
        "finish_reason": choice.finish_reason,
    }


def test_openai_responses_go_on_from_an_earlier_one() -> None:
    openai = pytest.importorskip("openai")
    tool: Any = {"type": "function", **FUNCTION, "strict": False}

    async def ask(server: Client) -> tuple[Any, Any, Any]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            first = await client.responses.create(model="m", input="1 + 2?", tools=[tool])
            outputs = [
                {"type": "function_call_output", "call_id": item.call_id, "output": "3"}
                for item in first.output
                if item.type == "function_call"
            ]
            going_on = {"model": "m", "previous_response_id": first.id, "input": outputs}
            second = await client.responses.create(**going_on)
            async with client.responses.stream(**going_on) as stream:
                async for _ in stream:
                    pass
                return first, second, await stream.get_final_response()

    first, second, streamed = against(ask)

    assert [item.type for item in first.output] == ["reasoning", "function_call", "function_call"]
    assert first.output[1].arguments == '{"a": 1, "b": 2}'
    assert second.output_text == streamed.output_text == "It is 3."
    assert second.status == "completed"


def test_openai_parses_an_answer_of_a_schema() -> None:
    openai = pytest.importorskip("openai")
    from pydantic import BaseModel

    class Sum(BaseModel):
        total: int

    async def ask(server: Client) -> Any:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            return await client.chat.completions.parse(
                model="m", messages=ASKED, response_format=Sum
            )

    got = against(ask, ScriptedModel(['{"total": 3}']))

    assert got.choices[0].message.parsed == Sum(total=3)


def test_openai_raises_its_own_errors() -> None:
    openai = pytest.importorskip("openai")

    async def ask(server: Client) -> None:
        options = {"base_url": f"{server.url}/v1", "api_key": "none", "max_retries": 0}
        async with openai.AsyncOpenAI(**options) as client:
            with pytest.raises(openai.NotFoundError, match="no model 'gpt-9'"):
                await client.chat.completions.create(model="gpt-9", messages=ASKED)
            with pytest.raises(openai.BadRequestError, match="temperature"):
                await client.chat.completions.create(model="m", messages=ASKED, temperature=9)

    against(ask)


def test_anthropic_messages_stream_what_they_return() -> None:
    anthropic = pytest.importorskip("anthropic")
    tool = {"name": "add", "description": "Add.", "input_schema": SCHEMA}
    asking: dict[str, Any] = {"model": "m", "max_tokens": 99, "tools": [tool]}

    async def ask(server: Client) -> tuple[Any, Any, Any]:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none") as client:
            whole = await client.messages.create(messages=ASKED, **asking)
            async with client.messages.stream(messages=ASKED, **asking) as stream:
                streamed = await stream.get_final_message()
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "3"}
                for block in whole.content
                if block.type == "tool_use"
            ]
            turns = [
                *ASKED,
                {"role": "assistant", "content": [b.model_dump() for b in whole.content]},
                {"role": "user", "content": results},
            ]
            return whole, streamed, await client.messages.create(messages=turns, **asking)

    whole, streamed, last = against(ask)

    for got in (whole, streamed):
        assert [block.type for block in got.content] == ["thinking", "tool_use", "tool_use"]
        assert [b.input for b in got.content[1:]] == [{"a": 1, "b": 2}, {"a": 5, "b": 2}]
        assert got.stop_reason == "tool_use"
    assert last.content[0].text == "It is 3."
    assert last.stop_reason == "end_turn"


def test_langchain_calls_its_tools() -> None:
    langchain = pytest.importorskip("langchain_openai")
    httpx: Any = pytest.importorskip("httpx")

    async def ask(server: Client) -> tuple[Any, Any]:
        async with httpx.AsyncClient() as http:
            chat = langchain.ChatOpenAI(
                base_url=f"{server.url}/v1", api_key="none", model="m", http_async_client=http
            )
            bound = chat.bind_tools([ADD])
            whole = await bound.ainvoke("1 + 2?")
            streamed: Any = None
            async for chunk in bound.astream("1 + 2?"):
                streamed = chunk if streamed is None else streamed + chunk
            return whole, streamed

    whole, streamed = against(ask)

    for got in (whole, streamed):
        assert [c["args"] for c in got.tool_calls] == [{"a": 1, "b": 2}, {"a": 5, "b": 2}]


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("streamed", [False, True])
def test_openai_agents_run_to_the_end(api: str, streamed: bool) -> None:
    agents = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")
    agents.set_tracing_disabled(True)

    async def ask(server: Client) -> Any:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            kind = (
                agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
            )

            @agents.function_tool
            def add(a: int, b: int) -> int:
                """Add two numbers."""
                return a + b

            agent = agents.Agent(name="a", model=kind("m", client), tools=[add])
            if not streamed:
                return (await agents.Runner.run(agent, "1 + 2?")).final_output
            run = agents.Runner.run_streamed(agent, "1 + 2?")
            async for _ in run.stream_events():
                pass
            return run.final_output

    assert against(ask) == "It is 7."


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_pydantic_ai_runs_to_the_end(api: str) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    clients = pytest.importorskip(api)
    models = pytest.importorskip(f"pydantic_ai.models.{api}")
    providers = pytest.importorskip(f"pydantic_ai.providers.{api}")

    def made(url: str) -> tuple[Any, Any]:
        if api == "openai":
            client = clients.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
            provider = providers.OpenAIProvider(openai_client=client)
            return client, models.OpenAIChatModel("m", provider=provider)
        client = clients.AsyncAnthropic(base_url=url, api_key="none")
        provider = providers.AnthropicProvider(anthropic_client=client)
        return client, models.AnthropicModel("m", provider=provider)

    async def ask(server: Client) -> tuple[Any, Any]:
        client, model = made(server.url)
        agent = pydantic_ai.Agent(model)

        @agent.tool_plain
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        async with client:
            whole = await agent.run("1 + 2?")
            async with agent.run_stream("1 + 2?") as stream:
                return whole.output, await stream.get_output()

    assert against(ask) == ("It is 7.", "It is 7.")
