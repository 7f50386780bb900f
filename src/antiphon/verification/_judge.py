"""A judge that is a model: it reads the transcript, votes by a rubric, and quotes what it saw.

A vote counts only if its quote stands in the transcript; what a judge says otherwise is no vote.
It is never told who made the row.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from antiphon.messages import JsonObject, Message, dump_json
from antiphon.models import Model, ModelSettings
from antiphon.synthesis import Meter, Metered, ask_text, find_object
from antiphon.verification._verdict import Sample, Verdict

LAYER = "judge"

RUBRIC = """\
- The calls are the ones that the request needs, with the values that were said, and no others.
- Where something is missing, the assistant asks instead of guessing.
- The last answer says what the results say, and answers what was asked.
- Where a tool failed or none fits, the assistant says so and invents nothing."""

_SYSTEM = """\
You check transcripts of an assistant with tools. The rubric:
{rubric}

Answer with one JSON object only: {{"verdict": "good" or "bad", "quote": the words of the transcript
that decide it, exactly as they stand there, "wrong_messages": [numbers of assistant messages that
are wrong], "why": one sentence}}"""


@dataclass(frozen=True, slots=True)
class Judge:
    """A model, and how it judges."""

    model: Model
    """The model."""
    rubric: str = RUBRIC
    """What it goes by."""
    votes: int = 1
    """How often it is asked."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    """How it is sampled; each vote has a seed of its own."""


@dataclass(frozen=True, slots=True)
class _Vote:
    good: bool
    why: str
    wrong: tuple[int, ...]


async def check_by_judge(sample: Sample, judge: Judge) -> list[Verdict]:
    """Let the judge vote.

    Raises:
        ModelError: The model cannot be asked.
    """
    meter = Meter()
    model = Metered(judge.model, meter)
    text = transcript(sample)
    asked = (_ask(model, judge, text, sample, n) for n in range(judge.votes))
    answers = await asyncio.gather(*asked)
    votes = [vote for vote in answers if isinstance(vote, _Vote)]
    usage = meter.to_row()
    if not votes:
        reason = f"no vote of {judge.votes} counts: {next(str(a) for a in answers)}"
        return [Verdict(LAYER, "rubric", "unsure", reason, usage=usage)]
    n_good = sum(vote.good for vote in votes)
    counted = f"{n_good} of {len(votes)} votes are good"
    if 2 * n_good == len(votes):
        return [Verdict(LAYER, "rubric", "unsure", counted, usage=usage)]
    if 2 * n_good > len(votes):
        return [Verdict(LAYER, "rubric", "pass", counted, usage=usage), *_wrong_messages(votes)]
    why = next(vote.why for vote in votes if not vote.good)
    return [Verdict(LAYER, "rubric", "fail", f"{counted}: {why}", usage=usage)]


def _wrong_messages(votes: Sequence[_Vote]) -> list[Verdict]:
    counts = Counter(index for vote in votes for index in vote.wrong)
    return [
        Verdict(LAYER, "message", "fail", f"{n} of {len(votes)} votes call it wrong", index)
        for index, n in sorted(counts.items())
        if 2 * n > len(votes)
    ]


async def _ask(model: Model, judge: Judge, text: str, sample: Sample, number: int) -> _Vote | str:
    """A vote, or why it is none."""
    settings = replace(judge.settings, seed=(judge.settings.seed or 0) + number)
    answer = await ask_text(model, _SYSTEM.format(rubric=judge.rubric), text, settings)
    return _read(answer, text, sample.conversation.messages)


def _read(answer: str, text: str, messages: Sequence[Message]) -> _Vote | str:
    found = find_object(answer)
    if found is None or found.get("verdict") not in ("good", "bad"):
        return f"the judge gave no verdict, but {answer[:100]!r}"
    quote = found.get("quote")
    if not isinstance(quote, str) or not quote.strip() or quote.strip() not in text:
        return f"the judge quotes {quote!r}, which is not in the transcript"
    wrong: Any = found.get("wrong_messages")
    given = cast("list[Any]", wrong) if isinstance(wrong, list) else []
    places = [
        i
        for i in given
        if isinstance(i, int) and 0 <= i < len(messages) and messages[i].role == "assistant"
    ]
    return _Vote(found["verdict"] == "good", str(found.get("why") or "")[:300], tuple(places))


def transcript(sample: Sample) -> str:
    """A conversation as a judge reads it, its messages numbered."""
    tools = [spec.to_openai()["function"] for spec in sample.conversation.tools]
    lines = ["Tools:", *(dump_json(cast("JsonObject", tool)) for tool in tools), "", "Transcript:"]
    for index, message in enumerate(sample.conversation.messages):
        who = f"tool {message.name}" if message.role == "tool" else message.role
        said = [message.text] if message.text else []
        said += [f"calls {c.name} with {dump_json(c.arguments)}" for c in message.tool_calls]
        lines.append(f"[{index}] {who}: " + " / ".join(said))
    return "\n".join(lines)
