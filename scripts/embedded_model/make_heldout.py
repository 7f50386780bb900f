"""Write the 100 questions of `antiphon eval demo` from a held-out catalog.

    python scripts/embedded_model/make_heldout.py --out src/antiphon/evaluation/data/demo.json

Nothing of it is trained on.  ``test.json`` was written without a look at the training files, and is
what the benchmark is made of; ``heldout.json`` is the set that was looked at while the data was
improved (``--catalog heldout``), so its numbers are no measure.  Half of the cases offer the
package's own demonstration tools, the other half offer invented ones.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from make_data import (
    CATALOG,
    Asked,
    Drawer,
    Offer,
    hold_out,
    load_catalog,
    result_text,
    trained_values,
    two_steps,
)

from antiphon.messages import JsonObject, ToolCall, ToolSpec
from antiphon.tools import Tool
from antiphon.tools.builtin import DEMO_TOOLS
from antiphon.tools.builtin._data import people

N_DEMO = {
    "calculator": 7,
    "current_time": 3,
    "get_address": 4,
    "get_weather": 6,
    "convert_currency": 5,
}
N_DEMO_CHAINS = {"address_weather": 9, "address_time": 4}
N_HELD_OUT_SINGLE, N_HELD_OUT_CHAINS, N_NO_TOOL = 25, 12, 25


class Writer:
    """Collects cases and the tool sets that they name."""

    def __init__(self, catalog: str, seed: int, address_book: Sequence[str]) -> None:
        held_out = load_catalog([catalog])
        hold_out(held_out, trained_values())
        self.held_out = Drawer(held_out, seed)
        self.questions: dict[str, Any] = json.loads(
            (CATALOG / f"{catalog}.json").read_text("utf-8")
        )["heldout_demo"]
        self.demo = Drawer(load_catalog(["demo"]), seed)
        self.demo.catalog.slots.update(self.held_out.catalog.slots)
        self.demo.catalog.slots["person"] = list(address_book)
        self.demo.catalog.slots["city"] = held_out.slots[self.questions["slots"]["city"]]
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in DEMO_TOOLS}
        self.toolsets: dict[str, list[JsonObject]] = {"demo": _specs([t.spec for t in DEMO_TOOLS])}
        self.cases: list[JsonObject] = []

    def add(
        self,
        kind: str,
        tools: str,
        question: str,
        steps: Sequence[Sequence[ToolCall]],
        results: Sequence[Sequence[str]],
    ) -> None:
        """One more case."""
        self.cases.append(
            {
                "id": f"{kind}-{sum(c['kind'] == kind for c in self.cases) + 1:02d}",
                "kind": kind,
                "tools": tools,
                "question": question,
                "steps": [
                    [{"name": c.name, "arguments": c.arguments} for c in step] for step in steps
                ],
                "results": [list(step) for step in results],
            }
        )

    def call(self, call: ToolCall) -> str:
        """The real answer of a demonstration tool."""
        result = asyncio.run(self.tools[call.name].call(call.arguments))
        if result.is_error:
            raise SystemExit(f"{call.name}({call.arguments}) failed: {result.text}")
        return result.text

    # -- the demonstration tools ------------------------------------------------------------------

    def demo_single(self) -> None:
        """One call of a demonstration tool."""
        offers = {o.spec.name: o for o in self.demo.demo_offers()}
        for name, n in N_DEMO.items():
            if name == "calculator":
                offers[name].entry.update(self.questions[name])
            for _ in range(n):
                asked = self._demo_asked(offers[name])
                self.add(
                    "single", "demo", asked.question, [[asked.call]], [[result_text(asked.result)]]
                )

    def _demo_asked(self, offer: Offer) -> Asked:
        """A question not asked before, with a value that no other case has."""
        if offer.spec.name == "calculator":
            offer.entry["worded"] = list(offer.entry["worded"])
            pair = offer.entry["worded"].pop(self.demo.random.randrange(len(offer.entry["worded"])))
            return self.demo.ask(Offer(offer.entry | {"worded": [pair]}, offer.spec, offer.names))
        questions = self.questions[offer.spec.name]
        question = questions.pop(self.demo.random.randrange(len(questions)))
        asked = self.demo.ask(offer, question=question)
        if offer.spec.name in ("get_address", "convert_currency"):
            return replace(asked, result=self.call(asked.call))
        return asked

    def demo_chains(self) -> None:
        """An address, then what is asked about its city."""
        second = {
            "address_weather": ("get_weather", "city"),
            "address_time": ("current_time", "timezone"),
        }
        for name, n in N_DEMO_CHAINS.items():
            questions = [q for q in self.questions["chains"][name] if "{unit}" not in q]
            for question in self.demo.random.sample(questions, n):
                person = self.demo.random.choice(self.demo.catalog.slots["person"])
                first = ToolCall("get_address", {"name": person})
                address = self.call(first)
                tool, parameter = second[name]
                then = ToolCall(tool, {parameter: json.loads(address)["city"]})
                self.add(
                    "chain",
                    "demo",
                    question.replace("{name}", person),
                    [[first], [then]],
                    [[address], [self.call(then)]],
                )

    # -- tools that were never seen ---------------------------------------------------------------

    def _offers(self, wanted: Sequence[str]) -> list[Offer]:
        draw = self.held_out
        others = [t for t in draw.catalog.tools if t not in wanted]
        ids = [*wanted, *draw.random.sample(others, draw.random.randint(2, 4))]
        return draw.offers(ids)

    def _toolset(self, offers: Sequence[Offer]) -> str:
        name = f"set-{len(self.toolsets)}"
        self.toolsets[name] = _specs([o.spec for o in offers])
        return name

    def unseen_single(self) -> None:
        """One call of an invented tool."""
        draw = self.held_out
        for one in draw.random.sample(list(draw.catalog.tools), N_HELD_OUT_SINGLE):
            offers = self._offers([one])
            asked = draw.ask(next(o for o in offers if o.entry["id"] == one))
            self.add(
                "single",
                self._toolset(offers),
                asked.question,
                [[asked.call]],
                [[result_text(asked.result)]],
            )

    def unseen_chains(self) -> None:
        """Two dependent calls of invented tools."""
        draw = self.held_out
        for one in draw.random.sample(draw.catalog.chains, N_HELD_OUT_CHAINS):
            offers = self._offers([one["first"], one["second"]])
            by_id = {o.entry["id"]: o for o in offers}
            first, second, text = two_steps(draw, one, by_id)
            self.add(
                "chain",
                self._toolset(offers),
                text,
                [[first.call], [second.call]],
                [[result_text(first.result)], [result_text(second.result)]],
            )

    def no_tool(self) -> None:
        """Questions that need none of the tools on offer."""
        draw = self.held_out
        pairs = draw.random.sample(draw.catalog.no_tool, N_NO_TOOL)
        for number, (question, _) in enumerate(pairs):
            tools = "demo" if number % 2 else self._toolset(self._offers([]))
            self.add("no_tool", tools, question, [], [])


def _specs(specs: Sequence[ToolSpec]) -> list[JsonObject]:
    return [spec.to_openai() for spec in specs]


def main() -> None:
    """Write the cases."""

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--catalog", default="test", help="the held-out catalog to draw from")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    writer = Writer(arguments.catalog, arguments.seed, [entry["name"] for entry in people()])
    for write in (
        writer.demo_single,
        writer.unseen_single,
        writer.demo_chains,
        writer.unseen_chains,
        writer.no_tool,
    ):
        write()
    content = {"toolsets": writer.toolsets, "cases": writer.cases}
    arguments.out.write_text(
        json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    print(f"{len(writer.cases)} cases written to {arguments.out}")


if __name__ == "__main__":
    main()
