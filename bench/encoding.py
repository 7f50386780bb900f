"""How fast conversations become tokens, labels and weights, beside the tokenizer alone.

Encodes made-up rows with the `Encoder` (render, encode, label, weigh) and, in the same process and
in turns with it, the same final texts with the engine's own `encode_batch`, which knows no labels.
CPU seconds count, and the best of the rounds: what else the machine does can only slow a round.
Two kinds of rows: short ones of about 900 tokens with two answers, and trajectories of about 3,500
tokens with thirteen; each once with tools of its own in every row, once with tools that all share.

    python bench/encoding.py [--rounds N] [--rows N] [--format NAME] [--loss POLICY]
"""

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers

from antiphon.encode import Encoder, FastTokenizer, load_tokenizer
from antiphon.formats import get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec

WORDS = [
    "ferry",
    "route",
    "harbour",
    "morning",
    "evening",
    "status",
    "timetable",
    "passenger",
    "weather",
    "island",
    "delay",
    "service",
    "ticket",
    "price",
    "crossing",
    "north",
    "south",
    "engine",
    "report",
    "running",
    "cancelled",
    "between",
    "after",
    "before",
]


def sentence(rng: random.Random, n: int) -> str:
    """A made-up sentence of `n` words."""
    return " ".join(rng.choice(WORDS) for _ in range(n)).capitalize() + "."


def tool(rng: random.Random, name: str) -> ToolSpec:
    """A made-up tool with two parameters."""
    properties = {
        key: {"type": "string", "description": sentence(rng, 6)} for key in rng.sample(WORDS, 2)
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(name, sentence(rng, 8), schema)


def conversation(rng: random.Random, tools: Sequence[ToolSpec], n_calls: int) -> Conversation:
    """A question, `n_calls` calls with their results, and an answer."""
    messages = [Message.system(sentence(rng, 20)), Message.user(sentence(rng, 30))]
    for i in range(n_calls):
        spec = rng.choice(tools)
        arguments: dict[str, Any] = {k: sentence(rng, 4) for k in spec.parameters["properties"]}
        text = sentence(rng, 20)
        made = ToolCall(spec.name, arguments, f"c{i}")
        messages.append(Message.assistant(text, tool_calls=[made]))
        result = f'{{"ok": true, "report": "{sentence(rng, 150)}"}}'
        messages.append(Message.tool(result, call_id=made.id, name=spec.name))
    messages.append(Message.assistant(sentence(rng, 60)))
    return Conversation(tuple(messages), tuple(tools))


def rows(n: int, n_calls: int, *, shared: bool) -> list[Conversation]:
    """Made-up rows, the same in every run."""
    rng = random.Random(7)
    common = [tool(rng, f"tool_{i}") for i in range(5)]
    made: list[Conversation] = []
    for row in range(n):
        tools = common if shared else [tool(rng, f"tool_{row}_{i}") for i in range(5)]
        made.append(conversation(rng, tools, n_calls))
    return made


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
    made: Sequence[Conversation], engine: tokenizers.Tokenizer, encoder: Encoder
) -> tuple[int, list[float]]:
    """Tokens, and the CPU seconds of the engine, of rendering, and of the encoder."""
    texts = [encoder.format.render(c).text for c in made]
    raw = cpu_seconds(lambda: engine.encode_batch(texts, add_special_tokens=False))
    render = cpu_seconds(lambda: [encoder.format.render(c) for c in made])
    n_tokens = 0
    began = time.process_time()
    for examples in encoder.encode_many(made):
        n_tokens += sum(map(len, examples))
    return n_tokens, [raw, render, time.process_time() - began]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=300, help="short rows; a tenth of it long ones")
    parser.add_argument("--format", default="qwen2_5")
    parser.add_argument("--loss", default="default")
    args = parser.parse_args()
    tokenizer = load_tokenizer("qwen2_5")
    engine, fmt = whole(tokenizer), get_format(args.format)
    print(f"{'rows':<24}{'tokens':>8}{'encode_batch':>14}{'render':>9}{'Encoder':>12}{'ratio':>7}")
    for label, n, n_calls in (("short", args.rows, 1), ("long", args.rows // 10, 12)):
        for shared in (False, True):
            made = rows(n, n_calls, shared=shared)
            rounds = [
                one_round(made, engine, Encoder(tokenizer, fmt, loss=args.loss))
                for _ in range(args.rounds)
            ]
            n_tokens = rounds[0][0]
            raw, render, ours = (min(took[i] for _, took in rounds) for i in range(3))
            name = f"{label}, {'shared' if shared else 'own'} tools"
            print(
                f"{name:<24}{n_tokens / n:>8.0f}{n_tokens / raw:>12,.0f}/s{render:>8.3f}s"
                f"{n_tokens / ours:>10,.0f}/s{raw / ours:>7.2f}"
            )


if __name__ == "__main__":
    main()
