"""What a family's assistant text looks like, as a table, and the table made ready for scanning.

A `Syntax` says which marks open reasoning and calls; `_scan.py` is the parser that runs on it.
What is worked out of a table, patterns and the beginnings of marks, is worked out once.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from antiphon.formats._cursor import Reading

if TYPE_CHECKING:
    from antiphon.formats._scan import Parser


class Reader(Protocol):
    """Reads what stands in a block of calls, from behind its opening mark."""

    @property
    def resync(self) -> tuple[str, ...]:
        """Marks at which content goes on after a malformed call; the first one is consumed with
        it."""
        ...

    def read(self, p: "Parser", opened_by: str) -> Reading[None]:
        """Read the block and its closing mark; report through `p`'s ``call_*`` methods."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """A region that holds calls."""

    open: str
    """The mark that opens it."""
    reader: Reader
    """What reads it."""
    before: str = ""
    """White space that the family writes between text and the mark; not part of the text."""
    line_start: bool = False
    """Whether the mark counts only at the start of a line."""
    token: bool = False
    """Whether the mark is one token of the vocabulary: then it counts inside reasoning, too,
    wherever it stands."""
    lost: bool = False
    """Whether this is what calls look like that lost the family's mark: it counts at the start of
    a line, and is text unless it names a tool on offer."""
    slip: str = ""
    """What to note where the mark is one that models write in the place of the family's own."""


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A call that lost the mark before its name: it begins with the name of a tool on offer, at the
    start of a line."""

    reader: Reader
    """What reads it, from the name on."""
    behind: tuple[str, ...]
    """The family's marks behind a name, one of which must follow."""
    alone: bool = False
    """Whether they are calls only where the whole answer is nothing else: what begins like one is
    held until the answer ends."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """How a family writes reasoning."""

    open: str = "<think>"
    """The mark before it."""
    close: str = "</think>"
    """The mark after it."""
    after_open: str = "\n"
    """White space of the family's behind `open`."""
    before_close: str = "\n"
    """White space of the family's before `close`."""
    after_close: str = "\n\n"
    """White space of the family's behind `close`."""
    call_ends_it: bool = False
    """Whether a call at the start of a line ends it, too; otherwise that is noted as a slip."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """What a family's assistant text looks like."""

    blocks: tuple[Block, ...] = ()
    """Regions that hold calls."""
    thinking: tuple[Thinking, ...] = ()
    """How reasoning is written; the first is the family's own."""
    bare: Reader | None = None
    """Reads calls that stand without marks, from ``{``, ``[`` or a code fence on."""
    bare_is_native: bool = False
    """Whether calls without marks are the family's own way: then at the start of any line, and
    without a note; otherwise only as the whole answer, as a repair."""
    doubled: tuple[str, ...] = ()
    """Closing marks that are dropped when they come again right behind a call."""
    gap: str = " \t\r\n"
    """Characters that stand between calls and mean nothing."""
    ignored: tuple[str, ...] = ()
    """Marks that carry nothing and are left out wherever they stand."""
    unmarked: Unmarked | None = None
    """What calls look like whose name the family's marks do not precede."""
    first: Reader | None = None
    """Reads what stands before any mark, where a family begins with a name or a header; takes
    nothing where there is none."""
    lead: str = ""
    """White space of the family's at the start of a message."""
    _hash: int = field(init=False, repr=False, compare=False)
    _meets: Callable[[str], bool] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        parts = (getattr(self, f.name) for f in fields(self) if f.compare)
        object.__setattr__(self, "_hash", hash(tuple(parts)))

    def __hash__(self) -> int:  # tables made of it are looked up by it, at every message
        return self._hash

    @property
    def meets(self) -> Callable[[str], bool]:
        """Tells whether a text holds anything that the engine could take for a mark, begins like a
        call, or ends like a mark begins."""
        meets = self._meets
        if meets is None:
            meets = meeting(self)
            object.__setattr__(self, "_meets", meets)
        return meets

    def suspects(self, reasoning: str, text: str) -> bool:
        """Whether what a message says holds any such thing."""
        meets = self.meets
        return meets(text) or (reasoning != "" and meets(reasoning))


BARE = ("{", "[", "```")


@dataclass(frozen=True, slots=True)
class Table:
    """A `Syntax` made ready for scanning content."""

    search: re.Pattern[str]
    prefixes: frozenset[str]
    starts: frozenset[str]
    longest: int
    blocks: dict[str, Block]
    thinking: dict[str, Thinking]
    closers: dict[str, str]
    names: frozenset[str]


@lru_cache(maxsize=256)
def table_of(syntax: Syntax, bare: bool, lost: bool, names: tuple[str, ...] = ()) -> Table:
    """The table of a syntax.

    Args:
        syntax: The syntax.
        bare: Whether calls without marks are read.
        lost: Whether calls with a mark missing are read, or with another in its place.
        names: Names of the tools on offer, where calls may begin with one.
    """
    blocks = [b for b in syntax.blocks if lost or not (b.lost or b.slip)]
    marks: list[tuple[str, str]] = [(b.before, b.open) for b in blocks]
    marks += [("", t.open) for t in syntax.thinking]
    marks += [("", t.close) for t in syntax.thinking]
    marks += [("", mark) for mark in (*syntax.doubled, *syntax.ignored)]
    if bare:
        marks += [("", mark) for mark in BARE]
    forms = {before[i:] + mark for before, mark in marks for i in range(len(before) + 1)}
    by_length = sorted(forms, key=len, reverse=True)
    patterns = list(map(re.escape, by_length))
    if names:
        named = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        patterns.append(rf"(?:\n|(?<!\w))(?:{named})")
    forms |= {"\n" + name for name in names}
    return Table(
        search=re.compile("|".join(patterns) or r"(?!)"),
        prefixes=_beginnings(forms),
        starts=_beginnings(names),
        longest=max((len(form) for form in forms), default=1),
        blocks={b.open: b for b in blocks},
        thinking={t.open: t for t in syntax.thinking},
        closers={t.close: t.after_close for t in syntax.thinking},
        names=frozenset(names),
    )


def _beginnings(forms: Iterable[str]) -> frozenset[str]:
    return frozenset(form[:i] for form in forms for i in range(1, len(form)))


@lru_cache(maxsize=256)
def reasoning_table(
    syntax: Syntax, thinking: Thinking, strict: bool
) -> tuple[re.Pattern[str], frozenset[str], int]:
    before = thinking.before_close
    forms = {before[i:] + thinking.close for i in range(len(before) + 1)}
    if not strict or thinking.call_ends_it:
        for block in syntax.blocks:
            if block.lost or block.slip:
                continue
            spaces = block.before or "\n"
            forms |= {spaces[i:] + block.open for i in range(len(spaces) + 1)}
        forms |= tokens(syntax)
    by_length = sorted(forms, key=len, reverse=True)
    return (
        re.compile("|".join(map(re.escape, by_length))),
        _beginnings(forms),
        max(map(len, forms)),
    )


@lru_cache(maxsize=256)
def tokens(syntax: Syntax) -> frozenset[str]:
    """Marks that end reasoning wherever they stand."""
    opening = {block.open for block in syntax.blocks if block.token and not block.slip}
    return frozenset(opening | set(syntax.ignored) if opening else opening)


_SPACES = frozenset(filter(str.isspace, map(chr, range(0x3001))))


def meeting(syntax: Syntax, *others: str, padded: bool = False) -> Callable[[str], bool]:
    """`Syntax.meets`, where more is looked for.

    Args:
        syntax: The family's table.
        others: Further texts to look for.
        padded: Whether to look for white space at the ends, too.
    """
    marks = [*others, *(b.open for b in syntax.blocks), *syntax.doubled, *syntax.ignored]
    marks += [mark for t in syntax.thinking for mark in (t.open, t.close)]
    unmarked = syntax.unmarked
    marks += unmarked.behind if unmarked and not unmarked.alone else ()
    patterns = [re.escape(mark) for mark in marks]
    firsts = [mark[:1] for mark in marks]
    is_bare = syntax.bare is not None
    if is_bare and syntax.bare_is_native:
        patterns.append(r"(?:^|\n)[ \t]*(?:[{\[]|```)")
        firsts += [form[0] for form in BARE]
    search = re.compile("|".join(patterns) or r"(?!)").search
    alone = is_bare and not syntax.bare_is_native
    starts = [r"\s"] * padded + [r"\s*(?:[{\[]|```)"] * alone
    if unmarked and unmarked.alone:
        behind = "|".join(map(re.escape, unmarked.behind))
        starts.append(rf"\s*[\w.:/-]+\s*(?:{behind})")
    begins = re.compile("|".join(starts) or r"(?!)").match
    by_name = unmarked is not None and unmarked.alone
    spaces = _SPACES if padded else frozenset[str]()
    may_begin = spaces | (_SPACES.union("{[`") if alone else spaces)
    table = table_of(syntax, False, False)
    prefixes, longest = table.prefixes | spaces, max(table.longest, 2)
    lasts = frozenset(prefix[-1] for prefix in prefixes)
    firsts = list(dict.fromkeys(firsts))

    def meets(text: str) -> bool:
        if not text:
            return False
        if (by_name or text[0] in may_begin) and begins(text) is not None:
            return True
        for first in firsts:
            if first in text:
                if search(text) is not None:
                    return True
                break
        if text[-1] not in lasts:
            return False
        sizes = range(1, min(longest, len(text) + 1))
        return any(text[-size:] in prefixes for size in sizes)

    return meets
