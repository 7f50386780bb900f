"""Rows of published shapes mean the conversation that `cases/dataset_rows.jsonl` says."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import adapter_named, adapter_of, read_row, write_row
from antiphon.errors import DataError, UnknownNameError
from antiphon.messages import Conversation

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "dataset_rows.jsonl")
    .read_text("utf-8")
    .splitlines()
]
# Shapes that are spellings of the unified one have no adapter of their own.
NAMES = {"nemotron-pt-v1": "nemotron", "verifiers-v1-branch": "verifiers"}
OWN = {
    *("hermes-fc-v1", "toolace", "toolbench-sft", "glaive-v2", "xlam-60k", "nemotron"),
    *("swe-smith-xml", "nebius-swe-agent", "bfcl", "api-bank", "verifiers", "art", "agentinstruct"),
}


def meaning(conversation: Conversation) -> tuple[object, ...]:
    """What is said, called and offered; ids are each source's own."""
    ids = {
        call.id: f"c{n}"
        for n, call in enumerate(c for m in conversation.messages for c in m.tool_calls)
    }
    messages = [
        (
            message.role,
            message.text,
            message.reasoning,
            [(call.name, call.arguments, ids[call.id]) for call in message.tool_calls],
            (ids[message.tool_call_id], message.name) if message.role == "tool" else None,
            message.loss,
        )
        for message in conversation.messages
    ]
    return messages, [(t.name, t.description, t.parameters) for t in conversation.tools]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["format"])
def test_a_published_row_means_its_conversation(case: dict[str, Any]) -> None:
    assert meaning(read_row(case["row"])) == meaning(read_row(case["expect"]))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["format"])
def test_the_shape_of_a_row_is_found_by_its_keys(case: dict[str, Any]) -> None:
    name = NAMES.get(case["format"], case["format"])

    assert adapter_of(case["row"]).name == (name if name in OWN else "unified")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["format"])
def test_what_was_read_survives_our_own_row(case: dict[str, Any]) -> None:
    conversation = read_row(case["row"])

    row, lost = write_row(conversation)

    assert lost == []
    assert read_row(json.loads(json.dumps(row))) == conversation


def test_a_call_keeps_its_exact_text() -> None:
    row = next(case["row"] for case in CASES if case["format"] == "hermes-fc-v1")

    (call,) = read_row(row).messages[1].tool_calls

    assert call.raw.startswith("<tool_call>\n{'arguments':")


def test_the_sampled_ids_of_a_trace_are_kept() -> None:
    row = next(case["row"] for case in CASES if case["format"] == "verifiers-v1-branch")

    conversation = read_row(row)

    assert conversation.messages[1].metadata["token_ids"] == [4, 5]
    assert conversation.metadata["weights"] == [0.0, 0.0, 0.0, 1.0, 0.5]


def test_reasoning_on_or_off_selects_the_mode() -> None:
    row = next(case["row"] for case in CASES if case["format"] == "nemotron-pt-v1")

    assert read_row(row).metadata["chat_template_kwargs"] == {"enable_thinking": False}


def test_giving_up_marks_the_run_as_failed() -> None:
    row = json.loads(json.dumps(next(c["row"] for c in CASES if c["format"] == "toolbench-sft")))
    row["conversations"][-1]["value"] = (
        '\nThought: I cannot.\nAction: Finish\nAction Input: {"return_type": "give_up_and_restart"}'
    )

    conversation = read_row(row)

    assert conversation.metadata["outcome"] == {
        "status": "failed",
        "reason": "give_up_and_restart",
    }
    assert conversation.messages[-1].text == "I cannot."


def test_a_toolbench_tree_is_its_last_prefix() -> None:
    steps = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    row = {
        "win": True,
        "tree": {},
        "answer_generation": {
            "train_messages": [steps[:1], steps],
            "function": [{"name": "f", "parameters": {"type": "object"}}],
            "valid_data": True,
        },
    }

    conversation = read_row(row)

    assert [m.text for m in conversation.messages] == ["q", "a"]
    assert [tool.name for tool in conversation.tools] == ["f"]
    assert conversation.metadata["answer_generation"] == {"valid_data": True}


def test_functions_beside_the_messages_are_python_calls() -> None:
    row = {
        "messages": [
            {"role": "system", "content": "s", "functions": '[{"name": "f", "parameters": {}}]'},
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "function_calls": 'f(a=1)\nf(a="x, y")'},
            {"role": "environment", "content": "1"},
            {"role": "environment", "content": "2"},
        ]
    }

    messages = read_row(row).messages

    assert [call.arguments for call in messages[2].tool_calls] == [{"a": 1}, {"a": "x, y"}]
    assert [m.text for m in messages[3:]] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('[f(a="x)", b=[1, {"c": 2}], d=None)]', [{"a": "x)", "b": [1, {"c": 2}], "d": None}]),
        ("[f(), Get Weather.now(x=True)]", [{}, {"x": True}]),
        ("I cannot do that (sorry).", None),
        ("[1, 2]", None),
        ("[f(a=", None),
        ("[f(a=open('x'))]", None),
    ],
)
def test_python_calls_are_read_and_nothing_is_evaluated(
    text: str, calls: list[object] | None
) -> None:
    row = {
        "system": "Here is a list of functions in JSON format that you can invoke:\n[]. \n",
        "conversations": [{"from": "user", "value": "q"}, {"from": "assistant", "value": text}],
    }

    message = read_row(row).messages[1]

    assert [call.arguments for call in message.tool_calls] == (calls or [])
    assert message.text == ("" if calls else text)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"conversations": [{"from": "gpt", "value": "<tool_call>\noops\n</tool_call>"}]},
            "a tool call must be JSON, got 'oops'",
        ),
        (
            {"system": "", "chat": "ASSISTANT: <functioncall> f(x)"},
            "a function call must be an object with a name",
        ),
        (
            {"conversations": [{"from": "system", "value": "access to the following APIs: none"}]},
            "no list of tools behind 'access to the following APIs:'",
        ),
        ({"answer_generation": {"train_messages": []}}, "'train_messages' is empty"),
    ],
)
def test_a_malformed_row_says_what_is_wrong(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_row(row)

    assert message in str(caught.value)


def test_an_unknown_shape_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="no dataset shape named 'x'; known: hermes-fc-v1"):
        adapter_named("x")
