"""What ms-swift 4.6 makes of conversations, and each place where we do not follow it.

The golden file has its text and the weight of each byte, 0 where its label is -100.  A deviation is
listed with its reason and mends the golden text; everything else is equal.  Weights are compared
where the texts are equal without a mend.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import read_row
from antiphon.encode import Encoder, FastTokenizer
from antiphon.formats import get_format
from antiphon.messages import Conversation

FOLDER = Path(__file__).parents[1]
GOLDEN = [
    json.loads(line)
    for line in (FOLDER / "encode" / "cases" / "swift.jsonl").read_text("utf-8").splitlines()
]
CONVERSATIONS: dict[str, Conversation] = {
    case["id"]: read_row(case["unified"])
    for line in (FOLDER / "formats/cases/conversations.jsonl").read_text("utf-8").splitlines()
    if (case := json.loads(line))
}
VARIANTS: dict[str, dict[str, Any]] = {"hermes": {}}
"""The variants that ms-swift's template is; the ReAct ones print arguments as Python does."""

Mend = Callable[[str, Conversation], str]


def _call_on_a_line_of_its_own(text: str, _: Conversation) -> str:
    """A call behind text begins a line: the models' own templates write it so (#8327)."""
    return re.sub(r"(?<=[^\n>])(<tool_call>\n\{|Action: \w+\nAction Input: [{'])", r"\n\1", text)


def _reasoning_ends_with_one_line_feed(text: str, _: Conversation) -> str:
    """The rows hold one line feed more than Hermes' text has behind reasoning."""
    return text.replace("</think>\n\n", "</think>\n")


def _system_is_kept(text: str, conversation: Conversation) -> str:
    """The user's system message is dropped where there are tools; what was said must be shown."""
    first = conversation.messages[0]
    if first.role != "system" or not conversation.tools or first.text in text:
        return text
    return text.replace("<|im_start|>system\n", f"<|im_start|>system\n{first.text}\n\n", 1)


def _reasoning_is_a_thought(text: str, _: Conversation) -> str:
    """A ReAct prompt asks for ``Thought:`` and, behind one, ``Final Answer:``; it knows no
    ``<think>``."""
    text = re.sub(r"<think>\n(.*?)\n</think>\n\n(?!Action:)", r"Thought: \1\nFinal Answer: ", text)
    return re.sub(r"<think>\n(.*?)\n</think>\n\n", r"Thought: \1\n", text)


def _no_end_behind_an_open_observation(text: str, _: Conversation) -> str:
    """Behind ``Observation:`` the result is written, not the end of the turn."""
    return text.removesuffix("\n").removesuffix("<|im_end|>") if _is_open(text) else text


def _is_open(text: str) -> bool:
    return text.removesuffix("\n").endswith("Observation:<|im_end|>")


REACT: tuple[Mend, ...] = (
    _call_on_a_line_of_its_own,
    _system_is_kept,
    _reasoning_is_a_thought,
    _no_end_behind_an_open_observation,
)
MENDS: dict[str, tuple[Mend, ...]] = {
    "hermes": (_call_on_a_line_of_its_own, _reasoning_ends_with_one_line_feed),
    "react_en": REACT,
    "react_zh": REACT,
    "toolbench": REACT,
}


def encoder(golden: dict[str, Any], tokenizer: FastTokenizer, loss: str = "default") -> Encoder:
    variants = VARIANTS.get(golden["template"], {"arguments": "python"})
    return Encoder(tokenizer, get_format(golden["template"], **variants), loss=loss)


def name(golden: dict[str, Any]) -> str:
    return f"{golden['template']}/{golden['conversation']}"


@pytest.mark.parametrize("golden", GOLDEN, ids=name)
def test_the_text_is_swifts_but_for_what_is_listed(
    golden: dict[str, Any], qwen2_5: FastTokenizer
) -> None:
    conversation = CONVERSATIONS[golden["conversation"]]

    example = encoder(golden, qwen2_5).encode(conversation)

    expected = golden["text"]
    for mend in MENDS[golden["template"]]:
        expected = mend(expected, conversation)
    assert qwen2_5.decode(example.token_ids.tolist()).rstrip("\n") == expected.rstrip("\n")


EQUAL = [
    (golden, loss)
    for golden in GOLDEN
    for loss in golden["weights"]
    if all(
        mend(golden["text"], CONVERSATIONS[golden["conversation"]]) == golden["text"]
        for mend in MENDS[golden["template"]]
    )
]


@pytest.mark.parametrize(
    ("golden", "loss"), EQUAL, ids=lambda v: v if isinstance(v, str) else name(v)
)
def test_the_weights_are_swifts_but_for_the_line_feed_behind_a_turn(
    golden: dict[str, Any], loss: str, qwen2_5: FastTokenizer
) -> None:
    """ms-swift 4 trains the line feed behind ``<|im_end|>``, which the server writes (3.x did
    not)."""
    example = encoder(golden, qwen2_5, loss).encode(CONVERSATIONS[golden["conversation"]])

    theirs = [weight for weight, n in golden["weights"][loss] for _ in range(n)]
    ours = [
        weight
        for token, weight in zip(
            example.token_ids.tolist(), example.loss_weights.tolist(), strict=True
        )
        for _ in qwen2_5.token_bytes(token)
    ]
    text = golden["text"].encode()
    behind = {m.end() for m in re.finditer(rb"<\|im_end\|>(?=\n)", text)}
    differ = {i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b}
    first = set(range(len("<|im_start|>")))  # nothing predicts it, whatever its label
    assert differ <= behind | first
    assert len(text) - len(ours) <= 1


def test_enough_of_the_golden_file_is_compared_by_weight() -> None:
    assert len(GOLDEN) == 48
    assert len(EQUAL) >= 50
