"""What a model is shown of results that are too long, and the tool by which it reads the rest.

The whole text stays in the record as `ToolResult.full_text`; ``read_result`` pages through it.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from antiphon.agent._insertion import with_id
from antiphon.errors import ToolError
from antiphon.memory import Observations, n_tokens, shorten
from antiphon.messages import ToolResult
from antiphon.tools import Tool, tool

READ_RESULT = "read_result"
"""The name of the tool that reads a long result."""

SUMMARISER = (
    "Summarise what a tool returned for whoever asked: everything that bears on the question, with "
    "names and numbers as they stand. Write the summary and nothing else."
)
"""What a summarising model is told."""

AskSummary = Callable[[str, str], Awaitable[str]]
"""Has a model summarise a text for a question."""

_CHARS_A_TOKEN = 4


def whole(result: ToolResult) -> str:
    """All that a tool returned, as text."""
    return result.text if result.full_text is None else result.full_text


class Observing:
    """The results of one run: what is shown of them, and what they are in full."""

    def __init__(self, results: Iterable[ToolResult], summarise: AskSummary) -> None:
        """Set up.

        Args:
            results: Those of a run that goes on.
            summarise: Makes a summary.
        """
        self.texts: dict[str, str] = {result.call_id: whole(result) for result in results}
        """Whole texts by call id."""
        self.how: Observations | None = None
        """The budgets of the agent whose step it is."""
        self.shows_ids = False
        """Whether each result is shown with its id."""
        self.query = ""
        """What is asked."""
        self._summarise = summarise

    @property
    def by_step(self) -> bool:
        """Whether the results of a step have a budget together."""
        return self.how is not None and self.how.max_step_tokens is not None

    async def shown(self, results: list[ToolResult], *, whole_step: bool) -> list[ToolResult]:
        """Results as the model is shown them.

        Args:
            results: What one call gave, or all calls of a step, already shown one by one.
            whole_step: Which of both.
        """
        texts = self.texts
        if not whole_step:
            texts |= {result.call_id: whole(result) for result in results}
        if self.how is not None and whole_step == self.by_step:
            budgets = self.how.budgets([n_tokens(texts[result.call_id]) for result in results])
            pairs = zip(results, budgets, strict=True)
            results = [await self._within(result, budget, self.how) for result, budget in pairs]
        if self.shows_ids and whole_step == self.by_step:
            results = [
                replace(r, text=with_id(r.text, r.call_id), full_text=texts[r.call_id])
                for r in results
            ]
        return results

    async def _within(self, result: ToolResult, budget: int, how: Observations) -> ToolResult:
        text = self.texts[result.call_id]
        if result.name == READ_RESULT or n_tokens(text) <= budget:
            return replace(result, text=text, full_text=None)
        shown = await shorten(
            text,
            budget,
            mode=how.mode,
            query=self.query,
            summarise=self._summarise,
            name=result.call_id,
        )
        return replace(result, text=shown, full_text=text)

    def tool(self, how: Observations) -> Tool[..., Any]:
        """The tool by which a model reads a result that it was shown less of."""
        page = how.max_tokens * _CHARS_A_TOKEN - 200

        def read_result(call_id: str, offset: int = 0, find: str = "") -> str:
            """Read a long result from a character on, or from where a text occurs in it."""
            if call_id not in self.texts:
                known = ", ".join(list(self.texts)[-10:])
                raise ToolError(f"there is no result {call_id!r}; the last ones are: {known}")
            text = self.texts[call_id]
            start = max(0, offset)
            if find:
                start = text.find(find, start)
                if start < 0:
                    raise ToolError(f"{find!r} does not occur in {call_id!r} from {offset} on")
            end = min(len(text), start + page)
            more = f"; go on with offset={end}" if end < len(text) else ""
            return f"[characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"

        return tool(
            read_result, threaded=False, idempotent=True, max_chars=how.max_tokens * 4 + 1000
        )
