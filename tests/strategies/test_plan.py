"""Plans as values: what is refused, what references mean, how they are written and drawn."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import DataError, PlanError
from antiphon.messages import JsonObject
from antiphon.strategies import Plan, Task, run_in_virtual_time
from antiphon.strategies._dialects import plan_reader
from antiphon.strategies._references import ReferenceFailed, escape, substitute
from antiphon.tools import tool


def task(id: str, *needs: str, **fields: Any) -> Task:
    return Task(id, "t", depends_on=needs, **fields)


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([task("A", "B"), task("B", "C"), task("C", "A")], "cycle: A -> B -> C -> A"),
        ([task("X", "B"), task("A", "B"), task("B", "A")], "cycle: A -> B -> A"),
        ([task("A", "A")], "cycle: A -> A"),
        ([task("A"), task("A")], "duplicate id: two tasks are called 'A'"),
        ([task("A", "Z")], "task 'A' needs unknown task 'Z'"),
        ([task("first"), task("B", "frst")], "did you mean 'first'"),
        ([Task("A", "t", {"x": "${Z.a}"})], "task 'A' needs unknown task 'Z'"),
        ([Task("A", "t", {"x": "${a b}"})], r"malformed reference '\${a b}'"),
        ([Task("A", "serch")], "task 'A' calls unknown tool 'serch'; did you mean 'search'"),
        ([Task("A", prompt="do it", agent="nobody")], "asks unknown agent 'nobody'"),
        ([Task("A")], "has nothing to do"),
        ([Task("a b", "t")], "cannot be called 'a b'"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused_with_the_place(tasks: list[Task], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Plan("g", tuple(tasks)).check(tools=["t", "search"], agents=["clerk"])


def test_a_long_chain_has_no_cycle_and_is_found_to_have_none() -> None:
    chain = [task("0"), *(task(str(n), str(n - 1)) for n in range(1, 20_000))]

    Plan("g", tuple(chain)).check()


def test_references_keep_types_alone_and_become_text_inside_text() -> None:
    results: dict[str, Any] = {"A": {"items": [{"id": 7}, {"id": 9}], "n": 2, "none": None}}

    made = substitute(
        {
            "xs": "${A.items}",
            "one": "${A.items[1].id}",
            "note": "n=${A.n}, none=${A.none}, all=${A.items}!",
            "nothing": "${A.none}",
            "nested": {"k": ["${A.n}"]},
            "cost": "$$5 and $6",
        },
        results,
    )

    assert made == {
        "xs": [{"id": 7}, {"id": 9}],
        "one": 9,
        "note": 'n=2, none=, all=[{"id": 7}, {"id": 9}]!',
        "nothing": None,
        "nested": {"k": [2]},
        "cost": "$5 and $6",
    }


def test_a_result_is_not_looked_through_for_references() -> None:
    assert substitute("see ${a}", {"a": "${b} $$", "b": "no"}) == "see ${b} $$"


def test_a_part_of_a_result_that_is_json_text_is_found() -> None:
    assert substitute("${a.rows[0]}", {"a": '{"rows": [3]}'}) == 3


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("${a.z}", "asks for 'z' and the keys are: n, xs"),
        ("${a.xs[5]}", "asks for item 5 and there is 2 items"),
        ("${a.n.m}", "asks for 'm' of what is no object"),
        ("${a.n[0]}", "asks for item 0 and there is no list"),
    ],
)
def test_a_place_that_a_result_lacks_is_named(reference: str, said: str) -> None:
    with pytest.raises(ReferenceFailed, match=said):
        substitute(reference, {"a": {"n": 1, "xs": [1, 2]}})


@given(st.text())
def test_an_escaped_text_comes_back_whatever_it_is(text: str) -> None:
    assert substitute(escape(text), {}) == text


def read(dialect: Any, text: str, size: int, **parameters: list[str]) -> list[Task]:
    reader = plan_reader(dialect, parameters)
    tasks: list[Task] = []
    for at in range(0, len(text), size):
        tasks += reader.feed(text[at : at + size])
    return [*tasks, *reader.finish()]


REWOO = """Plan: find a
#E1 = Wiki[Ann [of York] x]
Plan: find b
#E2 = Wiki[Bob]
Plan: compare
#E10 = LLM[older of #E1 and
 #E2, not #E10x, for $5]"""
COMPILER = """Thought: first things first
1. t("a")
2. t("$1 costs $1.50 or $$2, not ${HOME}")
3. m($1, [$2, "x)"], flag=true)
4. t(what is $3)
5. join()<END_OF_PLAN>
6. t("never")"""
JSON = """Sure, "tasks" are:
```json
{"thought": "the \\"tasks\\": [", "tasks": [
  {"id": "A", "tool": "s", "args": {"q": "} ] \\" {"}},
  {"id": 2, "prompt": "use ${A}", "deps": "A"}]}
```"""


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_rewoo_plan_is_read_however_it_arrives(size: int) -> None:
    tasks = read("rewoo", REWOO, size, Wiki=["query"])

    assert [(t.id, t.tool, t.arguments, t.title) for t in tasks] == [
        ("E1", "Wiki", {"query": "Ann [of York] x"}, "find a"),
        ("E2", "Wiki", {"query": "Bob"}, "find b"),
        (
            "E10",
            "LLM",
            {"input": "older of ${E1} and\n ${E2}, not #E10x, for $$5"},
            "compare",
        ),
    ]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_evidence_may_stand_behind_its_plan_on_one_line(size: int) -> None:
    """As the planner's examples of LangGraph's ReWOO have it."""
    text = (
        "Plan: find a #E1 = Wiki[Ann]\nPlan: use #E1 = it #E2 = LLM[of #E1]\nPlan: x\n#E3 = now[]"
    )

    tasks = read("rewoo", text, size, now=[])

    assert [(t.id, t.tool, t.arguments, t.title) for t in tasks] == [
        ("E1", "Wiki", {"input": "Ann"}, "find a"),
        ("E2", "LLM", {"input": "of ${E1}"}, "use #E1 = it"),
        ("E3", "now", {}, "x"),
    ]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_compiler_plan_is_read_however_it_arrives(size: int) -> None:
    tasks = read("llmcompiler", COMPILER, size, t=["x"], m=["a", "b", "flag"])

    assert [(t.id, t.tool, t.arguments) for t in tasks] == [
        ("1", "t", {"x": "a"}),
        ("2", "t", {"x": "${1} costs $1.50 or $$2, not $${HOME}"}),
        ("3", "m", {"a": "${1}", "b": ["${2}", "x)"], "flag": True}),
        ("4", "t", {"x": "what is ${3}"}),
    ]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_json_plan_is_read_however_it_arrives(size: int) -> None:
    tasks = read("json", JSON, size)

    assert [(t.id, t.arguments, t.prompt, t.needs) for t in tasks] == [
        ("A", {"q": '} ] " {'}, "", ()),
        ("2", {}, "use ${A}", ("A",)),
    ]


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        ("json", "I would rather not.", "is no plan: 'I would rather not.'"),
        ("json", "", "empty and no plan"),
        ("json", '{"tasks": [{"id": "a"', "breaks off"),
        ("json", '{"tasks": [7]}', "must be an object, got '7"),
        ("json", '{"tasks": [{"tool": "t"}]}', "a task needs an 'id'"),
        ("json", '{"tasks": [{"id": "a", "args": [1]}]}', "'arguments' of task 'a'"),
        ("rewoo", "Plan: think", "is no plan"),
        ("rewoo", "#E1 = Wiki(Ann)", "#E1 is no call"),
        ("llmcompiler", "Just do it", "is no plan"),
        ("llmcompiler", '1. m("a", "b", "c", "d")\n', "takes 3 arguments and is given 4"),
        ("llmcompiler", '1. m("a", b=)\n2. join()\n', "cannot be read"),
    ],
)
def test_what_is_no_plan_says_why(dialect: Any, text: str, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        read(dialect, text, 5, m=["a", "b", "flag"], t=["x"])
    assert said in str(caught.value)


def test_a_plan_survives_its_row() -> None:
    plan = Plan(
        "g",
        (
            Task("a", "t", {"x": 1}, status="completed", result=[1], started=0.5, ended=1.5),
            Task("b", prompt="about ${a}", agent="clerk", title="why", timeout=3.0, attempt=2),
        ),
        1,
    )

    assert Plan.from_row(json.loads(plan.to_json())) == plan


@pytest.mark.parametrize("row", [{}, {"tasks": [1]}, {"tasks": [{"id": "a", "status": "lost"}]}])
def test_a_row_that_is_no_plan_is_refused(row: JsonObject) -> None:
    with pytest.raises(DataError):
        Plan.from_row(row)


def test_a_drawing_has_states_and_arrows_and_opens_nothing() -> None:
    plan = Plan("g", (Task("end", "t", title='x"]--> y'), Task("b", "t", {"x": "${end}"})))

    drawn = plan.to_mermaid().splitlines()

    assert drawn[0] == "flowchart TD"
    assert drawn[1] == '    t0["end: x#34;#93;--#62; y"]:::pending'
    assert "    t0 --> t1" in drawn


def test_a_plan_runs_without_a_model_and_says_what_failed() -> None:
    async def get(n: int) -> dict[str, int]:
        """Gets."""
        await asyncio.sleep(n)
        return {"n": n}

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    def fail(x: int) -> int:
        """Fails."""
        raise ValueError("no")

    tools = [tool(get), tool(add, threaded=False), tool(fail, threaded=False)]
    plan = Plan(
        "g",
        (
            Task("a", "get", {"n": 1}),
            Task("b", "get", {"n": 2}),
            Task("c", "add", {"a": "${a.n}", "b": "${b.n}"}),
            Task("d", "fail", {"x": "${c}"}),
            Task("e", "add", {"a": "${d}", "b": 1}),
        ),
    )

    done = run_in_virtual_time(plan.run(tools))

    assert [t.status for t in done] == ["completed"] * 3 + ["failed", "skipped"]
    assert (done["c"].result, done["c"].started) == (3, 2.0)
    assert "ValueError: no" in done["d"].reason
    assert done["e"].reason == "dependency d failed"


def test_arguments_that_cannot_be_right_are_refused_before_anything_runs() -> None:
    def add(a: int, b: int = 0) -> int:
        """Adds."""
        return a + b

    for arguments in ({"b": "${x}"}, {"a": [1]}, {"a": "${x}", "b": [1]}):
        plan = Plan("g", (Task("x", "add", {"a": 1}), Task("y", "add", arguments)))  # type: ignore[arg-type]  # JSON of several kinds
        with pytest.raises(PlanError, match="task 'y'"):
            asyncio.run(plan.run([tool(add)]))
