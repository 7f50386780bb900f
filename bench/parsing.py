"""How fast each family's parser reads one long call that arrives in pieces of 4 characters.

Two shapes: ``string``, one long string argument, as when an agent writes a file (with quotes,
backslashes and line feeds), and ``array``, a list of small objects. Each is rendered by the
family, cut into deltas with the family's marks whole, as a server sends them, and fed to a new
parser; CPU seconds of the parser alone, the best of the rounds. ``growth`` is the exponent between
the two largest sizes: 1 is linear, 2 is quadratic. ``longest wait`` is the longest stretch of
characters behind which nothing was sent on, as a share of the text. Every result is compared with
what was rendered.

With ``--peers`` the largest size is also fed to the parsers of vLLM and SGLang that read the same
family, in the same process right behind ours; see ``parsing_peers.py`` for how to get them.

    python bench/parsing.py [--sizes 1000,8000,64000] [--rounds N] [--formats NAME,...]
        [--peers vllm,sglang [--cap SECONDS]]
"""

import argparse
import json
import math
import re
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from antiphon.formats import Format, Start, get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats.format_cases import VARIANTS, variant, written
from parsing_peers import PEERS, installed
from parsing_peers import read as read_by

TOOLS = (
    ToolSpec(
        "note_write",
        "Write a file.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
            "required": ["path", "body"],
        },
    ),
    ToolSpec(
        "rows_put",
        "Put rows.",
        {
            "type": "object",
            "properties": {"rows": {"type": "array", "items": {"type": "object"}}},
            "required": ["rows"],
        },
    ),
)
_LINE = 'for i in range(10):\n    print("row", i, {"a": [i, 2]})  # café \\ done\n'


def call(shape: str, size: int) -> ToolCall:
    """A call with about `size` characters of arguments."""
    if shape == "string":
        body = (_LINE * (size // len(_LINE) + 1))[:size]
        return ToolCall("note_write", {"path": "src/a.py", "body": body}, "call00000")
    rows: list[Any] = []
    length = 0
    while length < size:
        i = len(rows)
        rows.append({"id": i, "name": f"item {i}", "ok": i % 2 == 0, "w": [i, 0.5]})
        length += len(json.dumps(rows[-1])) + 2
    return ToolCall("rows_put", {"rows": rows}, "call00000")


def text_of(fmt: Format, made: ToolCall) -> tuple[str, Start]:
    """What a model of the family writes for a call, and where its prompt leaves off."""
    answer = Message.assistant(tool_calls=[made])
    rendered = fmt.render(Conversation((Message.user("Go."), answer), TOOLS))
    return written(rendered, 1, fmt)


def deltas(text: str, marks: frozenset[str], step: int = 4) -> list[str]:
    """The text in pieces of `step` characters, marks whole."""
    by_length = sorted(marks, key=len, reverse=True)
    parts = re.split("(" + ("|".join(map(re.escape, by_length)) or "(?!)") + ")", text)
    pieces: list[str] = []
    for i, part in enumerate(parts):
        if i % 2:
            pieces.append(part)
        else:
            pieces += [part[at : at + step] for at in range(0, len(part), step)]
    return pieces


def read(fmt: Format, made: ToolCall, rounds: int) -> tuple[float, int, float]:
    """Best CPU seconds, number of deltas, and the longest wait.

    Raises:
        AssertionError: What was read is not what was written.
    """
    text, start = text_of(fmt, made)
    pieces = deltas(text, getattr(fmt, "specials", frozenset[str]()))
    best = math.inf
    waits: list[int] = []
    for _ in range(rounds):
        parser = fmt.parser(tools=TOOLS, start=start)
        sent: list[bool] = []
        began = time.process_time()
        for piece in pieces:
            sent.append(bool(parser.feed(piece)))
        parser.finish()
        best = min(best, time.process_time() - began)
        calls = parser.message.without_ids().tool_calls
        assert [(c.name, c.arguments) for c in calls] == [(made.name, made.arguments)], text[:200]
        waits = [0]
        for piece, out in zip(pieces, sent, strict=True):
            waits[-1] += len(piece)
            if out:
                waits.append(0)
    return best, len(pieces), max(waits) / len(text)


DIRECT: dict[str, tuple[str, dict[str, Any]]] = {
    "minimax_m2_direct": ("minimax_m2", {}),
    "deepseek_v4_direct": ("deepseek_v4", {"thinking": False}),
}
"""Variants that peers are compared on only: their prompts leave off behind the reasoning."""


def compare(names: list[str], packages: list[str], size: int, rounds: int, cap: float) -> int:
    """Print one line for a variant, shape and peer; how many of them fall short.

    Ours must be 10 times as fast as vLLM's hermes, 100 times as fast as SGLang's qwen25, and as
    fast as any on vLLM's engine.
    """
    print(f"\n{'':24} {'shape':7} {'ours':>8}  {'peer':28} {'seconds':>8} {'ratio':>7}")
    short = 0
    for name in names:
        family, fields = DIRECT.get(name) or VARIANTS[name]
        fmt = get_format(family, **fields)
        for shape in ("string", "array"):
            made = call(shape, size)
            text, _ = text_of(fmt, made)
            pieces = deltas(text, getattr(fmt, "specials", frozenset[str]()))
            for peer in PEERS[name]:
                if peer.package not in packages:
                    continue
                ours = read(fmt, made, rounds)[0]
                theirs = read_by(peer, pieces, made, TOOLS, cap)
                ratio = theirs.seconds / ours
                was_cut = theirs.n_chars < len(text)
                wanted = {"vllm hermes": 10, "sglang qwen25": 100}.get(
                    peer.label, 1 if peer.engine else 0
                )
                note = "" if theirs.is_right else "  another result"
                if was_cut:
                    note = f"  stopped at {theirs.n_chars:,} of {len(text):,} characters"
                falls_short = ratio < wanted and not was_cut
                short += falls_short
                print(
                    f"{name:24} {shape:7} {ours:8.4f}  {peer.label:28} {theirs.seconds:8.3f} "
                    f"{'>' if was_cut else ' '}{ratio:6.1f}{note}{' <-- slow' * falls_short}",
                    flush=True,
                )
    print(f"{short} not as much faster as they should be")
    return short


def main() -> int:
    """Print one line a variant and shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,8000,64000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", default="")
    parser.add_argument("--peers", default="", help="vllm, sglang, or both")
    parser.add_argument("--cap", type=float, default=30, help="CPU seconds that a peer is given")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    names = options.formats.split(",") if options.formats else list(VARIANTS)
    heads = " ".join(f"{size:>8}" for size in sizes)
    print(f"{'':24} {'shape':7} {heads}  growth  µs a delta  longest wait")
    slow = 0
    for name in names:
        fmt = variant(name)
        for shape in ("string", "array"):
            times: list[float] = []
            n, wait = 0, 0.0
            for size in sizes:
                seconds, n, wait = read(fmt, call(shape, size), options.rounds)
                times.append(seconds)
            growth = math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])
            each = times[-1] / n * 1e6
            note = " <-- slow" if growth > 1.1 or each > 15 else ""
            slow += bool(note)
            columns = " ".join(f"{seconds:8.4f}" for seconds in times)
            print(f"{name:24} {shape:7} {columns}  {growth:6.2f}  {each:10.1f}  {wait:12.0%}{note}")
    print(f"{slow} over 15 µs a delta or a growth of 1.1")
    packages = [package for package in options.peers.split(",") if package]
    if missing := [package for package in packages if not installed(package)]:
        print(f"not installed: {', '.join(missing)}", file=sys.stderr)
        return 1
    if packages:
        compared = [name for name in PEERS if {name, name.removesuffix("_direct")} & {*names}]
        compare(compared, packages, sizes[-1], options.rounds, options.cap)
    return 0


if __name__ == "__main__":
    sys.exit(main())
