"""What commands of long stages share: where the work is done, and how far it is."""

import argparse
import sys
from time import monotonic
from typing import TextIO

from antiphon.batch import Engine, Report, engine_named


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the work is done."""
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="this machine, or a Ray cluster (extra ray; default: local)",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="processes of this machine (default 1)",
    )


def engine_of(args: argparse.Namespace) -> Engine:
    """The engine that the arguments name.

    Raises:
        UsageError: The number of processes is not positive.
    """
    return engine_named(args.engine, processes=args.processes)


class Progress:
    """One line that is written over on a terminal; elsewhere a line now and then."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._last = monotonic()
        self._stage = ""

    def show(self, stage: str, report: Report, more: str = "") -> None:
        """Say how far a stage is; at most ten times a second, or every ten seconds."""
        pause = 0.1 if self._is_terminal else 10.0
        if stage == self._stage and monotonic() - self._last < pause:
            return
        if self._is_terminal and stage != self._stage and self._stage:
            self._stream.write("\n")
        self._last, self._stage = monotonic(), stage
        text = f"{stage}: {report.n_kept + report.n_done} done"
        if report.n_kept:
            text += f" ({report.n_kept} earlier)"
        if report.failures:
            text += f", {len(report.failures)} failed"
        if more:
            text += f", {more}"
        self._stream.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._is_terminal and self._stage:
            self._stream.write("\n")


def stage_lines(name: str, report: Report) -> list[str]:
    """How a stage went, for people."""
    lines = [
        f"{name}: {report.n_out} rows of {report.n_rows}"
        + (f", {report.n_kept} done earlier" if report.n_kept else "")
        + f", {report.seconds:.1f} s"
    ]
    lines += [f"  row {f.index} failed: {f.reason}" for f in report.failures[:5]]
    if len(report.failures) > 5:
        lines.append(f"  and {len(report.failures) - 5} more")
    if report.stopped:
        lines.append(f"  stopped: {report.stopped}; the same command goes on")
    return lines
