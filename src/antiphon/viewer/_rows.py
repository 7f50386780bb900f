"""The rows of a dataset as one HTML file: a list to search, and one row beside it.

A page may hold a hundred thousand rows, so nothing is read before it is looked at: the page's data
is a line of JSON about all rows, then a line for each block of them, packed by gzip and written in
base64, which is inert whatever the rows say.
"""

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.events import Trajectory
from antiphon.messages import Conversation, JsonObject, JsonValue, dump_json
from antiphon.viewer._data import conversation_items, dump_for_script
from antiphon.viewer._document import render_document
from antiphon.viewer._encoding import Encoding
from antiphon.viewer._steps import encoding_row

_MAX_TITLE_CHARS = 160
_ROWS_A_BLOCK = 500


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """A row of a dataset to show."""

    conversation: Conversation
    """What it holds; empty where it cannot be read."""
    name: str = ""
    """What the list calls it: its line, for example."""
    problems: tuple[str, ...] = ()
    """What is wrong with it, a sentence each."""
    encodings: tuple[Encoding, ...] = ()
    """It as a trainer would see it, where somebody prepared that."""


def render_rows(rows: Iterable[DatasetRow], *, title: str = "") -> str:
    """Draw the rows of a dataset as one HTML page.

    Args:
        rows: What to show.
        title: What the window is called: a file's name, for example.

    Returns:
        The page, which encodes as UTF-8.
    """
    blocks: list[str] = []
    lines: list[bytes] = []
    counts: list[JsonValue] = []
    for row in rows:
        lines.append(_line(_row(row)))
        if len(lines) == _ROWS_A_BLOCK:
            blocks.append(_packed(lines))
            lines.clear()
        messages = row.conversation.messages
        n_calls = sum(len(m.tool_calls) + len(m.invalid_tool_calls) for m in messages)
        counts.append([len(messages), n_calls, len(row.problems)])
    if lines:
        blocks.append(_packed(lines))
    about: JsonObject = {"name": title, "counts": counts, "rows_a_block": _ROWS_A_BLOCK}
    return render_document(
        "\n".join([dump_for_script(about), *blocks]),
        title=title,
        scripts=("parts.js", "cards.js", "tokens.js", "rows.js"),
        styles=("page.css", "rows.css"),
    )


def _row(row: DatasetRow) -> JsonObject:
    conversation = row.conversation
    metadata = conversation.metadata
    asked = next((m.text for m in conversation.messages if m.role == "user" and m.text), "")
    source = metadata.get("source")
    return {
        "name": row.name,
        "title": asked[:_MAX_TITLE_CHARS],
        "source": source if isinstance(source, str) else "",
        "error": row.problems[0] if row.problems and not conversation.messages else "",
        "problems": list(row.problems),
        "tools": [
            {
                "name": spec.name,
                "description": spec.description,
                "parameters": dump_json(spec.parameters),
            }
            for spec in conversation.tools
        ],
        "items": conversation_items(Trajectory(conversation)),
        "encodings": [encoding_row(encoding) for encoding in row.encodings],
        "beside": {key: dump_json(value) for key, value in metadata.items()},
    }


def _line(value: JsonObject) -> bytes:
    """One line of JSON, with text of all scripts as it is, so that it can be searched."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _packed(lines: list[bytes]) -> str:
    packed = gzip.compress(b"\n".join(lines), compresslevel=6, mtime=0)
    return base64.b64encode(packed).decode("ascii")
