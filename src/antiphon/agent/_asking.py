"""Asking a model: instructions before it, hooks and input checks around it, its stream as events.

One `Asking` serves one run.  It knows nothing of what follows from a reply; see `_loop.py`.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from antiphon.agent._hooks import Again, Stop, Stopped, checked, settled
from antiphon.agent._insertion import INSTRUCTIONS
from antiphon.agent._offer import Offer
from antiphon.agent._record import Record
from antiphon.agent._reply import Reply
from antiphon.agent._resume import n_shown_chars
from antiphon.agent._start import Start
from antiphon.agent._telemetry import chat_span
from antiphon.agent._telling import Telling
from antiphon.errors import ModelResponseError, first_error
from antiphon.events import RetryEvent
from antiphon.messages import Completion, Conversation, Message
from antiphon.models import Model, ModelOutput, ModelSettings, SampledTokens
from antiphon.tools import RunContext

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent


@dataclass(frozen=True, slots=True)
class Asked:
    """One model call, done."""

    conversation: Conversation
    """What the model was shown."""
    completion: Completion
    """What came back, as the hooks left it."""
    again: Again | None = None
    """What the model is to be told, where a hook sent the reply back."""


class Asking:
    """The models of one run, and the way to their replies."""

    def __init__(
        self,
        start: Start,
        record: Record,
        telling: Telling,
        about: Callable[[], RunContext[Any]],
        open_model: Callable[[Model | str], Model],
    ) -> None:
        """Set up; nothing is opened.

        Args:
            start: What the run began with.
            record: What was said so far.
            telling: How events are told.
            about: Gives the run's context, for hooks and instructions that are functions.
            open_model: Opens a model that is named by its spec.
        """
        self.n_led = 0
        """How many given messages became the instructions."""
        self._start = start
        self._record = record
        self._telling = telling
        self._about = about
        self._open_model = open_model
        self._n_before = len(record.steps)
        self._leading = "" if start.agent.instructions else record.system or ""

    # Instructions

    async def instructions(self, agent: "Agent", offer: Offer) -> str:
        """What an agent is told before everything else, now."""
        told = agent.instructions
        if callable(told):
            made = told(self._about())
            told = await made if inspect.isawaitable(made) else made
        if agent.insert_results:
            told = f"{told}\n\n{INSTRUCTIONS}".strip()
        if offer.output is not None and offer.output.mode == "text":
            told = f"{told}\n\n{offer.output.instructions()}".strip()
        return told or self._given_system()

    def _given_system(self) -> str:
        """Instructions that lead the given messages, for agents that have none."""
        messages = self._record.messages
        if not self._record.steps and messages and messages[0].role == "system":
            self._record.system = self._leading = messages.pop(0).text
            self.n_led += 1
        return self._leading

    # A reply

    async def ask(
        self, index: int, agent: "Agent", offer: Offer, conversation: Conversation
    ) -> Asked:
        """The model's reply to a conversation, after the hooks and beside the input checks.

        Args:
            index: The step.
            agent: Who asks.
            offer: What it may call, and what it must answer.
            conversation: What the model is to be shown.

        Raises:
            ModelError: There is no reply.
            Stopped: A hook or a check ended the run.
        """
        for hooks in agent.hooks:
            if hooks.before_model is not None:
                match await settled(hooks.before_model(self._about(), conversation)):
                    case Stop(reason):
                        raise Stopped(reason)
                    case Conversation() as conversation:
                        pass
                    case None:
                        pass
        completion = await self._checked_completion(index, agent, offer, conversation)
        again: Again | None = None
        for hooks in agent.hooks:
            if hooks.after_model is not None:
                match await settled(hooks.after_model(self._about(), completion)):
                    case Stop(reason):
                        raise Stopped(reason)
                    case Again() as again:
                        pass
                    case Completion() as completion:
                        pass
                    case None:
                        pass
        return Asked(conversation, completion, again)

    async def _checked_completion(
        self, index: int, agent: "Agent", offer: Offer, conversation: Conversation
    ) -> Completion:
        """The model's reply, while the input is checked beside it."""
        guardrails = [g for g in agent.guardrails if g.on == "input"]
        if index > 0 or not guardrails:
            return await self._complete(index, agent, offer, conversation)
        before = [g for g in guardrails if not g.beside]
        question = await checked(before, self._about(), self._start.question)
        if question != self._start.question:
            conversation = self._replace_question(conversation, question)
        beside = [g for g in guardrails if g.beside]
        async with first_error(), asyncio.TaskGroup() as group:
            group.create_task(checked(beside, self._about(), question))
            reply = group.create_task(self._complete(index, agent, offer, conversation))
        return reply.result()

    def _replace_question(self, conversation: Conversation, question: str) -> Conversation:
        messages = self._record.messages
        n = next(i for i in reversed(range(len(messages))) if messages[i].role == "user")
        messages[n] = Message.user(question)
        leading = conversation.messages[: len(conversation.messages) - len(messages)]
        return replace(conversation, messages=(*leading, *messages))

    async def _complete(
        self, index: int, agent: "Agent", offer: Offer, conversation: Conversation
    ) -> Completion:
        completion: Completion | None = None
        await self.discard(index)
        reply = Reply(index)
        model = self._open_model(agent.model)
        settings = _settings(agent, offer)
        outputs = model.stream(conversation, settings)
        with chat_span(model.spec, settings, conversation) as span:
            async with closed_after(outputs):
                async for output in outputs:
                    if isinstance(output, Completion):
                        completion = output
                        continue
                    if isinstance(output, SampledTokens):
                        continue  # the completion has them
                    if span is not None:
                        span.first_piece()
                    for event in reply.events(output, self._telling.now()):
                        await self._telling.emit(event)
            if completion is None:
                raise ModelResponseError(
                    f"model {model.spec!r} ended its stream without a completion; "
                    "a Model yields exactly one, last"
                )
            if span is not None:
                span.completed(completion)
        for event in reply.end(self._telling.now()):
            await self._telling.emit(event)
        return completion

    async def discard(self, index: int) -> None:
        """Tell what of a reply that an earlier process had begun no longer holds.

        Args:
            index: The step that begins.
        """
        if self._start.earlier is None or index != self._n_before:
            return
        n = n_shown_chars(self._start.earlier, index)
        if n:
            reason = "the run was interrupted"
            time = self._telling.now()
            await self._telling.emit(RetryEvent(index, reason, 0.0, n, time=time))


def _settings(agent: "Agent", offer: Offer) -> ModelSettings:
    output, settings = offer.output, agent.settings
    if output is None or output.mode != "native":
        return settings
    return replace(settings, extra=settings.extra | {"response_format": output.response_format()})


@asynccontextmanager
async def closed_after(
    outputs: AsyncIterator[ModelOutput],
) -> AsyncGenerator[AsyncIterator[ModelOutput]]:
    """Ends a model's stream with the block, also when its reader was stopped."""
    try:
        yield outputs
    finally:
        close = getattr(outputs, "aclose", None)
        if close is not None:
            await close()
