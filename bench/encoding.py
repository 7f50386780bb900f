"""How fast conversations become tokens, labels and weights, beside the tokenizer alone.

Encodes made-up rows with the `Encoder` (render, encode, label, weigh) and, in the same process and
in turns with it, the texts that came out with the engine's own `encode_batch`, which knows no
labels.  CPU seconds count, and the best of the rounds: what else the machine does can only slow a
round.  A family that rewrites its history gives several examples of a row; the engine is given the
text of each, so that the ratio is per token written.  The words are made up, 20,000 of them, as
often as words of a language are; among them stand numbers, ids that never come again, and names
beyond ASCII.

    python bench/encoding.py [--rounds N] [--rows N] [--format NAME ...] [--loss POLICY]
    python bench/encoding.py --processes [--rows N]    a file with one process and with two
    python bench/encoding.py --memory ROWS [COMMAND ...]  what the commands hold over so many rows
"""

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, cast

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers

from antiphon.datasets import iter_lines, read_line, write_row
from antiphon.encode import (
    EncodeJob,
    Encoder,
    FastTokenizer,
    encode_file,
    load_tokenizer,
)
from antiphon.formats import Format, get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec

N_WORDS = 20_000
NAMES = ["Oslo", "Lima", "Zürich", "São Paulo", "北京", "Łódź", "Tromsø", "Kyoto"]
TOKENIZERS = {"qwen2_5": "qwen2_5", "qwen3": "qwen3"}


@cache
def words() -> tuple[list[str], list[float]]:
    """Made-up words, and how often each and those before it are taken, by Zipf's law."""
    rng = random.Random(3)
    parts = [c + v for c in "bcdfglmnprstvw" for v in ("a", "e", "i", "o", "u", "er", "in", "al")]
    made = {"".join(rng.choices(parts, k=rng.choice([1, 2, 2, 3, 4]))) for _ in range(3 * N_WORDS)}
    chosen = sorted(made)[:: max(1, len(made) // N_WORDS)][:N_WORDS]
    rng.shuffle(chosen)
    return chosen, list(accumulate(1 / rank for rank in range(1, len(chosen) + 1)))


def sentence(rng: random.Random, n: int) -> str:
    """A made-up sentence of `n` words."""
    known, often = words()
    said = rng.choices(known, cum_weights=often, k=n)
    if rng.random() < 0.2:
        said[rng.randrange(n)] = rng.choice(NAMES)
    return " ".join(said).capitalize() + "."


def tool(rng: random.Random, name: str) -> ToolSpec:
    """A made-up tool with two parameters."""
    properties = {
        key: {"type": "string", "description": sentence(rng, 6)}
        for key in rng.sample(words()[0], 2)
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(name, sentence(rng, 8), schema)


def result(rng: random.Random, n: int) -> str:
    """What a made-up tool gives back: `n` records."""
    records = [
        {
            "id": f"{rng.getrandbits(48):012x}",
            "name": rng.choice(NAMES),
            "value": round(rng.random() * 1000, 2),
            "note": sentence(rng, 8),
        }
        for _ in range(n)
    ]
    return json.dumps(records, ensure_ascii=False)


def conversation(
    rng: random.Random, tools: Sequence[ToolSpec], steps: Sequence[int]
) -> Conversation:
    """Questions with as many calls as `steps` says of each, their results, and answers."""
    messages = [Message.system(sentence(rng, 20))]
    for n_calls in steps:
        messages.append(Message.user(sentence(rng, 30)))
        for i in range(n_calls):
            spec = rng.choice(tools)
            arguments: dict[str, Any] = {k: sentence(rng, 4) for k in spec.parameters["properties"]}
            made = ToolCall(spec.name, arguments, f"c{len(messages)}_{i}")
            thought = sentence(rng, 20)
            messages.append(Message.assistant("", reasoning=thought, tool_calls=[made]))
            messages.append(Message.tool(result(rng, 4), call_id=made.id, name=spec.name))
        messages.append(Message.assistant(sentence(rng, 40), reasoning=sentence(rng, 15)))
    return Conversation(tuple(messages), tuple(tools))


def rows(n: int, steps: Sequence[int], *, shared: bool) -> list[Conversation]:
    """Made-up rows, the same in every run."""
    rng = random.Random(7)
    common = [tool(rng, f"tool_{i}") for i in range(3)]
    made: list[Conversation] = []
    for row in range(n):
        tools = common if shared else [tool(rng, f"tool_{row}_{i}") for i in range(3)]
        made.append(conversation(rng, tools, steps))
    return made


def without_reasoning(made: Sequence[Conversation], fmt: Format) -> list[Conversation]:
    """The rows as a family that cannot reason is given them."""
    if any(mark in getattr(fmt, "specials", ()) for mark in ("<think>", "</think>")):
        return list(made)
    return [
        Conversation(
            tuple(
                Message.assistant(m.text, tool_calls=m.tool_calls) if m.role == "assistant" else m
                for m in c.messages
            ),
            c.tools,
        )
        for c in made
    ]


def whole(tokenizer: FastTokenizer) -> tokenizers.Tokenizer:
    """The engine as a server has it, with the marks among its added tokens."""
    engine = tokenizers.Tokenizer.from_str(tokenizer.engine_json())
    added = [tokenizers.AddedToken(mark, normalized=False) for mark in tokenizer.marks]
    cast("Any", engine).add_tokens(added)
    return engine


def cpu_seconds(work: Callable[[], object]) -> float:
    """What a piece of work costs."""
    began = time.process_time()
    work()
    return time.process_time() - began


def one_round(
    made: Sequence[Conversation],
    texts: Sequence[str],
    engine: tokenizers.Tokenizer,
    encoder: Encoder,
) -> list[float]:
    """The CPU seconds of the engine, of rendering once, and of the encoder that begins anew."""
    raw = cpu_seconds(lambda: engine.encode_batch(list(texts), add_special_tokens=False))
    render = cpu_seconds(lambda: [encoder.format.render(c) for c in made])
    ours = cpu_seconds(lambda: [*encoder.encode_many(made)])
    return [raw, render, ours]


def compare(args: argparse.Namespace) -> None:
    """The table of ratios."""
    print(
        f"{'family, rows':<32}{'examples':>9}{'tokens':>8}{'encode_batch':>14}{'render':>9}"
        f"{'Encoder':>13}{'ratio':>7}"
    )
    for name in args.format:
        fmt = get_format(name)
        tokenizer = load_tokenizer(TOKENIZERS.get(name, "qwen2_5"))
        engine = whole(tokenizer)
        for label, n, steps in (("short", args.rows, [1]), ("long", args.rows // 8, [3, 4, 3])):
            for shared in (False, True):
                made = without_reasoning(rows(n, steps, shared=shared), fmt)
                warm = Encoder(tokenizer, fmt, loss=args.loss)
                out = [e for group in warm.encode_many(made) for e in group]
                texts = [tokenizer.decode(e.token_ids.tolist()) for e in out]
                took = [
                    one_round(made, texts, engine, fresh(tokenizer, fmt, args.loss))
                    for _ in range(args.rounds)
                ]
                raw, render, ours = (min(t[i] for t in took) for i in range(3))
                n_tokens = sum(map(len, out))
                row = f"{name}, {label}, {'shared' if shared else 'own'} tools"
                print(
                    f"{row:<32}{len(out) / n:>9.1f}{n_tokens / len(out):>8.0f}"
                    f"{n_tokens / raw:>12,.0f}/s{render:>8.3f}s{n_tokens / ours:>11,.0f}/s"
                    f"{raw / ours:>7.2f}"
                )


def fresh(tokenizer: FastTokenizer, fmt: Format, loss: str) -> Encoder:
    """An encoder that has seen no word yet."""
    return Encoder(load_tokenizer(tokenizer.source), fmt, loss=loss)


def write_rows(path: Path, made: Sequence[Conversation], n: int) -> None:
    """A file of `n` rows, those of `made` again and again."""
    lines = [json.dumps(write_row(c)[0]) + "\n" for c in made]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines[i % len(lines)] for i in range(n))


def job() -> EncodeJob:
    """How the files here are encoded."""
    return EncodeJob(tokenizer="qwen2_5", format=get_format("qwen2_5"), read=read_line)


def encode_alone(path: Path, out: Path) -> None:
    """A file with one process, and that is all."""
    encode_file(job(), iter_lines(path), out, processes=1)


def apart(path: Path, folder: Path) -> float:
    """How long two runs take at once that share nothing but the machine, in seconds."""
    runs = [
        multiprocessing.get_context("spawn").Process(
            target=encode_alone, args=(path, folder / str(i))
        )
        for i in range(2)
    ]
    began = time.perf_counter()
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    return time.perf_counter() - began


def processes(args: argparse.Namespace) -> None:
    """A file with one process, with two, and twice by one process each, in turns."""
    n = args.rows * 50
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        made = without_reasoning(rows(args.rows, [1], shared=False), job().format)
        write_rows(path, made, n)
        size = path.stat().st_size / 1e6
        print(f"{n:,} rows, {size:,.0f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        best: dict[int, float] = {}
        for round_ in range(args.rounds):
            for n_processes in (1, 2):
                out = Path(folder) / f"out{round_}_{n_processes}"
                spent = [sum(os.times()[:2]), sum(os.times()[2:4])]
                began = time.perf_counter()
                report = encode_file(job(), iter_lines(path), out, processes=n_processes)
                wall = time.perf_counter() - began
                here = sum(os.times()[:2]) - spent[0]
                there = sum(os.times()[2:4]) - spent[1]
                best[n_processes] = min(best.get(n_processes, wall), wall)
                print(
                    f"{n_processes} processes: {wall:6.1f} s, {report.n_tokens / wall:>11,.0f} "
                    f"tokens/s; CPU: {here:.1f} s here, {there:.1f} s in the others"
                )
            wall = apart(path, Path(folder) / f"apart{round_}")
            best[0] = min(best.get(0, wall), wall)
            print(f"two runs of one process, at once: {wall:6.1f} s")
        print(
            f"two are {best[1] / best[2]:.2f} times as fast as one; two runs that share nothing "
            f"do {2 * best[1] / best[0]:.2f} times what one does, which is what the machine gives"
        )


def resident(process: int) -> float:
    """What a process holds, in MB (Linux)."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak(process: int) -> float:
    """The most that a process has held, in MB (Linux)."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def long_rows(n: int) -> Iterator[bytes]:
    """Short rows with a call each, no two alike."""
    rng = random.Random(7)
    spec = tool(rng, "tool")
    made: list[bytes] = []
    for _ in range(500):
        arguments: dict[str, Any] = {key: sentence(rng, 3) for key in spec.parameters["properties"]}
        said = (
            Message.user(f"@{sentence(rng, 6)}"),
            Message.assistant("", tool_calls=[ToolCall(spec.name, arguments, "c")]),
            Message.tool("@", call_id="c", name=spec.name),
            Message.assistant(sentence(rng, 6)),
        )
        made.append(json.dumps(write_row(Conversation(said, (spec,)))[0]).encode() + b"\n")
    for i in range(n):
        yield made[i % len(made)].replace(b"@", b"%x " % (i * 0x9E3779B1 & 0xFFFFFFFF))


def memory(args: argparse.Namespace) -> None:
    """What the commands hold while a long file goes through them.

    Rows are written to a command's stdin as it reads them, so that how far it has come is known.
    """
    tenth = max(1, args.memory // 10)
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "data check": ["data", "check", "-"],
            "data check --fix": ["data", "check", "-", "--fix", os.devnull],
            "data convert": ["data", "convert", "-", os.devnull, "--to", "openai"],
            "data dedupe": ["data", "dedupe", "-", os.devnull],
            "encode": f"encode - --tokenizer qwen2_5 --format qwen2_5 --out {folder}/out".split(),
        }
        for name in args.commands or commands:
            held: list[float] = []
            began = time.perf_counter()
            with subprocess.Popen(
                [sys.executable, "-m", "antiphon", *commands[name]],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            ) as command:
                to = cast("IO[bytes]", command.stdin)
                for i, row in enumerate(long_rows(args.memory), start=1):
                    to.write(row)
                    if i % tenth == 0:
                        to.flush()
                        held.append(resident(command.pid))
                most = peak(command.pid)
                to.close()
            took = time.perf_counter() - began
            print(
                f"{name:<18}{args.memory:>10,} rows in {took:6.0f} s, MB held at each tenth: "
                + " ".join(f"{mb:.0f}" for mb in held)
                + f"; at most {most:.0f}; exit {command.returncode}",
                flush=True,
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=400, help="short rows; long: an eighth")
    parser.add_argument("--format", nargs="+", default=["qwen2_5", "qwen3"])
    parser.add_argument("--loss", default="default")
    parser.add_argument("--processes", action="store_true", help="one process and two")
    parser.add_argument("--memory", type=int, metavar="ROWS", help="what commands hold")
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help="those of --memory; all")
    args = parser.parse_args()
    if args.processes:
        processes(args)
    elif args.memory:
        memory(args)
    else:
        compare(args)


if __name__ == "__main__":
    main()
