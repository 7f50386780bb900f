"""Messages with headers: each part of an answer says in front where it goes (Harmony).

    <|channel|>analysis<|message|>reasoning<|end|><|start|>assistant<|channel|>final<|message|>text

`ChannelMessages` reads one such message: reasoning, text, or a call where the header names a
recipient.  Models write headers in several orders, double a mark and add words; the recipient and
the last channel count.
"""

import re
from dataclasses import dataclass
from functools import cache

from antiphon.formats._cursor import Malformed, Reading
from antiphon.formats._readers import read_arguments
from antiphon.formats._scan import Parser
from antiphon.formats._values import Emit, tail

START, CHANNEL, CONSTRAIN = "<|start|>", "<|channel|>", "<|constrain|>"
MESSAGE, END, CALL, RETURN = "<|message|>", "<|end|>", "<|call|>", "<|return|>"
_HEADS = (START, CHANNEL, MESSAGE, CONSTRAIN, "to=")
_TO = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_KNOWN = re.compile(r"<\|\w+\|>|\bto=\S+|\b(?:assistant|analysis|commentary|final|json|code)\b")
_NOBODY = {"all", "assistant", "user"}
_ENDS = (END, RETURN, CALL)
_STOPS = (START, CHANNEL)


@dataclass(frozen=True, slots=True)
class ChannelMessages:
    """Reads a header and what it is the header of."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (CALL, END, START)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not opened_by:
            text = (yield from c.peek(16)).lstrip()
            if not text.startswith(_HEADS):
                return
            c.keep(c.pos)
        header = opened_by
        if opened_by != MESSAGE:
            try:
                header += yield from c.until(MESSAGE)
            except Malformed:
                if "to=" in c.text[c.pos : c.pos + 512]:
                    raise
                p.text(c.kept())
                return
        to = _TO.search(header)
        if to is not None and to[1] not in _NOBODY:
            yield from self._call(p, to[1].removeprefix("functions."))
            return
        c.kept()
        said_text, said_reasoning = p.said
        thinks = "analysis" in _CHANNEL.findall(header)[-1:]
        emit, said = (p.think, said_reasoning) if thinks else (p.text, said_text)
        gap = "\n\n" if said else ""
        words = " ".join(_KNOWN.sub(" ", header).split())
        if words:
            emit(f"{gap}{words} ")
            gap = ""
        yield from release(p, emit, gap, ends=_ENDS, stops=_STOPS)

    def _call(self, p: Parser, name: str) -> Reading[None]:
        c = p.c
        p.call_begin()
        p.call_name(name)
        yield from read_arguments(p, end=CALL)
        yield from c.space()
        if not (yield from c.take_any(_ENDS)) and not (c.closed and c.pos >= len(c.text)):
            raise c.unexpected(f"{CALL!r} after the arguments")
        p.call_end()


def release(
    p: Parser, emit: Emit, gap: str, *, ends: tuple[str, ...], stops: tuple[str, ...]
) -> Reading[None]:
    """Give text on as it arrives, up to a mark.

    Args:
        p: The parser.
        emit: Takes the text.
        gap: What to give before it, if there is any.
        ends: Marks that end it and are consumed.
        stops: Marks that end it and stay.
    """
    c, search = p.c, _any_of((*ends, *stops))
    while True:
        found = search.search(c.text, c.pos)
        end = found.start() if found else len(c.text)
        if found is None and not c.closed:
            end -= max(tail(c.text, c.pos, mark) for mark in (*ends, *stops))
        piece = c.text[c.pos : end]
        if piece:
            emit(gap + piece)
            gap = ""
        c.pos = end
        if found is not None:
            c.pos += len(found.group()) if found.group() in ends else 0
            return
        if c.closed:
            return
        yield


@cache
def _any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, marks)))
