"""`antiphon tools` shows, checks and calls, and says in a line what it cannot."""

import json
import shlex
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.cli import tools as command

WEATHER = "antiphon.tools.builtin:get_weather"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "my_shop_tools.py"
    path.write_text(
        '"""Tools."""\n'
        "from antiphon.tools import tool\n\n"
        "def price(sku: str, n: int = 1) -> int:\n"
        '    """What some cost.\n\n    Args:\n'
        '        sku: The item.\n        n: How many.\n    """\n'
        "    return 7 * n\n\n"
        "bare = tool(lambda x: x, name='bare')\n",
        "utf-8",
    )
    return path


def test_show_prints_what_a_model_sees(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "show", f"{module}:price"]) == 0

    function = json.loads(capsys.readouterr().out)["function"]
    assert function["name"] == "price"
    assert function["parameters"]["properties"]["sku"]["description"] == "The item."


@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "anthropic", "gemini", "mcp"])
def test_show_speaks_every_dialect(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "show", WEATHER, "--as", dialect]) == 0

    assert "get_weather" in capsys.readouterr().out


def test_call_prints_the_answer(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "call", f"{module}:price", '{"sku": "a", "n": "3"}']) == 0

    shown = capsys.readouterr()
    assert shown.out == "21\n"
    assert shown.err == "mended: n: text read as int\n"


def test_call_prints_the_whole_result_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "call", WEATHER, '{"town": "Lima"}', "--json"]) == 1

    assert json.loads(capsys.readouterr().out)["is_error"] is True


def test_check_lists_findings_and_fails(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "check", str(module)]) == 1

    shown = capsys.readouterr()
    assert f"{module}:13: bare: has no description" in shown.out
    assert "1 tools, 4 findings" in shown.err


def test_check_finds_nothing_in_the_demonstration_tools(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["tools", "check", "antiphon.tools.builtin"]) == 0

    assert capsys.readouterr().err == "5 tools, 0 findings\n"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("import nothing_of_that_name", "does not import: ModuleNotFoundError"),
        ("x = 1 / 0", "does not import: ZeroDivisionError"),
        ("def f(:", "does not import: SyntaxError"),
        ("raise SystemExit(3)", "does not import: SystemExit"),
        ("x = 1", "has no 'f'"),
        ("f = 3", "is int, not a tool"),
        ("import sqlite3\ndef f(c: sqlite3.Connection): ...", "sqlite3.Connection"),
    ],
)
def test_a_module_that_does_not_import_is_one_line_and_exit_code_2(
    source: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken_tools.py"
    path.write_text(source, "utf-8")

    assert main(["tools", "show", f"{path}:f"]) == 2

    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("spec", ["nothing_of_that_name:f", "no/such/file.py:f", ":f", "json:"])
def test_a_module_that_is_not_there_is_one_line(
    spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tools", "call", spec, "{}"]) == 2

    assert capsys.readouterr().err.count("\n") == 1


def test_the_example_in_the_help_runs(capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command._EPILOG.splitlines()[-1])  # pyright: ignore[reportPrivateUsage]

    assert main(words[1:]) == 0

    assert "Lima" in capsys.readouterr().out
