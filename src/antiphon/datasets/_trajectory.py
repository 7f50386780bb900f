"""Recorded runs as conversations to train on: what each step was shown, and the ids that it
sampled.

A run is one conversation while each prompt extends the one before.  Where it does not (another
agent's instructions, other tools, a compacted history) the steps behind it are a conversation of
their own, in which the earlier answers stand as context and do not count again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from antiphon.events import Step, Trajectory, body_of
from antiphon.messages import Conversation, JsonObject, Message


def conversations_of(trajectory: Trajectory) -> Iterator[Conversation]:
    """The conversations that a run and the runs inside it were made of, as they were shown.

    An assistant message has the ids that were sampled as ``metadata["token_ids"]``, where they are
    known, and ``metadata["stop_reason"]`` where the model was broken off.
    """
    thread: _Thread | None = None
    for step in trajectory.steps:
        shown = conversation_shown(trajectory, step)
        if thread is None or not thread.extends_to(shown):
            if thread is not None:
                yield thread.conversation
            context = tuple(_context(message) for message in shown.messages)
            thread = _Thread(replace(shown, messages=context), shown.messages)
        thread.add(shown.messages, answer_in_place(trajectory, step), _evidence(step))
    if thread is not None:
        yield thread.conversation
    elif not trajectory.children:
        yield replace(trajectory.conversation, metadata=_beside(trajectory))
    for child in trajectory.children:
        yield from conversations_of(child)


@dataclass(slots=True)
class _Thread:
    """Steps whose prompts extend each other."""

    conversation: Conversation
    """With what was measured beside the answers."""
    said: tuple[Message, ...]
    """The same messages as they were shown."""

    def extends_to(self, shown: Conversation) -> bool:
        return (
            shown.tools == self.conversation.tools and shown.messages[: len(self.said)] == self.said
        )

    def add(self, shown: tuple[Message, ...], answer: Message, evidence: JsonObject) -> None:
        new = shown[len(self.said) :]
        marked = replace(answer, metadata=answer.metadata | evidence)
        self.conversation = self.conversation.append(*new, marked)
        self.said = (*self.said, *new, answer)


def conversation_shown(trajectory: Trajectory, step: Step) -> Conversation:
    """What the model was shown in a step."""
    messages = step.shown
    if messages is None:
        messages = body_of(trajectory.conversation)[: step.n_prompt_messages]
    system = (Message.system(step.system),) if step.system else ()
    known = {spec.name: spec for spec in trajectory.conversation.tools}
    tools = tuple(known[name] for name in step.tools if name in known)
    return Conversation((*system, *messages), tools, _beside(trajectory))


def _beside(trajectory: Trajectory) -> JsonObject:
    return trajectory.conversation.metadata | trajectory.metadata


def _context(message: Message) -> Message:
    """An answer that counts in another conversation, or was no answer of this run."""
    return replace(message, loss=0.0) if message.role == "assistant" else message


def answer_in_place(trajectory: Trajectory, step: Step) -> Message:
    """The answer as later steps were shown it: its calls have the ids that the run gave them."""
    body = body_of(trajectory.conversation)
    n = step.n_prompt_messages
    in_place = n < len(body) and body[n].role == "assistant"
    return body[n] if in_place else step.completion.message


def _evidence(step: Step) -> JsonObject:
    completion = step.completion
    evidence: JsonObject = {}
    if completion.tokens is not None:
        evidence["token_ids"] = [token.token_id for token in completion.tokens]
    if completion.stop_reason in ("length", "cancelled", "error"):
        evidence["stop_reason"] = completion.stop_reason
    return evidence
