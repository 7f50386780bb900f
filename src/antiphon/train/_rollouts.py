"""Recorded runs for trainers that learn from rewards: exact tokens, never a second encoding.

A run is one `Rollout` while each prompt extends the tokens of the step before it; where it does not
(history that the family rewrites, other instructions, a compacted conversation) another begins, in
which earlier answers are prompt.  So no sampled token is in two completions.

What others expect: TRL 1.16's ``rollout_func``, verl 0.9's ``AgentLoopOutput``, verifiers 0.4's
``Trace``.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from antiphon.datasets import answer_in_place, conversation_shown
from antiphon.errors import DataError
from antiphon.events import Step, Trajectory
from antiphon.messages import JsonObject, Message, dump_json


@dataclass(frozen=True, slots=True)
class Turn:
    """One model call in a rollout."""

    step: int
    """Which step of the run."""
    start: int
    """Where its sampled tokens begin in the completion."""
    end: int
    """Where they end."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A prompt and all that followed, as tokens."""

    prompt_ids: tuple[int, ...]
    """What the first call was shown."""
    completion_ids: tuple[int, ...]
    """What was sampled, and between it what was read."""
    mask: tuple[int, ...]
    """1 where a token was sampled, 0 where it was read; as long as the completion."""
    logprobs: tuple[float, ...] | None
    """Log probabilities under the sampling distribution, 0.0 where a token was read; none where
    the server gave none."""
    turns: tuple[Turn, ...]
    """The model calls."""
    stop_reason: str
    """Why the last call ended."""
    group: str
    """The same for rollouts that began with the same prompt: what advantages are compared in."""
    run: str = ""
    """The id of the run."""
    metadata: JsonObject = field(default_factory=lambda: {})
    """Model, format, sampling parameters, and the run's own metadata."""

    @property
    def is_truncated(self) -> bool:
        """Whether the last call was cut off before its end."""
        return self.stop_reason in ("length", "cancelled", "error")


def rollouts_of(trajectory: Trajectory, *, group: str = "") -> list[Rollout]:
    """The rollouts of a run and of the runs inside it.

    Args:
        trajectory: The run.
        group: What the rollouts are compared in; by default a digest of the run's first prompt.

    Raises:
        DataError: A step has no prompt or sampled ids: such a run can be trained on as text only.
    """
    made: list[Rollout] = []
    for number, step in enumerate(trajectory.steps):
        prompt, sampled, logprobs = _tokens(step, number)
        last = made[-1] if made else None
        if last is not None and _extends(prompt, last):
            made[-1] = _extended(last, prompt, sampled, logprobs, step, number)
            continue
        first = Rollout(
            prompt, (), (), () if logprobs is not None else None, (), "", group, trajectory.id
        )
        made.append(_extended(first, prompt, sampled, logprobs, step, number))
    of_group = group or (_digest(made[0].prompt_ids) if made else "")
    own = [
        replace(r, group=of_group, metadata=r.metadata | {"run": trajectory.metadata}) for r in made
    ]
    return own + [r for child in trajectory.children for r in rollouts_of(child)]


def _tokens(
    step: Step, number: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...] | None]:
    completion = step.completion
    if completion.prompt_ids is None or completion.tokens is None:
        missing = "prompt" if completion.prompt_ids is None else "sampled"
        raise DataError(
            f"step {number} has no {missing} token ids, which the server did not give; "
            "this run can be trained on as text only"
        )
    sampled = tuple(token.token_id for token in completion.tokens)
    values = [token.logprob for token in completion.tokens]
    known = tuple(value for value in values if value is not None)
    return completion.prompt_ids, sampled, known if len(known) == len(values) else None


def _extends(prompt: tuple[int, ...], last: Rollout) -> bool:
    n = len(last.prompt_ids)
    return prompt[:n] == last.prompt_ids and (
        prompt[n : n + len(last.completion_ids)] == last.completion_ids
    )


def _extended(
    last: Rollout,
    prompt: tuple[int, ...],
    sampled: tuple[int, ...],
    logprobs: tuple[float, ...] | None,
    step: Step,
    number: int,
) -> Rollout:
    read = prompt[len(last.prompt_ids) + len(last.completion_ids) :]
    start = len(last.completion_ids) + len(read)
    completion = step.completion
    both = last.logprobs is not None and logprobs is not None
    return replace(
        last,
        completion_ids=(*last.completion_ids, *read, *sampled),
        mask=(*last.mask, *(0 for _ in read), *(1 for _ in sampled)),
        logprobs=(*(last.logprobs or ()), *(0.0 for _ in read), *(logprobs or ()))
        if both
        else None,
        turns=(*last.turns, Turn(number, start, start + len(sampled))),
        stop_reason=completion.stop_reason,
        metadata={
            "agent": step.agent,
            "model": completion.model,
            "format": completion.format,
            "sampling": completion.sampling,
        },
    )


def _digest(ids: Sequence[int]) -> str:
    return hashlib.blake2b(",".join(map(str, ids)).encode(), digest_size=8).hexdigest()


# ---- what others expect -----------------------------------------------------------------------


def to_trl(rollouts: Sequence[Rollout], **extra: Sequence[Any]) -> dict[str, list[Any]]:
    """What a ``rollout_func`` of TRL's GRPOTrainer returns.

    Args:
        rollouts: One for each prompt of the batch, in its order.
        extra: Further columns for the reward functions, each as long as the rollouts.

    Raises:
        DataError: A rollout has no log probabilities, or a column has another length.
    """
    for name, values in extra.items():
        if len(values) != len(rollouts):
            raise DataError(
                f"column {name!r} has {len(values)} values for {len(rollouts)} rollouts"
            )
    if any(rollout.logprobs is None for rollout in rollouts):
        raise DataError(
            "a rollout has no log probabilities, which TRL needs; record the run with a server "
            "that gives them"
        )
    return {
        "prompt_ids": [list(r.prompt_ids) for r in rollouts],
        "completion_ids": [list(r.completion_ids) for r in rollouts],
        "logprobs": [list(r.logprobs or ()) for r in rollouts],
        "env_mask": [list(r.mask) for r in rollouts],
        **{name: list(values) for name, values in extra.items()},
    }


def to_verl(rollout: Rollout, *, reward: float | None = None) -> dict[str, Any]:
    """The fields of verl's ``AgentLoopOutput``.

    Args:
        rollout: The rollout.
        reward: Its reward, where it is known already.
    """
    return {
        "prompt_ids": list(rollout.prompt_ids),
        "response_ids": list(rollout.completion_ids),
        "response_mask": list(rollout.mask),
        "response_logprobs": None if rollout.logprobs is None else list(rollout.logprobs),
        "reward_score": reward,
        "num_turns": len(rollout.turns),
        "metrics": {},
        "extra_fields": {
            "group": rollout.group,
            "run": rollout.run,
            "is_truncated": rollout.is_truncated,
        },
    }


def to_verifiers(
    trajectory: Trajectory, *, rewards: dict[str, float] | None = None
) -> dict[str, Any]:
    """A run as verifiers' ``Trace``: a graph of messages, each with the tokens that it adds.

    The tokens between two answers are told with the second one, as read: the record does not say
    which of the messages between them each belongs to.

    Args:
        trajectory: The run; runs inside it are traces of their own.
        rewards: Rewards by name.

    Raises:
        DataError: A step has no prompt or sampled ids.
    """
    nodes: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    path: list[int] = []
    said: tuple[Message, ...] = ()
    seen: tuple[int, ...] = ()
    for number, step in enumerate(trajectory.steps):
        prompt, sampled, logprobs = _tokens(step, number)
        shown = conversation_shown(trajectory, step).messages
        extends = prompt[: len(seen)] == seen and shown[: len(said)] == said and bool(path)
        if not extends:
            path, said, seen = [], (), ()
        for message in shown[len(said) :]:
            _add(nodes, path, message)
        answer = step.completion.message
        node = _add(nodes, path, answer)
        read = prompt[len(seen) :]
        nodes[node] |= {
            "sampled": True,
            "token_ids": [*read, *sampled],
            "mask": [*(False for _ in read), *(True for _ in sampled)],
            "logprobs": list(logprobs or ()),
        }
        calls.append(
            {
                "node": node,
                "model": step.completion.model,
                "finish_reason": _finish(step),
                "usage": {
                    "prompt_tokens": len(prompt),
                    "completion_tokens": len(sampled),
                },
            }
        )
        said, seen = (*shown, answer_in_place(trajectory, step)), (*prompt, *sampled)
    return {
        "version": 1,
        "id": trajectory.id,
        "verifiers": {"version": "antiphon"},
        "task": {"type": "Antiphon", "data": {"idx": 0, "prompt": _question(trajectory)}},
        "agent": {"config": {}, "name": trajectory.steps[0].agent if trajectory.steps else ""},
        "tools": [
            {"name": t.name, "description": t.description, "parameters": t.parameters}
            for t in trajectory.conversation.tools
        ],
        "nodes": nodes,
        "calls": calls,
        "rewards": {name: {"score": score} for name, score in (rewards or {}).items()},
        "info": dict(trajectory.metadata),
        "is_completed": True,
        "ok": trajectory.stop_reason == "answer",
        "stop_condition": trajectory.stop_reason,
    }


def _add(nodes: list[dict[str, Any]], path: list[int], message: Message) -> int:
    nodes.append({"parent": path[-1] if path else None, "message": _message(message)})
    path.append(len(nodes) - 1)
    return path[-1]


def _message(message: Message) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        return row | {"tool_call_id": message.tool_call_id, "name": message.name or None}
    if message.role != "assistant":
        return row
    row["content"] = message.text or None
    row["reasoning_content"] = message.reasoning or None
    row["tool_calls"] = [
        {"id": call.id, "name": call.name, "arguments": dump_json(call.arguments)}
        for call in message.tool_calls
    ] or None
    return row


def _finish(step: Step) -> str | None:
    reason = step.completion.stop_reason
    return reason if reason in ("stop", "length", "tool_calls") else None


def _question(trajectory: Trajectory) -> str:
    return next((m.text for m in trajectory.conversation.messages if m.role == "user"), "")
