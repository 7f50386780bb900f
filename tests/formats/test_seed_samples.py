"""The seed's samples are rendered to their exact text."""

import json
from dataclasses import replace
from typing import Any

import pytest

from antiphon.formats import get_format
from antiphon.messages import (
    Conversation,
    ImagePart,
    Message,
    Part,
    TextPart,
    ToolCall,
    ToolSpec,
    message_from_row,
)
from formats.format_cases import rows

FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "parallel_aqi/hermes": ("hermes", {}),
    "click_screen/hermes": ("qwen2_5_vl", {}),
    "parallel_aqi/react_en": ("react_en", {"arguments": "python"}),
}


def _parts(text: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    for i, piece in enumerate(text.split("<image>")):
        parts += [ImagePart("image.png")] if i else []
        parts += [TextPart(piece)] if piece else []
    return tuple(parts)


def _conversation(row: dict[str, Any]) -> Conversation:
    messages: list[Message] = []
    for entry in row["messages"]:
        if entry["role"] == "tool_call":
            call = ToolCall(**json.loads(entry["content"]))
            if messages[-1].role != "assistant":
                messages.append(Message.assistant())
            last = messages.pop()
            messages.append(replace(last, tool_calls=(*last.tool_calls, call)))
        elif entry["role"] == "assistant":
            messages.append(message_from_row(entry))
        else:
            role = "tool" if entry["role"] == "tool_response" else entry["role"]
            messages.append(Message(role, _parts(entry["content"])))
    return Conversation(tuple(messages), tuple(map(ToolSpec.from_openai, json.loads(row["tools"]))))


@pytest.mark.parametrize("sample", rows("seed_samples.jsonl"), ids=lambda sample: sample["id"])
def test_a_seed_sample_is_its_text(sample: dict[str, Any]) -> None:
    name, variant = FORMATS[sample["id"]]

    text = get_format(name, **variant).render(_conversation(sample["row"])).text

    assert text == sample["text"].replace("[151655 * 729]", "<|image_pad|>")
