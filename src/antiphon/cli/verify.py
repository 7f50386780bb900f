"""`antiphon verify`: check trajectories and choose what to train on."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.cli._main import Subparsers
from antiphon.cli._stages import Progress, add_engine_arguments, engine_of, stage_lines
from antiphon.errors import UsageError
from antiphon.events import dump_row

if TYPE_CHECKING:
    from antiphon.verification import Benchmarks, Checks, VerifyReport

_EPILOG = """\
Writes kept.jsonl, dropped.jsonl, report.html and report.json. A wrong message of a kept row has the
loss 0. Exit codes: 0 checked, 1 rows could not be checked, 2 misused.

example:
  antiphon verify build/runs.jsonl --config clerk.toml --against demo --out build/verified"""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon verify`."""
    parser = subparsers.add_parser(
        "verify",
        help="check trajectories: drop what is wrong, mask wrong steps",
        description="Check rows: format, execution, answers by rule, tests, a judge, duplicates.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="rows, best trajectories of antiphon synth")
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder to write to")
    parser.add_argument("--config", metavar="FILE", help="the config that made the rows: its tools")
    parser.add_argument(
        "--tools",
        nargs="+",
        default=[],
        metavar="MODULE:NAME",
        help="tools to make calls again with",
    )
    parser.add_argument(
        "--world", default="", metavar="MODULE:FUNCTION", help="makes fresh tools for each row"
    )
    parser.add_argument(
        "--tests", nargs="+", default=[], metavar="MODULE:FUNCTION", help="functions of a record"
    )
    parser.add_argument("--judge", default="", metavar="SPEC", help="a model that judges")
    parser.add_argument("--votes", type=int, default=1, metavar="N", help="how often (default 1)")
    parser.add_argument("--rubric", metavar="FILE", help="what the judge goes by, as text")
    parser.add_argument(
        "--against",
        nargs="+",
        default=[],
        metavar="BENCHMARK",
        help="benchmarks, or files of rows, that no row may ask",
    )
    parser.add_argument(
        "--near",
        type=float,
        default=0.85,
        metavar="SHARE",
        help="likeness of near duplicates, 0.5 to 1; 0 keeps all (default 0.85)",
    )
    parser.add_argument(
        "--keep-all", action="store_true", help="keep wrong rows, too, with their reason"
    )
    parser.add_argument("--concurrency", type=int, default=32, metavar="N", help="rows at once")
    add_engine_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check the rows.

    Raises:
        AntiphonError: A file, a tool, a test or the judge cannot be used.
    """
    from antiphon.verification import save_report, verify_file

    if args.votes < 1:
        raise UsageError(f"--votes must be at least 1, got {args.votes}")
    progress = Progress()
    report = asyncio.run(
        verify_file(
            args.file,
            Path(args.out),
            _checks(args),
            near=args.near or None,
            against=_benchmarks(args.against) if args.against else None,
            keep_all=args.keep_all,
            engine=engine_of(args),
            concurrency=args.concurrency,
            progress=lambda stage: progress.show("verify", stage),
        )
    )
    progress.end()
    if report.stage.is_complete:
        save_report(report)
    print(dump_row(report.to_row(), indent=1) if args.json else "\n".join(_lines(report)))
    return 0 if report.stage.is_complete else 1


def _checks(args: argparse.Namespace) -> "Checks":
    from antiphon.synthesis import read_config
    from antiphon.verification import RUBRIC, Checks

    return Checks(
        synthesis=read_config(args.config) if args.config else None,
        tools=tuple(args.tools),
        world=args.world,
        tests=tuple(args.tests),
        judge=args.judge,
        votes=args.votes,
        rubric=Path(args.rubric).read_text("utf-8") if args.rubric else RUBRIC,
    )


def _benchmarks(names: list[str]) -> "Benchmarks":
    """Benchmarks by name, or the questions of a file of rows."""
    from antiphon.datasets import read_rows
    from antiphon.evaluation import load_cases
    from antiphon.verification import Benchmarks

    found = Benchmarks()
    for name in names:
        if Path(name).is_file():
            for number, conversation in enumerate(read_rows(name)):
                users = [m.text for m in conversation.messages if m.role == "user"]
                calls = [c for m in conversation.messages for c in m.tool_calls]
                for text in users:
                    found.add(f"{name} row {number}", text)
                found.add(f"{name} row {number}", users[0] if users else "", calls)
        else:
            for case in load_cases(name):
                calls = [call for step in case.steps for call in step]
                found.add(f"{name} {case.id}", case.question, calls)
    return found


def _lines(report: "VerifyReport") -> list[str]:
    lines = stage_lines("checked", report.stage)
    if not report.stage.is_complete:
        return lines
    lines.append(f"kept {report.n_kept} of {report.n_kept + report.n_dropped}")
    lines += [f"  dropped {n}: {name}" for name, n in report.dropped.most_common()]
    if report.n_masked:
        lines.append(f"  {report.n_masked} wrong messages in kept rows have the loss 0")
    if report.usage.n_requests:
        lines.append(f"{report.usage.n_requests} calls of the judge")
    lines.append(f"written to {report.out}, see report.html")
    return lines
