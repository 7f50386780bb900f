"""Of many tools a run shows its model the few that fit, and lets it look for others.

What is shown grows and keeps its order, so that a server's cached prefix lasts: tools that are
always shown, those that fit the question, ``search_tools``, and what the model found by it.
"""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from antiphon.errors import ModelError, ToolError, UsageError
from antiphon.messages import ToolCall, ToolResult, dump_json
from antiphon.models import Model
from antiphon.tools import Tool, ToolIndex, tool

_log = logging.getLogger(__name__)

SEARCH_TOOLS = "search_tools"
"""The name of the tool by which a model finds others."""

SELECTOR = (
    "You choose tools. You are shown a request and candidate tools. Answer with a JSON list of the "
    "names of the tools that the request needs, the most needed first, and nothing else."
)
"""What a model that chooses is told."""

AskSelector: TypeAlias = Callable[[str], Awaitable[str]]
"""Has a model choose; given request and candidates as text."""

_POOL = 40


@dataclass(frozen=True)
class Retrieve:
    """How the tools that a model is shown are chosen."""

    k: int = 8
    """How many fit the question at most, and how many one search adds."""
    always: Sequence[str] = ()
    """Names of tools that are shown whatever is asked; they are not counted."""
    threshold: int = 30
    """Up to so many tools all of them are shown."""
    index: ToolIndex | None = None
    """An index that has learned from runs, or finds by meaning, too; made from the tools without
    one."""
    refine: Model | str | None = None
    """A model that has the last word on what fits the question."""

    def __post_init__(self) -> None:
        if self.k < 1 or self.threshold < 0:
            raise UsageError(f"Retrieve needs k of 1 or more, got k={self.k}")
        object.__setattr__(self, "always", tuple(self.always))


class Selection:
    """What one agent's model is shown of its tools in one run."""

    def __init__(
        self,
        how: Retrieve,
        tools: dict[str, Tool[..., Any]],
        index: ToolIndex,
        shown: dict[str, Tool[..., Any]],
    ) -> None:
        """Set up; nothing is chosen.

        Args:
            how: How to choose.
            tools: What there is.
            index: Finds them.
            shown: What is shown; this adds to it.
        """
        self._how = how
        self._tools = tools
        self._index = index
        self._begun = False
        self.shown = shown
        """What is shown, in the order shown."""
        for name in how.always:
            self.shown[name] = tools[name]
        search = self._search_tool()
        self.shown[search.name] = search

    async def begin(self, query: str, ask: AskSelector) -> None:
        """Choose for a question, once.

        Args:
            query: What is asked.
            ask: Has a model choose.
        """
        if self._begun:
            return
        self._begun = True
        names = await self._found(query, self._how.k if self._how.refine is None else _POOL)
        names = [name for name in names if name in self._tools]
        if self._how.refine is not None and names:
            names = await self._refined(query, names, ask)
        fresh = [name for name in names if name not in self.shown]
        self.load(fresh[: self._how.k])

    def restore(self, names: Iterable[str], results: Iterable[ToolResult]) -> None:
        """Show what an earlier part of the run showed in its last step, and loaded by it.

        Args:
            names: What was shown.
            results: What its calls gave.
        """
        self._begun = True
        self.load(name for name in names if name in self._tools)
        for result in results:
            value: Any = result.value
            if result.name == SEARCH_TOOLS and isinstance(value, list):
                found = cast("list[dict[str, str]]", value)
                self.load(row["loaded"] for row in found if row["loaded"] in self._tools)
            elif result.name in self._tools:
                self.load([result.name])

    def load(self, names: Iterable[str]) -> None:
        """Show further tools."""
        for name in names:
            self.shown.setdefault(name, self._tools[name])

    def loaded(self, call: ToolCall) -> ToolResult | None:
        """The answer to a call of a tool that was not shown, which it is from now on.

        The model has guessed its arguments: it is shown what they are instead of running it.
        """
        if call.name in self.shown or call.name not in self._tools:
            return None
        self.load([call.name])
        spec = dump_json(self._tools[call.name].spec.to_openai()["function"])
        text = f"{call.name} was not loaded and is now loaded: {spec}. Call it again."
        return ToolResult(call.id, call.name, text, is_error=True)

    async def _found(self, query: str, k: int) -> list[str]:
        """What the index finds; by words alone where nothing makes vectors at the moment."""
        try:
            return await self._index.find(query, k)
        except ModelError as error:
            _log.warning("tools are chosen by their words alone: %s", error)
            return self._index.search(query, k)

    async def _refined(self, query: str, names: Sequence[str], ask: AskSelector) -> list[str]:
        """What a model chooses among candidates; the candidates as they are where it fails."""
        told = "\n".join(
            f"- {name}: {' '.join(self._tools[name].spec.description.split())}" for name in names
        )
        try:
            answer = await ask(f"Request: {query}\n\nCandidates:\n{told}")
        except ModelError:
            return list(names)
        chosen = [name for name in _names_in(answer) if name in names]
        return list(dict.fromkeys(chosen)) or list(names)

    def _search_tool(self) -> Tool[..., Any]:
        async def search_tools(query: str) -> list[dict[str, Any]]:
            """Find and load more tools by what they should do.

            Args:
                query: What the tool should do.
            """
            names = await self._found(query, self._how.k)
            found = [self._tools[name].spec for name in names if name in self._tools]
            if not found:
                raise ToolError(f"no tool fits {query!r}; describe the task in other words")
            self.load(spec.name for spec in found)
            return [{"loaded": s.name, "description": s.description} for s in found]

        return tool(search_tools, name=SEARCH_TOOLS, idempotent=True, threaded=False)


def _names_in(answer: str) -> list[str]:
    """The names in a list that a model wrote."""
    found = re.search(r"\[.*?\]", answer, re.DOTALL)
    if found is None:
        return []
    try:
        row: Any = json.loads(found[0])
    except (ValueError, RecursionError):
        return []
    return [item for item in cast("list[Any]", row) if isinstance(item, str)]
