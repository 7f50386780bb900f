"""How fast conversations become text, beside Jinja rendering each family's published template.

Renders one long made-up conversation with each family's Format and, in the same process and in
turns with it, with the published template as transformers renders it (compiled once).  Every
conversation is made of new values for each round, so that nothing is known from the round before;
the second number of ours is the next step of the same run, two messages later.  CPU seconds count,
and the best of the rounds.

Templates are read from installed packages and from the folder that ``ANTIPHON_TEMPLATES`` names;
see ``tests/formats/published.py``.  Families whose template is not found are left out.

    python bench/rendering.py [--turns N] [--rounds N] [--formats NAME,...]
"""

import argparse
import copy
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from antiphon.formats import Format, get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats.format_cases import VARIANTS
from formats.published import PUBLISHED, given, template

_WORDS = (
    "ferry route harbour morning evening status timetable passenger weather island delay service "
    "ticket price crossing north south engine report running cancelled between after before"
)
WORDS = _WORDS.split()


def sentence(rng: random.Random, n: int) -> str:
    """A made-up sentence of `n` words."""
    return " ".join(rng.choice(WORDS) for _ in range(n)).capitalize() + "."


def tools(rng: random.Random) -> tuple[ToolSpec, ...]:
    """Five made-up tools."""
    found: list[ToolSpec] = []
    for i in range(5):
        properties = {
            key: {"type": "string", "description": sentence(rng, 6)} for key in WORDS[i : i + 3]
        }
        schema = {"type": "object", "properties": properties, "required": [WORDS[i]]}
        found.append(ToolSpec(f"tool_{i}", sentence(rng, 8), schema))
    return tuple(found)


def conversation(n_turns: int, seed: int = 0) -> Conversation:
    """`n_turns` times a question, a call, its result and an answer."""
    rng = random.Random(seed)
    offered = tools(rng)
    messages = [Message.system(sentence(rng, 20))]
    for i in range(n_turns):
        spec = rng.choice(offered)
        arguments: dict[str, Any] = {k: sentence(rng, 4) for k in spec.parameters["properties"]}
        call = ToolCall(spec.name, arguments, f"c{i:08}")
        messages += [
            Message.user(sentence(rng, 12)),
            Message.assistant(tool_calls=[call]),
            Message.tool(f'{{"ok": true, "n": {i}}}', call_id=call.id, name=call.name),
            Message.assistant(sentence(rng, 15)),
        ]
    return Conversation(tuple(messages), offered)


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one run."""
    began = time.process_time()
    work()
    return time.process_time() - began


def compare(name: str, n_turns: int, n_rounds: int) -> tuple[float, float, float]:
    """The template's, ours, and our next step's best seconds of one variant.

    Raises:
        LookupError: The template is not found.
    """
    published = PUBLISHED[name]
    jinja = template(published)
    if jinja is None:
        raise LookupError(published.source)
    family, fields = VARIANTS[name]
    fmt = get_format(family, **fields)
    times: list[tuple[float, float, float]] = []
    for seed in range(n_rounds):
        long = conversation(n_turns, seed)
        longer = long.append(Message.user("And now?"))
        values = copy.deepcopy(given(published, long))
        fmt.render(conversation(1, seed), generate=True)  # loaded and warm
        theirs = seconds(partial(jinja.render, add_generation_prompt=True, **values))
        ours = seconds(partial(_text, fmt, long))
        times.append((theirs, ours, seconds(partial(_text, fmt, longer))))
    theirs, ours, step = zip(*times, strict=True)
    return min(theirs), min(ours), min(step)


def _text(fmt: Format, conversation: Conversation) -> str:
    return fmt.render(conversation, generate=True).text


def main() -> int:
    """Print one line a variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", default="")
    options = parser.parse_args()
    names = (
        options.formats.split(",") if options.formats else [n for n in PUBLISHED if n in VARIANTS]
    )
    print(f"{'':24} {'template':>10} {'ours':>10} {'ratio':>6} {'next step':>10} {'ratio':>6}")
    for name in names:
        try:
            theirs, ours, step = compare(name, options.turns, options.rounds)
        except LookupError as missing:
            print(f"{name:24} {missing.args[0]} is not installed")
            continue
        print(
            f"{name:24} {theirs * 1e3:7.2f} ms {ours * 1e3:7.2f} ms {theirs / ours:6.1f} "
            f"{step * 1e3:7.2f} ms {theirs / step:6.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
