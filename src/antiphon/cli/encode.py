"""`antiphon encode`: conversations to tokens, labels and loss weights."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import get_args

from antiphon.batch import RayPool
from antiphon.cli._encoding_options import read_policy, read_variants
from antiphon.cli._main import Subparsers
from antiphon.datasets import iter_lines, read_line
from antiphon.encode import (
    VISIONS,
    EncodeJob,
    Encoder,
    EncodeReport,
    ShardKind,
    TooLong,
    encode_file,
    list_policies,
    load_tokenizer,
    load_vision,
)
from antiphon.errors import AntiphonError, DataError, UsageError
from antiphon.formats import get_format

_EPILOG = """\
example:
  antiphon encode rows.jsonl --tokenizer qwen2_5 --format hermes --loss react --out encoded

Without --out nothing is written: the summary is printed, and with --show the text, with what is
trained in colour."""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon encode`."""
    parser = subparsers.add_parser(
        "encode",
        help="turn conversations into tokens, labels and loss weights",
        description="Encode rows, or a recorded run, as a model is served and trained.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="rows (JSONL, JSON, compressed; - is stdin)")
    parser.add_argument(
        "--tokenizer",
        required=True,
        metavar="DIR|NAME",
        help="a directory, a .gguf file, a model id, or qwen2_5, qwen3, qwen3_5",
    )
    parser.add_argument("--format", required=True, metavar="NAME", help="the model's format")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a variant of the format, its value as JSON: thinking=false",
    )
    parser.add_argument(
        "--loss",
        default="default",
        metavar="POLICY",
        help=f"{', '.join(list_policies())}, joined by +; or a JSON file of ms-swift's kind",
    )
    parser.add_argument(
        "--vision",
        metavar="NAME|DIR",
        help="how many tokens images, sounds and films are: "
        f"{', '.join(VISIONS)}, or a model's directory",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write shards")
    parser.add_argument(
        "--for",
        dest="purpose",
        choices=("dpo", "kto", "reward", "grpo"),
        help="rows for a trainer of TRL, in its columns; --out is then a file of rows",
    )
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the longest example")
    parser.add_argument(
        "--too-long",
        choices=get_args(TooLong),
        default="split",
        help="what becomes of longer conversations (default: split)",
    )
    parser.add_argument("--pack", type=int, metavar="N", help="pack rows up to N tokens")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="default: 1")
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="where shards are encoded: processes of this machine (default), or a Ray cluster",
    )
    parser.add_argument(
        "--shards",
        choices=get_args(ShardKind),
        default="safetensors",
        help="the kind of files in --out (default: safetensors)",
    )
    parser.add_argument("--show", action="store_true", help="print the text with its weights")
    parser.add_argument("--rows", type=int, default=3, metavar="N", help="how many rows to show")
    parser.add_argument("--strict", action="store_true", help="stop at the first broken row")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(args: argparse.Namespace) -> int:
    """Encode, write and print.

    Raises:
        AntiphonError: The tokenizer, the format, the policy or the file cannot be used.
    """
    for name in ("max_tokens", "pack", "processes", "rows"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be 1 or more, got {value}")
    if args.purpose:
        from antiphon.cli._compared import run_compared

        return run_compared(args)
    if args.pack and args.max_tokens and args.max_tokens != args.pack:
        raise UsageError("--pack N is also the longest example; leave --max-tokens out")
    job = EncodeJob(
        tokenizer=args.tokenizer,
        format=get_format(args.format, **read_variants(args.set)),
        read=read_line,
        loss=read_policy(args.loss),
        max_tokens=args.pack or args.max_tokens,
        too_long=args.too_long,
        pack=args.pack is not None,
        strict=args.strict,
        source=args.file,
        vision=load_vision(args.vision).within(Path(args.file).parent) if args.vision else None,
        shards=args.shards,
    )
    if args.show:
        _show(job, args)
    progress = _progress if sys.stderr.isatty() else None
    lines = iter_lines(args.file, report=None if args.strict else _tell)
    with RayPool() if args.engine == "ray" else nullcontext() as pool:
        report = encode_file(
            job, lines, args.out, processes=args.processes, pool=pool, progress=progress
        )
    if progress:
        print(file=sys.stderr)
    return _finish(report, args)


def _show(job: EncodeJob, args: argparse.Namespace) -> None:
    """Print the first rows with their weights."""
    if args.file == "-":
        raise UsageError("--show reads the file twice; give it a name instead of -")
    tokenizer = load_tokenizer(job.tokenizer)
    encoder = Encoder(tokenizer, job.format, loss=job.loss, vision=job.vision)
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for line, data in islice(iter_lines(args.file, report=_tell), args.rows):
        try:
            examples = [e for c in job.read(data) for e in encoder.encode_all(c)]
        except AntiphonError as error:
            _tell(DataError(str(error), path=args.file, line=line))
            continue
        for example in examples:
            runs = " ".join(f"{'+' if trained else '-'}{n}" for trained, n in example.runs())
            print(f"{args.file}:{line}: {len(example)} tokens, {runs}")
            print(example.show(color=color).rstrip("\n"), end="\n\n")


def _tell(error: DataError) -> None:
    print(f"antiphon: {error}", file=sys.stderr)


def _progress(report: EncodeReport) -> None:
    text = f"\r{report.n_source:,} rows, {report.n_tokens:,} tokens"
    print(text, end="", file=sys.stderr, flush=True)


def _finish(report: EncodeReport, args: argparse.Namespace) -> int:
    for line, problem in report.problems:
        _tell(DataError(problem, path=args.file, line=line))
    if args.json:
        print(json.dumps(asdict(report), ensure_ascii=False))
    else:
        print("\n".join(_summary(report, args.out)))
    return 1 if report.n_broken else 0


def _summary(report: EncodeReport, out: Path | None) -> Iterator[str]:
    share = 100 * report.n_trained / report.n_tokens if report.n_tokens else 0.0
    yield f"rows read       {report.n_source:>12,}"
    yield f"rows broken     {report.n_broken:>12,}"
    yield f"examples        {report.n_examples:>12,}"
    if report.n_rows != report.n_examples:
        yield f"packed rows     {report.n_rows:>12,}"
    if report.n_untrained:
        yield f"nothing trained {report.n_untrained:>12,}  left out"
    if report.n_too_long:
        yield f"too long        {report.n_too_long:>12,}  left out"
    yield f"tokens          {report.n_tokens:>12,}"
    yield f"trained tokens  {report.n_trained:>12,}  {share:.1f} %"
    yield f"masked runs     {report.n_masked_runs:>12,}"
    if out is not None:
        yield f"written to {out}"
