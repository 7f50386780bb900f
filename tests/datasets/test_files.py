"""Files are read a row at a time, and what is wrong is told with its line."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.datasets import _files as files
from antiphon.datasets import iter_rows, read_rows
from antiphon.errors import DataError

ROWS = [{"messages": [{"role": "user", "content": f'q{i} "[{{'}]} for i in range(3)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)

SHAPES = {
    "lines": LINES,
    "lines with gaps": LINES.replace("\n", "\n\n"),
    "no line break at the end": LINES.rstrip(),
    "an array": json.dumps(ROWS),
    "an array over many lines": json.dumps(ROWS, indent=2),
    "objects over many lines": "\n".join(json.dumps(row, indent=1) for row in ROWS),
    "a byte order mark": "\ufeff" + LINES,
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_file_may_have_any_of_these_shapes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text, encoding="utf-8")

    assert [row for _, row in iter_rows(path)] == ROWS


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_a_compressed_file_is_read_as_it_is(
    suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / f"rows.jsonl{suffix}"
    path.write_bytes(compress(LINES.encode()))

    assert [row for _, row in iter_rows(path)] == ROWS


@given(
    rows=st.lists(
        st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3), max_size=5
    ),
    chunk=st.integers(1, 40),
    indent=st.sampled_from([None, 0, 2]),
)
@settings(max_examples=50, deadline=None)
def test_an_array_is_read_the_same_in_any_chunks(
    rows: list[dict[str, str]],
    chunk: int,
    indent: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "chunks.json"
    path.write_text(json.dumps(rows, indent=indent, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_CHUNK_BYTES", chunk)

        read = [row for _, row in iter_rows(path)]

    assert read == rows


def test_rows_of_an_array_know_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS, indent=1))

    assert [line for line, _ in iter_rows(path)] == [2, 10, 18]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.touch()

    assert list(iter_rows(path)) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINES.encode() + b"{oops\n", "rows.jsonl:4: not JSON"),
        (LINES.encode() + b"3\n", "rows.jsonl:4: a row must be an object, got 3"),
        (LINES.encode() + b'{"a": "\xff"}\n', "rows.jsonl:4: not UTF-8: byte 0xff"),
        (LINES.encode() + b"[" * 100_000, "rows.jsonl:4: not JSON"),
        (b'[{"messages": []}, 3]', "rows.jsonl:1: behind the rows stands"),
        (b'[{"messages": []} 3 {"messages": []}]', "rows.jsonl:1: between rows stands"),
        (b'[{"messages": []},\n{"b": ', "rows.jsonl:2: the file ends inside a row"),
        (LINES.encode() + b'{"rows": 1}\n', "rows.jsonl:4: a row needs 'messages'"),
    ],
)
def test_a_broken_row_is_told_with_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)

    with pytest.raises(DataError) as caught:
        list(read_rows(path))

    assert message in str(caught.value)


def test_with_a_report_the_other_rows_go_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n' + LINES + "{oops\n" + LINES)
    told: list[DataError] = []

    read = list(read_rows(path, report=told.append))

    assert len(read) == 6
    assert [error.line for error in told] == [1, 5]


def test_a_damaged_compressed_file_is_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(LINES.encode())[:-12])

    with pytest.raises(DataError, match="the compressed data is damaged"):
        list(iter_rows(path))


def test_a_missing_file_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(iter_rows(tmp_path / "none.jsonl"))
