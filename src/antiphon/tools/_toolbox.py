"""Many tools, of which whoever asks is shown the few that fit.

A `ToolIndex` finds them; the toolbox has the tools, those that are always shown, and with
`refine` a model's last word.  It is for programs that show tools themselves, and for models whose
tools cannot change between steps, which look for what they need with `search_tools` and `use_tool`.
An `Agent` chooses for itself (`antiphon.agent.Retrieve`), by the same index.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from antiphon.errors import ToolError, UsageError
from antiphon.messages import ToolCall, ToolResult, ToolSpec
from antiphon.retrieval import Embed
from antiphon.tools._context import RunContext
from antiphon.tools._tool import Tool, tool, unknown_tool_result
from antiphon.tools._tool_index import ToolIndex

Refine = Callable[[str, Sequence[ToolSpec]], Awaitable[Sequence[str]]]
"""Chooses among candidates for a question: the names to keep, best first."""
_POOL = 40


class Toolbox:
    """Tools to choose from.

    Args:
        tools: The tools.
        always: Names of tools that are shown whatever is asked.
        embed: Makes vectors of texts, for choosing by meaning as well.
        refine: Chooses among the best candidates, for example by asking a model.

    Raises:
        UsageError: Two tools have one name, or a name in `always` is no tool's.
    """

    def __init__(
        self,
        tools: Iterable[Tool[..., Any]] = (),
        *,
        always: Iterable[str] = (),
        embed: Embed | None = None,
        refine: Refine | None = None,
    ) -> None:
        self.index = ToolIndex(embed=embed)
        """What finds the tools; it may learn from runs."""
        self._tools: dict[str, Tool[..., Any]] = {}
        self._refine = refine
        for one in tools:
            self.add(one)
        self._always = tuple(always)
        for name in self._always:
            if name not in self._tools:
                raise UsageError(f"no tool {name!r} in the toolbox to show always")

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool[..., Any]:
        return self._tools[name]

    def add(self, one: Tool[..., Any]) -> None:
        """Add a tool.

        Raises:
            UsageError: There is another of its name.
        """
        if self._tools.get(one.name, one) is not one:
            raise UsageError(f"the toolbox has a tool {one.name!r} already; rename one of them")
        self._tools[one.name] = one
        if one.name not in self.index:
            self.index.add(one)

    def remove(self, name: str) -> None:
        """Remove a tool.

        Raises:
            KeyError: There is none of that name.
        """
        del self._tools[name]
        self.index.remove(name)

    async def choose(self, query: str, k: int = 8) -> list[Tool[..., Any]]:
        """The tools to show for a question: those that are always shown, then the best `k`.

        Args:
            query: What is asked.
            k: How many at most, besides those that are always shown.
        """
        names = await self.index.find(query, max(_POOL, k))
        candidates = [name for name in names if name not in self._always]
        if self._refine is not None and candidates:
            specs = [self._tools[name].spec for name in candidates]
            wanted = await self._refine(query, specs)
            candidates = [name for name in dict.fromkeys(wanted) if name in candidates]
        return [self._tools[name] for name in (*self._always, *candidates[:k])]

    def search_tools(self, k: int = 5) -> list[Tool[..., Any]]:
        """Two tools by which a model finds and uses the others: ``search_tools``, ``use_tool``.

        Args:
            k: How many tools one search shows.
        """

        @tool(idempotent=True)
        async def search_tools(query: str) -> list[dict[str, Any]]:
            """Find tools for a task; then call one with use_tool.

            Args:
                query: What the tool should do.
            """
            found = await self.choose(query, k)
            if not found:
                raise ToolError(f"no tool fits {query!r}; describe the task in other words")
            return [one.spec.to_openai()["function"] for one in found]

        @tool(timeout=None)
        async def use_tool(
            name: str, arguments: dict[str, Any], context: RunContext[Any]
        ) -> ToolResult:
            """Call a tool that search_tools found.

            Args:
                name: The tool's name.
                arguments: Its arguments, as its parameters say.
            """
            one = self._tools.get(name)
            if one is None:
                near = await self.choose(name, k)
                return unknown_tool_result(ToolCall(name, arguments, context.call_id), near)
            if one.needs_approval(arguments):
                raise ToolError(
                    f"{name} needs the agreement of a person; it cannot be used this way"
                )
            return await one.call(arguments, context, context.call_id)

        return [search_tools, use_tool]
