"""`antiphon synth`: make trajectories with agents, from one file."""

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.batch import Report
from antiphon.cli._main import Subparsers
from antiphon.cli._stages import Progress, add_engine_arguments, engine_of, stage_lines
from antiphon.events import dump_row

if TYPE_CHECKING:
    from antiphon.synthesis import SynthReport

_EPILOG = """\
Tasks are written (tasks.jsonl), then done (runs.jsonl). The same command goes on where it was
interrupted. Exit codes: 0 complete, 1 rows failed or a limit was reached, 2 misused.

example:
  antiphon synth clerk.toml"""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon synth`."""
    parser = subparsers.add_parser(
        "synth",
        help="make trajectories: write tasks, let an agent do them",
        description="Write tasks for tools and let an agent do them; everything is recorded.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", metavar="CONFIG", help="a TOML or YAML file")
    parser.add_argument("--out", metavar="DIR", help="write to this folder instead of the file's")
    parser.add_argument("--count", type=int, metavar="N", help="make N tasks instead of the file's")
    add_engine_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make the trajectories.

    Raises:
        AntiphonError: The config, a tool or a model cannot be used, or a file cannot be written.
    """
    from antiphon.evaluation import held_out
    from antiphon.synthesis import Ledger, read_config, synthesize

    config = read_config(args.config)
    if args.out is not None:
        config = replace(config, out=str(Path(args.out).absolute()))
    if args.count is not None:
        config = replace(config, tasks=replace(config.tasks, count=args.count))
    progress = Progress()

    def tell(stage: str, report: Report, ledger: Ledger) -> None:
        total = ledger.total
        more = f"{total.n_requests} model calls" if total.n_requests else ""
        if ledger.prices:
            more += f", cost {ledger.cost:.4f}"
        progress.show(stage, report, more)

    kept_out = held_out(config.tasks.hold_out)
    report = asyncio.run(
        synthesize(config, engine=engine_of(args), held_out=kept_out, progress=tell)
    )
    progress.end()
    print(dump_row(report.to_row(), indent=1) if args.json else "\n".join(_lines(report)))
    return 0 if report.is_complete else 1


def _lines(report: "SynthReport") -> list[str]:
    lines = [line for name, stage in report.stages.items() for line in stage_lines(name, stage)]
    lines += [f"  {name}: {n}" for name, n in sorted(report.ledger.kinds.items())]
    lines += [f"  dropped {n}: {reason}" for reason, n in report.dropped.most_common()]
    total = report.ledger.total
    if total.n_requests:
        lines.append(
            f"{total.n_requests} model calls, {total.input_tokens} tokens read, "
            f"{total.output_tokens} written"
        )
    lines.append(f"written to {report.out}")
    return lines
