"""Files under one root, and nothing outside it, whatever a model asks for."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import UsageError
from antiphon.messages import ToolResult
from antiphon.tools import Tool
from antiphon.tools.builtin import files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "notes").mkdir(parents=True)
    (root / "a.txt").write_text("one\nTwo\nthree\n", "utf-8")
    (root / "notes" / "b.md").write_text("two of b\n", "utf-8")
    (root / "binary.bin").write_bytes(b"\0\1\2")
    (tmp_path / "secret.txt").write_text("secret two", "utf-8")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "out").symlink_to(tmp_path)
    return root


class Box:
    def __init__(self, root: Path) -> None:
        self.tools: dict[str, Tool[..., Any]] = {t.name: t for t in files(root)}

    def __call__(self, name: str, **arguments: Any) -> ToolResult:
        return asyncio.run(self.tools[name].call(arguments))


@pytest.fixture
def box(root: Path) -> Box:
    return Box(root)


def test_there_are_four_tools_or_three_that_only_read(root: Path) -> None:
    assert [t.name for t in files(root)] == [
        "list_files",
        "read_file",
        "search_files",
        "write_file",
    ]
    assert [t.name for t in files(root, write=False)] == ["list_files", "read_file", "search_files"]


def test_a_root_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="directory"):
        files("/no/such/folder")


def test_files_are_listed_with_folders_marked(box: Box) -> None:
    listed = box("list_files").value

    assert listed == ["a.txt", "binary.bin", "link.txt", "notes/", "out/"]
    assert box("list_files", pattern="**/*.md").value == ["notes/b.md"]


def test_a_long_file_is_read_in_parts(box: Box) -> None:
    assert box("read_file", path="a.txt").text == "one\nTwo\nthree\n"
    part = box("read_file", path="a.txt", first_line=2, max_lines=1).text
    assert part.startswith("Two\n")
    assert "first_line=3" in part


def test_search_finds_lines_in_any_case_and_follows_no_link(box: Box) -> None:
    assert box("search_files", text="two").value == ["a.txt:2: Two", "notes/b.md:1: two of b"]


def test_a_file_is_written_and_added_to(box: Box, root: Path) -> None:
    assert box("write_file", path="new/c.txt", content="x").text == "wrote 1 bytes to new/c.txt"
    box("write_file", path="new/c.txt", content="y", append=True)

    assert (root / "new" / "c.txt").read_text("utf-8") == "xy"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "notes/../../secret.txt",
        "/etc/passwd",
        "link.txt",
        "out/secret.txt",
        "out",
        "//etc/passwd",
        "notes/./../..//secret.txt",
        "~/../../etc/passwd",
    ],
)
@pytest.mark.parametrize("name", ["read_file", "write_file", "list_files", "search_files"])
def test_nothing_outside_the_root_is_touched(box: Box, root: Path, name: str, path: str) -> None:
    arguments: dict[str, Any] = {
        "read_file": {"path": path},
        "write_file": {"path": path, "content": "owned"},
        "list_files": {"folder_path": path},
        "search_files": {"text": "secret", "folder_path": path},
    }[name]

    result = box(name, **arguments)

    assert result.is_error
    assert "secret two" not in result.text
    assert (root.parent / "secret.txt").read_text("utf-8") == "secret two"


def test_a_link_in_the_middle_of_a_new_path_leads_nowhere(box: Box, root: Path) -> None:
    assert box("write_file", path="out/new/x.txt", content="x").is_error
    assert not (root.parent / "new").exists()


def test_the_root_itself_cannot_be_read_or_written(box: Box) -> None:
    assert box("read_file", path=".").is_error
    assert box("write_file", path="", content="x").is_error


def test_a_pipe_is_not_waited_for(box: Box, root: Path) -> None:
    os.mkfifo(root / "pipe")

    assert "no regular file" in box("read_file", path="pipe").text
    assert "no regular file" in box("write_file", path="pipe", content="x").text
    assert not box("search_files", text="two").is_error


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "loop"])
def test_a_path_that_is_none_is_an_answer(box: Box, root: Path, path: str) -> None:
    (root / "loop").symlink_to("loop")

    assert box("read_file", path=path).is_error


def test_what_is_no_text_or_too_much_is_not_read(box: Box, root: Path) -> None:
    (root / "big.txt").write_text("x" * 1_000_001, "utf-8")

    assert "binary" in box("read_file", path="binary.bin").text
    assert "at most" in box("read_file", path="big.txt").text
    assert "at most" in box("write_file", path="c.txt", content="x" * 1_000_001).text
    assert not (root / "c.txt").exists()


def test_a_missing_file_is_answered_with_what_there_is(box: Box) -> None:
    text = box("read_file", path="b.txt").text

    assert "there is no file 'b.txt'" in text
    assert "a.txt" in text
