"""Every call of the Berkeley Function-Calling data is written and read back by every family."""

import os
import random
from typing import cast

import pytest

from antiphon.errors import RenderError
from antiphon.formats._family import Family
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats import bfcl
from formats.format_cases import VARIANTS, parse, variant, written

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bfcl.folder() is None, reason="bfcl-eval is not installed"),
]

N_CALLS = 3732  # without doubles, of 7,927; 58 of those do not fit their own schemas
ONE_CALL = {
    "llama3_2",
    "gpt_oss",
    "pythonic",
    "gigachat3",
    "gigachat3_1",
}  # families whose turns hold one call

ALL = os.environ.get("ANTIPHON_BFCL") == "all"
_READ: set[tuple[int, int]] = set()  # what was read right, as families share tables and texts


def _chunks(text: str, rng: random.Random) -> list[str]:
    chunks: list[str] = []
    at = 0
    while at < len(text):
        size = rng.randint(1, 24)
        chunks.append(text[at : at + size])
        at += size
    return chunks


def _fails(fmt: Family, answer: Message, tools: tuple[ToolSpec, ...], rng: random.Random) -> str:
    """What is wrong with the round trip of a message; ``""`` if nothing is."""
    try:
        rendered = fmt.render(Conversation((Message.user("Go."), answer), tools))
    except RenderError as error:
        return f"refused: {error}"
    text, start = written(rendered, 1, fmt)
    read = hash((fmt.syntax, start, text)), hash(repr(tools))
    if read in _READ:
        return ""
    cuts = (list(text), _chunks(text, rng)) if ALL or rng.random() < 0.1 else ()
    for chunks in ([text], *cuts):
        message, _ = parse(fmt, chunks, tools=tools, start=start, strict=True)
        if message.without_ids().tool_calls != answer.tool_calls or message.text:
            return f"read as {message!r}"
    _READ.add(read)
    return ""


def _answers(name: str) -> list[tuple[Message, tuple[ToolSpec, ...]]]:
    """The messages of the data; a call each for families that write one."""
    if name not in ONE_CALL:
        return list(bfcl.answers())
    return [
        (Message.assistant(tool_calls=[call]), tools)
        for message, tools in bfcl.answers()
        for call in message.tool_calls
    ]


def _called(calls: tuple[ToolCall, ...], tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    names = {call.name for call in calls}
    return tuple(spec for spec in tools if spec.name in names)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_call_is_read_back(name: str) -> None:
    """Whole, and one in ten (all with ``ANTIPHON_BFCL=all``: ten minutes) by characters and in
    random chunks; with nothing mended."""
    fmt, rng = cast("Family", variant(name)), random.Random(name)
    failed: list[str] = []
    n_calls = 0
    for answer, tools in _answers(name):
        n_calls += len(answer.tool_calls)
        problem = _fails(fmt, answer, _called(answer.tool_calls, tools), rng)
        if problem:
            failed.append(f"{answer.tool_calls}: {problem}")

    assert (n_calls, failed) == (N_CALLS, [])
