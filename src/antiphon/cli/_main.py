"""The frame of every command: finds its module, runs it, and turns errors into one line.

This module knows the commands' names and one sentence each; it imports a command's module only when
that command is used, so that ``antiphon --help`` stays fast however many extras the others need.

Exit codes: 0 done, 1 failed, 2 misused, 130 interrupted, 141 the reader of a pipe went away, 143
terminated.
"""

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol, TypeAlias, cast

import antiphon
from antiphon.errors import AntiphonError, UsageError, clip

COMMANDS = {
    "run": "ask a question and let a model answer it with tools",
    "chat": "talk with a model that has tools, in the terminal",
    "tools": "show the schema that a model sees of a function, and check it",
    "formats": "list, show, render and parse the text of model families",
    "models": "which local models there are; fetch and verify them",
    "runs": "list, show and go on with runs that a store keeps",
    "view": "draw a recorded run as one HTML page",
    "encode": "turn conversations into tokens, labels and loss weights",
    "train": "fine-tune a model on rows",
    "data": "convert, check, count and deduplicate datasets",
    "synth": "make trajectories: write tasks, let an agent do them",
    "verify": "check trajectories: drop what is wrong, mask wrong steps",
    "eval": "measure a model on a benchmark",
    "serve": "serve a model as an OpenAI-compatible endpoint",
}
"""Each noun and its line in the help.  Its module is ``antiphon.cli.<noun>``."""

# What ``ArgumentParser.add_subparsers`` returns has no public name.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # pyright: ignore[reportPrivateUsage]
"""The argument of a command's ``add_parser``."""

_EPILOG = """\
example:
  antiphon run "What is 17.5% of 2340?"

`antiphon COMMAND --help` tells more about each command."""


class Command(Protocol):
    """A command's module."""

    def add_parser(self, subparsers: Subparsers) -> object:
        """Add the noun's parser, with its arguments and an example in the epilog."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do the work and return the exit code.

        Raises:
            AntiphonError: It cannot be done; the frame prints the message.
        """
        ...


class Parser(argparse.ArgumentParser):
    """An argument parser that explains a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where the help is; exit code 2."""
        self.exit(2, f"{self.prog}: {_one_line(message)}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; the process's own by default.

    Returns:
        The exit code.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    return guard(lambda: _dispatch(arguments))


def guard(work: Callable[[], int]) -> int:
    """Run a command's work and turn whatever ends it into an exit code and one line on stderr.

    Args:
        work: Returns the exit code of what went well.
    """
    _make_streams_safe()
    try:
        code = work()
        sys.stdout.flush()
    except AntiphonError as error:
        return _fail(str(error), 2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        # Python flushes stdout once more on exit; give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        if error.filename is None:
            raise
        return _fail(f"{_reason(error)}: {clip(os.fsdecode(error.filename), 300)}", 1)
    except SystemExit as end:  # argparse ends --help, --version and mistakes this way
        return end.code if isinstance(end.code, int) else 0
    return code


def _dispatch(argv: list[str]) -> int:
    command, arguments = parse(argv)
    if command is None:
        _overview().print_help(sys.stderr)
        return 2
    return command.run(arguments)


def parse(argv: Sequence[str]) -> tuple[Command | None, argparse.Namespace]:
    """Find a command's module and read its arguments.

    Args:
        argv: Arguments without the program's name.

    Returns:
        The module and its arguments; no module where there is no argument at all.

    Raises:
        UsageError: There is no such command, or it does not come first.
        SystemExit: argparse printed help, the version, or what is wrong.
    """
    noun = argv[0] if argv else ""
    if noun in available():
        module = cast("Command", importlib.import_module(f"antiphon.cli.{noun}"))
        parser = _parser()
        module.add_parser(parser.add_subparsers(dest="noun", metavar="COMMAND"))
        return module, parser.parse_args(argv)
    if noun and not noun.startswith("-"):
        raise UsageError(_unknown(noun))
    arguments = _overview().parse_args(argv) if argv else argparse.Namespace()
    if argv:
        raise UsageError(f"a command must come first, got {clip(noun)}; see antiphon --help")
    return None, arguments


def _parser() -> argparse.ArgumentParser:
    return Parser(prog="antiphon")


def available() -> dict[str, str]:
    """The commands whose modules are installed, each with its line of help."""
    here = set(os.listdir(os.path.dirname(__file__)))
    return {noun: text for noun, text in COMMANDS.items() if f"{noun}.py" in here}


def _overview() -> Parser:
    parser = Parser(
        prog="antiphon",
        description="Tools, formats, agents, data and training for models that call tools.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"antiphon {antiphon.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for noun, text in available().items():
        commands.add_parser(noun, help=text)
    return parser


def _unknown(noun: str) -> str:
    known = available()
    near = difflib.get_close_matches(noun, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no command named {clip(noun)}; known: {', '.join(known)}.{hint}"


def _fail(message: str, code: int) -> int:
    print(f"antiphon: {_one_line(message)}", file=sys.stderr)
    return code


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _one_line(text: str) -> str:
    """Text without line breaks, terminal control sequences or anything else unprintable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _make_streams_safe() -> None:
    """Write UTF-8, and a lone surrogate as its escape: what a model wrote may hold anything."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
