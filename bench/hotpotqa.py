"""HotpotQA with one model: loop, plan, ReWOO, retrying without memory, and Reflexion.

    python bench/hotpotqa.py QUESTIONS [--model SPEC] [--limit N] [--calls N] [--journal FILE]

QUESTIONS has one JSON object a line: ``id``, ``question``, ``answer`` and ``context``, pairs of a
title and sentences.  All paragraphs of the file together are the encyclopaedia that ``search`` and
``lookup`` look into.  No strategy may make more model calls a question than `--calls`.  An answer
counts if it equals the expected one but for case, punctuation and articles (EM); where it is said
somewhere in a longer answer it counts apart.

All strategies do a question before the next one begins, and each is written to the journal as soon
as it is done: a measurement that was stopped goes on there, and the table is of the questions that
every strategy has done.  `--out` keeps each run as a trajectory.  Seconds are those of the clock
and of the processor: on a busy machine only the second tell about the strategy.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from antiphon.agent import Agent, RunResult
from antiphon.models import Model, ModelSettings, load_model
from antiphon.retrieval import BlendedIndex
from antiphon.strategies import PlanAndExecute, Reflexion, Runnable, exact
from antiphon.strategies._evaluators import normalised
from antiphon.tools import Tool, tool

Json = dict[str, Any]
INSTRUCTIONS = (
    "Answer the question with a name, a date, a number, yes or no, and nothing else. "
    "Use search to find paragraphs."
)


class Encyclopaedia:
    """Titled paragraphs, to be searched."""

    def __init__(self, rows: Sequence[Json]) -> None:
        self.paragraphs: dict[str, str] = {}
        self.index: BlendedIndex[str] = BlendedIndex()
        for row in rows:
            for title, sentences in row["context"]:
                self.paragraphs[title] = "".join(sentences)
        for title, text in self.paragraphs.items():
            self.index.add(title, text, title=title)

    def tools(self) -> list[Tool[..., Any]]:
        """The two tools."""

        def search(query: str) -> str:
            """Find paragraphs of an encyclopaedia.

            Args:
                query: Names and words to look for.
            """
            hits = self.index.search(query, 3)
            texts = [f"{hit.key}: {self.paragraphs[hit.key]}" for hit in hits]
            return "\n\n".join(texts) or "nothing"

        def lookup(title: str) -> str:
            """The paragraph of a title.

            Args:
                title: The exact title.
            """
            return self.paragraphs.get(title, f"there is no paragraph {title!r}; search for it")

        options: Json = {"idempotent": True, "threaded": False}
        return [tool(search, **options), tool(lookup, **options)]


class Journal:
    """What each strategy came to on each question: one line each, written when it is done."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[tuple[str, str], Json] = {}
        if path is None or not path.exists():
            return
        *whole, broken_off = path.read_text("utf-8").split("\n")
        for line in whole:
            self._take(json.loads(line))
        if broken_off:
            path.write_text("".join(f"{line}\n" for line in whole), "utf-8")

    def _take(self, row: Json) -> None:
        self.rows[row["id"], row["strategy"]] = row

    def add(self, row: Json) -> None:
        """Keep one more."""
        self._take(row)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def strategies(
    model: Model, tools: list[Tool[..., Any]], calls: int
) -> dict[str, Callable[[str], Runnable]]:
    """Each strategy, given the expected answer (which only evaluators see)."""
    settings = ModelSettings(temperature=0, max_tokens=200)

    def agent(max_steps: int) -> Agent:
        return Agent(
            name="reader",
            instructions=INSTRUCTIONS,
            model=model,
            tools=tools,
            settings=settings,
            max_steps=max_steps,
            on_limit="answer",
            timeout=None,  # a busy machine takes nothing away
        )

    def tries(answer: str, *, reflect: bool) -> Runnable:
        own = max(1, (calls - 1) // 2 - 1)
        return Reflexion(
            agent(own), exact(answer), max_attempts=2, reflect=reflect, max_steps=calls
        )

    limits: Json = {"max_steps": calls, "on_limit": "answer"}
    return {
        "loop": lambda _: agent(calls - 1),
        "plan": lambda _: PlanAndExecute(agent(calls), **limits),
        "rewoo": lambda _: PlanAndExecute.rewoo(agent(calls), **limits),
        "retry without memory": lambda answer: tries(answer, reflect=False),
        "reflexion": lambda answer: tries(answer, reflect=True),
    }


def told(result: RunResult, expected: str, wall_s: float, cpu_s: float) -> Json:
    """What the journal keeps of a run."""
    usage = result.usage
    return {
        "exact": normalised(result.text) == normalised(expected),
        "said": normalised(expected) in normalised(result.text),
        "calls": usage.n_requests,
        "tokens": usage.input_tokens + usage.output_tokens,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "stop": result.stop_reason,
        "expected": expected,
        "output": result.text,
    }


def table(journal: Journal, names: Sequence[str], asked: Sequence[str]) -> None:
    """Print what all strategies came to on the questions that all have done."""
    done = [id for id in asked if all((id, name) in journal.rows for name in names)]
    print(f"{len(done)} of {len(asked)} questions, the same for all")
    if not done:
        return
    words = ("EM", "said", "calls", "most", "tokens", "s", "cpu s")
    print(f"{'':<22}" + "".join(f"{word:>8}" for word in words))
    for name in names:
        rows = [journal.rows[id, name] for id in done]
        mean = {
            key: sum(row[key] for row in rows) / len(rows)
            for key in ("exact", "said", "calls", "tokens", "wall_s", "cpu_s")
        }
        print(
            f"{name:<22}{mean['exact']:>8.2f}{mean['said']:>8.2f}{mean['calls']:>8.1f}"
            f"{max(row['calls'] for row in rows):>8}{mean['tokens']:>8.0f}"
            f"{mean['wall_s']:>8.1f}{mean['cpu_s']:>8.1f}",
            flush=True,
        )


async def measure(args: argparse.Namespace) -> None:
    """Do what the journal does not have yet, and print the table."""
    rows: list[Json] = [json.loads(line) for line in args.questions.read_text("utf-8").splitlines()]
    journal = Journal(args.journal)
    model = load_model(args.model)
    made = strategies(model, Encyclopaedia(rows).tools(), args.calls)
    names = args.strategies or list(made)
    print(f"{args.model}, at most {args.calls} calls a question")
    try:
        for row in rows[: args.limit]:
            for name in names:
                if (row["id"], name) in journal.rows:
                    continue
                wall, cpu = time.perf_counter(), time.process_time()
                result = await made[name](row["answer"]).run(row["question"])
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                journal.add(
                    {"id": row["id"], "strategy": name} | told(result, row["answer"], wall, cpu)
                )
                if args.out:
                    file = f"{row['id']}_{name.replace(' ', '_')}.json"
                    result.trajectory.save(args.out / file)
    finally:
        table(journal, names, [row["id"] for row in rows[: args.limit]])
        await model.close()


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--model", default="local")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--strategies", nargs="*", help="some of them; all where none is named")
    parser.add_argument("--journal", type=Path, help="where to go on, and to keep what is done")
    parser.add_argument("--out", type=Path, help="a folder for trajectories")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
