"""`antiphon data`: convert, check, count and deduplicate datasets."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from antiphon.cli._main import Subparsers
from antiphon.datasets import (
    ADAPTERS,
    WRITERS,
    Finding,
    RowFile,
    Stats,
    adapter_named,
    check_file,
    digest_of,
    iter_rows,
    read_row_all,
    read_rows,
    write_row,
)
from antiphon.errors import DataError, UsageError

_EPILOG = """\
example:
  antiphon data check rows.jsonl
  antiphon data convert toolace.jsonl rows.jsonl --to ms-swift

FILE is JSON lines, a JSON array or object, plain or compressed, Parquet or Arrow; - is stdin."""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon data`."""
    parser = subparsers.add_parser(
        "data",
        help="convert, check, count and deduplicate datasets",
        description="Work on files of conversations, one row at a time.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    convert = verbs.add_parser("convert", help="write the rows in another shape")
    convert.add_argument("file", metavar="IN")
    convert.add_argument(
        "out", metavar="OUT", help="JSON lines, .gz, .zst, .parquet, .arrow; - is stdout"
    )
    convert.add_argument(
        "--from",
        dest="source",
        metavar="X",
        help=f"the shape of IN; found by itself by default: {', '.join(a.name for a in ADAPTERS)}",
    )
    convert.add_argument("--to", default="antiphon", choices=[*WRITERS], help="default: antiphon")

    check = verbs.add_parser("check", help="say what is wrong, row by row")
    check.add_argument("file", metavar="FILE")
    check.add_argument("--limit", type=int, default=50, help="how many findings to print")

    stats = verbs.add_parser("stats", help="count rows, turns, tools, calls and lengths")
    stats.add_argument("file", metavar="FILE")

    dedupe = verbs.add_parser("dedupe", help="keep each conversation once")
    dedupe.add_argument("file", metavar="FILE")
    dedupe.add_argument("out", metavar="OUT", nargs="?", default="-", help="default: stdout")

    verify = verbs.add_parser("verify-tokens", help="audit the tokens of recorded runs")
    verify.add_argument("file", metavar="FILE", help="recorded runs")
    verify.add_argument("--tokenizer", metavar="DIR|NAME", help="the run's own by default")
    verify.add_argument("--format", metavar="NAME", help="the recorded one by default")
    verify.add_argument("--limit", type=int, default=20, help="how many defects to print")

    rollouts = verbs.add_parser("rollouts", help="write runs as trainers of rewards read them")
    rollouts.add_argument("file", metavar="FILE", help="recorded runs")
    rollouts.add_argument("out", metavar="OUT", help="JSON lines; - is stdout")
    rollouts.add_argument("--to", required=True, choices=("trl", "verl", "verifiers"))
    for verb in (convert, check, stats, dedupe, verify):
        verb.add_argument("--json", action="store_true", help="print the result as JSON")
    for verb in (convert, stats, dedupe, verify, rollouts):
        verb.add_argument("--strict", action="store_true", help="stop at the first broken row")


def run(args: argparse.Namespace) -> int:
    """Do what the verb says.

    Raises:
        DataError: The file cannot be read or written.
        UsageError: The arguments do not fit together.
    """
    verbs: dict[str, Callable[[argparse.Namespace], int]] = {
        "convert": _convert,
        "check": _check,
        "stats": _stats,
        "dedupe": _dedupe,
        "verify-tokens": _verify_tokens,
        "rollouts": _rollouts,
    }
    return verbs[args.verb](args)


def _convert(args: argparse.Namespace) -> int:
    broken = _Broken(args.strict)
    adapter = adapter_named(args.source) if args.source else None
    lost: Counter[str] = Counter()
    n = 0
    with _output(args) as out:
        for line, row in iter_rows(args.file, report=broken):
            try:
                read = [adapter.read(row)] if adapter else read_row_all(row)
            except DataError as error:
                broken(DataError(str(error), path=args.file, line=line))
                continue
            for conversation in read:
                written, missing = write_row(conversation, args.to)
                lost.update(missing)
                out.write(written)
                n += 1
    notes = {name: f"{count:,} rows lost {name}" for name, count in lost.most_common()}
    result = {"n_rows": n, "n_broken": broken.n, "lost": dict(lost)}
    return _tell(args, result, [f"{n:,} rows written", *notes.values()], broken.n)


def _check(args: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    levels: Counter[str] = Counter()
    shown: list[Finding] = []
    for finding in check_file(args.file):
        counts[finding.code] += 1
        levels[finding.level] += 1
        if len(shown) < args.limit:
            shown.append(finding)
    if args.json:
        found = [asdict(finding) for finding in shown]
        print(json.dumps({"counts": dict(counts), "findings": found}, ensure_ascii=False))
    else:
        for finding in shown:
            place = "" if finding.message is None else f" message {finding.message}:"
            where = f"{args.file}:{finding.line}:{place}"
            print(f"{where} {finding.level}: {_plain(finding.text)} [{finding.code}]")
        rest = sum(counts.values()) - len(shown)
        if rest:
            print(f"... and {rest:,} more; --limit shows them")
        kinds = ", ".join(f"{code} {n:,}" for code, n in counts.most_common())
        print(
            f"{levels['error']:,} errors, {levels['warning']:,} warnings"
            + f": {kinds}" * bool(kinds)
        )
    return 1 if levels["error"] else 0


def _stats(args: argparse.Namespace) -> int:
    broken = _Broken(args.strict)
    stats = Stats()
    for conversation in read_rows(args.file, report=broken):
        stats.add(conversation)
    row = stats.to_row() | {"n_broken": broken.n}
    if args.json:
        print(json.dumps(row, ensure_ascii=False))
    else:
        print("\n".join(_table(row)))
    return 1 if broken.n else 0


def _table(row: Mapping[str, Any]) -> Iterator[str]:
    for name, value in row.items():
        label = name.removeprefix("n_").replace("_", " ")
        if not isinstance(value, dict):
            yield f"{label:<18}{value:>12,}"
            continue
        counts = cast("dict[str, int]", value)
        largest = max(counts.values(), default=1)
        yield label
        for key, n in list(counts.items())[:20]:
            yield f"  {_plain(key) or '(none)':<24.24}{n:>10,}  {'#' * round(40 * n / largest)}"
        if len(counts) > 20:
            yield f"  ... and {len(counts) - 20:,} more"


def _dedupe(args: argparse.Namespace) -> int:
    broken = _Broken(args.strict)
    seen: set[bytes] = set()
    n = kept = 0
    with _output(args) as out:
        for line, row in iter_rows(args.file, report=broken):
            try:
                digest = b"".join(map(digest_of, read_row_all(row)))
            except DataError as error:
                broken(DataError(str(error), path=args.file, line=line))
                continue
            n += 1
            if digest not in seen:
                seen.add(digest)
                out.write(row)
                kept += 1
    result = {"n_rows": n, "n_kept": kept, "n_broken": broken.n}
    return _tell(args, result, [f"{kept:,} of {n:,} rows kept"], broken.n)


def _verify_tokens(args: argparse.Namespace) -> int:
    from antiphon.cli._tokens import run_verify_tokens

    broken = _Broken(args.strict)
    code = run_verify_tokens(args, broken)
    return 1 if broken.n else code


def _rollouts(args: argparse.Namespace) -> int:
    from antiphon.cli._tokens import run_rollouts

    return run_rollouts(args, _Broken(args.strict))


class _Broken:
    """Tells each broken row once and counts them; or raises the first."""

    def __init__(self, strict: bool) -> None:
        self.n = 0
        self._strict = strict

    def __call__(self, error: DataError) -> None:
        if self._strict:
            raise error
        self.n += 1
        print(f"antiphon: {_plain(str(error))}", file=sys.stderr)


def _output(args: argparse.Namespace) -> RowFile:
    if args.out != "-" and Path(args.out).absolute() == Path(args.file).absolute():
        raise UsageError("the output would overwrite the input; give it another name")
    return RowFile(args.out)


def _tell(
    args: argparse.Namespace, result: Mapping[str, object], lines: list[str], n_broken: int
) -> int:
    """Print what was done: to stderr where stdout holds the rows."""
    stream = sys.stderr if args.out == "-" else sys.stdout
    if n_broken:
        lines.append(f"{n_broken:,} rows broken")
    text = json.dumps(result, ensure_ascii=False) if args.json else "\n".join(lines)
    print(text, file=stream)
    return 1 if n_broken else 0


def _plain(text: str) -> str:
    """A text in one line, without control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
