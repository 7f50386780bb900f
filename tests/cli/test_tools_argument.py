"""Tools named on the command line."""

import sys
from pathlib import Path

import pytest

from antiphon.cli._tools import find_tools  # pyright: ignore[reportPrivateUsage]
from antiphon.errors import UsageError

SOURCE = '''
from antiphon import tool


@tool
def first(n: int) -> int:
    """One."""
    return n


@tool
def second(n: int) -> int:
    """Two."""
    return n


def plain(n: int) -> int:
    """Three."""
    return n


BOTH = [first, plain]
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mine_tools.py"
    path.write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine_tools", raising=False)
    return path


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("mine_tools:first", ["first"]),
        ("mine_tools:plain", ["plain"]),
        ("mine_tools:BOTH", ["first", "plain"]),
        ("mine_tools", ["first", "second"]),
        ("mine_tools.py", ["first", "second"]),
        ("mine_tools.py:second", ["second"]),
        ("antiphon.tools.builtin:DEMO_TOOLS", None),
    ],
)
def test_a_name_stands_for_its_tools(mine: Path, name: str, found: list[str] | None) -> None:
    names = [tool.name for tool in find_tools([name])]

    assert names == found if found is not None else "calculator" in names


def test_a_module_without_tools_gives_its_public_functions(mine: Path) -> None:
    mine.write_text("def one(n: int) -> int:\n    'One.'\n    return n\n\n\ndef _two(): ...\n")

    assert [tool.name for tool in find_tools([str(mine)])] == ["one"]


def test_each_tool_is_found_once(mine: Path) -> None:
    assert len(find_tools(["mine_tools", "mine_tools:first"])) == 2


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_thing_at_all", "cannot be imported: ModuleNotFoundError"),
        ("raise RuntimeError('no key')", "cannot be imported: RuntimeError: no key"),
        ("x = 1", "has no tool and no public function"),
        ("def f(x: 'Nowhere'): return x", "cannot be a tool"),
    ],
)
def test_a_module_that_cannot_be_used_says_why(mine: Path, source: str, reason: str) -> None:
    mine.write_text(source)

    with pytest.raises(UsageError, match=reason):
        find_tools(["mine_tools"])
