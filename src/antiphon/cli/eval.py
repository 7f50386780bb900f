"""`antiphon eval`: measure a model, a format or a search on a benchmark."""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from antiphon.cli._main import Subparsers
from antiphon.errors import DataError, UsageError

MODES = ("free", "grammar", "react", "native")
_EPILOG = """\
Benchmarks: demo (100 held-out questions, in the package); desk (24 conversations at a library's
desk, judged by the state that it is left in); bfcl/CATEGORY of the Berkeley leaderboard
(simple_python, multiple, parallel, ..., ast, live, non_live, multi_turn_base, ...;
pip install --no-deps bfcl-eval).
round_trip/BENCHMARK writes its right calls in each family and reads them back, and
retrieval/BENCHMARK looks for their tools among all of its tools; neither asks a model.

examples:
  antiphon eval demo --model local --modes grammar --limit 5
  antiphon eval round_trip/demo --formats qwen3 llama3_1
  antiphon eval retrieval/demo"""


def add_parser(subparsers: Subparsers) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "eval",
        help="measure a model on a benchmark",
        description="Ask a model every case of a benchmark and print how many it got right.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "benchmark", help="demo, desk, bfcl/CATEGORY, round_trip/..., or a .json file of cases"
    )
    parser.add_argument("--model", default="local", help="model spec (default: local)")
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=MODES,
        default=["free", "grammar", "react"],
        help="free text, held to the format's grammar, prompted ReAct, or the server's own calls "
        "(default: the first three)",
    )
    parser.add_argument("--kinds", nargs="+", help="only these kinds: single, chain, no_tool")
    parser.add_argument("--limit", type=int, help="only the first so many cases of each kind")
    parser.add_argument("--concurrency", type=int, default=1, metavar="N", help="cases at once")
    parser.add_argument("--user", metavar="SPEC", help="for desk: who plays the people")
    parser.add_argument("--formats", nargs="+", help="for round_trip: families (default: all)")
    parser.add_argument(
        "--out", type=Path, help="outcomes as JSONL; an interrupted run goes on from it"
    )
    parser.add_argument(
        "--beside", nargs="+", type=Path, default=[], metavar="FILE", help="earlier --out files"
    )
    parser.add_argument("--html", type=Path, metavar="PAGE", help="write a page of all runs")
    parser.add_argument("--json", action="store_true", help="print outcomes as JSONL")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print the table."""
    from antiphon.evaluation import load_benchmark, load_cases
    from antiphon.models import load_model

    what, _, rest = args.benchmark.partition("/")
    if what == "retrieval":
        return _retrieval(load_cases(rest or "demo"), args)
    if what == "round_trip":
        cases = _chosen(load_cases(rest or "demo"), args.kinds, args.limit)
        outcomes = _round_trip(cases, args)
    else:
        user = load_model(args.user) if args.user else None
        cases = _chosen(load_benchmark(args.benchmark, user=user), args.kinds, args.limit)
        done = _read(args.out) if args.out else {}
        outcomes = asyncio.run(_evaluate(args, cases, done))
    return _show(outcomes, args)


def _show(outcomes: dict[str, list[Any]], args: argparse.Namespace) -> int:
    from antiphon.batch import write_text
    from antiphon.evaluation import compare_page, table

    for path in args.beside:
        if not path.exists():
            raise DataError("cannot be read: no such file", path=path)
        for mode, found in _read(path).items():
            outcomes[f"{path.stem} {mode}"] = found
    if args.html:
        write_text(args.html, compare_page(outcomes, title=args.benchmark))
    if not args.json:
        print(table(outcomes))
    return 0


def _chosen(cases: Sequence[Any], kinds: Sequence[str] | None, limit: int | None) -> list[Any]:
    known = list(dict.fromkeys(case.kind for case in cases))
    unknown = [kind for kind in kinds or () if kind not in known]
    if unknown:
        raise UsageError(f"no kind of case {unknown[0]!r}; known: {', '.join(known)}")
    chosen: list[Any] = []
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.kind] = counts.get(case.kind, 0) + 1
        if (not kinds or case.kind in kinds) and (limit is None or counts[case.kind] <= limit):
            chosen.append(case)
    return chosen


# ---- without a model ----------------------------------------------------------------------------


def _round_trip(cases: Sequence[Any], args: argparse.Namespace) -> dict[str, list[Any]]:
    from antiphon.evaluation import round_trip
    from antiphon.formats import get_format, list_formats

    outcomes: dict[str, list[Any]] = {}
    with _opened(args.out) as out:
        for name in args.formats or list_formats():
            outcomes[name] = list(round_trip(cases, get_format(name)))
            for outcome in outcomes[name]:
                _write(name, outcome, out, args)
    return outcomes


def _retrieval(cases: Sequence[Any], args: argparse.Namespace) -> int:
    from antiphon.evaluation import interval, retrieve

    found = retrieve(cases)
    if args.json:
        for one in found:
            print(json.dumps(asdict(one)))
        return 0
    for depth in (1, 5, 10):
        n = sum(one.within(depth) for one in found)
        low, high = interval(n, len(found))
        shown = f"{n}/{len(found)} = {n / len(found):.1%} ({low:.1%}-{high:.1%})"
        print(f"all wanted tools among the first {depth:2}: {shown}")
    return 0


# ---- with a model -------------------------------------------------------------------------------


async def _evaluate(
    args: argparse.Namespace, cases: Sequence[Any], done: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    from antiphon.evaluation import Mode, evaluate
    from antiphon.models import ModelSettings, load_model

    outcomes: dict[str, list[Any]] = {}
    wanted = {case.id for case in cases}
    with _opened(args.out) as out:
        for name in args.modes:
            spec = f"{args.model}{'&' if '?' in args.model else '?'}format=react_en"
            model = load_model(spec if name == "react" else args.model)
            constrain = None if name == "native" else name == "grammar"
            settings = ModelSettings(temperature=0, max_tokens=300, constrain=constrain)
            mode = Mode(name, model, settings)
            outcomes[name] = [o for o in done.get(name, ()) if o.case in wanted]
            earlier = list(outcomes[name])
            try:
                async for outcome in evaluate(
                    cases, mode, done=earlier, concurrency=args.concurrency
                ):
                    outcomes[name].append(outcome)
                    _write(name, outcome, out, args)
                    _progress(name, outcomes[name], len(cases))
            finally:
                await model.close()
    return outcomes


def _opened(path: Path | None) -> contextlib.AbstractContextManager[TextIO | None]:
    return contextlib.nullcontext() if path is None else path.open("a", encoding="utf-8")


def _write(mode: str, outcome: Any, out: TextIO | None, args: argparse.Namespace) -> None:
    line = json.dumps({"mode": mode} | asdict(outcome), ensure_ascii=False)
    if out is not None:
        out.write(line.encode("utf-8", "backslashreplace").decode() + "\n")
        out.flush()
    if args.json:
        print(line, flush=True)


def _progress(mode: str, outcomes: Sequence[Any], n_cases: int) -> None:
    if not sys.stderr.isatty():
        return
    right = sum(o.right for o in outcomes)
    end = "\n" if len(outcomes) == n_cases else ""
    print(f"\r{mode}: {len(outcomes)}/{n_cases} asked, {right} right", end=end, file=sys.stderr)


def _read(path: Path) -> dict[str, list[Any]]:
    """Outcomes of an earlier run; the last line may have been cut by its end."""
    done: dict[str, list[Any]] = {}
    if not path.exists():
        return done
    lines = path.read_text("utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        path.write_text("".join(lines[:-1]), encoding="utf-8")
        del lines[-1]
    for number, line in enumerate(lines, 1):
        mode, outcome = _outcome(line, path, number)
        done.setdefault(mode, []).append(outcome)
    return done


def _outcome(line: str, path: Path, number: int) -> tuple[str, Any]:
    from antiphon.evaluation import Outcome

    try:
        fields = json.loads(line)
        return fields.pop("mode"), Outcome(**fields)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            "not an outcome of antiphon eval; give another --out or delete the line",
            path=path,
            line=number,
        ) from error
