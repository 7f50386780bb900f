"""Whether a recorded run is the tokens that its format says: an audit of what was really served.

Each recorded prompt is made again from the messages, through the format, and compared; and each is
compared with the tokens of the step before it.  Two kinds of drift must be told apart: history that
the family *rewrites* by design (earlier reasoning is dropped), so that a trainer has to begin a new
row; and history that was *serialised again* (arguments printed otherwise, ids taken from the text),
which is a defect: the model is then asked, or trained, behind tokens that it never wrote.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from antiphon.datasets import answer_in_place, conversation_shown
from antiphon.encode import Encoder, Tokenizer
from antiphon.errors import AntiphonError, RenderError, clip
from antiphon.events import Step, Trajectory
from antiphon.formats import Format, Rendered
from antiphon.messages import Conversation, Message

Verdict = Literal[
    "first",
    "extended",
    "rewritten",
    "context",
    "retokenised",
    "reserialised",
    "other_prompt",
    "other_text",
    "unknown",
]
"""``first``: no step is before it. ``extended``: the tokens before it, and more. ``rewritten``: the
family writes earlier messages otherwise now. ``context``: other messages, instructions or tools.
``retokenised``: the same text in other tokens. ``reserialised``: an answer is shown otherwise than
it was sampled. ``other_prompt``: the prompt is not what the format writes. ``other_text``: the
sampled ids spell another text than was recorded. ``unknown``: ids or format were not recorded."""

DEFECTS = ("retokenised", "reserialised", "other_prompt", "other_text")
"""The verdicts that are nobody's design."""

_SHOWN_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Drift:
    """One defect."""

    run: str
    """The run's id."""
    step: int
    """Which step."""
    verdict: Verdict
    """What kind."""
    text: str
    """What differs, and where."""


@dataclass(slots=True)
class TokenAudit:
    """What was found in the steps of some runs."""

    verdicts: Counter[Verdict] = field(default_factory=Counter["Verdict"])
    """Steps by verdict; a step has one of how it follows, and one more for each defect of its
    own."""
    n_steps: int = 0
    """Steps that were looked at."""
    defects: list[Drift] = field(default_factory=list[Drift])
    """The defects, in order."""

    @property
    def is_exact(self) -> bool:
        """Whether nothing is wrong with any step."""
        return not self.defects

    def add(self, run: str, step: int, verdict: Verdict, text: str) -> None:
        """Count a verdict."""
        self.verdicts[verdict] += 1
        if verdict in DEFECTS:
            self.defects.append(Drift(run, step, verdict, text))


def verify_tokens(
    trajectory: Trajectory,
    tokenizer: Tokenizer,
    *,
    format: Format,
    audit: TokenAudit | None = None,
) -> TokenAudit:
    """Audit a run and the runs inside it.

    Args:
        trajectory: The run.
        tokenizer: The vocabulary of its model.
        format: The format that it was run with.
        audit: Where to count; a new one by default.
    """
    counted = TokenAudit() if audit is None else audit
    encoder = Encoder(tokenizer, format)
    last: _Seen | None = None
    sampled: list[tuple[Message, list[int]]] = []
    for number, step in enumerate(trajectory.steps):
        counted.n_steps += 1
        completion = step.completion
        if completion.prompt_ids is None or completion.tokens is None:
            counted.add(trajectory.id, number, "unknown", "")
            last = None
            continue
        ids = [token.token_id for token in completion.tokens]
        shown = conversation_shown(trajectory, step)
        seen = _Seen(shown, list(completion.prompt_ids), ids, answer_in_place(trajectory, step))
        for verdict, text in _verdicts(encoder, step, seen, last, sampled):
            counted.add(trajectory.id, number, verdict, text)
        sampled.append((seen.answer, ids))
        last = seen
    for child in trajectory.children:
        verify_tokens(child, tokenizer, format=format, audit=counted)
    return counted


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a step was shown and wrote."""

    shown: Conversation
    prompt: list[int]
    sampled: list[int]
    answer: Message

    @property
    def all(self) -> list[int]:
        return self.prompt + self.sampled


def _verdicts(
    encoder: Encoder,
    step: Step,
    seen: _Seen,
    last: _Seen | None,
    sampled: Sequence[tuple[Message, list[int]]],
) -> Iterator[tuple[Verdict, str]]:
    text = step.completion.text
    spelled = _without_stop(encoder, encoder.tokenizer.decode(seen.sampled))
    if text is not None and spelled != _without_stop(encoder, text):
        yield "other_text", f"the ids spell {clip(spelled)} and the text is {clip(text)}"
    try:
        rendered = encoder.format.render(seen.shown, generate=True)
        again = encoder.encode_prompt(rendered)
        with_sampled = encoder.prompt_ids(_with_ids(seen.shown, sampled))
    except RenderError as error:
        yield "other_prompt", f"the format cannot write it: {error}"
        return
    except AntiphonError as error:
        yield "other_prompt", str(error)
        return
    yield _follows(encoder, rendered, seen, last)
    if seen.prompt not in (again, with_sampled):
        yield "other_prompt", _difference(encoder, seen.prompt, again)


def _follows(
    encoder: Encoder, rendered: Rendered, seen: _Seen, last: _Seen | None
) -> tuple[Verdict, str]:
    """How a prompt follows the tokens of the step before it."""
    if last is None:
        return "first", ""
    if seen.prompt[: len(last.all)] == last.all:
        return "extended", ""
    said = (*last.shown.messages, last.answer)
    if seen.shown.tools != last.shown.tools or seen.shown.messages[: len(said)] != said:
        return "context", ""
    decode = encoder.tokenizer.decode
    before, now = decode(last.all), decode(seen.prompt)
    if now.startswith(before):
        return "retokenised", _difference(encoder, seen.prompt, last.all)
    index = len(last.shown.messages)
    if rendered.changed and (index in rendered.changed or not now.startswith(decode(last.prompt))):
        return "rewritten", ""
    shown = "".join(p.text for p in rendered.pieces if p.author == "written" and p.message == index)
    wrote = _without_stop(encoder, decode(last.sampled))
    if _without_stop(encoder, shown) == wrote:  # it is the prompt that differs
        return "other_prompt", _difference(encoder, seen.prompt, last.all)
    return "reserialised", f"it wrote {clip(wrote, 200)} and is shown {clip(shown, 200)}"


def _with_ids(
    conversation: Conversation, sampled: Sequence[tuple[Message, list[int]]]
) -> Conversation:
    """A conversation with the sampled ids of its answers in their places."""
    messages = list(conversation.messages)
    place = 0
    for answer, ids in sampled:
        found = next((i for i in range(place, len(messages)) if messages[i] == answer), None)
        if found is not None:
            beside = messages[found].metadata | {"token_ids": list(ids)}
            messages[found] = replace(messages[found], metadata=beside)
            place = found + 1
    return replace(conversation, messages=tuple(messages))


def _without_stop(encoder: Encoder, text: str) -> str:
    for mark in encoder.format.stop:
        if text.endswith(mark):
            return text[: -len(mark)]
    return text


def _difference(encoder: Encoder, recorded: Sequence[int], other: Sequence[int]) -> str:
    """Where two rows of tokens part, with a little of both."""
    pairs = zip(recorded, other, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(recorded), len(other)))
    here, there = (
        clip(encoder.tokenizer.decode(list(ids[at : at + _SHOWN_TOKENS])) or "the end")
        for ids in (recorded, other)
    )
    return f"at token {at} the prompt has {here}, expected {there}"
