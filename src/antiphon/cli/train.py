"""`antiphon train`: fine-tune a model, or an adapter for it, on rows."""

import argparse
import importlib.util
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from antiphon.cli._encoding_options import read_policy, read_variants
from antiphon.cli._main import Subparsers
from antiphon.datasets import iter_lines, read_line, read_rows
from antiphon.encode import (
    EncodedRows,
    EncodeJob,
    Encoder,
    JoinedRows,
    LossPolicy,
    encode_file,
    list_policies,
    load_tokenizer,
)
from antiphon.errors import DataError, MissingExtraError, UsageError, clip
from antiphon.formats import Format, get_format, read_format
from antiphon.train import (
    TrainReport,
    TrainSettings,
    export_adapter,
    export_model,
    held_out_rows,
    train,
)
from antiphon.train._model import source_of
from antiphon.train._settings import Dtype
from antiphon.viewer import Curve, Curves, Report, Table, render_report

_EPILOG = """\
example:
  antiphon train rows.jsonl --model hf/my-model --lora 16 --pack 4096 --eval test.jsonl --out run

Interrupted, the same command goes on from the last checkpoint.  On several devices:
  accelerate launch --config_file fsdp2.yaml -m antiphon train rows.jsonl ..."""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon train`."""
    parser = subparsers.add_parser(
        "train",
        help="fine-tune a model on rows",
        description="Train on what a model wrote, with the exact weight of every token.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", nargs="+", metavar="FILE", help="rows, or directories that encode wrote"
    )
    parser.add_argument(
        "--model", required=True, metavar="SPEC", help="hf/DIR or hub id, a directory, gguf/FILE"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where all goes")
    encoding = parser.add_argument_group("how rows are encoded, where they are not yet")
    encoding.add_argument("--format", metavar="NAME", help="by default what the model's own is")
    encoding.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    encoding.add_argument("--tokenizer", metavar="DIR|NAME", help="by default the model's own")
    encoding.add_argument(
        "--loss", default="default", metavar="POLICY", help=f"{', '.join(list_policies())}, by +"
    )
    encoding.add_argument("--max-tokens", type=int, metavar="N", help="the longest example")
    encoding.add_argument("--pack", type=int, metavar="N", help="pack rows up to N tokens")
    encoding.add_argument(
        "--share", type=int, metavar="N", help="the same, and what rows begin with alike only once"
    )
    how = parser.add_argument_group("how it is trained")
    usual = TrainSettings("", Path())
    how.add_argument("--lora", type=int, default=0, metavar="RANK", help="train an adapter")
    how.add_argument(
        "--adapter",
        type=Path,
        metavar="DIR|FILE",
        help="begin with the adapter of an earlier run, or with one in GGUF",
    )
    how.add_argument("--epochs", type=float, default=usual.epochs, metavar="N")
    how.add_argument("--steps", type=int, metavar="N", help="end after N optimizer steps")
    how.add_argument("--lr", type=float, metavar="X", help="default: 2e-5, with --lora 2e-4")
    how.add_argument(
        "--batch", type=int, default=usual.batch_rows, metavar="N", help="rows at once"
    )
    how.add_argument("--accumulate", type=int, default=usual.accumulate, metavar="N")
    how.add_argument("--dtype", choices=get_args(Dtype), default=usual.dtype)
    how.add_argument("--checkpointing", action="store_true", help="need less memory, take longer")
    how.add_argument("--seed", type=int, default=usual.seed, metavar="N")
    how.add_argument(
        "--trainer", action="append", default=[], metavar="KEY=VALUE", help="a TrainingArgument"
    )
    told = parser.add_argument_group("what is measured and kept")
    told.add_argument("--eval", metavar="FILE", help="held-out rows to measure on")
    told.add_argument("--eval-rows", type=int, default=100, metavar="N", help="how many of them")
    told.add_argument("--log-steps", type=int, default=usual.log_steps, metavar="N")
    told.add_argument("--eval-steps", type=int, default=usual.eval_steps, metavar="N")
    told.add_argument("--save-steps", type=int, default=usual.save_steps, metavar="N")
    told.add_argument(
        "--gguf", action="store_true", help="write the result as GGUF too; always of a GGUF model"
    )
    told.add_argument("--strict", action="store_true", help="stop at the first broken row")
    told.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Encode what is not encoded, train, write the page of figures.

    Raises:
        AntiphonError: The rows, the model or the settings cannot be used.
    """
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("accelerate") is None:
        raise MissingExtraError("training", "train")
    if args.pack and args.share:
        raise UsageError("--share packs rows, too; give one of --pack and --share")
    settings = _settings(args)
    rows, fmt, loss = _rows(args)
    vocabulary = args.tokenizer or _tokenizer_of(args, rows)
    more = [_more(Path(name), rows) for name in args.file[1:]]
    held_out = []
    if args.eval:
        encoder = Encoder(load_tokenizer(vocabulary), fmt, loss=loss)
        conversations = [
            c for c, _ in zip(read_rows(args.eval), range(args.eval_rows), strict=False)
        ]
        held_out = held_out_rows(encoder, conversations)
        if not held_out:
            raise DataError("nothing in it is trained, so nothing can be measured", path=args.eval)
    report = train(
        settings,
        JoinedRows([rows, *more]) if more else rows,
        format=fmt,
        held_out=held_out,
        pack_tokens=args.pack,
        share_tokens=args.share,
        progress=None if args.json else _tell,
    )
    if _rank():  # the first process tells and writes for all
        return 0
    if args.gguf or source_of(settings.model).endswith(".gguf"):
        _export(report, settings)
    page = settings.out / "report.html"
    page.write_text(render_report(_page(report, settings, fmt)), "utf-8")
    return _finish(report, page, args)


def _export(report: TrainReport, settings: TrainSettings) -> None:
    """Write what llama.cpp reads: the adapter, or the whole model."""
    if settings.lora_rank:
        export_adapter(report.model, report.model / "adapter.gguf")
        return
    base = Path(source_of(settings.model))
    vocabulary = base if base.suffix == ".gguf" else None
    export_model(report.model, report.model / "model.gguf", vocabulary_of=vocabulary)


def _rank() -> int:
    """Which process of several this is, as the launchers say it."""
    return int(os.environ.get("RANK", "0"))


def _settings(args: argparse.Namespace) -> TrainSettings:
    return TrainSettings(
        model=args.model,
        out=args.out,
        lora_rank=args.lora,
        adapter=args.adapter,
        epochs=args.epochs,
        max_steps=args.steps,
        learning_rate=args.lr,
        batch_rows=args.batch,
        accumulate=args.accumulate,
        dtype=args.dtype,
        gradient_checkpointing=args.checkpointing,
        seed=args.seed,
        log_steps=args.log_steps,
        save_steps=args.save_steps,
        eval_steps=args.eval_steps,
        trainer=read_variants(args.trainer),
    )


def _rows(args: argparse.Namespace) -> tuple[EncodedRows, Format, LossPolicy]:
    """The encoded rows, with the format and the policy that they were encoded with."""
    file: str = args.file[0]
    directory = Path(file)
    if directory.is_dir():
        rows = EncodedRows(directory)
        known: dict[str, Any] = rows.info["job"]
        given = args.format or args.set or args.loss != "default" or args.max_tokens
        if given:
            raise UsageError(
                f"{clip(file)} is encoded already, with {clip(known['format'])} and "
                f"{clip(known['loss'])}; leave --format, --set, --loss and --max-tokens out"
            )
        loss = read_policy(str(known["loss"])) if args.eval else LossPolicy()
        return rows, read_format(str(known["format"])), loss
    if len(args.file) > 1:
        raise UsageError(
            f"{clip(file)} is not encoded, and only directories that antiphon encode wrote are "
            "trained on together"
        )
    if "RANK" in os.environ:
        raise UsageError(
            f"{clip(file)} is not encoded, and several processes would encode it at once; "
            "name a directory that antiphon encode wrote"
        )
    source = source_of(args.model)
    fmt = get_format(args.format or source, **read_variants(args.set))
    job = EncodeJob(
        tokenizer=args.tokenizer or source,
        format=fmt,
        read=read_line,
        loss=read_policy(args.loss),
        max_tokens=args.share or args.pack or args.max_tokens,
        strict=args.strict,
        source=file,
    )
    out = args.out / "rows"
    report = encode_file(job, iter_lines(file, report=_say), out)
    for line, problem in report.problems:
        _say(DataError(problem, path=file, line=line))
    return EncodedRows(out), fmt, job.loss


def _more(directory: Path, first: EncodedRows) -> EncodedRows:
    """Further encoded rows, of the same vocabulary; the first ones' format is the one to serve."""
    rows = EncodedRows(directory)
    names = [str(one.info["job"].get("tokenizer")) for one in (first, rows)]
    if names[0] != names[1]:
        raise UsageError(
            f"{clip(str(directory))} is encoded with {clip(names[1])} and the rows before it with "
            f"{clip(names[0])}; encode both with the same tokenizer"
        )
    return rows


def _tokenizer_of(args: argparse.Namespace, rows: EncodedRows) -> str:
    return str(rows.info["job"]["tokenizer"]) if rows.info.get("job") else source_of(args.model)


def _say(error: DataError) -> None:
    print(f"antiphon: {error}", file=sys.stderr)


def _tell(line: Mapping[str, Any]) -> None:
    """One line of what was logged."""
    words = [f"step {line['step']}/{line['n_steps']}"]
    words += [f"{key} {line[key]:.4g}" for key in ("loss", "learning_rate") if key in line]
    words += [
        f"{key.removeprefix('eval_')} {value:.4g}"
        for key, value in line.items()
        if key.startswith("eval_")
    ]
    if len(words) > 1:
        held_out = any(key.startswith("eval_") for key in line)
        print(("held out: " if held_out else "") + "  ".join(words), flush=True)


def _page(report: TrainReport, settings: TrainSettings, fmt: Format) -> Report:
    lines = report.history

    def curve(key: str, name: str) -> Curve:
        points = [(float(line["step"]), float(line[key])) for line in lines if key in line]
        return Curve(name, points)

    measured = sorted({key for line in lines for key in line if key.startswith("eval_")})
    kinds = [key for key in measured if key.startswith("eval_loss_")]
    shares = [key for key in measured if key.endswith("_right")]
    rows = [[key, json.dumps(value)] for key, value in settings.describe().items()]
    return Report(
        title="Training",
        lead=f"{settings.model}, format {fmt.name}",
        facts=[
            ("steps", report.n_steps),
            ("rows", report.n_rows),
            ("last loss", _last(lines, "loss")),
            *((key.removeprefix("eval_").replace("_", " "), _last(lines, key)) for key in shares),
        ],
        figures=[
            Curves("Loss", "step", [curve("loss", "trained"), curve("eval_loss", "held out")]),
            Curves(
                "Held-out loss by kind of text",
                "step",
                [curve(key, key.removeprefix("eval_loss_")) for key in kinds],
            ),
            Curves(
                "Right on held-out rows",
                "step",
                [curve(key, key.removeprefix("eval_").replace("_", " ")) for key in shares],
                "A call, or a turn, is right where each of its tokens is the most likely one "
                "behind the right text before it.",
            ),
            Curves("Learning rate", "step", [curve("learning_rate", "learning rate")]),
            Curves("Norm of the gradient", "step", [curve("grad_norm", "norm")]),
            Table("Settings", ["setting", "value"], rows),
        ],
    )


def _last(lines: list[dict[str, Any]], key: str) -> float:
    return next((float(line[key]) for line in reversed(lines) if key in line), math.nan)


def _finish(report: TrainReport, page: Path, args: argparse.Namespace) -> int:
    served = json.loads((report.model / "antiphon.json").read_text("utf-8"))["serve"]["antiphon"]
    if args.json:
        last = {k: v for line in report.history for k, v in line.items()}
        row = {"n_steps": report.n_steps, "n_rows": report.n_rows, "model": str(report.model)}
        print(json.dumps(row | {"resumed_at": report.resumed_at, "last": last}))
        return 0
    resumed = f", of them {report.resumed_at} before" if report.resumed_at else ""
    print(f"{report.n_steps} steps{resumed}, {report.seconds:.0f} s")
    print(f"{report.model}\n{page}")
    print(f'antiphon run "..." --model "{served}"')
    return 0
