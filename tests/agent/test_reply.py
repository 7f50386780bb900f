"""A reply that breaks off and begins anew: nothing is shown twice, what no longer holds is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.agent import Agent
from antiphon.agent._reply import DIFFERS, Reply
from antiphon.events import RetryEvent, TextEvent, ThinkingEvent, Trajectory
from antiphon.messages import (
    Completion,
    Conversation,
    Delta,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from antiphon.models import ModelOutput, ModelSettings, ReplayModel, Retry


@dataclass
class Breaking:
    """A model whose stream breaks, by script."""

    outputs: Sequence[ModelOutput]
    spec: str = "breaking"

    async def stream(self, conversation: Conversation, settings: ModelSettings | None = None):
        for output in self.outputs:
            yield output

    async def close(self) -> None:
        return None


def told(outputs: Sequence[ModelOutput]) -> list[tuple[Any, ...]]:
    """What a run tells of a reply: pieces, and what to discard."""
    return _told(Agent(model=Breaking(outputs)).run_sync("go").trajectory)


def _told(run: Trajectory) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for event in run.events:
        match event:
            case RetryEvent(reason=reason, discard_chars=n):
                rows.append(("retry", reason, n))
            case TextEvent() | ThinkingEvent():
                rows.append((event.type, event.text))
            case _:
                pass
    return rows


def test_text_that_a_restarted_reply_repeats_is_not_told_again() -> None:
    outputs = [
        ThinkingDelta("Hm."),
        TextDelta("one two"),
        Retry("cut", 0.5),
        ThinkingDelta("Hm"),
        ThinkingDelta("."),
        TextDelta("one "),
        TextDelta("two three"),
        Completion(Message.assistant("one two three", reasoning="Hm."), "stop"),
    ]

    assert told(outputs) == [
        ("thinking_delta", "Hm."),
        ("text_delta", "one two"),
        ("retry", "cut", 0),
        ("text_delta", " three"),
    ]


@pytest.mark.parametrize("again", ["one four", "one"])
def test_what_a_restarted_reply_does_not_repeat_is_discarded(again: str) -> None:
    outputs = [
        TextDelta("one two"),
        Retry("cut", 0.5),
        *(TextDelta(c) for c in again),
        Completion(Message.assistant(again), "stop"),
    ]

    rows = told(outputs)

    assert rows[2] == ("retry", DIFFERS, 7)
    assert "".join(row[1] for row in rows[3:]) == again


def _pieces(text: str, size: int, shift: int, with_call: bool) -> list[Delta]:
    """A reply in pieces, some of them reasoning."""
    pieces: list[Delta] = []
    for at in range(0, len(text), size):
        kind = ThinkingDelta if (at // size + shift) % 3 == 0 else TextDelta
        pieces.append(kind(text[at : at + size]))
    return [*pieces, ToolCallDelta(0, name="add")] if with_call else pieces


@given(
    st.lists(st.text("ab", max_size=5), min_size=1, max_size=4),
    st.integers(1, 3),
    st.booleans(),
)
def test_whoever_obeys_the_events_has_the_whole_reply(
    tries: list[str], size: int, with_call: bool
) -> None:
    replies = [_pieces(text, size, n, with_call) for n, text in enumerate(tries)]
    reply, shown, n_calls = Reply(0), list[tuple[str, str]](), 0
    for n, pieces in enumerate(replies):
        told = [event for piece in pieces for event in reply.events(piece, 0.0)]
        told += reply.end(0.0) if n == len(replies) - 1 else reply.events(Retry("cut"), 0.0)
        for event in told:
            match event:
                case RetryEvent(discard_chars=n):
                    assert n in (0, sum(len(text) for _, text in shown))
                    shown, n_calls = (shown if n == 0 else []), 0
                case TextEvent() | ThinkingEvent():
                    shown.append((event.type, event.text))
                case _:
                    n_calls += 1

    for kind, type in ((TextDelta, "text_delta"), (ThinkingDelta, "thinking_delta")):
        said = "".join(piece.text for piece in replies[-1] if isinstance(piece, kind))
        assert "".join(text for t, text in shown if t == type) == said
    assert n_calls == with_call


def test_a_run_with_a_restarted_reply_replays_as_it_was() -> None:
    for again in ("one two three", "one four"):
        answer = Completion(Message.assistant(again), "stop")
        outputs = [TextDelta("one two"), Retry("cut"), TextDelta(again), answer]
        run = Agent(model=Breaking(outputs)).run_sync("go").trajectory

        replayed = Agent(model=ReplayModel(run)).run_sync("go").trajectory

        assert _told(replayed) == _told(run)
