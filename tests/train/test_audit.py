"""What was served is told apart: as the format writes it, rewritten by design, or by a defect."""

from dataclasses import replace

import pytest

from antiphon.encode import Encoder, load_tokenizer
from antiphon.errors import DataError
from antiphon.events import Trajectory
from antiphon.formats import get_format
from antiphon.messages import Conversation, Message, ToolCall
from antiphon.train import TokenAudit, rollouts_of, verify_tokens
from recorded_runs import Serve, record, rendered, token_in
from tiny_training import FERRY

ASKED = Conversation(
    (
        Message.user("Ferry to Holm?"),
        Message.assistant(tool_calls=[ToolCall("ferry", {"to": "Holm"}, "c0")]),
        Message.tool("9", call_id="c0", name="ferry"),
        Message.assistant("At 9."),
    ),
    (FERRY,),
)
CANONICAL = '<tool_call>\n{"name": "ferry", "arguments": {"to": "Holm"}}\n</tool_call>'
OTHERWISE = '<tool_call>\n{"arguments": {"to":"Holm"}, "name": "ferry"}\n</tool_call>'


@pytest.fixture(scope="module")
def qwen() -> Encoder:
    return Encoder(load_tokenizer("qwen2_5"), get_format("qwen2_5"))


@pytest.fixture(scope="module")
def qwen3() -> Encoder:
    return Encoder(load_tokenizer("qwen3"), get_format("qwen3"))


def audit(encoder: Encoder, run: Trajectory) -> TokenAudit:
    return verify_tokens(run, encoder.tokenizer, format=encoder.format)


@pytest.mark.parametrize(
    ("wrote", "serve", "second"),
    [
        (CANONICAL, rendered, "extended"),
        (CANONICAL, token_in, "extended"),
        (OTHERWISE, token_in, "extended"),
        (OTHERWISE, rendered, "reserialised"),
    ],
)
def test_an_answer_that_is_shown_otherwise_than_it_was_sampled_is_a_defect(
    qwen: Encoder, wrote: str, serve: Serve, second: str
) -> None:
    found = audit(qwen, record(qwen, ASKED, [wrote, "At 9."], serve=serve))

    assert dict(found.verdicts) == {"first": 1, second: 1}
    assert found.is_exact == (second == "extended")
    assert [drift.step for drift in found.defects] == [1] * (second != "extended")


def test_the_same_text_in_other_tokens_is_a_defect(qwen: Encoder) -> None:
    run = record(qwen, ASKED, [CANONICAL, "At 9."])
    step = run.steps[0]
    assert step.completion.tokens is not None
    tokens = step.completion.tokens
    name = next(i for i, t in enumerate(tokens) if qwen.tokenizer.decode([t.token_id]) == "name")
    split = [qwen.tokenizer.encode_batch([c])[0][0] for c in "name"]
    sampled = (
        *tokens[:name],
        *(replace(tokens[0], token_id=i) for i in split),
        *tokens[name + 1 :],
    )
    completion = replace(step.completion, tokens=sampled)

    found = audit(qwen, replace(run, steps=(replace(step, completion=completion), run.steps[1])))

    assert dict(found.verdicts) == {"first": 1, "retokenised": 1}


def test_history_that_the_family_rewrites_is_no_defect(qwen3: Encoder) -> None:
    asked = Conversation(
        (
            Message.user("1"),
            Message.assistant("One.", reasoning="Easy."),
            Message.user("2"),
            Message.assistant("Two.", reasoning="Easy."),
        )
    )
    wrote = ["<think>\nEasy.\n</think>\n\nOne.", "<think>\nEasy.\n</think>\n\nTwo."]

    found = audit(qwen3, record(qwen3, asked, wrote))

    assert dict(found.verdicts) == {"first": 1, "rewritten": 1}
    assert found.is_exact


def test_a_prompt_that_the_format_does_not_write_is_a_defect(qwen: Encoder) -> None:
    def polite(encoder: Encoder, shown: Conversation, sampled: list[list[int]]) -> list[int]:
        kept = shown.append(Message.user("Please."))
        return rendered(encoder, kept, sampled)

    found = audit(qwen, record(qwen, ASKED, [CANONICAL, "At 9."], serve=polite))

    assert found.verdicts["other_prompt"] >= 2
    assert "expected" in found.defects[0].text


def test_other_instructions_are_another_context(qwen: Encoder) -> None:
    run = record(qwen, ASKED, [CANONICAL, "At 9."])
    second = replace(run.steps[1], system="Be brief.")
    shown = Conversation((Message.system("Be brief."), *ASKED.messages[:3]), ASKED.tools)
    prompt = tuple(rendered(qwen, shown, []))
    second = replace(second, completion=replace(second.completion, prompt_ids=prompt))

    found = audit(qwen, replace(run, steps=(run.steps[0], second)))

    assert dict(found.verdicts) == {"first": 1, "context": 1}


def test_ids_that_spell_another_text_are_a_defect(qwen: Encoder) -> None:
    run = record(qwen, ASKED, [CANONICAL, "At 9."])
    last = run.steps[1]
    lied = replace(last, completion=replace(last.completion, text="At 10."))

    found = audit(qwen, replace(run, steps=(run.steps[0], lied)))

    assert [drift.verdict for drift in found.defects] == ["other_text"]


def test_steps_without_ids_are_counted_as_unknown(qwen: Encoder) -> None:
    run = record(qwen, ASKED, [CANONICAL, "At 9."])
    blind = tuple(replace(s, completion=replace(s.completion, tokens=None)) for s in run.steps)

    found = audit(qwen, replace(run, steps=blind))

    assert dict(found.verdicts) == {"unknown": 2}
    assert found.is_exact
    with pytest.raises(DataError, match="no sampled token ids"):
        rollouts_of(replace(run, steps=blind))
