"""`antiphon data check` and `stats`: what is in a file, printed, mended, and as a page."""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from antiphon.datasets import (
    Checker,
    Finding,
    Mender,
    RowFile,
    Stats,
    check_file,
    iter_rows,
    read_row_all,
    read_rows,
)
from antiphon.errors import DataError, UsageError
from antiphon.viewer import Bars, Figure, Report, Table, render_report

_MOST = 40
"""Bars of one figure."""


def run_check(args: argparse.Namespace) -> int:
    """Print what is wrong, or mend it; 1 where an error is left.

    Raises:
        DataError: A file cannot be read or written.
        UsageError: The mended rows would overwrite the file.
    """
    if args.fix is not None:
        return _fix(args)
    counts: Counter[str] = Counter()
    levels: Counter[str] = Counter()
    shown: list[Finding] = []
    limit = max(args.limit, 1000 if args.html else 0)
    for finding in check_file(args.file):
        counts[finding.code] += 1
        levels[finding.level] += 1
        if len(shown) < limit:
            shown.append(finding)
    if args.html:
        _write_page(args, _check_report(args.file, counts, levels, shown))
    if args.json:
        found = [asdict(finding) for finding in shown[: args.limit]]
        print(json.dumps({"counts": dict(counts), "findings": found}, ensure_ascii=False))
        return 1 if levels["error"] else 0
    for finding in shown[: args.limit]:
        print(_line(args.file, finding))
    rest = sum(counts.values()) - min(len(shown), args.limit)
    if rest:
        print(f"... and {rest:,} more; --limit shows them")
    print(_summary(counts, levels))
    return 1 if levels["error"] else 0


def _line(file: str, finding: Finding) -> str:
    place = "" if finding.message is None else f" message {finding.message}:"
    text = plain(finding.text)
    return f"{file}:{finding.line}:{place} {finding.level}: {text} [{finding.code}]"


def _summary(counts: Counter[str], levels: Counter[str]) -> str:
    kinds = ", ".join(f"{code} {n:,}" for code, n in counts.most_common())
    text = f"{levels['error']:,} errors, {levels['warning']:,} warnings"
    return text + f": {kinds}" * bool(kinds)


def _fix(args: argparse.Namespace) -> int:
    if args.fix != "-" and Path(args.fix).absolute() == Path(args.file).absolute():
        raise UsageError("the mended rows would overwrite the file; give another name")
    mender, checker = Mender(), Checker()
    counts: Counter[str] = Counter()
    levels: Counter[str] = Counter()
    left: list[Finding] = []
    n = 0

    def broken(error: DataError) -> None:
        mender.left_out["unreadable"] += 1
        if not args.json:
            print(f"{plain(str(error))} [left out]")

    with RowFile(args.fix) as out:
        for line, row in iter_rows(args.file, report=broken):
            kept = mender.mend(row)
            if kept is None:
                continue
            out.write(kept)
            n += 1
            for finding in checker.check(kept, line):
                counts[finding.code] += 1
                levels[finding.level] += 1
                if len(left) < args.limit:
                    left.append(finding)
    done = {code: k for code, k in mender.done.items() if k}
    out_of = {code: k for code, k in mender.left_out.items() if k}
    if args.json:
        print(json.dumps({"n_rows": n, "mended": done, "left_out": out_of, "left": dict(counts)}))
        return 1 if levels["error"] else 0
    for finding in left:
        print(_line(args.file, finding))
    for name, numbers in (("mended", done), ("rows left out", out_of)):
        words = ", ".join(f"{code} {k:,}" for code, k in numbers.items()) or "none"
        print(f"{name}: {words}")
    print(f"{n:,} rows written; left in them: {_summary(counts, levels)}")
    return 1 if levels["error"] else 0


def run_stats(args: argparse.Namespace, report: Callable[[DataError], None]) -> Mapping[str, Any]:
    """Count a file, print or draw the counts, and give them back.

    Raises:
        DataError: A file cannot be read or written.
    """
    stats = Stats()
    for conversation in read_rows(args.file, report=report):
        stats.add(conversation)
    row = stats.to_row()
    if args.html:
        lead = f"{Path(args.file).name}: what its conversations hold"
        _write_page(args, Report("Data set", lead, _facts(row), list(_spreads(row))))
    return row


def table(row: Mapping[str, Any]) -> Iterator[str]:
    """Counts as lines for a terminal."""
    for name, value in row.items():
        if not isinstance(value, dict):
            yield f"{_label(name):<18}{value:>12,}"
            continue
        counts = cast("dict[str, int]", value)
        largest = max(counts.values(), default=1)
        yield _label(name)
        for key, n in list(counts.items())[:20]:
            yield f"  {plain(key) or '(none)':<24.24}{n:>10,}  {'#' * round(40 * n / largest)}"
        if len(counts) > 20:
            yield f"  ... and {len(counts) - 20:,} more"


def _label(name: str) -> str:
    return name.removeprefix("n_").replace("_", " ")


def _facts(row: Mapping[str, Any]) -> list[tuple[str, object]]:
    return [(_label(name), value) for name, value in row.items() if isinstance(value, int)]


_NOTES = {
    "messages": "conversations by how many messages they have",
    "turns": "conversations by how many user messages they have",
    "tools_on_offer": "conversations by how many tools they offer",
    "calls_per_message": "assistant messages by how many calls they make",
    "called": "calls by tool",
    "chars_below": "conversations by the length of their text, below so many characters",
    "scripts": "conversations by the script of their first question",
}


def _spreads(row: Mapping[str, Any]) -> Iterator[Figure]:
    for name, value in row.items():
        if isinstance(value, dict):
            counts = cast("dict[str, int]", value)
            bars = [(key or "(none)", float(n)) for key, n in list(counts.items())[:_MOST]]
            more = len(counts) - len(bars)
            note = _NOTES.get(name, "") + (f"; {more:,} more are not shown" if more else "")
            yield Bars(_label(name).capitalize(), bars, note)


def _check_report(
    file: str, counts: Counter[str], levels: Counter[str], shown: list[Finding]
) -> Report:
    stats = Stats()
    for _, row in iter_rows(file, report=lambda _: None):
        try:
            for conversation in read_row_all(row):
                stats.add(conversation)
        except DataError:
            continue
    held = stats.to_row()
    rows = [
        (f.line, "" if f.message is None else f.message, f.level, f.code, f.text) for f in shown
    ]
    return Report(
        "Data check",
        Path(file).name,
        [
            ("rows", held["n_rows"]),
            ("errors", levels["error"]),
            ("warnings", levels["warning"]),
        ],
        [
            Bars("Findings by kind", [(code, float(n)) for code, n in counts.most_common()]),
            Table(
                "Findings", ("line", "message", "level", "kind", "what, and what mends it"), rows
            ),
            *_spreads(held),
        ],
    )


def _write_page(args: argparse.Namespace, report: Report) -> None:
    path = Path(args.html)
    try:
        path.write_text(render_report(report), "utf-8")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise DataError(f"cannot be written: {reason}", path=path) from error


def plain(text: str) -> str:
    """A text in one line, without control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
