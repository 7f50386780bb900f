"""`antiphon eval`: measure a model on a benchmark."""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from antiphon.errors import DataError

MODES = ("free", "grammar", "react")


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "eval",
        help="measure a model on a benchmark",
        description="Ask a model every case of a benchmark and print how many it got right.",
        epilog="example: antiphon eval demo --model local --modes grammar --limit 5",
    )
    parser.add_argument("benchmark", help="demo: 100 held-out questions for tools never trained on")
    parser.add_argument("--model", default="local", help="model spec (default: local)")
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=MODES,
        default=list(MODES),
        help="free text, held to the format's grammar, or prompted ReAct (default: all three)",
    )
    parser.add_argument("--kinds", nargs="+", help="only these kinds: single, chain, no_tool")
    parser.add_argument("--limit", type=int, help="only the first so many cases of each kind")
    parser.add_argument(
        "--out", type=Path, help="outcomes as JSONL; an interrupted run goes on from it"
    )
    parser.add_argument("--json", action="store_true", help="print outcomes as JSONL")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print the table."""
    from antiphon.evaluation import load_cases, table

    cases = _chosen(load_cases(args.benchmark), args.kinds, args.limit)
    done = _read(args.out) if args.out else {}
    outcomes = asyncio.run(_evaluate(args, cases, done))
    if not args.json:
        print(table(outcomes))
    return 0


def _chosen(cases: Sequence[Any], kinds: Sequence[str] | None, limit: int | None) -> list[Any]:
    chosen: list[Any] = []
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.kind] = counts.get(case.kind, 0) + 1
        if (not kinds or case.kind in kinds) and (limit is None or counts[case.kind] <= limit):
            chosen.append(case)
    return chosen


async def _evaluate(
    args: argparse.Namespace, cases: Sequence[Any], done: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    from antiphon.evaluation import Mode, evaluate
    from antiphon.models import ModelSettings, load_model

    outcomes: dict[str, list[Any]] = {}
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(args.out.open("a", encoding="utf-8")) if args.out else None
        for name in args.modes:
            spec = f"{args.model}{'&' if '?' in args.model else '?'}format=react_en"
            model = load_model(spec if name == "react" else args.model)
            settings = ModelSettings(temperature=0, max_tokens=300, constrain=name == "grammar")
            mode = Mode(name, model, settings)
            outcomes[name] = list(done.get(name, ()))
            try:
                async for outcome in evaluate(cases, mode, done=outcomes[name]):
                    outcomes[name].append(outcome)
                    line = json.dumps({"mode": name} | asdict(outcome), ensure_ascii=False)
                    if out:
                        out.write(line + "\n")
                        out.flush()
                    if args.json:
                        print(line, flush=True)
                    _progress(name, outcomes[name], len(cases))
            finally:
                await model.close()
    return outcomes


def _progress(mode: str, outcomes: Sequence[Any], n_cases: int) -> None:
    if not sys.stderr.isatty():
        return
    right = sum(o.right for o in outcomes)
    end = "\n" if len(outcomes) == n_cases else ""
    print(f"\r{mode}: {len(outcomes)}/{n_cases} asked, {right} right", end=end, file=sys.stderr)


def _read(path: Path) -> dict[str, list[Any]]:
    from antiphon.evaluation import Outcome

    done: dict[str, list[Any]] = {}
    if not path.exists():
        return done
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            done.setdefault(fields.pop("mode"), []).append(Outcome(**fields))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(
                "not an outcome of antiphon eval; give another --out or delete the line",
                path=path,
                line=number,
            ) from error
    return done
