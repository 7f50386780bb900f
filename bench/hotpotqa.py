"""HotpotQA with one model: loop, plan, ReWOO, retrying without memory, and Reflexion.

    python bench/hotpotqa.py QUESTIONS [--model SPEC] [--limit N] [--calls N] [--out FOLDER]

QUESTIONS has one JSON object a line: ``question``, ``answer`` and ``context``, pairs of a title and
sentences.  All paragraphs of the file together are the encyclopaedia that ``search`` and ``lookup``
look into.  Every strategy may make the same number of model calls a question.  An answer counts if
it equals the expected one but for case, punctuation and articles (EM); what it says somewhere
counts apart.  With `--out` each run is kept as a trajectory.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
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

    def __init__(self, rows: list[Json]) -> None:
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


@dataclass
class Row:
    """What a strategy came to."""

    n: int = 0
    exact: int = 0
    said: int = 0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, result: RunResult, answer: str, seconds: float) -> None:
        """One more question."""
        usage = result.usage
        self.n += 1
        self.exact += normalised(result.text) == normalised(answer)
        self.said += normalised(answer) in normalised(result.text)
        self.calls += usage.n_requests
        self.tokens += usage.input_tokens + usage.output_tokens
        self.seconds += seconds


def strategies(
    model: Model, tools: list[Tool[..., Any]], calls: int
) -> dict[str, Callable[[str], Runnable]]:
    """Each strategy, given the expected answer (which only evaluators see)."""
    settings = ModelSettings(temperature=0, max_tokens=300)

    def agent(max_steps: int) -> Agent:
        return Agent(
            name="reader",
            instructions=INSTRUCTIONS,
            model=model,
            tools=tools,
            settings=settings,
            max_steps=max_steps,
            on_limit="answer",
        )

    def tries(answer: str, *, reflect: bool) -> Runnable:
        own = max(1, (calls - 1) // 2 - 1)
        return Reflexion(agent(own), exact(answer), max_attempts=2, reflect=reflect)

    return {
        "loop": lambda answer: agent(calls - 1),
        "plan": lambda answer: PlanAndExecute(agent(1), max_replans=max(0, calls // 2 - 2)),
        "rewoo": lambda answer: PlanAndExecute.rewoo(agent(1)),
        "retry without memory": lambda answer: tries(answer, reflect=False),
        "reflexion": lambda answer: tries(answer, reflect=True),
    }


async def measure(args: argparse.Namespace) -> None:
    """Run all and print the table."""
    text = args.questions.read_text("utf-8")
    rows: list[Json] = [json.loads(line) for line in text.splitlines()]
    model = load_model(args.model)
    made = strategies(model, Encyclopaedia(rows).tools(), args.calls)
    print(f"{args.limit} questions, {args.model}, at most {args.calls} calls a question")
    print(f"{'':<22}{'EM':>6}{'said':>6}{'calls':>8}{'tokens':>9}{'s':>8}")
    try:
        for name, make in made.items():
            total = Row()
            for at, row in enumerate(rows[: args.limit]):
                started = time.perf_counter()
                result = await make(row["answer"]).run(row["question"])
                total.add(result, row["answer"], time.perf_counter() - started)
                if args.out:
                    result.trajectory.save(args.out / f"{name.replace(' ', '_')}_{at}.json")
            n = total.n
            print(
                f"{name:<22}{total.exact / n:>6.2f}{total.said / n:>6.2f}{total.calls / n:>8.1f}"
                f"{total.tokens / n:>9.0f}{total.seconds / n:>8.1f}",
                flush=True,
            )
    finally:
        await model.close()


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--model", default="local")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--out", type=Path)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
