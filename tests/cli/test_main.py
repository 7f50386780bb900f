"""The frame of the command line: help, mistakes, and how every command ends."""

import subprocess
import sys
from collections.abc import Callable

import pytest

import antiphon
from antiphon.cli import main
from antiphon.cli._main import COMMANDS, available, guard
from antiphon.errors import DataError, MissingExtraError, UnknownNameError

Capture = pytest.CaptureFixture[str]


def _raise(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


def _python(code: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)


def test_version_is_the_packages(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"antiphon {antiphon.__version__}\n"


def test_help_names_every_installed_command_and_ends_with_examples(capsys: Capture) -> None:
    assert main(["--help"]) == 0

    text = capsys.readouterr().out
    for noun, sentence in available().items():
        assert noun in text
        assert sentence.split()[0] in text
    assert "example:" in text


def test_no_command_shows_the_help_on_stderr_and_is_a_misuse(capsys: Capture) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: antiphon")


def test_an_unknown_command_is_one_line_with_a_suggestion(capsys: Capture) -> None:
    assert main(["veiw"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("antiphon: no command named 'veiw'; known: ")
    assert err.endswith("Did you mean 'view'?\n")


def test_an_unknown_option_is_one_line(capsys: Capture) -> None:
    assert main(["--colour"]) == 2
    assert capsys.readouterr().err == (
        "antiphon: unrecognized arguments: --colour; see antiphon --help\n"
    )


def test_help_and_version_import_no_command() -> None:
    code = (
        "import sys; from antiphon.cli import main; main(['--help']);"
        "print([m for m in sys.modules if m.startswith('antiphon.cli.') and '._' not in m],"
        " 'pydantic' in sys.modules)"
    )
    assert _python(code).stdout.decode().splitlines()[-1] == "[] False"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UnknownNameError("no format named 'x'"), 2, "antiphon: no format named 'x'\n"),
        (DataError("not JSON", path="a.json", line=3), 1, "antiphon: a.json:3: not JSON\n"),
        (FileNotFoundError(2, "No such file or directory", "a\nb"), 1, None),
        (KeyboardInterrupt(), 130, "antiphon: interrupted\n"),
        (DataError("two\nlines \x1b[2J"), 1, "antiphon: two\\nlines \\x1b[2J\n"),
        (DataError("lone \ud800"), 1, "antiphon: lone \\ud800\n"),
    ],
)
def test_what_ends_a_command_is_one_line_and_an_exit_code(
    error: BaseException, code: int, line: str | None, capsys: Capture
) -> None:
    assert guard(_raise(error)) == code
    expected = line or "antiphon: no such file or directory: 'a\\nb'\n"
    assert capsys.readouterr().err == expected


def test_a_missing_extra_is_a_failure_that_names_the_extra(capsys: Capture) -> None:
    assert guard(_raise(MissingExtraError("serving", "serve"))) == 1
    assert "pip install 'antiphon[serve]'" in capsys.readouterr().err


def test_a_programs_own_mistake_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        guard(_raise(ZeroDivisionError()))


def test_a_lone_surrogate_is_printed_as_its_escape() -> None:
    code = (
        "from antiphon.cli._main import guard\n"
        "import sys\n"
        "sys.exit(guard(lambda: print('上海 \\ud800') or 0))"
    )
    done = _python(code)
    assert (done.returncode, done.stdout.decode()) == (0, "上海 \\ud800\n")


def test_a_reader_that_goes_away_ends_a_command_in_silence() -> None:
    code = (
        "from antiphon.cli._main import guard\n"
        "import sys\n"
        "sys.exit(guard(lambda: [print('x' * 999) for _ in range(9999)] and 0))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()

        assert process.stderr.read() == b""
        assert process.wait(10) == 141


def test_every_command_of_the_table_has_its_module() -> None:
    assert available() == COMMANDS


def test_the_tables_help_is_one_short_line_each() -> None:
    assert all(len(text) <= 70 and "\n" not in text for text in COMMANDS.values())
