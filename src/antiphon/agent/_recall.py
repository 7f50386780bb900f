"""How a run recalls and remembers: a block before the question, three tools, and a rule.

What is recalled stands in the user's message as a labelled block, never in the instructions: it is
data that earlier conversations left, and whoever wrote it gave no orders by it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from antiphon.errors import ToolError, UsageError
from antiphon.events import Trajectory
from antiphon.memory import Memory
from antiphon.messages import Message, TextPart
from antiphon.tools import Tool, tool

Rule = Callable[[Trajectory], Iterable[str]]
"""What of a finished run is to be remembered."""


@dataclass(frozen=True)
class Recall:
    """What an agent recalls and what it may remember."""

    memory: Memory
    """Where texts are kept."""
    namespace: str = ""
    """Where this agent writes, for example ``user:ada``."""
    also: Sequence[str] = ()
    """Further namespaces that it reads, for example ``agent:clerk``."""
    k: int = 5
    """How many texts stand before the question at most."""
    max_tokens: int = 500
    """The most that they take, in tokens."""
    tools: bool = True
    """Whether the model may remember, search and forget by itself."""
    rule: Rule | None = None
    """What is remembered of each finished run."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Everything that is read."""
        return (self.namespace, *self.also)

    def put_before(self, messages: list[Message], question: str) -> None:
        """Put what fits the question before it, as a block of the same message."""
        block = self.memory.block(
            question, self.k, namespace=self.namespaces, max_tokens=self.max_tokens
        )
        last = max((n for n, m in enumerate(messages) if m.role == "user"), default=-1)
        if block and last >= 0:
            asked = messages[last]
            messages[last] = replace(asked, parts=(TextPart(block), *asked.parts))

    def learn(self, run: Trajectory) -> None:
        """Remember of a finished run what the rule says."""
        if self.rule is not None:
            for text in self.rule(run):
                self.memory.add(text, namespace=self.namespace, source=run.id)

    def tools_for(self, run_id: str) -> list[Tool[..., Any]]:
        """The tools by which a model remembers, searches and forgets."""
        if not self.tools:
            return []

        def remember(text: str, replaces: str = "") -> str:
            """Remember a fact for later conversations, in one sentence.

            Args:
                text: The fact.
                replaces: The id of a memory that no longer holds.
            """
            try:
                if replaces:
                    return f"remembered as {self.memory.supersede(replaces, text, source=run_id)}"
                id = self.memory.add(text, namespace=self.namespace, source=run_id)
            except UsageError as error:
                raise ToolError(str(error)) from error
            return f"remembered as {id}"

        def search_memory(query: str) -> list[dict[str, str]]:
            """Search what was remembered in earlier conversations."""
            found = self.memory.search(query, self.k, namespace=self.namespaces)
            return [{"id": entry.id, "text": entry.text} for entry in found]

        def forget(id: str) -> str:
            """Forget a memory for good, by its id."""
            try:
                self.memory.forget(id)
            except UsageError as error:
                raise ToolError(str(error)) from error
            return "forgotten"

        return [
            tool(remember, idempotent=True),
            tool(search_memory, idempotent=True, threaded=False),
            tool(forget, idempotent=True),
        ]
