"""What a run costs: CPU time a model call, many agents at once, streaming, and growth with steps.

    python bench/agents.py                 # ours, and those of `PEERS` that are installed
    python bench/agents.py --steps 1000    # growth only

A scripted server in a process of its own answers on loopback, so that only the client's work is
counted: process CPU time, all threads.  Noise only adds, so the figure is the 25th percentile of
several runs; all are measured in the same minutes and the ratio is what to trust.
"""

import argparse
import asyncio
import importlib
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from antiphon import Agent, tool

_MODEL = re.compile(rb'"model":\s*"t(\d+)-l(\d+)-c(\d+)(?:-s)?"')
_NOW = "@@@@@@@@@@@@@@@@@"  # becomes the time at which a piece is sent, of the same length
_ASSISTANT = re.compile(rb'"role":\s*"assistant"')
_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def add(a: int, b: int) -> str:
    """Add two integers.

    Args:
        a: the first number
        b: the second number
    """
    return str(a + b)


# The server: model t20-l50-c1 asks for 20 calls, one a turn, answers after 50 ms, in 1 piece; with
# -s each piece is the time at which it is sent, 5 ms after the one before.


def _reply(body: bytes) -> tuple[dict[str, Any], int, int]:
    found = _MODEL.search(body)
    assert found is not None
    turns, latency_ms, pieces = (int(n) for n in found.groups())
    turn = len(_ASSISTANT.findall(body))
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if turn < turns:
        function = {"name": "add", "arguments": json.dumps({"a": turn, "b": 1})}
        message["tool_calls"] = [{"id": f"c{turn}", "type": "function", "function": function}]
    else:
        message["content"] = "word " * pieces
    return message, latency_ms, pieces


def _events(message: dict[str, Any], pieces: int, word: str = "word ") -> list[bytes]:
    calls: list[dict[str, Any]] = [
        {"index": n, **call} for n, call in enumerate(message.get("tool_calls") or ())
    ]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": calls}] if calls else []
    if message["content"]:
        deltas += [{"content": word}] * pieces
    made: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas
    ]
    end: dict[str, Any] = {
        "index": 0,
        "delta": {},
        "finish_reason": "tool_calls" if calls else "stop",
    }
    made += [{"choices": [end]}, {"choices": [], "usage": _USAGE}]
    common = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [b"data: " + json.dumps(common | m).encode() + b"\n\n" for m in made] + [
        b"data: [DONE]\n\n"
    ]


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            request = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(request.split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            message, latency_ms, pieces = _reply(body)
            await asyncio.sleep(latency_ms / 1000)
            if re.search(rb'"stream":\s*true', body):
                stamped = b'-s"' in body
                word = _NOW if stamped else "word "
                kind, parts = "text/event-stream", _events(message, pieces, word)
            else:
                stamped = False
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
                parts = [json.dumps(whole | {"choices": [choice], "usage": _USAGE}).encode()]
                kind = "application/json"
            size = sum(len(part) for part in parts)
            head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\n\r\n"
            writer.write(head.encode())
            for part in parts:
                if stamped:
                    await asyncio.sleep(0.005)
                    part = part.replace(_NOW.encode(), b"%017.6f" % time.monotonic())
                writer.write(part)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_serve_one, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# The clients


def antiphon_agent(url: str, model: str, max_steps: int) -> Callable[[], Awaitable[str]]:
    """Ours, as the README has it."""
    agent = Agent(model=f"{url}#{model}", tools=[tool(add)], max_steps=max_steps)

    async def run() -> str:
        return (await agent.run("go")).output

    return run


def openai_loop(url: str, model: str, max_steps: int) -> Callable[[], Awaitable[str]]:
    """The same loop on the official client and nothing else."""
    client: Any = importlib.import_module("openai").AsyncOpenAI(base_url=url, api_key="x")
    tools = [tool(add).spec.to_openai()]

    async def run() -> str:
        messages: list[Any] = [{"role": "user", "content": "go"}]
        for _ in range(max_steps):
            reply: Any = await client.chat.completions.create(
                model=model, messages=messages, tools=tools
            )
            message: Any = reply.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                return message.content
            for call in message.tool_calls:
                text = add(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        return ""

    return run


def pydantic_ai_agent(url: str, model: str, max_steps: int) -> Callable[[], Awaitable[str]]:
    """pydantic-ai, as its documentation has it."""
    module: Any = importlib.import_module("pydantic_ai")
    openai: Any = importlib.import_module("pydantic_ai.models.openai")
    provider: Any = importlib.import_module("pydantic_ai.providers.openai").OpenAIProvider
    chat = openai.OpenAIChatModel(model, provider=provider(base_url=url, api_key="x"))
    agent = module.Agent(chat, tools=[add])
    limits = module.UsageLimits(request_limit=max_steps)

    async def run() -> str:
        return (await agent.run("go", usage_limits=limits)).output

    return run


def openai_agents_agent(url: str, model: str, max_steps: int) -> Callable[[], Awaitable[str]]:
    """openai-agents, without the tracing that it sends away by default."""
    module: Any = importlib.import_module("agents")
    module.set_tracing_disabled(True)
    client: Any = importlib.import_module("openai").AsyncOpenAI(base_url=url, api_key="x")
    chat = module.OpenAIChatCompletionsModel(model=model, openai_client=client)
    agent = module.Agent(name="bot", model=chat, tools=[module.function_tool(add)])

    async def run() -> str:
        return (await module.Runner.run(agent, "go", max_turns=max_steps)).final_output

    return run


PEERS: dict[str, tuple[str, Callable[[str, str, int], Callable[[], Awaitable[str]]]]] = {
    "openai": ("openai", openai_loop),
    "pydantic-ai": ("pydantic_ai", pydantic_ai_agent),
    "openai-agents": ("agents", openai_agents_agent),
}
"""By what a peer is called: the module that tells whether it is installed, and its agent."""


async def cpu_us_a_call(run: Callable[[], Awaitable[str]], n_calls: int, n_runs: int) -> float:
    """CPU microseconds a model call: the 25th percentile of several runs."""
    await run()
    spent: list[float] = []
    for _ in range(n_runs):
        begun = time.process_time()
        await run()
        spent.append((time.process_time() - begun) / n_calls * 1e6)
    return sorted(spent)[len(spent) // 4]


async def _compare(url: str) -> None:
    clients: dict[str, Any] = {"antiphon": antiphon_agent}
    for name, (module, make) in PEERS.items():
        if importlib.util.find_spec(module) is not None:
            clients[name] = make
        else:
            print(f"{name} is not installed and not compared", file=sys.stderr)
    for turns, n_runs in ((20, 12), (100, 3)):
        for name, make in clients.items():
            run = make(url, f"t{turns}-l0-c1", turns + 1)
            us = await cpu_us_a_call(run, turns + 1, n_runs)
            print(f"{name:14} {turns:4} turns: {us:8.0f} us CPU a model call")
    for name, make in clients.items():
        run = make(url, "t5-l50-c1", 6)
        await run()
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(run() for _ in range(200)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(f"{name:14} 200 agents x 5 turns at 50 ms: {cpu:.2f} s CPU, {wall:.2f} s wall")


async def _bare_wait(url: str, model: str) -> float:
    """How long the first piece takes to a program that only reads lines from the socket, in ms."""
    host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"model": model, "stream": True, "messages": []}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n")
    writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
    wait = 0.0
    while (line := await reader.readline()) != b"data: [DONE]\n":
        if line.startswith(b"data: {") and not wait:
            delta = json.loads(line[6:])["choices"][0]["delta"]
            wait = (time.monotonic() - float(delta["content"])) * 1000
    writer.close()
    await writer.wait_closed()
    return wait


async def _first_wait(agent: Agent) -> float:
    """How long the first piece takes until it is shown, in ms."""
    waits = [
        (time.monotonic() - float(event.text)) * 1000
        async for event in agent.stream("go")
        if event.type == "text_delta"
    ]
    return waits[0]


async def _stream(url: str) -> None:
    agent = Agent(model=f"{url}#t0-l0-c20-s")
    waits: dict[str, list[float]] = {"antiphon": [], "bare socket": []}
    for _ in range(30):  # in turns: what else the machine does is in both
        waits["antiphon"].append(await _first_wait(agent))
        waits["bare socket"].append(await _bare_wait(url, "t0-l0-c20-s"))
    for name, times in waits.items():
        best, middle = min(times), sorted(times)[len(times) // 2]
        told = f"best {best:.1f}, median {middle:.1f} ms"
        print(f"{name:14} first delta shown after it was sent: {told}")
    agent = Agent(model=f"{url}#t0-l0-c2000")
    spent: list[float] = []
    for _ in range(5):
        begun, n = time.process_time(), 0
        async for event in agent.stream("go"):
            n += event.type == "text_delta"
        spent.append((time.process_time() - begun) / n * 1e6)
    print(f"antiphon       streamed and shown: {min(spent):.0f} us CPU a chunk")


async def _growth(url: str, n_steps: int) -> None:
    run = antiphon_agent(url, f"t{n_steps}-l0-c1", n_steps + 1)
    agent = Agent(model=f"{url}#t{n_steps}-l0-c1", tools=[tool(add)], max_steps=n_steps + 1)
    await run()
    marks: list[float] = []
    begun = time.process_time()
    async for event in agent.stream("go"):
        if event.type == "step_end":
            marks.append(time.process_time() - begun)
    tenth = max(1, n_steps // 10)
    first = marks[tenth] / (tenth + 1) * 1e6
    last = (marks[-1] - marks[-1 - tenth]) / tenth * 1e6
    print(
        f"antiphon       {n_steps} steps: first tenth {first:.0f} us CPU a step, last {last:.0f} us"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a run costs.")
    parser.add_argument("--steps", type=int, default=0, help="only growth over so many steps")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(_serve())
        return
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    try:
        if not args.steps:
            asyncio.run(_compare(url))
            asyncio.run(_stream(url))
        asyncio.run(_growth(url, args.steps or 300))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != here]  # openai-agents is called agents, too
    main()
