"""Every model call of a run and of its parts: what was shown, what was answered, as whom.

One call is one example to train on.  A reply that was of no use (it was no plan, its call could not
be read, named no tool on offer, or had arguments that the tool's schema refuses) has weight 0; an
attempt's verdict is the reward of all calls that it was made of.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.events import AttemptEvent, FeedbackEvent, Step, Trajectory, body_of
from antiphon.messages import Conversation, Message, ToolSpec, find_problems


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model."""

    role: str
    """What the model was in the run: ``planner``, ``joiner``, ``executor``, ``actor``, ..."""
    agent: str
    """The agent that asked."""
    conversation: Conversation
    """What it was shown: system text, messages and tools, exactly."""
    reply: Message
    """What it answered."""
    weight: float = 1.0
    """How much the reply counts in training; 0 where it was of no use."""
    reward: float | None = None
    """The score of the attempt that it belongs to, where it belongs to one."""
    path: tuple[str, ...] = ()
    """The parts that it stands in, from the outermost: ``("attempt:2", "task:a:1")``."""


def model_calls(trajectory: Trajectory) -> list[ModelCall]:
    """Every model call of a run and of the runs inside it, in the order of the parts' ends.

    Args:
        trajectory: The record of any run.
    """
    return list(_calls(trajectory, (), None))


def _calls(
    trajectory: Trajectory, path: tuple[str, ...], reward: float | None
) -> Iterator[ModelCall]:
    role = str(trajectory.metadata.get("role", "actor"))
    sent_back = {e.step for e in trajectory.events if isinstance(e, FeedbackEvent)}
    specs = {spec.name: spec for spec in trajectory.conversation.tools}
    for index, step in enumerate(trajectory.steps):
        useless = index in sent_back or _is_bad(step, specs)
        yield ModelCall(
            role,
            step.agent,
            shown_in(trajectory, step),
            step.completion.message,
            0.0 if useless else 1.0,
            reward,
            path,
        )
    scores = {e.attempt: e.score for e in trajectory.events if isinstance(e, AttemptEvent)}
    for child in trajectory.children:
        key, _, n = child.call_id.partition(":")
        own = scores.get(int(n)) if key == "attempt" and n.isdigit() else None
        yield from _calls(child, (*path, child.call_id), reward if own is None else own)


def shown_in(trajectory: Trajectory, step: Step) -> Conversation:
    """What a model was shown in a step."""
    messages = step.shown
    if messages is None:
        messages = body_of(trajectory.conversation)[: step.n_prompt_messages]
    system = (Message.system(step.system),) if step.system else ()
    known = {spec.name: spec for spec in trajectory.conversation.tools}
    tools = tuple(known[name] for name in step.tools if name in known)
    return Conversation((*system, *messages), tools)


def _is_bad(step: Step, specs: dict[str, ToolSpec]) -> bool:
    message = step.completion.message
    if message.invalid_tool_calls:
        return True
    for call in message.tool_calls:
        spec = specs.get(call.name) if call.name in step.tools else None
        if spec is None or find_problems(spec.parameters, call.arguments):
            return True
    return False
