"""Tools to choose from by what they say of themselves and by the requests that they answered.

A recorded run says which tools a request led to.  With such requests beside its description a tool
is found far more often (`bench/tool_index.py` has the numbers), without any model.  With `embed`
tools are found by meaning, too.  A `Toolbox` and an agent that chooses among its tools both find
them by this.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from antiphon.errors import UsageError
from antiphon.messages import Completion, Conversation, ToolResult, ToolSpec
from antiphon.messages._json_schema import as_schema
from antiphon.retrieval import BlendedIndex, Embed, VectorIndex, fuse
from antiphon.tools._tool import Tool

MAX_EXAMPLES = 20
"""How many requests a tool is known by; the newest are kept."""

_POOL = 40
"""How many tools each ranking names, where two are joined."""


class RecordedStep(Protocol):
    """A model call of a recorded run and the results of its calls."""

    @property
    def completion(self) -> Completion:
        """What came back."""
        ...

    @property
    def results(self) -> Sequence[ToolResult]:
        """The answers of its calls."""
        ...


class RecordedRun(Protocol):
    """What an index reads of a record; a `Trajectory` is one."""

    @property
    def conversation(self) -> Conversation:
        """All messages."""
        ...

    @property
    def steps(self) -> Sequence[RecordedStep]:
        """The model calls."""
        ...

    @property
    def children(self) -> "Sequence[RecordedRun]":
        """Runs inside it."""
        ...


class ToolIndex:
    """An index over tools.

    >>> from antiphon.messages import ToolSpec
    >>> index = ToolIndex([ToolSpec("get_time", "Time in a city."), ToolSpec("add", "Adds.")])
    >>> index.search("What time is it in Lima?", 1)
    ['get_time']
    """

    def __init__(
        self, tools: Iterable[Tool[..., Any] | ToolSpec] = (), *, embed: Embed | None = None
    ) -> None:
        """Index tools.

        Args:
            tools: Tools, or what a model sees of them.
            embed: Makes vectors of texts, for `find`.
        """
        self._specs: dict[str, ToolSpec] = {}
        self._examples: dict[str, dict[str, None]] = {}
        self._index: BlendedIndex[str] = BlendedIndex()
        self._meanings: VectorIndex[str] | None = None if embed is None else VectorIndex(embed)
        self._unread: dict[str, None] = {}
        for one in tools:
            self.add(one)

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, name: str) -> bool:
        return name in self._specs

    def add(self, one: Tool[..., Any] | ToolSpec) -> None:
        """Add a tool.

        Raises:
            UsageError: There is another of its name.
        """
        spec = one.spec if isinstance(one, Tool) else one
        if self._specs.get(spec.name, spec) is not spec:
            raise UsageError(f"the index has a tool {spec.name!r} already; rename one of them")
        self._specs[spec.name] = spec
        self._unread[spec.name] = None
        self._put(spec.name)

    def remove(self, name: str) -> None:
        """Remove a tool and the requests that it is known by.

        Raises:
            KeyError: There is none of that name.
        """
        del self._specs[name]
        self._examples.pop(name, None)
        self._index.remove(name)
        if name in self._unread:
            del self._unread[name]
        elif self._meanings is not None:
            self._meanings.remove(name)

    def learn(self, runs: Iterable[RecordedRun]) -> int:
        """Remember which requests recorded runs answered with which tools.

        Args:
            runs: Records; runs inside them are looked at, too. Calls that failed teach nothing.

        Returns:
            How many requests were new to their tools.
        """
        taught: dict[str, list[str]] = {}
        for run in runs:
            _collect(run, taught)
        return self.learn_requests(taught)

    def learn_requests(self, requests: Mapping[str, Iterable[str]]) -> int:
        """Remember requests by the names of the tools that answered them.

        Args:
            requests: Texts by tool name; names of no tool are passed over.

        Returns:
            How many were new to their tools.
        """
        n_new = 0
        for name, texts in requests.items():
            if name not in self._specs:
                continue
            known = self._examples.setdefault(name, {})
            before = set(known)
            for text in texts:
                known.pop(text, None)
                known[text] = None
            for text in list(known)[: max(0, len(known) - MAX_EXAMPLES)]:
                del known[text]
            n_new += len(set(known) - before)
            self._put(name)
        return n_new

    def search(self, query: str, k: int = 8) -> list[str]:
        """The names of the tools that fit a request best by words, best first.

        Args:
            query: What is asked.
            k: How many at most.
        """
        return [hit.key for hit in self._index.search(query, k)]

    async def find(self, query: str, k: int = 8) -> list[str]:
        """The names of the tools that fit a request best, by words and by meaning, best first.

        Args:
            query: What is asked.
            k: How many at most.

        Raises:
            ModelError: `embed` asks a server, which gives no vectors.
        """
        if self._meanings is None:
            return self.search(query, k)
        if self._unread:
            rows = [(name, f"{name}: {tool_text(self._specs[name])}") for name in self._unread]
            await self._meanings.add_all(rows)
            for name, _ in rows:
                self._unread.pop(name, None)
        pool = max(_POOL, k)
        by_words = self._index.search(query, pool)
        return [hit.key for hit in fuse([by_words, await self._meanings.search(query, pool)], k)]

    def _put(self, name: str) -> None:
        spec = self._specs[name]
        text = "\n".join([tool_text(spec), *self._examples.get(name, ())])
        self._index.add(name, text, title=name)


def _collect(run: RecordedRun, taught: dict[str, list[str]]) -> None:
    request = next((m.text for m in run.conversation.messages if m.role == "user"), "")
    for step in run.steps:
        good = {result.call_id for result in step.results if not result.is_error}
        for call in step.completion.message.tool_calls:
            if request and call.id in good:
                taught.setdefault(call.name, []).append(request)
    for child in run.children:
        _collect(child, taught)


def tool_text(spec: ToolSpec) -> str:
    """What is searched of a tool besides its name: all words that a model is shown."""
    parts = [spec.description]
    properties: dict[str, Any] = spec.parameters.get("properties") or {}
    for name, schema in properties.items():
        parts.append(name)
        shown = as_schema(schema)
        parts.extend(str(shown[key]) for key in ("description", "enum") if key in shown)
    return "\n".join(parts)
