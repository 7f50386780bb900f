"""Every text that ms-swift 4.6 makes of the shared conversations, held against ours.

The record has what must be replaced in our text to have its own, so that it holds each byte of
both; `docs/why/ms-swift.md` counts what is the same and names what differs, and is held to it.
"""

import re
from collections import Counter, defaultdict
from functools import cache
from itertools import chain, cycle, groupby, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from antiphon.encode import Encoder, FastTokenizer
from antiphon.formats import Format, Rendered
from antiphon.messages import Conversation, Message
from encode.swift import (
    NO_FORMAT,
    REFUSED,
    conversations,
    digest,
    format_of,
    head_of,
    kind_of,
    own_text,
    recorded,
    replaced,
    without_end,
)

PAGE = Path(__file__).parents[2] / "docs" / "why" / "ms-swift.md"
RECORD: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _entry in recorded():
    RECORD[_entry["template"]].append(_entry)
CONVERSATIONS = conversations()


class Row(NamedTuple):
    """What the page says of templates."""

    n_same: int
    n: int
    kinds: frozenset[str]


@cache
def rows_of_page() -> dict[tuple[str, ...], Row]:
    """The table of the page, by the templates that a row is of."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    table: dict[tuple[str, ...], Row] = {}
    for line in lines:
        names, same, kinds = (cell.strip() for cell in line.split("|")[1:4])
        counts = re.fullmatch(r"(\d+) of (\d+)", same)
        n_same, n = map(int, counts.groups()) if counts else (0, 0)
        named = frozenset(kinds.split("; ")) if kinds else frozenset[str]()
        table[tuple(re.findall(r"`(\w+)`", names))] = Row(n_same, n, named)
    return table


def kinds_of(template: str) -> Counter[str]:
    """What differs in a template's texts."""
    kinds: Counter[str] = Counter()
    for entry in RECORD[template]:
        conversation = CONVERSATIONS[entry["conversation"]]
        ours = own_text(template, conversation)
        if ours is None:
            kinds[REFUSED] += 1
            continue
        head = head_of(conversation, ours)
        kinds.update(kind_of(ours, hunk, head) for hunk in entry["hunks"])
    return kinds


@pytest.mark.parametrize("template", RECORD)
def test_a_text_with_its_differences_replaced_is_ms_swifts(template: str) -> None:
    for entry in RECORD[template]:
        ours = own_text(template, CONVERSATIONS[entry["conversation"]])

        if entry["hunks"] is None:
            assert ours is None
        else:
            assert ours is not None
            assert digest(replaced(ours, entry["hunks"])) == entry["text"]


@pytest.mark.parametrize("names", rows_of_page(), ids="+".join)
def test_the_page_counts_what_is_the_same_and_names_what_differs(names: tuple[str, ...]) -> None:
    said = rows_of_page()[names]

    entries = [entry for name in names for entry in RECORD.get(name, [])]
    kinds = frozenset(chain.from_iterable(kinds_of(name) for name in names if name in RECORD))
    n_same = sum(entry["hunks"] == [] for entry in entries)

    assert said == Row(n_same, len(entries), kinds)


def test_the_page_has_every_template_once() -> None:
    named = Counter(chain.from_iterable(rows_of_page()))

    assert named == Counter([*RECORD, *NO_FORMAT])
    assert len(RECORD) >= 43
    assert sum(map(len, RECORD.values())) >= 500


EQUAL = [entry for entry in chain.from_iterable(RECORD.values()) if entry["hunks"] == []]
WITH_IDS = [
    entry
    for entry in EQUAL
    if "ids" in entry
    and format_of(entry["template"]).render(CONVERSATIONS["plain_no_tools"], generate=True).start
    != "reasoning"  # there the server writes a line feed that ms-swift joins to the model's
]


def test_the_tokens_of_an_equal_text_are_ms_swifts(
    qwen2_5: FastTokenizer, qwen3: FastTokenizer
) -> None:
    """Where its weights do not change them."""
    known = {"qwen2_5": qwen2_5, "qwen3": qwen3}
    n = 0
    for entry in WITH_IDS:
        encoder = Encoder(known[entry["tokenizer"]], format_of(entry["template"]))

        examples = encoder.encode_all(CONVERSATIONS[entry["conversation"]])
        if len(examples) > 1:  # a history that is rewritten: none of them may be the whole text
            continue
        n += 1

        ids = examples[0].token_ids.tolist()

        assert digest(without_end(ids)) == entry["ids"], entry["template"]
    assert n >= 50


def test_labels_differ_in_what_servers_write_and_in_the_end_of_a_turn(
    qwen3: FastTokenizer,
) -> None:
    """ms-swift trains marks that stand in every prompt, and of many turns not the end.

    A family that rewrites its history, or whose prompt opens a thought, trains turns in other
    texts; those are not compared, nor is the conversation whose text and call are of one message
    and weigh differently.
    """
    encoders: dict[str, Encoder] = {}
    n = 0
    for entry in EQUAL:
        template, conversation = entry["template"], CONVERSATIONS[entry["conversation"]]
        if template not in encoders:
            encoders[template] = Encoder(qwen3, format_of(template))
        encoder = encoders[template]
        examples = encoder.encode_all(conversation)
        rendered = encoder.format.render(conversation)
        text = encoder.tokenizer.decode(examples[0].token_ids.tolist())
        is_whole = text.rstrip("\n") == rendered.text.rstrip("\n")
        if len(examples) > 1 or not is_whole or entry["conversation"] == "loss_flags":
            continue
        ours = [
            bool(weight)
            for token, weight in zip(
                examples[0].token_ids.tolist(), examples[0].loss_weights.tolist(), strict=True
            )
            for _ in encoder.tokenizer.token_bytes(token)
        ]
        theirs = [*chain.from_iterable(map(repeat, cycle([False, True]), entry["trained"]))]
        written, ends = _written(rendered, _end_of(encoder.format))
        n += 1

        pairs = [*enumerate(zip(ours, theirs, strict=False))]
        assert not {i for i, (a, b) in pairs if b > a} & written, entry
        assert {i for i, (a, b) in pairs if a > b} <= ends, entry
    assert n >= 70


def _end_of(fmt: Format) -> str:
    """What a model writes behind an answer."""
    asked = (Message.user("?"), Message.assistant("(answer)"))
    pieces = fmt.render(Conversation(asked)).pieces
    written = "".join(piece.text for piece in pieces if piece.author == "written")
    return written.partition("(answer)")[2]


def _written(rendered: Rendered, end: str) -> tuple[set[int], set[int]]:
    """The bytes that a model wrote, and of those the ones that end a turn."""
    written: set[int] = set()
    ends: set[int] = set()
    at = 0
    pieces = [(p.text, p.message if p.author == "written" else None) for p in rendered.pieces]
    for message, group in groupby(pieces, key=itemgetter(1)):
        text = "".join(text for text, _ in group)
        begin, at = at, at + len(text.encode())
        if message is not None:
            written.update(range(begin, at))
            same = end
            while not text.endswith(same):  # an answer may close more than a call does
                same = same[1:]
            ends.update(range(at - len(same.encode()), at))
    return written, ends
