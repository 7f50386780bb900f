"""How fast conversations become text, beside Jinja rendering each family's published template.

Renders one long made-up conversation with each family's Format and, in the same process and in
turns with it, with the published template as transformers renders it (compiled once, in its
immutable sandbox; in the plain one where the template changes lists).  Where a template cannot read
calls, the time includes what its caller does: writing them as text.  Every conversation is made of
new values for each round, so that nothing is known from the round before; ``pieces`` is the first
rendering with its pieces and their authors, of which a template tells nothing; ``next step`` is
that of the same run, a message later.  CPU seconds count, and the best of the rounds.  What was
rendered is held until it is pushed out; conversations are kept longer, as letting go of them is no
rendering.

Templates are read from installed packages and from the folder that ``ANTIPHON_TEMPLATES`` names;
see ``tests/formats/published.py``.  Families whose template is not found are left out.

    python bench/rendering.py [--turns N] [--rounds N] [--formats NAME,...]
"""

import argparse
import copy
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from jinja2.exceptions import SecurityError

from antiphon.formats import Format, get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats.format_cases import VARIANTS
from formats.published import PUBLISHED, Published, Template, given, template

_WORDS = (
    "ferry route harbour morning evening status timetable passenger weather island delay service "
    "ticket price crossing north south engine report running cancelled between after before"
)
WORDS = _WORDS.split()


_kept: deque[Conversation] = deque(maxlen=160)
"""Longer than any is held in rendering."""


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


def compare(name: str, n_turns: int, n_rounds: int) -> tuple[float, float, float, float]:
    """The template's, ours, ours with pieces, and our next step's best seconds of one variant.

    Raises:
        LookupError: The template is not found.
    """
    published = PUBLISHED[name]
    family, fields = VARIANTS[name]
    fmt = get_format(family, **fields)
    jinja = _template(published, conversation(1))
    times: list[tuple[float, float, float, float]] = []
    for seed in range(n_rounds):
        long, other = conversation(n_turns, seed), conversation(n_turns, n_rounds + seed)
        _kept.extend((long, other))
        longer = long.append(Message.user("And now?"))
        values = copy.deepcopy(given(replace(published, rows=None), long))
        fmt.render(conversation(1, seed), generate=True)  # loaded and warm
        theirs = seconds(partial(_jinja_text, published, jinja, values))
        ours = seconds(partial(_text, fmt, long))
        cut = seconds(partial(_pieces, fmt, other))
        times.append((theirs, ours, cut, seconds(partial(_text, fmt, longer))))
    theirs, ours, cut, step = zip(*times, strict=True)
    return min(theirs), min(ours), min(cut), min(step)


def _template(published: Published, tried: Conversation) -> Template:
    """The template, compiled and warm.

    Raises:
        LookupError: It is not found.
    """
    for immutable in (True, False):
        jinja = template(published, immutable=immutable)
        if jinja is None:
            raise LookupError(published.source)
        values = given(replace(published, rows=None), tried)
        try:
            _jinja_text(published, jinja, copy.deepcopy(values))
        except SecurityError:
            continue
        return jinja
    raise LookupError(published.source)


def _jinja_text(published: Published, jinja: Template, values: dict[str, Any]) -> str:
    if published.rows:
        published.rows(values["messages"])
    return jinja.render(add_generation_prompt=True, **values)


def _text(fmt: Format, conversation: Conversation) -> str:
    return fmt.render(conversation, generate=True).text


def _pieces(fmt: Format, conversation: Conversation) -> int:
    rendered = fmt.render(conversation, generate=True)
    return len(rendered.text) + len(rendered.pieces)


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
    heads = ("template", "ours", "ratio", "pieces", "next step", "ratio")
    print(f"{'':24} " + " ".join(f"{head:>9}" for head in heads))
    n_fast = n_all = 0
    for name in names:
        try:
            theirs, ours, cut, step = compare(name, options.turns, options.rounds)
        except LookupError as missing:
            print(f"{name:24} {missing.args[0]} is not installed")
            continue
        n_all += 1
        n_fast += theirs >= 5 * ours
        print(
            f"{name:24} {theirs * 1e3:6.2f} ms {ours * 1e3:6.2f} ms {theirs / ours:9.1f} "
            f"{cut * 1e3:6.2f} ms {step * 1e3:6.2f} ms {theirs / step:9.1f}",
            flush=True,
        )
    print(f"{n_fast} of {n_all} are written at least 5 times as fast the first time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
