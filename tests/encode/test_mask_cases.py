"""Cases built from public reports: which turns are trained, and in which context.

`cases/masks.jsonl` names the report of each.  A case of a family that is not here waits for it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import read_row
from antiphon.encode import (
    IGNORE,
    Encoder,
    FastTokenizer,
    TrainingExample,
    batch,
    fit,
    to_row,
)
from antiphon.errors import DataError
from antiphon.formats import get_format, list_formats
from antiphon.messages import Conversation, Message
from encode.vocabularies import vocabulary

# A case that is told by a template's file is of the family that has that template.
FAMILIES = {"M005": "gpt_oss", "M010": "glm4_5", "M029": "qwen2_5", "M043": "qwen3_5"}
VOCABULARIES = {"qwen3": "qwen3"}
CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for line in (Path(__file__).parent / "cases" / "masks.jsonl").read_text("utf-8").splitlines()
    if (case := json.loads(line))
}


def family(case: dict[str, Any]) -> str:
    return FAMILIES.get(case["id"]) or str(case["family"])


ENCODED = [c for c in CASES.values() if c["op"] == "encode" and family(c) in list_formats()]


def encoder(case: dict[str, Any]) -> Encoder:
    """The family over its own vocabulary, or over Qwen2.5's with the family's marks behind it."""
    fmt = get_format(family(case))
    tokenizer = vocabulary(VOCABULARIES.get(fmt.name, "qwen2_5"))
    marks: frozenset[str] = getattr(fmt, "specials", frozenset())
    return Encoder(tokenizer.with_marks(sorted(marks)), fmt)


def conversation(case: dict[str, Any], tokenizer: FastTokenizer | None = None) -> Conversation:
    row = json.loads(json.dumps(case["sample"]))
    for message in row["messages"]:
        for pieces in message.pop("token_pieces", []):
            assert tokenizer is not None
            message["token_ids"] = [i for piece in pieces for i in tokenizer.encode(piece)]
    return read_row(row)


def trained_text(examples: list[TrainingExample]) -> list[str]:
    """The text of each stretch of labels."""
    found: list[str] = []
    for example in examples:
        assert example.tokenizer is not None
        place = 0
        for trained, n in example.runs():
            if trained:
                found.append(
                    example.tokenizer.decode(example.token_ids[place : place + n].tolist())
                )
            place += n
    return found


def trained_turns(examples: list[TrainingExample]) -> list[int]:
    return [
        message
        for example in examples
        for message, start, end in example.turns
        if (example.labels[start:end] != IGNORE).any()
    ]


@pytest.mark.parametrize("case", ENCODED, ids=lambda c: c["id"])
def test_what_a_report_asks_for_holds(case: dict[str, Any], qwen2_5: FastTokenizer) -> None:
    use = encoder(case)
    checks: list[dict[str, Any]] = case["checks"]
    if checks[0]["check"] == "error_or_verbatim":
        with pytest.raises(DataError, match="arguments of call 'ferry_status' are not JSON"):
            conversation(case)
        return
    given = conversation(case, qwen2_5)
    if case["options"].get("truncation") == "right":
        whole = len(use.encode(given))
        limit = whole - int(case["options"]["max_tokens_from_end"])
        examples = fit(use.encode_all, given, max_tokens=limit, too_long="cut")
    else:
        examples = use.encode_all(given)

    for check in checks:
        assert_holds(check, examples, given, use)


def assert_holds(
    check: dict[str, Any], examples: list[TrainingExample], given: Conversation, use: Encoder
) -> None:
    """One check of a case; its words are those of the file."""
    first, trained = examples[0], trained_text(examples)
    texts: list[str] = check.get("texts", [])
    ids: list[int] = first.token_ids.tolist()
    match check["check"]:
        case "well_formed":
            for example in examples:
                kept = example.labels != IGNORE
                assert (example.labels[kept] == example.token_ids[kept]).all()
                assert len(example.labels) == len(example.loss_weights) == len(example)
        case "served_context":
            assert_served(examples, given, use)
        case "turns_trained":
            assert sorted(trained_turns(examples)) == check["turns"]
        case "trained_includes":
            assert [t for t in texts if not any(t in run for run in trained)] == []
        case "trained_excludes":
            assert [t for t in texts if any(t in run for run in trained)] == []
        case "trained_texts":
            assert trained == texts
        case "contains_text":
            assert all(text in use.tokenizer.decode(ids) for text in texts)
        case "stop_trained":
            mark = use.tokenizer.mark_id(check["token"])
            assert sum((e.labels == mark).sum() for e in examples) == check["count"]
        case "token_count":
            assert ids.count(use.tokenizer.mark_id(check["token"]) or -1) == check["count"]
        case "ids_contain_pieces":
            _, start, end = first.turns[0]
            recorded = given.messages[int(check["turn"])].metadata["token_ids"]
            assert ids[start : end - 1] == recorded
        case "ids_equal_render":
            assert use.tokenizer.decode(ids) == use.format.render(given).text
        case "same_ids_as":
            same = use.encode(Conversation(read_row(check).messages, given.tools))
            assert ids == same.token_ids.tolist()
        case "last_token_trained":
            assert first.labels[-1] == first.token_ids[-1]
        case "dropped":
            assert [e.n_trained for e in examples] == [0]
        case unknown:
            pytest.fail(f"no such check: {unknown}")


def assert_served(examples: list[TrainingExample], given: Conversation, use: Encoder) -> None:
    """The tokens before a turn are those of the prompt that a server was sent for it."""
    for example in examples:
        for message, start, end in example.turns:
            if (example.labels[start:end] == IGNORE).all():
                continue
            before = Conversation(given.messages[:message], given.tools)
            prompt = use.encode_prompt(use.format.render(before, generate=True))
            assert example.token_ids[:start].tolist() == prompt


def test_padding_that_is_the_end_mark_is_masked_by_place(qwen2_5: FastTokenizer) -> None:
    case = CASES["M012"]
    use = Encoder(qwen2_5, get_format("qwen2_5"))
    end = qwen2_5.mark_id("<|im_end|>") or -1

    made = batch([to_row(use.encode(read_row(s)), 0) for s in case["samples"]], pad_id=end)

    assert ((made["labels"] == end).sum(axis=1)).tolist() == case["checks"][0]["counts"]
    assert (made["labels"][made["attention_mask"] == 0] == IGNORE).all()


def test_the_next_prompt_begins_with_the_sampled_ids(qwen3: FastTokenizer) -> None:
    case = CASES["M057"]
    checks = {check["check"]: check for check in case["checks"]}
    use = Encoder(qwen3, get_format("qwen3"))
    asked = read_row({"messages": case["prompt_messages"]})
    completion = str(case["completion_text"]).removesuffix("<|im_end|>")
    parser = use.format.parser(tools=())
    parser.feed(completion)
    parser.finish()
    sampled = [*qwen3.encode(completion), qwen3.mark_id("<|im_end|>")]
    answer = Message(
        "assistant",
        parser.message.parts,
        tool_calls=parser.message.tool_calls,
        metadata={"token_ids": [i for i in sampled if i is not None]},
    )
    prompt = use.encode_prompt(use.format.render(asked, generate=True))

    result = Message.tool(case["new_messages"][0]["content"], name="ferry_status")
    following = use.prompt_ids(asked.append(answer, result))

    assert following[: len(prompt) + len(sampled)] == [*prompt, *sampled]
    rest = qwen3.decode(following[len(prompt) + len(sampled) :])
    assert rest == checks["suffix_text"]["text"]
