"""What a synthesis adds to the time that its model takes, at many conversations at once.

    python bench/synthesis.py                            # 200 conversations at once, 400 in all
    python bench/synthesis.py --latency-ms 200 --at-once 50

A scripted server in a process of its own answers each request after a time between half and one and
a half of the mean, which the request decides.  The same waits without any work, as many at once,
are what a perfect pipeline would take; they are timed in the same minute.  Measured is the stage
that does the tasks: agents with real tools, trajectories recorded, every finished row in the
journal before the next one begins.
"""

import argparse
import asyncio
import importlib
import json
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from antiphon.batch import map_rows
from antiphon.messages import JsonObject
from antiphon.synthesis import RunTasks, SynthConfig, config_from

N_CALLS = 3
"""Model calls of a conversation: two with a call, and the answer."""


# ---- the server: each request waits, then calls a tool or answers ------------------------------


def _wait(question: str, n: int, mean: float) -> float:
    """How long the n-th answer to a question takes."""
    return mean * (0.5 + zlib.crc32(f"{n} {question}".encode()) / 2**32)


def _reply(request: Any, n: int) -> bytes:
    delta: dict[str, Any] = {"role": "assistant", "content": "It is 4."}
    if n < N_CALLS - 1:
        function = {"name": "calculator", "arguments": json.dumps({"expression": f"2 + {n}"})}
        delta = {
            "tool_calls": [{"index": 0, "id": f"c{n}", "type": "function", "function": function}]
        }
    end = "stop" if "content" in delta else "tool_calls"
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    events: list[Any] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        {"choices": [], "usage": usage},
    ]
    common = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    lines = [b"data: " + json.dumps(common | event).encode() + b"\n\n" for event in events]
    return b"".join([*lines, b"data: [DONE]\n\n"])


async def _serve(latency: float) -> None:
    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                request: Any = json.loads(await reader.readexactly(length))
                messages: list[Any] = request["messages"]
                n = sum(message["role"] == "assistant" for message in messages)
                question = next(m["content"] for m in messages if m["role"] == "user")
                await asyncio.sleep(_wait(question, n, latency))
                text = _reply(request, n)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    b"content-length: %d\r\n\r\n%b" % (len(text), text)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0, limit=1 << 24, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# ---- the stage ----------------------------------------------------------------------------------


def _config(url: str, n: int) -> SynthConfig:
    return config_from(
        {
            "toolset": [
                {
                    "python": ["antiphon.tools.builtin:DEMO_TOOLS"],
                    "catalogs": ["demo"],
                    "offered": [5, 5],
                }
            ],
            "models": {"teacher": f"{url}#scripted"},
            "tasks": {"count": n, "kinds": {"single": 1}},
        }
    )


async def _tasks(config: SynthConfig, out: Path) -> list[JsonObject]:
    work = importlib.import_module("antiphon.synthesis").WriteTasks(config)
    rows: Iterator[JsonObject] = ({"index": n} for n in range(config.tasks.count))
    await map_rows(work, rows, out)
    return [json.loads(line) for line in out.read_text().splitlines()]


async def _ideal(tasks: list[JsonObject], at_once: int, latency: float) -> float:
    """Seconds for the same waits, as many at once, with no work between them."""
    waiting = iter(tasks)

    async def one() -> None:
        for task in waiting:
            question = str(task["turns"][0])  # type: ignore[index, call-overload]
            for n in range(N_CALLS):
                await asyncio.sleep(_wait(question, n, latency))

    began = perf_counter()
    await asyncio.gather(*(one() for _ in range(at_once)))
    return perf_counter() - began


async def measure(
    url: str, n: int, at_once: int, latency: float, folder: Path
) -> tuple[float, float, float]:
    """Seconds of a perfect pipeline, seconds of ours, and CPU seconds of this process, for `n`."""
    config = _config(url, n)
    tasks = await _tasks(config, folder / "tasks")
    warm = await map_rows(RunTasks(config), tasks[:1], folder / "warm")
    assert warm.is_complete, warm.failures
    ideal = await _ideal(tasks, at_once, latency)
    began, cpu = perf_counter(), process_time()
    report = await map_rows(RunTasks(config), tasks, folder / "runs", concurrency=at_once)
    took = perf_counter() - began, process_time() - cpu
    assert report.n_out == n, report.failures
    return ideal, *took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a synthesis adds to its model's time.")
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--latency-ms", type=float, default=2000.0)
    parser.add_argument(
        "--rounds", type=int, default=4, help="conversations, in turns of --at-once"
    )
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        asyncio.run(_serve(args.serve))
        return
    latency = args.latency_ms / 1000
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(latency)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    n = args.at_once * args.rounds
    try:
        with tempfile.TemporaryDirectory() as folder:
            ideal, took, cpu = asyncio.run(measure(url, n, args.at_once, latency, Path(folder)))
    finally:
        server.kill()
        server.wait()
    print(
        f"{n} conversations of {N_CALLS} calls at {args.latency_ms:.0f} ms, {args.at_once} at once"
    )
    print(f"waits alone {ideal:.2f} s, all {took:.2f} s: the pipeline adds {took / ideal - 1:.1%}")
    print(
        f"CPU {cpu:.2f} s: {cpu / n * 1e3:.1f} ms a conversation, "
        f"{cpu / n / N_CALLS * 1e3:.2f} ms a model call"
    )


if __name__ == "__main__":
    main()
