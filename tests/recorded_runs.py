"""Runs with the tokens of a server that can be made to do what servers do wrong."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from antiphon.encode import Encoder
from antiphon.events import Step, Trajectory
from antiphon.messages import Completion, Conversation, Message, TokenLogprob

Serve = Callable[[Encoder, Conversation, list[list[int]]], list[int]]
"""The prompt's ids, of the encoder, what is shown, and the ids sampled so far."""


def rendered(encoder: Encoder, shown: Conversation, _: list[list[int]]) -> list[int]:
    """A server that writes the messages again for each prompt."""
    return encoder.encode_prompt(encoder.format.render(shown, generate=True))


def token_in(encoder: Encoder, shown: Conversation, sampled: list[list[int]]) -> list[int]:
    """A server that keeps the tokens that were sampled."""
    ids = iter(sampled)
    messages = tuple(
        replace(m, metadata={"token_ids": list(next(ids))}) if m.role == "assistant" else m
        for m in shown.messages
    )
    return encoder.prompt_ids(replace(shown, messages=messages))


def record(
    encoder: Encoder,
    conversation: Conversation,
    wrote: Sequence[str],
    *,
    serve: Serve = rendered,
    logprob: float | None = -0.5,
) -> Trajectory:
    """A run whose answers were sampled as some texts.

    Args:
        encoder: The server's vocabulary and format.
        conversation: The messages of the run.
        wrote: What the model wrote of each assistant message, without the end mark.
        serve: How the server makes a prompt.
        logprob: Of each token.
    """
    steps: list[Step] = []
    sampled: list[list[int]] = []
    end = encoder.tokenizer.mark_id(encoder.format.stop[0])
    assert end is not None
    for index, message in enumerate(conversation.messages):
        if message.role != "assistant":
            continue
        text = wrote[len(steps)]
        shown = replace(conversation, messages=conversation.messages[:index])
        prompt = serve(encoder, shown, sampled)
        ids = [*_spelled(encoder, text), end]
        completion = Completion(
            message,
            "tool_calls" if message.tool_calls else "stop",
            model="tiny",
            format=encoder.format.name,
            text=text,
            prompt_ids=tuple(prompt),
            tokens=tuple(TokenLogprob(i, logprob) for i in ids),
        )
        tools = tuple(spec.name for spec in conversation.tools)
        steps.append(Step("clerk", index, completion, tools=tools))
        sampled.append(ids)
    return Trajectory(conversation, tuple(steps), id="r1", metadata={"score": 1.0})


def _spelled(encoder: Encoder, text: str) -> list[int]:
    """The ids of a text in which marks are tokens, as a model samples them."""
    ids: list[int] = []
    rest = text
    marks = ("<tool_call>", "</tool_call>", "<think>", "</think>")
    while rest:
        known = {m: rest.find(m) for m in marks if encoder.tokenizer.mark_id(m) is not None}
        found = {place: mark for mark, place in known.items() if place >= 0}
        at = min(found, default=len(rest))
        if at:
            ids += encoder.tokenizer.encode_batch([rest[:at]])[0]
        if found:
            mark_id = encoder.tokenizer.mark_id(found[at])
            assert mark_id is not None
            ids.append(mark_id)
            at += len(found[at])
        rest = rest[at:]
    return ids


def messages(*said: Message) -> Conversation:
    """A conversation of some messages."""
    return Conversation(said)
