"""Parquet, Arrow and zstd files hold the rows that JSON lines hold, and name what is broken."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import RowFile, iter_lines, iter_rows, read_rows
from antiphon.errors import DataError

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

ROWS: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "user", "content": "Ferry to 北京?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c0", "function": {"name": "f", "arguments": {"x": 1.785, "n": None}}}
                ],
            },
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "score": 0.1,
    },
    {"messages": [{"role": "user", "content": "b"}], "other": {"deep": [1, {"y": None}]}},
]
KINDS = ["rows.jsonl", "rows.jsonl.gz", "rows.jsonl.zst", "rows.parquet", "rows.arrow"]


@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    many: list[dict[str, Any]] = [*ROWS, *({"messages": [], "n": i} for i in range(600))]

    with RowFile(path) as file:
        for row in many:
            file.write(row)

    assert [row for _, row in iter_rows(path)] == many
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_left_where_writing_fails(tmp_path: Path, name: str) -> None:
    def fail_behind_a_row() -> None:
        with RowFile(tmp_path / name) as file:
            file.write(ROWS[0])
            raise KeyError

    with pytest.raises(KeyError):
        fail_behind_a_row()

    assert list(tmp_path.iterdir()) == []


def test_nulls_that_arrow_gave_a_row_are_not_its_own(tmp_path: Path) -> None:
    messages = [
        [{"role": "user", "content": "a"}],
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "g", "arguments": '{"y": 2}'}}],
            }
        ],
    ]
    pq.write_table(pa.table({"messages": messages, "id": ["1", None]}), str(tmp_path / "a.parquet"))

    rows = [row for _, row in iter_rows(tmp_path / "a.parquet")]

    assert rows == [{"messages": messages[0], "id": "1"}, {"messages": messages[1]}]
    assert [c.messages[0].role for c in read_rows(tmp_path / "a.parquet")] == ["user", "assistant"]


def test_media_of_a_data_set_become_data_uris(tmp_path: Path) -> None:
    table = pa.table(
        {
            "messages": [[{"role": "user", "content": "<image>What?"}]],
            "images": [[{"bytes": b"\x89PNG\r\n", "path": "a.png"}]],
        }
    )
    pq.write_table(table, str(tmp_path / "a.parquet"))

    (conversation,) = read_rows(tmp_path / "a.parquet")

    assert conversation.messages[0].images[0].source.startswith("data:image/png;base64,")


def test_a_data_set_that_was_saved_is_read(tmp_path: Path) -> None:
    table = pa.table({"messages": [[{"role": "user", "content": "a"}]]})
    with pa.ipc.new_stream(str(tmp_path / "data-00000-of-00001.arrow"), table.schema) as writer:
        writer.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    (tmp_path / "state.json").write_text(json.dumps(state), "utf-8")

    assert [line for line, _ in iter_lines(tmp_path)] == [1]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.jsonl.zst"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PAR1 this is none of them" * 9)

    with pytest.raises(DataError, match=f"{name}: cannot be read"):
        list(iter_rows(tmp_path / name))


def test_a_directory_that_is_no_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no data set that was saved with save_to_disk"):
        list(iter_rows(tmp_path))
