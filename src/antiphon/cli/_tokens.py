"""`antiphon data verify-tokens` and `rollouts`: what recorded runs hold as tokens."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from antiphon.cli._training import tokenizer_of
from antiphon.datasets import RowFile, iter_rows
from antiphon.encode import Tokenizer, load_tokenizer
from antiphon.errors import DataError, UsageError
from antiphon.events import Trajectory
from antiphon.formats import read_format
from antiphon.train import (
    Rollout,
    TokenAudit,
    rollouts_of,
    to_trl,
    to_verifiers,
    to_verl,
    verify_tokens,
)

_MEANINGS = {
    "first": "the first prompt of a run",
    "extended": "the tokens before it, and more",
    "rewritten": "history rewritten by the family, by design",
    "context": "other messages, instructions or tools, by design",
    "retokenised": "the same text in other tokens: a defect",
    "reserialised": "an answer shown otherwise than sampled: a defect",
    "other_prompt": "not what the format writes: a defect",
    "other_text": "ids that spell another text: a defect",
    "unknown": "no ids, or no format, recorded",
}

EXPORTS: dict[str, Callable[[Trajectory], list[dict[str, Any]]]] = {
    "trl": lambda run: [_trl(rollout) for rollout in rollouts_of(run)],
    "verl": lambda run: [to_verl(rollout) for rollout in rollouts_of(run)],
    "verifiers": lambda run: [to_verifiers(run), *map(to_verifiers, run.children)],
}
"""Each trainer's name and what it is given of a run, one row each."""


def _trl(rollout: Rollout) -> dict[str, Any]:
    """One row of the columns that a ``rollout_func`` returns."""
    row = {key: values[0] for key, values in to_trl([rollout]).items()}
    return row | {"group": rollout.group, "run": rollout.run}


def trajectories(
    path: str, report: Callable[[DataError], None]
) -> Iterator[tuple[int, Trajectory]]:
    """The runs of a file, each with its line."""
    for line, row in iter_rows(path, report=report):
        try:
            yield line, Trajectory.from_row(row)
        except DataError as error:
            report(DataError(str(error), path=path, line=line))


def run_verify_tokens(args: argparse.Namespace, report: Callable[[DataError], None]) -> int:
    """Audit a file of runs; 1 where a token is not as it should be.

    Raises:
        UsageError: No tokenizer is known.
        AntiphonError: The tokenizer or the format cannot be used.
    """
    audit = TokenAudit()
    vocabularies: dict[str, Tokenizer] = {}
    for _, run in trajectories(args.file, report):
        recorded = (step.completion.format for step in run.steps)
        name = args.format or next(filter(None, recorded), "")
        if not name:
            audit.n_steps += len(run.steps)
            audit.verdicts["unknown"] += len(run.steps)
            continue
        where = args.tokenizer or tokenizer_of(run)
        if not where:
            raise UsageError("the vocabulary of the run's model is not here; give --tokenizer")
        if where not in vocabularies:
            vocabularies[where] = load_tokenizer(where)
        verify_tokens(run, vocabularies[where], format=read_format(name), audit=audit)
    if args.json:
        print(
            json.dumps(
                {
                    "n_steps": audit.n_steps,
                    "verdicts": dict(audit.verdicts),
                    "defects": [asdict(drift) for drift in audit.defects],
                },
                ensure_ascii=False,
            )
        )
    else:
        print("\n".join(_told(audit, args.limit)))
    return 0 if audit.is_exact else 1


def _told(audit: TokenAudit, limit: int) -> Iterator[str]:
    for drift in audit.defects[:limit]:
        yield f"{drift.run or 'run'}: step {drift.step}: {drift.verdict}: {drift.text}"
    if len(audit.defects) > limit:
        yield f"... and {len(audit.defects) - limit:,} more; --limit shows them"
    yield f"{audit.n_steps:,} steps"
    counts: dict[str, int] = {**audit.verdicts}
    for verdict, meaning in _MEANINGS.items():
        if verdict in counts:
            yield f"  {counts[verdict]:>8,}  {verdict:<13} {meaning}"


def run_rollouts(args: argparse.Namespace, report: Callable[[DataError], None]) -> int:
    """Write the rollouts of a file of runs, one row each.

    Raises:
        DataError: The output cannot be written.
    """
    export = EXPORTS[args.to]
    counts: Counter[str] = Counter()

    def told(error: DataError) -> None:
        counts["broken"] += 1
        report(error)

    with RowFile(args.out) as out:
        for row in _exported(args.file, export, told, counts):
            out.write(row)
    stream = sys.stderr if args.out == "-" else sys.stdout
    print(f"{counts['runs']:,} runs, {counts['rows']:,} rows", file=stream)
    return 1 if counts["broken"] else 0


def _exported(
    path: str,
    export: Callable[[Trajectory], list[dict[str, Any]]],
    report: Callable[[DataError], None],
    counts: Counter[str],
) -> Iterator[dict[str, Any]]:
    for line, run in trajectories(path, report):
        try:
            rows = export(run)
        except DataError as error:
            report(DataError(str(error), path=path, line=line))
            continue
        counts["runs"] += 1
        counts["rows"] += len(rows)
        yield from rows
