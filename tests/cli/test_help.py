"""Every command's help ends with examples, and the examples are commands."""

import shlex

import pytest

from antiphon.cli import main
from antiphon.cli._main import available, parse

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("noun", available())
def test_a_commands_help_ends_with_examples_that_are_commands(noun: str, capsys: Capture) -> None:
    assert main([noun, "--help"]) == 0
    lines = [
        line.strip().removeprefix("example: ") for line in capsys.readouterr().out.splitlines()
    ]
    examples = [line for line in lines if line.startswith(f"antiphon {noun}")]

    assert examples != []
    for example in examples:
        command, arguments = parse(shlex.split(example, comments=True)[1:])
        assert command is not None
        assert arguments.noun == noun


@pytest.mark.parametrize("noun", available())
def test_a_command_without_its_arguments_is_no_traceback(noun: str, capsys: Capture) -> None:
    assert main([noun, "--no-such-flag"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
