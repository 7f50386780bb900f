"""Tools to choose from by what they say of themselves and by the requests that they answered.

A recorded run says which tools a request led to.  With such requests beside its description a tool
is found far more often (`bench/tool_index.py` has the numbers), without any model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from antiphon.errors import UsageError
from antiphon.messages import Completion, Conversation, ToolResult, ToolSpec
from antiphon.retrieval import BlendedIndex
from antiphon.tools._tool import Tool
from antiphon.tools._toolbox import tool_text

MAX_EXAMPLES = 20
"""How many requests a tool is known by; the newest are kept."""


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

    def __init__(self, tools: Iterable[Tool[..., Any] | ToolSpec] = ()) -> None:
        """Index tools.

        Args:
            tools: Tools, or what a model sees of them.
        """
        self._specs: dict[str, ToolSpec] = {}
        self._examples: dict[str, dict[str, None]] = {}
        self._index: BlendedIndex[str] = BlendedIndex()
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
        self._put(spec.name)

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
        """The names of the tools that fit a request best, best first.

        Args:
            query: What is asked.
            k: How many at most.
        """
        return [hit.key for hit in self._index.search(query, k)]

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
