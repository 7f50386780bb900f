"""What the server adds: time and CPU a request and a streamed token, many streams, memory.

    python bench/serving.py                          # ours in front of a scripted upstream
    python bench/serving.py --peer "litellm --config {config} --port {port}"
    BENCH_TOKENS=20 python bench/serving.py --streams 1000 --requests 20000

Three processes: a scripted upstream that speaks Chat Completions, the proxy, and this one, which
asks the upstream directly and through the proxy in turn.  Added time is the difference of the
medians; CPU is what the proxy's process used (all threads), which other programs move less.  A peer
is any command that serves the same upstream; it is measured in the same minutes.
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
    pause = float(request.headers.get("x-pause", asked.get("user") or "0"))
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
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


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
    """CPU time of a process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


async def ask(session: aiohttp.ClientSession, url: str, **fields: Any) -> float:
    """One request; how long it took, in seconds."""
    began = time.perf_counter()
    async with session.post(f"{url}/v1/chat/completions", json=ASK | fields) as response:
        data = await response.read()
    took = time.perf_counter() - began
    if response.status != 200 or (fields.get("stream") and b"[DONE]" not in data):
        raise RuntimeError(f"{url} answered {response.status}: {data[:200]!r}")
    return took


async def overhead(targets: list[Target], n: int) -> None:
    """Medians of whole and streamed requests, one at a time, the targets in turn."""
    print(
        f"{'':<14}{'whole ms':>10}{'added':>8}{'CPU ms':>8}{'stream ms':>11}{'added/token us':>16}"
        f"{'CPU us/token':>14}"
    )
    async with aiohttp.ClientSession() as session:
        for target in targets:
            for stream in (False, True):
                for _ in range(10):
                    await ask(session, target.url, stream=stream)
        wall: dict[tuple[str, bool], list[float]] = {}
        cpu: dict[tuple[str, bool], float] = {}
        for stream in (False, True):
            for _ in range(n):
                for target in targets:
                    before = cpu_seconds(target.pid) if target.pid else 0.0
                    took = await ask(session, target.url, stream=stream)
                    key = target.name, stream
                    wall.setdefault(key, []).append(took)
                    spent = (cpu_seconds(target.pid) if target.pid else 0.0) - before
                    cpu[key] = cpu.get(key, 0.0) + spent
    base = {stream: median(wall[targets[0].name, stream]) for stream in (False, True)}
    for target in targets:
        whole, streamed = (median(wall[target.name, stream]) for stream in (False, True))
        added = (streamed - base[True]) / N_TOKENS * 1e6
        print(
            f"{target.name:<14}{whole * 1e3:>10.2f}{(whole - base[False]) * 1e3:>8.2f}"
            f"{cpu[target.name, False] / n * 1e3:>8.2f}{streamed * 1e3:>11.1f}{added:>16.1f}"
            f"{cpu[target.name, True] / n / N_TOKENS * 1e6:>14.1f}"
        )


async def many_streams(target: Target, n: int) -> None:
    """Streams side by side, each slow enough that all are open at once."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        began = time.perf_counter()
        pause = "0.1"
        asking = (ask(session, target.url, stream=True, user=pause) for _ in range(n))
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
    sizes: list[str] = []
    async with aiohttp.ClientSession() as session:
        for part in range(11):
            if part:
                for _ in range(n // 10 // 20):
                    await asyncio.gather(
                        *(ask(session, target.url, stream=k % 10 == 0) for k in range(20))
                    )
            sizes.append(f"{resident_mb(target.pid):.0f}")
    print(f"{target.name}: MB after each tenth of {n:,} requests: {' '.join(sizes)}")


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
                        targets.append(Target(Path(words[0]).name, url, peer.pid))
                        await overhead(targets, args.n)
            else:
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
