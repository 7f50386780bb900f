"""`antiphon encode --for dpo|kto|reward|grpo`: rows of TRL's columns, in a file of rows."""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

from antiphon.cli._encoding_options import read_policy, read_variants
from antiphon.datasets import (
    RowFile,
    iter_rows,
    prompt_of,
    read_judged,
    read_preference,
    read_row,
    write_row,
)
from antiphon.encode import Encoder, judged_row, load_tokenizer, pair_row
from antiphon.errors import AntiphonError, DataError, UsageError
from antiphon.formats import get_format

Row = Mapping[str, Any]


def run_compared(args: argparse.Namespace) -> int:
    """Write the rows; 1 where one of them cannot be read or encoded.

    Raises:
        UsageError: There is no --out.
        AntiphonError: The tokenizer or the format cannot be used.
    """
    if args.out is None:
        raise UsageError("--for writes a file of rows; give --out FILE, for example pairs.jsonl")
    fmt = get_format(args.format, **read_variants(args.set))
    encoder = Encoder(load_tokenizer(args.tokenizer), fmt, loss=read_policy(args.loss))
    n_rows = n_broken = n_long = 0

    def told(error: DataError) -> None:
        nonlocal n_broken
        if args.strict:
            raise error
        n_broken += 1
        print(f"antiphon: {error}", file=sys.stderr)

    make = _MAKERS[args.purpose]
    with RowFile(args.out) as out:
        for line, row in iter_rows(args.file, report=told):
            try:
                made = make(encoder, row)
            except AntiphonError as error:
                told(DataError(str(error), path=args.file, line=line))
                continue
            if args.max_tokens and _longest(made) > args.max_tokens:
                n_long += 1
                continue
            out.write(made)
            n_rows += 1
    left_out = f", {n_long:,} too long" if n_long else ""
    print(f"{n_rows:,} rows written, {n_broken:,} broken{left_out}", file=sys.stderr)
    return 1 if n_broken else 0


def _pair(encoder: Encoder, row: Row) -> dict[str, Any]:
    pair = read_preference(row)
    return pair_row(encoder, pair.chosen, pair.rejected, pair.n_shared, margin=pair.margin)


def _reward(encoder: Encoder, row: Row) -> dict[str, Any]:
    made = _pair(encoder, row)
    prompt = made["prompt_ids"]
    whole = {key: prompt + made[key] for key in ("chosen_ids", "rejected_ids")}
    return whole | {key: made[key] for key in ("margin",) if key in made}


def _judged(encoder: Encoder, row: Row) -> dict[str, Any]:
    judged = read_judged(row)
    return judged_row(encoder, judged.conversation, judged.n_prompt, is_good=judged.is_good)


def _prompt(encoder: Encoder, row: Row) -> dict[str, Any]:
    prompt = prompt_of(read_row(row))
    written, _ = write_row(prompt, "openai")
    beside = {k: v for k, v in written.items() if k != "messages"}
    return {"prompt": written["messages"], **beside, "prompt_ids": encoder.prompt_ids(prompt)}


_MAKERS: dict[str, Callable[[Encoder, Row], dict[str, Any]]] = {
    "dpo": _pair,
    "reward": _reward,
    "kto": _judged,
    "grpo": _prompt,
}


def _longest(row: Row) -> int:
    prompt = len(row.get("prompt_ids", ()))
    answers = ("chosen_ids", "rejected_ids", "completion_ids")
    return prompt + max((len(row[key]) for key in answers if key in row), default=0)
