"""What the server adds: time and CPU a request and a streamed token, many streams, memory.

    python bench/serving.py                          # ours in front of a scripted upstream
    python bench/serving.py --peer "litellm --config {config} --port {port}"
    BENCH_TOKENS=20 python bench/serving.py --streams 1000
    BENCH_TOKENS=5 python bench/serving.py --n 0 --requests 100000

Three processes: a scripted upstream that speaks Chat Completions, the proxy, and this one, which
asks the upstream directly and through the proxy in turn, one request at a time.  Added time is the
difference of the medians: to a whole answer, to the first token of a stream, and a token of a
stream that comes as fast as it can.  CPU is what the proxy used (all threads), which other
programs move less.  A peer is any command that serves the same upstream; it is measured in the same
minutes.  LiteLLM wants LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true and, without a
network, LITELLM_LOCAL_MODEL_COST_MAP=True in the environment.
"""

import argparse
import asyncio
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from aiohttp import web

N_TOKENS = int(os.environ.get("BENCH_TOKENS", "200"))
"""Tokens of an answer; the upstream's process reads it, too."""
PAUSE_MS = 100
"""Between two tokens of a stream among many, so that all are open at once."""
ASK = {"model": "m", "messages": [{"role": "user", "content": "Say it."}]}


# --- The upstream, a process of its own


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    row = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**row, "choices": [choice]}).encode() + b"\n\n"


async def _answer(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    words = [f"word{n} " for n in range(N_TOKENS)]
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "".join(words)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": N_TOKENS, "total_tokens": N_TOKENS + 9}
        row = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        return web.json_response({**row, "choices": [choice], "usage": usage})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    pause = (asked.get("seed") or 0) / 1000  # which every proxy passes on
    for word in words:
        await response.write(_chunk({"content": word}))
        await asyncio.sleep(pause)
    await response.write(_chunk({}, "stop") + b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def upstream(port: int) -> None:
    """Serve until killed."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _answer)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None, backlog=4096)


# --- Processes


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running(command: list[str], port: int) -> AsyncGenerator[subprocess.Popen[bytes]]:
    """A server process, from when its port is open until the end of the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(4000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise SystemExit(f"it ended with {process.returncode}: {shlex.join(command)}")
            await asyncio.sleep(0.1)
        else:
            raise SystemExit(f"it did not open port {port}: {shlex.join(command)}")
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, all threads that it has now."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in threads) / 1e9


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


# --- Asking


@dataclass
class Target:
    """Something that answers."""

    name: str
    url: str
    pid: int | None = None


async def ask(session: aiohttp.ClientSession, url: str, **fields: Any) -> tuple[float, float]:
    """One request; how long the first token and all of it took, in seconds."""
    began = time.perf_counter()
    async with session.post(f"{url}/v1/chat/completions", json=ASK | fields) as response:
        data = await response.content.readany()
        first = time.perf_counter() - began
        data += await response.read()
    took = time.perf_counter() - began
    if response.status != 200 or (fields.get("stream") and b"[DONE]" not in data):
        raise RuntimeError(f"{url} answered {response.status}: {data[:200]!r}")
    return first, took


@dataclass
class Taken:
    """What requests of one kind to one target took, in seconds."""

    firsts: list[float]
    wholes: list[float]
    cpu: float = 0.0


async def measured(
    session: aiohttp.ClientSession, target: Target, taken: Taken, stream: bool
) -> None:
    """One more request."""
    before = cpu_seconds(target.pid) if target.pid else 0.0
    first, took = await ask(session, target.url, stream=stream)
    taken.cpu += (cpu_seconds(target.pid) if target.pid else 0.0) - before
    taken.firsts.append(first)
    taken.wholes.append(took)


async def overhead(targets: list[Target], n: int) -> None:
    """Medians of whole and streamed requests, one at a time, the targets in turn."""
    taken = {(t.name, stream): Taken([], []) for t in targets for stream in (False, True)}
    async with aiohttp.ClientSession() as session:
        for stream in (False, True):
            for target in targets:
                for _ in range(10):
                    await ask(session, target.url, stream=stream)
            for _ in range(n):
                for target in targets:
                    await measured(session, target, taken[target.name, stream], stream)
    head = ("whole ms", "added", "CPU ms", "first ms", "added", "stream ms", "added us", "CPU us")
    print(f"{f'p50 of {n}':<14}" + "".join(f"{name:>10}" for name in head) + "  (us: a token)")
    direct_whole, direct = (taken[targets[0].name, stream] for stream in (False, True))
    for target in targets:
        whole, streamed = (taken[target.name, stream] for stream in (False, True))
        cells = (
            median(whole.wholes) * 1e3,
            (median(whole.wholes) - median(direct_whole.wholes)) * 1e3,
            whole.cpu / n * 1e3,
            median(streamed.firsts) * 1e3,
            (median(streamed.firsts) - median(direct.firsts)) * 1e3,
            median(streamed.wholes) * 1e3,
            (median(streamed.wholes) - median(direct.wholes)) / N_TOKENS * 1e6,
            streamed.cpu / n / N_TOKENS * 1e6,
        )
        print(f"{target.name:<14}" + "".join(f"{cell:>10.2f}" for cell in cells))


async def many_streams(target: Target, n: int) -> None:
    """Streams side by side, each slow enough that all are open at once."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await ask(session, target.url)
        began = time.perf_counter()
        asking = (ask(session, target.url, stream=True, seed=PAUSE_MS) for _ in range(n))
        done = await asyncio.gather(*asking, return_exceptions=True)
    failed = [error for error in done if isinstance(error, BaseException)]
    took = time.perf_counter() - began
    print(
        f"{target.name}: {n} streams of {N_TOKENS} tokens at once in {took:.1f} s, "
        f"{len(failed)} failed"
    )
    if failed:
        print(f"  the first: {failed[0]!r}")


async def memory(target: Target, n: int) -> None:
    """Resident memory over many requests, a tenth of them streamed."""
    assert target.pid is not None
    began = time.perf_counter()
    print(f"{target.name}: {resident_mb(target.pid):.1f} MB before any of {n:,} requests")
    async with aiohttp.ClientSession() as session:
        for part in range(1, 21):
            for _ in range(n // 20 // 20):
                await asyncio.gather(
                    *(ask(session, target.url, stream=k % 10 == 0) for k in range(20))
                )
            took = time.perf_counter() - began
            size = resident_mb(target.pid)
            print(f"  {part * n // 20:>9,} requests, {took:>7.0f} s: {size:.1f} MB", flush=True)


def litellm_config(url: str) -> str:
    """What LiteLLM's proxy is told of the upstream."""
    params = f"{{model: openai/m, api_base: {url}/v1, api_key: none}}"
    return f"model_list:\n  - model_name: m\n    litellm_params: {params}\n"


async def main(args: argparse.Namespace) -> None:
    """Start everything and measure."""
    port, own_port, peer_port = _free_port(), _free_port(), _free_port()
    up_url = f"http://127.0.0.1:{port}"
    own = [sys.executable, "-m", "antiphon", "serve", "--quiet", "--port", str(own_port)]
    own += ["--model", f"{up_url}/v1#m"]
    async with running([sys.executable, __file__, "--upstream", str(port)], port):
        targets = [Target("direct", up_url)]
        async with running(own, own_port) as process:
            ours = Target("antiphon", f"http://127.0.0.1:{own_port}", process.pid)
            targets.append(ours)
            if args.peer:
                with tempfile.TemporaryDirectory() as folder:
                    config = Path(folder) / "config.yaml"
                    config.write_text(litellm_config(up_url), "utf-8")
                    words = shlex.split(args.peer.format(config=config, port=peer_port, url=up_url))
                    async with running(words, peer_port) as peer:
                        url = f"http://127.0.0.1:{peer_port}"
                        theirs = Target(Path(words[0]).name, url, peer.pid)
                        await overhead([*targets, theirs], args.n)
                        if args.streams:
                            await many_streams(theirs, args.streams)
            elif args.n:
                await overhead(targets, args.n)
            if args.streams:
                await many_streams(ours, args.streams)
            if args.requests:
                await memory(ours, args.requests)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=100, help="requests of each kind")
    parser.add_argument("--peer", help="a command that serves the upstream; {config} {port} {url}")
    parser.add_argument("--streams", type=int, default=0, help="streams at once")
    parser.add_argument("--requests", type=int, default=0, help="requests to watch memory over")
    parser.add_argument("--upstream", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.upstream:
        upstream(arguments.upstream)
    else:
        asyncio.run(main(arguments))
