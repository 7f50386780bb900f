"""How often the right tool is among the first ones found, from descriptions and from recorded runs.

    python bench/tool_index.py METATOOL_FOLDER STABLETOOLBENCH_FOLDER

MetaTool (Huang et al. 2024): 3,000 requests for one of 199 tools, by description alone and with 5
and 20 other requests that a tool answered, as `ToolIndex.learn` takes them from runs.  The ranking
was made with these in view; the next line is of all 16,642 requests that no tool is known by.
StableToolBench (Guo et al. 2024): 765 requests over 2,479 APIs.  Times are of this process's
processor; the last line is an index over 5,000 generated tools.
"""

import csv
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon.messages import JsonValue, ToolSpec
from antiphon.tools import ToolIndex

KS = (1, 5, 10)
N_TEST = 3000


def recall(found: Sequence[list[str]], right: Sequence[set[str]]) -> list[float]:
    """The share of right names among the first k found, for each k."""
    pairs = list(zip(found, right, strict=True))
    return [sum(len(r & set(f[:k])) / len(r) for f, r in pairs) / len(pairs) for k in KS]


def report(name: str, index: ToolIndex, queries: Sequence[str], right: Sequence[set[str]]) -> None:
    """One line of the table."""
    index.search(queries[0])
    started = time.process_time()
    found = [index.search(query, 10) for query in queries]
    each = 1000 * (time.process_time() - started) / len(queries)
    shares = "".join(f"{share:>8.3f}" for share in recall(found, right))
    print(f"{name:<34}{shares}{each:>10.2f}")


def metatool(folder: Path) -> None:
    """Requests for one tool, without and with recorded requests."""
    about: dict[str, str] = json.loads((folder / "plugin_des.json").read_text("utf-8"))
    requests: dict[str, list[str]] = {}
    with (folder / "all_clean_data.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            requests.setdefault(row["Tool"], []).append(row["Query"])
    chance = random.Random(0)
    examples: dict[str, list[str]] = {}
    rest: list[tuple[str, str]] = []
    for name, texts in requests.items():
        chance.shuffle(texts)
        examples[name] = texts[:20]
        rest += [(text, name) for text in texts[20:]]
    test = chance.sample(rest, N_TEST)
    for n, asked, which in ((0, test, ""), (5, test, ""), (20, test, ""), (20, rest, ", all")):
        index = ToolIndex(ToolSpec(name, text) for name, text in about.items())
        index.learn_requests({name: texts[:n] for name, texts in examples.items()})
        queries, right = [text for text, _ in asked], [{name} for _, name in asked]
        report(f"MetaTool, {n} requests a tool{which}", index, queries, right)


def stabletoolbench(folder: Path) -> None:
    """Requests that need more than one API each."""

    def rows(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]

    def spec(api: dict[str, Any]) -> ToolSpec:
        parameters = [*api["required_parameters"], *api["optional_parameters"]]
        properties: dict[str, JsonValue] = {
            p["name"]: {"description": p["description"]} for p in parameters
        }
        name = f"{api['tool_name']} {api['api_name']}"
        about = f"{api['category_name']}\n{api['api_description']}"
        return ToolSpec(name, about, {"type": "object", "properties": properties})

    apis, queries = rows("apis.jsonl"), rows("queries.jsonl")
    index = ToolIndex(spec(api) for api in apis)
    right = [{f"{tool} {api}" for tool, api in query["relevant"]} for query in queries]
    report("StableToolBench, descriptions", index, [q["query"] for q in queries], right)


def many() -> None:
    """What an index over 5,000 tools takes."""
    verbs, nouns = ("get", "list", "create", "delete", "share"), ("invoice", "ticket", "recipe")
    specs = [
        ToolSpec(
            f"svc{n:04d}_{verbs[n % 5]}_{nouns[n % 3]}",
            f"{verbs[n % 5].title()} a {nouns[n % 3]} of service {n}.",
        )
        for n in range(5000)
    ]
    started = time.process_time()
    index = ToolIndex(specs)
    index.search("share the recipe of service 42")
    made = time.process_time() - started
    started = time.process_time()
    for n in range(200):
        index.search(f"please list the ticket that service {n} has")
    each = 1000 * (time.process_time() - started) / 200
    print(f"5,000 tools: indexed in {made:.2f} s, a query in {each:.2f} ms")


def main() -> None:
    """Print the table."""
    if len(sys.argv) != 3:
        sys.exit("give the folders of MetaTool's and StableToolBench's data")
    print(f"{'':<34}{'R@1':>8}{'R@5':>8}{'R@10':>8}{'ms':>10}")
    metatool(Path(sys.argv[1]))
    stabletoolbench(Path(sys.argv[2]))
    many()


if __name__ == "__main__":
    main()
