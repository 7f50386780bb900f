"""What a model does beside the conversation: sum up a long result, choose among many tools.

Each is a run of its own, a part of the one around it, with the role as its name.
"""

from dataclasses import replace

from antiphon.agent._course import Course
from antiphon.agent._observing import SUMMARISER
from antiphon.agent._select import SELECTOR
from antiphon.errors import ModelError
from antiphon.memory import head_tail
from antiphon.models import Model

_SUMMARISED_TOKENS = 12_000
"""How much of a long result a summarising model is shown."""


class Aside:
    """What is asked beside the conversation of one run."""

    def __init__(self, course: Course) -> None:
        """Set up.

        Args:
            course: The run.
        """
        self._course = course

    async def summarise(self, text: str, query: str) -> str:
        """A long result in few words.

        Args:
            text: The result.
            query: What it is needed for.

        Raises:
            ModelError: The model gives no answer.
        """
        how = self._course.agent.observations
        clipped = head_tail(text, _SUMMARISED_TOKENS)
        return await self._ask(
            "summariser",
            SUMMARISER,
            None if how is None else how.summariser,
            f"Question: {query}\n\nResult:\n{clipped}",
        )

    async def choose(self, text: str) -> str:
        """Which of some tools to show.

        Args:
            text: The question and the tools.

        Raises:
            ModelError: The model gives no answer.
        """
        select = self._course.agent.select
        return await self._ask(
            "selector", SELECTOR, None if select is None else select.refine, text
        )

    async def _ask(self, role: str, told: str, model: "Model | str | None", text: str) -> str:
        course = self._course
        agent = replace(
            course.agent,
            name=role,
            instructions=told,
            model=course.agent.model if model is None else model,
            tools=(),
            handoffs=(),
            final_tools=(),
            output_type=str,
            hooks=(),
            guardrails=(),
            compaction=None,
            select=None,
            observations=None,
            insert_results=False,
            memory=None,
        )
        run = agent.run(text, metadata={"role": role})
        result = await run.under(f"{role}:{len(course.record.children)}")
        if result.stop_reason != "answer":
            raise ModelError(result.trajectory.error or f"the {role}: {result.stop_reason}")
        return result.text
