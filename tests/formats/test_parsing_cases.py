"""Texts from public bug reports, read right whole, by characters, in random and in reported
chunks."""

import json
from typing import Any

import pytest

from antiphon.errors import UnknownNameError
from antiphon.formats import get_format
from antiphon.messages import ToolSpec, message_to_row
from formats.format_cases import cuts, joined, means, parse, rows


def _known(name: str) -> bool:
    try:
        get_format(name)
    except UnknownNameError:
        return False
    return True


CASES = [row for row in rows("parsing.jsonl") if _known(row["format"])]


@pytest.mark.parametrize("row", CASES, ids=[row["id"] for row in CASES])
def test_a_reported_text_is_read_right_in_every_cut(row: dict[str, Any]) -> None:
    fmt = get_format(str(row["format"]))
    tools = [ToolSpec.from_openai(tool) for tool in row["tools"]]
    chunkings = list(cuts(str(row["raw"])))
    if "chunks" in row:
        chunkings.append(row["chunks"])

    for chunks in chunkings:
        message, deltas = parse(fmt, chunks, tools=tools, start=row["start"])

        if row["check"] == "survive":
            kept = json.dumps(message_to_row(message), ensure_ascii=False)
            assert all(word in kept for word in row["survive"])
        else:
            assert any(means(message, e) for e in [row["expect"], *row.get("alt", [])])
            text, thinking, calls = joined(deltas)
            assert (text, thinking) == (message.text, message.reasoning)
            if not message.invalid_tool_calls:
                assert [(name, json.loads(arguments)) for name, arguments in calls] == [
                    (call.name, call.arguments) for call in message.tool_calls
                ]
