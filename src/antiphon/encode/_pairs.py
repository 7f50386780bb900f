"""Answers behind one prompt as token ids: what trainers of preferences are given.

The prompt is what a server is sent; an answer is what a model wrote behind it, its end marks
included, and where it goes on over tool results these are in it too: `mask` says which tokens the
model wrote.  Column names are those of TRL 1.16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from antiphon.encode._encoder import Encoder
from antiphon.errors import EncodeError
from antiphon.messages import Conversation


@dataclass(frozen=True, slots=True)
class Answer:
    """What follows a prompt."""

    token_ids: list[int]
    """The tokens."""
    mask: list[int]
    """1 where the model wrote a token that counts, 0 where it read it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt and one answer."""

    prompt_ids: list[int]
    """What a server is sent."""
    answer: Answer
    """What follows."""


def encode_answer(encoder: Encoder, conversation: Conversation, n_prompt: int) -> Answered:
    """The tokens of a conversation, cut where its answer begins.

    Args:
        encoder: For the vocabulary, the format and the policy.
        conversation: Prompt and answer.
        n_prompt: How many messages are prompt.

    Raises:
        RenderError: The family cannot express a message.
        EncodeError: The answer does not stand behind its prompt in one text, since the family
            rewrites history in it.
    """
    prompt = encoder.prompt_ids(replace(conversation, messages=conversation.messages[:n_prompt]))
    example = encoder.encode(conversation)
    ids: list[int] = example.token_ids.tolist()
    changed = encoder.format.render(conversation).changed
    if ids[: len(prompt)] != prompt or any(i >= n_prompt for i in changed):
        raise EncodeError(
            f"message {n_prompt} does not stand behind its prompt in the text of the whole, since "
            f"{encoder.format.name} rewrites history; end the conversation with the answer"
        )
    mask = [int(weight > 0) for weight in example.loss_weights[len(prompt) :]]
    return Answered(prompt, Answer(ids[len(prompt) :], mask))


def pair_row(
    encoder: Encoder,
    chosen: Conversation,
    rejected: Conversation,
    n_shared: int,
    *,
    margin: float | None = None,
) -> dict[str, Any]:
    """A pair as TRL's DPOTrainer and RewardTrainer read it.

    Args:
        encoder: For the vocabulary, the format and the policy.
        chosen: The better conversation.
        rejected: The worse one.
        n_shared: How many messages both begin with.
        margin: How much better it is.

    Returns:
        ``prompt_ids``, ``chosen_ids``, ``rejected_ids``; ``chosen_mask`` and ``rejected_mask``,
        which a trainer needs where an answer goes on over tool results; ``margin`` if known.

    Raises:
        RenderError: The family cannot express a message.
        EncodeError: An answer does not stand behind the prompt in one text.
    """
    better = encode_answer(encoder, chosen, n_shared)
    worse = encode_answer(encoder, rejected, n_shared)
    row: dict[str, Any] = {
        "prompt_ids": better.prompt_ids,
        "chosen_ids": better.answer.token_ids,
        "rejected_ids": worse.answer.token_ids,
        "chosen_mask": better.answer.mask,
        "rejected_mask": worse.answer.mask,
    }
    return row if margin is None else row | {"margin": margin}


def judged_row(
    encoder: Encoder, conversation: Conversation, n_prompt: int, *, is_good: bool
) -> dict[str, Any]:
    """An answer with its verdict as TRL's KTOTrainer reads it.

    Raises:
        RenderError: The family cannot express a message.
        EncodeError: The answer does not stand behind its prompt in one text.
    """
    made = encode_answer(encoder, conversation, n_prompt)
    return {
        "prompt_ids": made.prompt_ids,
        "completion_ids": made.answer.token_ids,
        "completion_mask": made.answer.mask,
        "label": is_good,
    }
