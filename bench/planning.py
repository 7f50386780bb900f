"""How near plans come to the shortest time possible, and what scheduling costs.

    python bench/planning.py [--asynchow FILE] [--worfbench FILE] [--verdicts FOLDER]
                             [--llmcompiler CHECKOUT] [--notebook FILE] [--unit 0.2] [--rounds 5]

Six graphs run in real time, each unit of work a sleep: ours beside LangGraph's StateGraph, with
async and with plain functions, where it is installed; LLMCompiler's scheduler from a checkout of
its repository; and the scheduler of LangGraph's LLMCompiler tutorial from its notebook.  Beside
them stands what one task after the other and level after level would take.  With the files of
AsyncHow (Lin et al. 2024) and WorFBench (Qiao et al. 2025) every plan of theirs runs on a clock
that jumps, where the time taken can be compared exactly.  Plans of 1,000 to 8,000 tasks show what
scheduling costs.  With the folder that holds Reflexion's logs and HumanEval the verdicts of
`unit_tests` are compared with the recorded ones.
"""

import argparse
import asyncio
import gzip
import importlib.util
import json
import operator
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypedDict

from antiphon.strategies import Plan, Task, run_in_virtual_time
from antiphon.strategies._evaluators import candidate
from antiphon.strategies._unit_tests import run_tests
from antiphon.tools import Tool, tool

Graph = dict[str, tuple[float, list[str]]]
"""Units of work and needs, by id."""

GRAPHS: dict[str, Graph] = {
    "chain of 4": {"a": (1, []), "b": (1, ["a"]), "c": (1, ["b"]), "d": (1, ["c"])},
    "4 roots": {id: (1, []) for id in "abcd"},
    "diamond": {"a": (1, []), "b": (1, ["a"]), "c": (1, ["a"]), "d": (1, ["b", "c"])},
    "1 beside 3, then 3": {"a": (1, []), "b": (3, []), "c": (3, ["a"])},
    "3 branches": {
        **{f"s{n}": (1, []) for n in range(3)},
        **{f"m{n}": (1, [f"s{n}"]) for n in range(3)},
        "j": (1, ["m0", "m1", "m2"]),
    },
    "16 roots and a join": {
        **{f"r{n}": (1, []) for n in range(16)},
        "j": (1, [f"r{n}" for n in range(16)]),
    },
}


def critical_path(graph: Graph) -> float:
    """The longest chain of needs, in units."""
    ends: dict[str, float] = {}
    waiting = dict(graph)
    while waiting:
        for id, (units, needs) in list(waiting.items()):
            if all(need in ends for need in needs):
                ends[id] = units + max((ends[need] for need in needs), default=0.0)
                del waiting[id]
    return max(ends.values(), default=0.0)


def levels(graph: Graph) -> float:
    """The time when each level waits for all of the one before, in units."""
    depth: dict[str, int] = {}
    while len(depth) < len(graph):
        for id, (_, needs) in graph.items():
            if id not in depth and all(need in depth for need in needs):
                depth[id] = 1 + max((depth[need] for need in needs), default=-1)
    return sum(
        max(units for id, (units, _) in graph.items() if depth[id] == level)
        for level in range(max(depth.values()) + 1)
    )


def plan_of(graph: Graph) -> Plan:
    """A graph as a plan whose tasks work for so many units."""
    tasks = (
        Task(id, "work", {"units": units}, depends_on=tuple(needs))
        for id, (units, needs) in graph.items()
    )
    return Plan("bench", tuple(tasks))


@cache
def work(unit: float) -> Tool[..., Any]:
    """A tool that takes its time."""

    async def work(units: float) -> str:
        """Works."""
        await asyncio.sleep(units * unit)
        return "done"

    return tool(work, timeout=None)


async def timed(plan: Plan, tools: Sequence[Tool[..., Any]]) -> float:
    """How long a plan takes by the loop's clock, in seconds."""
    clock = asyncio.get_running_loop().time
    started = clock()
    done = await plan.run(tools, max_parallel=None)
    assert all(task.status == "completed" for task in done)
    return clock() - started


Runner = Callable[[Graph, float], Awaitable[object]]
"""Carries a graph out; given the seconds of a unit."""


class State(TypedDict):
    """What the nodes of a StateGraph share."""

    done: Annotated[list[float], operator.add]


async def ours(graph: Graph, unit: float) -> object:
    """A plan of this library."""
    return await plan_of(graph).run([work(unit)], max_parallel=None)


def state_graph(*, blocking: bool) -> Runner | None:
    """LangGraph's StateGraph with async or plain functions; ``None`` where it is not installed."""
    if importlib.util.find_spec("langgraph") is None:
        return None
    module: Any = importlib.import_module("langgraph.graph")

    def node(units: float, unit: float) -> Any:
        async def act(_state: Any) -> dict[str, Any]:
            await asyncio.sleep(units * unit)
            return {"done": [units]}

        def act_blocking(_state: Any) -> dict[str, Any]:
            time.sleep(units * unit)
            return {"done": [units]}

        return act_blocking if blocking else act

    async def run(graph: Graph, unit: float) -> object:
        built: Any = module.StateGraph(State)
        needed = {need for _, needs in graph.values() for need in needs}
        for id, (units, needs) in graph.items():
            built.add_node(id, node(units, unit))
            built.add_edge(needs if len(needs) > 1 else needs[0] if needs else module.START, id)
            if id not in needed:
                built.add_edge(id, module.END)
        made = built.compile()
        begun: dict[str, Any] = {"done": []}
        if blocking:
            return await asyncio.to_thread(made.invoke, begun)
        return await made.ainvoke(begun)

    return run


def fetching_unit(checkout: Path) -> Runner:
    """LLMCompiler's own scheduler, from a checkout of its repository."""
    sys.path.insert(0, str(checkout))
    module: Any = importlib.import_module("src.llm_compiler.task_fetching_unit")
    logger: Any = importlib.import_module("src.utils.logger_utils")
    logger.LOG_ENABLED = False

    async def run(graph: Graph, unit: float) -> object:
        async def act(units: float) -> str:
            await asyncio.sleep(units * unit)
            return "done"

        numbers = {id: n for n, id in enumerate(graph, 1)}
        fetching = module.TaskFetchingUnit()
        fetching.set_tasks(
            {
                numbers[id]: module.Task(
                    numbers[id], "work", act, (units,), [numbers[need] for need in needs]
                )
                for id, (units, needs) in graph.items()
            }
        )
        return await fetching.schedule()

    return run


def notebook(path: Path) -> Runner:
    """The scheduler of LangGraph's LLMCompiler tutorial: the cell that defines it is executed."""
    prompts: Any = importlib.import_module("langchain_core.messages")
    runnables: Any = importlib.import_module("langchain_core.runnables")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    [code] = [text for cell in cells if "def schedule_tasks" in (text := "".join(cell["source"]))]
    # What the tutorial's earlier cells define, as far as the scheduler uses it.
    known: dict[str, Any] = {"Task": dict, "__name__": "notebook"}
    known |= {name: getattr(prompts, name) for name in ("BaseMessage", "FunctionMessage")}
    exec(code, known)  # a file that the caller names, run on purpose

    async def run(graph: Graph, unit: float) -> object:
        def act(units: float) -> str:
            time.sleep(units * unit)
            return "done"

        numbers = {id: n for n, id in enumerate(graph, 1)}
        tool: Any = runnables.RunnableLambda(act, name="work")
        tasks = [
            {
                "idx": numbers[id],
                "tool": tool,
                "args": units,
                "dependencies": [numbers[need] for need in needs],
                "thought": "",
            }
            for id, (units, needs) in graph.items()
        ]
        messages = [prompts.HumanMessage("go")]
        schedule = known["schedule_tasks"].invoke
        return await asyncio.to_thread(schedule, {"messages": messages, "tasks": iter(tasks)})

    return run


def six_graphs(args: argparse.Namespace) -> None:
    """The table of six graphs in real time, by turns, the median of several runs of each."""
    unit: float = args.unit
    found: dict[str, Runner | None] = {
        "ours": ours,
        "StateGraph": state_graph(blocking=False),
        "sync": state_graph(blocking=True),
        "LLMCompiler": fetching_unit(args.llmcompiler) if args.llmcompiler else None,
        "notebook": notebook(args.notebook) if args.notebook else None,
    }
    runners = {name: runner for name, runner in found.items() if runner is not None}
    print(f"in real time, {unit} s a unit, median of {args.rounds}, by turns; units")
    head = "".join(f"{name:>12}" for name in runners)
    print(f"{'graph':<22}{'sum':>6}{'levels':>8}{'shortest':>10}{head}{'ours over':>11}")
    for name, graph in GRAPHS.items():
        took: dict[str, list[float]] = {name: [] for name in runners}
        for _ in range(args.rounds):
            for kind, runner in runners.items():
                took[kind].append(asyncio.run(lasting(runner, graph, unit)) / unit)
        total, shortest = sum(units for units, _ in graph.values()), critical_path(graph)
        medians = {kind: statistics.median(each) for kind, each in took.items()}
        shown = "".join(f"{median:>12.3f}" for median in medians.values())
        print(
            f"{name:<22}{total:>6.0f}{levels(graph):>8.0f}{shortest:>10.0f}{shown}"
            f"{medians['ours'] / shortest - 1:>11.1%}",
            flush=True,
        )


async def lasting(runner: Runner, graph: Graph, unit: float) -> float:
    """How long a graph takes, in seconds, after it was run once with next to no work: code that
    others' turns have driven out of the memory is read again before the time is taken."""
    await runner(graph, 0.001)
    started = time.perf_counter()
    await runner(graph, unit)
    return time.perf_counter() - started


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def virtual(graphs: Mapping[str, tuple[Graph, float]], name: str) -> None:
    """Plans on a clock that jumps, against the time that each must take."""
    tools = [work(1.0)]
    started = time.process_time()
    wrong = [
        id
        for id, (graph, wanted) in graphs.items()
        if run_in_virtual_time(timed(plan_of(graph), tools)) != wanted
    ]
    took = time.process_time() - started
    print(f"{name}: {len(graphs) - len(wrong)} of {len(graphs)} exact, {took:.1f} s of processor")
    for id in wrong[:5]:
        print(f"  not: {id}")


def asynchow(path: Path) -> dict[str, tuple[Graph, float]]:
    """AsyncHow's plans and gold times, without those whose gold is not their longest chain."""
    found: dict[str, tuple[Graph, float]] = {}
    for row in rows(path):
        graph = {id: (row["duration_s"][id][0], needs) for id, needs in row["deps"].items()}
        gold = row["gold_makespan_s"][0]
        if critical_path(graph) == gold:
            found[row["id"]] = (graph, gold)
    return found


def worfbench(path: Path) -> dict[str, tuple[Graph, float]]:
    """WorFBench's graphs, each node a unit."""
    found: dict[str, tuple[Graph, float]] = {}
    for row in rows(path):
        graph: Graph = {id: (1, []) for id in row["nodes"]}
        for source, target in row["edges"]:
            if source in graph and target in graph and source not in graph[target][1]:
                graph[target][1].append(source)
        found[row["id"]] = (graph, critical_path(graph))
    return found


def scaling() -> None:
    """What scheduling costs, by the number of tasks."""
    print("tasks, processor ms a task")
    tools = [work(1.0)]
    for n in (1000, 2000, 4000, 8000):
        graph: Graph = {
            str(i): (1, [str(j) for j in range(max(0, i - 3), i)] if i % 7 else [])
            for i in range(n)
        }
        plan = plan_of(graph)
        started = time.process_time()
        run_in_virtual_time(timed(plan, tools))
        print(f"{n:>6}{1000 * (time.process_time() - started) / n:>8.3f}")


@dataclass(frozen=True)
class Judged:
    """A program and whether it passes."""

    task: str
    """Which problem, and whose program."""
    found: bool
    """What `unit_tests` finds."""
    recorded: bool
    """What was recorded."""
    why: str
    """What failed."""


async def verdicts(folder: Path) -> list[Judged]:
    """Recorded verdicts of HumanEval programs beside those of isolated unit tests."""
    text = gzip.decompress((folder / "humaneval" / "HumanEval.jsonl.gz").read_bytes()).decode()
    problems = {row["task_id"]: row for row in map(json.loads, text.splitlines())}
    judged: list[Judged] = []
    for log in ("humaneval_py_reflexion_gpt4.jsonl", "humaneval_py_simple_gpt4.jsonl"):
        for row in rows(folder / "reflexion_logs" / log):
            problem = problems[row["task_id"]]
            entry = problem["entry_point"]
            code = candidate(row["solution"], problem["prompt"], entry)
            test = f"{problem['test']}\ncheck({entry})"
            [why] = await run_tests(code, [test], timeout=60.0, memory_mb=1024)
            name = f"{row['task_id']} in {log}"
            judged.append(Judged(name, not why, bool(row["is_solved"]), why))
    return judged


def tell_verdicts(judged: Sequence[Judged]) -> None:
    """How many verdicts are as recorded, and which are not."""
    n_same = sum(one.found == one.recorded for one in judged)
    print(f"HumanEval verdicts: {n_same} of {len(judged)} as recorded")
    for one in judged:
        if one.found != one.recorded:
            print(f"  {one.task}: {one.why or 'passes'}, recorded {one.recorded}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asynchow", type=Path)
    parser.add_argument("--worfbench", type=Path)
    parser.add_argument("--verdicts", type=Path)
    parser.add_argument("--llmcompiler", type=Path)
    parser.add_argument("--notebook", type=Path)
    parser.add_argument("--unit", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    six_graphs(args)
    scaling()
    if args.asynchow:
        virtual(asynchow(args.asynchow), "AsyncHow")
    if args.worfbench:
        virtual(worfbench(args.worfbench), "WorFBench")
    if args.verdicts:
        tell_verdicts(asyncio.run(verdicts(args.verdicts)))


if __name__ == "__main__":
    main()
