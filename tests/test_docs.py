"""What the documents show runs, and what they point to is there.

Python blocks of a page run in order, in one namespace and an empty folder; the output of a
``print`` is the comment behind it.  Commands in shell blocks are parsed by the command itself.
"""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import antiphon
from antiphon.cli._main import available, parse

ROOT = Path(__file__).resolve().parents[1]
MADE = [page for page in ROOT.glob("docs/formats/*.md") if page.name != "README.md"]
"""Made from code, of texts that models read and write; what looks like a link there is none."""
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")} - set(MADE)
)
Capture = pytest.CaptureFixture[str]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def _blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in _BLOCK.findall(page.read_text("utf-8")) if name == language]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _expected(code: str) -> list[str]:
    """The comments behind the calls of ``print`` that stand at the top of a block, in order."""
    lines = code.splitlines()
    found: list[str] = []
    for node in ast.parse(code).body:
        last = lines[(node.end_lineno or 0) - 1]
        if ast.unparse(node).startswith("print(") and "  # " in last:
            found.append(last.rpartition("  # ")[2])
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p, "python")], ids=_name)
def test_the_python_on_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__docs__"}

    for block in _blocks(page, "python"):
        exec(compile(block, _name(page), "exec"), namespace)
        printed = capsys.readouterr().out.splitlines()
        expected = _expected(block)
        assert printed[: len(expected)] == expected


def _commands(page: Path) -> list[str]:
    lines = [line for block in _blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("antiphon ")]


@pytest.mark.parametrize(
    ("page", "line"),
    [(page, line) for page in PAGES for line in _commands(page)],
    ids=lambda value: _name(value) if isinstance(value, Path) else value,
)
def test_a_command_on_a_page_is_one(page: Path, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    words = words[: words.index("|")] if "|" in words else words
    if words[0].startswith("-"):
        return
    assert words[0] in available()

    command, _ = parse(words)

    assert command is not None


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text("utf-8")) if "://" not in link]
    missing = [link for link in links if not (page.parent / link.partition("#")[0]).exists()]
    assert missing == []


def test_the_architecture_fits_in_150_lines() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) < 150


def test_the_map_marks_the_rooms_that_are_not_there_and_no_other() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)`( \*)? \| [^|]*\| ", page, re.MULTILINE)
    source = Path(antiphon.__file__).parent

    there = {name for name, _ in rows if list(source.glob(f"{name}*"))}

    assert there == {name for name, planned in rows if not planned}


def test_a_print_with_a_comment_is_expected_and_other_lines_are_not() -> None:
    code = 'x = 1  # one\nprint(x)  # 1\nfor i in [2]:\n    print(i)  # 2\nprint("#")'
    assert _expected(code) == ["1"]


def test_the_generated_tables_are_as_the_code_is_now() -> None:
    """``make docs`` writes them."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_tables.py"), "--check"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
