"""Which tools are found for a question: the retrieval part of a tool-calling benchmark.

Every tool of every case goes into one box; a case's question is the query, and the tools that its
right calls name are what should come back.  Tools of one name may differ by case: a hit counts when
the name is right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from antiphon.evaluation._cases import Case
from antiphon.evaluation._round_trip import right_calls
from antiphon.messages import ToolSpec, dump_json
from antiphon.retrieval import LexicalIndex
from antiphon.tools import tool_text

DEPTHS = (1, 5, 10)
"""How many of the first ones are looked at."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one question."""

    case: str
    """The case's id."""
    kind: str
    """Its kind."""
    ranks: tuple[int, ...]
    """For each tool that is wanted, its rank from 1; 0 where it is not among the first."""

    def within(self, depth: int) -> bool:
        """Whether every wanted tool is among the first so many."""
        return all(0 < rank <= depth for rank in self.ranks)


def retrieve(cases: Sequence[Case]) -> list[Found]:
    """Look for the tools of every case that has right calls.

    Args:
        cases: The cases; their tools together are what is searched.
    """
    index: LexicalIndex[int] = LexicalIndex()
    specs = list(_distinct(spec for case in cases for spec in case.tools))
    for number, spec in enumerate(specs):
        index.add(number, tool_text(spec), title=spec.name)
    found: list[Found] = []
    for case in cases:
        wanted = {call.name for step in right_calls(case) for call in step}
        if wanted:
            hits = [specs[hit.key].name for hit in index.search(case.question, 4 * max(DEPTHS))]
            names = list(dict.fromkeys(hits))[: max(DEPTHS)]
            ranks = tuple(names.index(n) + 1 if n in names else 0 for n in sorted(wanted))
            found.append(Found(case.id, case.kind, ranks))
    return found


def _distinct(specs: Iterable[ToolSpec]) -> Iterable[ToolSpec]:
    seen: set[str] = set()
    for spec in specs:
        key = dump_json([spec.name, spec.description, spec.parameters])
        if key not in seen:
            seen.add(key)
            yield spec
