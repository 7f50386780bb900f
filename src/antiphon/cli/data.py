"""`antiphon data`: convert, check, count and deduplicate datasets."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from antiphon.cli._look import plain, run_check, run_stats, table
from antiphon.cli._main import Subparsers
from antiphon.datasets import (
    ADAPTERS,
    WRITERS,
    RowFile,
    Seen,
    adapter_named,
    digest_of,
    is_run,
    iter_rows,
    mask_secrets,
    read_row_all,
    write_row,
)
from antiphon.errors import DataError, UsageError
from antiphon.messages import Conversation, dump_json
from antiphon.verification import NearDuplicates

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
    convert.add_argument(
        "--secrets",
        choices=("mask", "drop", "keep"),
        help="keys and passwords: mask them, drop their rows, or keep them; by default they are "
        "masked in recorded runs and kept in other rows",
    )

    check = verbs.add_parser("check", help="say what is wrong, row by row")
    check.add_argument("file", metavar="FILE")
    check.add_argument("--limit", type=int, default=50, help="how many findings to print")
    check.add_argument(
        "--fix", metavar="OUT", help="write the rows with what is safe to mend mended, and say what"
    )

    stats = verbs.add_parser("stats", help="count rows, turns, tools, calls and lengths")
    stats.add_argument("file", metavar="FILE")
    for verb in (check, stats):
        verb.add_argument("--html", metavar="PAGE", help="draw a page of figures")

    dedupe = verbs.add_parser("dedupe", help="keep each conversation once")
    dedupe.add_argument("file", metavar="FILE")
    dedupe.add_argument("out", metavar="OUT", nargs="?", default="-", help="default: stdout")
    dedupe.add_argument(
        "--near",
        type=float,
        metavar="X",
        help="drop what shares so much of its text with an earlier row: 0.85, for example",
    )

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
        "check": run_check,
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
    secrets: Counter[str] = Counter()
    n = 0
    with _output(args) as out:
        for line, row in iter_rows(args.file, report=broken):
            try:
                read = [adapter.read(row)] if adapter else read_row_all(row)
            except DataError as error:
                broken(DataError(str(error), path=args.file, line=line))
                continue
            what = args.secrets or ("mask" if is_run(row) else "keep")
            for conversation in read:
                if what != "keep":
                    conversation, kinds = mask_secrets(conversation)
                    secrets.update(kinds)
                    if kinds and what == "drop":
                        continue
                written, missing = write_row(conversation, args.to)
                lost.update(missing)
                out.write(written)
                n += 1
    notes = [f"{count:,} rows lost {name}" for name, count in lost.most_common()]
    done = "dropped with their rows" if args.secrets == "drop" else "masked"
    notes += [f"secrets {done}: {count:,} of kind {kind}" for kind, count in secrets.most_common()]
    result = {"n_rows": n, "n_broken": broken.n, "lost": dict(lost), "secrets": dict(secrets)}
    return _tell(args, result, [f"{n:,} rows written", *notes], broken.n)


def _stats(args: argparse.Namespace) -> int:
    broken = _Broken(args.strict)
    row = dict(run_stats(args, broken)) | {"n_broken": broken.n}
    print(json.dumps(row, ensure_ascii=False) if args.json else "\n".join(table(row)))
    return 1 if broken.n else 0


def _dedupe(args: argparse.Namespace) -> int:
    broken = _Broken(args.strict)
    seen = Seen()
    near = None if args.near is None else NearDuplicates(args.near)
    n = kept = n_near = 0
    with _output(args) as out:
        for line, row in iter_rows(args.file, report=broken):
            try:
                conversations = read_row_all(row)
            except DataError as error:
                broken(DataError(str(error), path=args.file, line=line))
                continue
            n += 1
            if not seen.add(b"".join(map(digest_of, conversations))):
                continue
            if near is not None and near.add(str(line), _said(conversations)) is not None:
                n_near += 1
                continue
            out.write(row)
            kept += 1
    result = {"n_rows": n, "n_kept": kept, "n_near": n_near, "n_broken": broken.n}
    alike = f", {n_near:,} nearly like another" if near is not None else ""
    return _tell(args, result, [f"{kept:,} of {n:,} rows kept{alike}"], broken.n)


def _said(conversations: list[Conversation]) -> str:
    """All that is said and called, for telling whether two rows are nearly the same."""
    lines: list[str] = []
    for conversation in conversations:
        for message in conversation.messages:
            lines.append(message.text)
            lines += [f"{c.name} {dump_json(c.arguments)}" for c in message.tool_calls]
    return "\n".join(lines)


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
        print(f"antiphon: {plain(str(error))}", file=sys.stderr)


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
