"""Tasks by rule are the same for the same seed, fit their tools, and are done on real results."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import Checker
from antiphon.errors import DataError
from antiphon.messages import find_problems
from antiphon.synthesis import (
    KINDS,
    SynthConfig,
    SynthReport,
    config_from,
    read_config,
    synthesize,
)
from antiphon.tools.builtin import DEMO_TOOLS

SCRIPTS = Path(__file__).parents[2] / "scripts" / "embedded_model" / "catalog"
COURSES = Path(__file__).parents[2] / "examples" / "embedded_model"
DEMO = {"python": ["antiphon.tools.builtin:DEMO_TOOLS"], "catalogs": ["demo"], "offered": [3, 5]}


def config(out: Path, n: int = 60, toolset: Any = None, **more: Any) -> SynthConfig:
    tasks: dict[str, Any] = {"count": n} | more.pop("tasks", {})
    return config_from(
        {"seed": 5, "out": str(out), "toolset": [toolset or DEMO], "tasks": tasks} | more
    )


def made(given: SynthConfig, **options: Any) -> tuple[SynthReport, list[dict[str, Any]]]:
    report = asyncio.run(synthesize(given, **options))
    lines = (report.out / "runs.jsonl").read_text("utf-8").splitlines()
    return report, [json.loads(line) for line in lines]


def tasks_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "tasks.jsonl").read_text("utf-8").splitlines()]


def calls(row: dict[str, Any]) -> list[list[tuple[str, dict[str, Any]]]]:
    return [
        [(c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls", ())]
        for m in row["messages"]
        if m["role"] == "assistant"
    ]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """A hundred and twenty runs on the real demonstration tools, a tenth of them merged."""
    out = tmp_path_factory.mktemp("demo")
    return made(config(out, 120, tasks={"merge": 0.1, "thoughts": 0.2}))[1]


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Runs on invented tools, answered by rule."""
    out = tmp_path_factory.mktemp("invented")
    catalogs = [str(SCRIPTS / f"{name}.json") for name in ("everyday", "office")]
    return made(config(out, 80, {"catalogs": catalogs, "offered": [3, 7]}))[1]


def test_every_kind_is_made_and_answered(demo: list[dict[str, Any]]):
    kinds = Counter(row["metadata"]["kind"] for row in demo)

    assert set(kinds) == {*KINDS, "merged"}
    assert {row["stop_reason"] for row in demo} == {"answer"}


@pytest.mark.parametrize("rows", ["demo", "invented"])
def test_every_call_fits_the_schema_of_a_tool_on_offer(rows: str, request: Any):
    for row in request.getfixturevalue(rows):
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in row["tools"]}
        for step in calls(row):
            for name, arguments in step:
                assert find_problems(schemas[name], arguments) == []


@pytest.mark.parametrize("rows", ["demo", "invented"])
def test_a_data_set_check_finds_no_error(rows: str, request: Any):
    checker = Checker()
    found = [f for row in request.getfixturevalue(rows) for f in checker.check(row)]

    assert [f for f in found if f.level == "error"] == []


@pytest.mark.parametrize("rows", ["demo", "invented"])
def test_no_placeholder_is_left_in_what_is_said(rows: str, request: Any):
    for row in request.getfixturevalue(rows):
        for message in row["messages"]:
            if message["role"] in ("user", "assistant"):
                assert not re.search(r"\{[a-z_.]+\}", str(message.get("content", "")))


def test_a_dependent_call_is_made_with_what_the_first_one_found(demo: list[dict[str, Any]]):
    rows = [row for row in demo if row["metadata"]["kind"] == "dependent"]

    for row in rows:
        found = json.loads(next(m["content"] for m in row["messages"] if m["role"] == "tool"))
        second = calls(row)[1][0][1]
        assert found["city"] in second.values()
    assert len(rows) > 5


def test_a_linked_call_is_made_with_what_the_first_one_found(invented: list[dict[str, Any]]):
    n_linked = 0
    for row in invented:
        if row["metadata"]["kind"] != "dependent":
            continue
        second: dict[str, Any] = row["metadata"]["task"]["script"][0]["steps"][1][0]["arguments"]
        plain = str, int, float, list
        ((name, link),) = [(k, v["link"]) for k, v in second.items() if not isinstance(v, plain)]
        found = json.loads(next(m["content"] for m in row["messages"] if m["role"] == "tool"))
        assert calls(row)[1][0][1][name] == found[link["field"]]
        assert str(found[link["field"]]) not in row["messages"][0]["content"]
        n_linked += 1
    assert n_linked > 8


def linked(tmp_path: Path, phrases: list[str], questions: list[str]) -> SynthConfig:
    """A tool that finds a city, and one that takes one."""
    parameter = {"slot": "person", "required": True}
    tools = [
        {
            "id": "home_of",
            "parameters": [{"key": "who"} | parameter],
            "questions": ["Where does {who} live?"],
            "result": {"city": "{city}"},
        },
        {
            "id": "weather",
            "parameters": [{"key": "place"} | parameter | {"slot": "city"}],
            "questions": questions,
            "result": {"sky": "grey"},
            "answers": ["It is {result.sky} in {place}."],
        },
    ]
    (tmp_path / "c.json").write_text(json.dumps({"tools": tools}))
    (tmp_path / "slots_c.json").write_text('{"person": ["Ada"], "city": ["Oslo"]}')
    (tmp_path / "linked.json").write_text(json.dumps({"home_of.city": phrases, "x.y": ["z"]}))
    toolset = {"catalogs": [str(tmp_path / "c.json")], "offered": [2, 2]}
    return config(tmp_path / "out", 30, toolset, tasks={"kinds": {"dependent": 1}})


def test_what_a_tool_finds_is_asked_for_in_the_words_of_its_phrase(tmp_path: Path):
    given = linked(tmp_path, ["{who}'s city"], ["Is it wet in {place}?"])

    rows = made(given)[1]

    asked = {
        re.sub(
            "Hi! |Hello, |Hey, |Quick question: |Please: ", "", r["messages"][0]["content"]
        ).split("?")[0]
        for r in rows
    }
    assert "Is it wet in Ada's city" in asked
    assert any(a.endswith("Is it wet in that city") for a in asked)
    assert {calls(row)[1][0][1]["place"] for row in rows} == {"Oslo"}
    assert {row["messages"][-1]["content"] for row in rows} == {"It is grey in Oslo."}


def test_a_clause_stands_only_where_it_reads(tmp_path: Path):
    given = linked(tmp_path, ["where {who} lives"], ["Is it wet in {place}?", "How is {place}?"])

    rows = made(given)[1]

    assert all("in where" not in row["messages"][0]["content"] for row in rows)


def test_what_a_tool_finds_may_be_asked_for_first(tmp_path: Path):
    given = linked(tmp_path, ["the city of {who}", "who {who} lives by"], ["Is it wet in {place}?"])

    asked = {row["messages"][0]["content"] for row in made(given)[1]}

    assert any("What is the city of Ada? Is it wet in that city" in text for text in asked)


def test_things_lose_their_articles_in_calls_and_sentences_do_not(tmp_path: Path):
    tool = {
        "id": "send",
        "parameters": [{"key": "what", "slot": "thing", "required": True}],
        "questions": ["Send {what}."],
        "result": "sent",
    }
    words = ["the red umbrella", "a bottle of water", "The Red Lion", "the baby is asleep"]
    (tmp_path / "c.json").write_text(json.dumps({"tools": [tool]}))
    (tmp_path / "slots_c.json").write_text(json.dumps({"thing": words}))
    toolset = {"catalogs": [str(tmp_path / "c.json")], "offered": [1, 1]}

    rows = made(config(tmp_path / "out", 40, toolset, tasks={"kinds": {"single": 1}}))[1]

    sent = {calls(row)[0][0][1]["what"] for row in rows}
    assert sent == {"red umbrella", "bottle of water", "The Red Lion", "the baby is asleep"}
    assert any("Send the red umbrella" in row["messages"][0]["content"] for row in rows)


def test_odd_values_are_said_and_called_with_as_others_are(tmp_path: Path):
    toolset = {"catalogs": [str(SCRIPTS / "everyday.json")], "offered": [3, 5]}
    slots = json.loads((SCRIPTS / "slots_everyday.json").read_text())

    def known_share(out: Path, share: float) -> float:
        tasks = {"kinds": {"single": 1}}
        rows = made(config(out, 200, toolset | {"odd_values": share}, tasks=tasks))[1]
        cities = [v for r in rows for n, v in calls(r)[0][0][1].items() if n in ("city", "town")]
        for row in rows:
            for value in calls(row)[0][0][1].values():
                if isinstance(value, str) and value[:1].isupper():
                    assert value in row["messages"][0]["content"]
        return sum(city in slots["city"] for city in cities) / len(cities)

    assert known_share(tmp_path / "none", 0.0) == 1.0
    assert 0.2 < known_share(tmp_path / "some", 0.5) < 0.8


def test_variants_are_tools_about_other_things(tmp_path: Path):
    def tool(id: str, noun: str) -> dict[str, Any]:
        return {
            "id": id,
            "names": [f"{noun}_hours", f"find{noun.capitalize()}", "opening"],
            "descriptions": [f"When a {noun} opens.", "Opening hours."],
            "parameters": [{"key": noun, "names": [noun, "place"], "slot": "at", "required": True}],
            "questions": [f"When does the {noun} {{{noun}}} open?", f"{{{noun}}}, that {noun}?"],
            "result": {"opens": "{time}"},
            "answers": [f"The {noun} opens at {{result.opens}}."],
        }

    # A verb is no noun, and what names no noun in its questions has no variants.
    verb = tool("c", "order") | {"questions": ["I want to order {order}.", "order {order}"]}
    tools = [tool("a", "museum"), tool("b", "archive"), verb]
    (tmp_path / "c.json").write_text(json.dumps({"tools": tools}))
    (tmp_path / "slots_c.json").write_text('{"at": ["Ada", "Bo"]}')
    toolset = {"catalogs": [str(tmp_path / "c.json")], "offered": [2, 3], "variants": 2}

    given = config(tmp_path / "out", 120, toolset, tasks={"kinds": {"single": 1}, "share": 1})
    report, rows = made(given)

    seen = {
        (o["entry"], o["spec"]["function"]["name"])
        for t in tasks_of(report.out)
        for o in t["tools"]
    }
    assert (
        {"a~archive", "b~museum"}
        <= {entry for entry, _ in seen}
        <= {"a", "b", "c", "a~archive", "b~museum"}
    )
    assert {n for e, n in seen if e == "a~archive"} == {"archive_hours", "findArchive"}
    assert "When does the archive Ada open?" in {r["messages"][0]["content"] for r in rows}
    checker = Checker()
    assert [f for row in rows for f in checker.check(row) if f.level == "error"] == []


def test_an_exact_set_offers_its_tools_in_their_order_and_what_they_answer_agrees(tmp_path: Path):
    toolset = {"catalogs": ["demo"], "python": DEMO["python"], "exact": True, "simulate": True}

    rows = made(config(tmp_path, 120, toolset, tasks={"kinds": {"single": 1}}))[1]

    names = [tool.name for tool in DEMO_TOOLS]
    seen: Counter[str] = Counter()
    for row in rows:
        assert [t["function"]["name"] for t in row["tools"]] == names
        ((name, arguments),) = calls(row)[0]
        text = next(m["content"] for m in row["messages"] if m["role"] == "tool")
        seen[f"{name} {arguments.get('unit', '')}"] += 1
        if name == "current_time":
            found = json.loads(text)
            assert f"{datetime.fromisoformat(found['time']):%A}" == found["weekday"]
        if name == "convert_currency":
            found = json.loads(text)
            assert found["amount"] == pytest.approx(arguments["amount"] * found["rate"], abs=0.006)
        if name == "get_weather":
            found = json.loads(text)
            assert found["unit"] == arguments.get("unit", "celsius")
            assert found["temperature"] in range(*((20, 101) if "f" in found["unit"] else (-5, 39)))
    assert {"current_time ", "convert_currency ", "get_weather fahrenheit"} < set(seen)


@pytest.mark.slow
def test_another_process_makes_the_same_bytes(tmp_path: Path):
    made: set[bytes] = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "antiphon", "synth", str(COURSES / "third.toml")]
        subprocess.run(
            [*command, "--count", "1000", "--out", str(tmp_path / seed)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        made.add((tmp_path / seed / "tasks.jsonl").read_bytes())
    assert len(made) == 1


@pytest.mark.parametrize("course", ["synth", "third"])
def test_the_embedded_models_data_comes_from_one_config(tmp_path: Path, course: str):
    example = read_config(COURSES / f"{course}.toml")
    given = replace(example, out=str(tmp_path), tasks=replace(example.tasks, count=70))

    report, rows = made(given)

    assert report.is_complete
    exact = [[tool.name for tool in DEMO_TOOLS]]
    offered = [[t["function"]["name"] for t in row["tools"]] for row in rows]
    assert 7 <= sum(names in exact for names in offered) <= 49
    assert {row["stop_reason"] for row in rows} == {"answer"}
    assert {"single", "dependent", "no_tool"} < {row["metadata"]["kind"] for row in rows}


def test_a_tool_that_fails_once_is_called_again_and_one_that_fails_is_told(
    demo: list[dict[str, Any]],
):
    for row in demo:
        kind = row["metadata"]["kind"]
        results = [m for m in row["messages"] if m["role"] == "tool"]
        if kind == "recovery":
            assert [bool(m.get("is_error")) for m in results] == [True, False]
            assert calls(row)[0] == calls(row)[1]
            assert "out of order 1 times" in str(row["metadata"]["simulated"])
        if kind == "failing":
            assert [bool(m.get("is_error")) for m in results] == [True]
            assert row["metadata"]["task"]["faults"][0]["text"] in row["messages"][-1]["content"]


def test_a_parallel_task_has_its_calls_in_one_step(demo: list[dict[str, Any]]):
    for row in demo:
        if row["metadata"]["kind"] == "parallel":
            assert [len(step) for step in calls(row)] == [2, 0]


def test_a_merged_task_does_both_in_turn(demo: list[dict[str, Any]]):
    rows = [row for row in demo if row["metadata"]["kind"] == "merged"]

    assert all(len([s for s in calls(row) if s]) >= 2 for row in rows)
    assert all(len(row["metadata"]["task"]["turns"]) == 1 for row in rows)


def test_thoughts_stand_in_whole_groups_or_not_at_all(demo: list[dict[str, Any]]):
    by_group: dict[int, set[bool]] = {}
    for row in demo:
        thought = any("reasoning_content" in m for m in row["messages"])
        by_group.setdefault(row["metadata"]["group"], set()).add(thought)

    assert {frozenset(v) for v in by_group.values()} == {frozenset([True]), frozenset([False])}


def test_a_group_shares_its_tools(demo: list[dict[str, Any]]):
    for index in range(0, 120, 4):
        assert len({json.dumps(row["tools"]) for row in demo[index : index + 4]}) == 1


def test_invented_tools_are_marked_and_real_ones_are_not(
    demo: list[dict[str, Any]], invented: list[dict[str, Any]]
):
    assert all(set(row["metadata"]["simulated"].values()) >= {"rule"} for row in invented)
    assert all(
        "simulated" not in row["metadata"] or row["metadata"]["kind"] in ("recovery", "failing")
        for row in demo
    )


def said(rows: list[dict[str, Any]]) -> list[Any]:
    return [[row["id"], row["messages"], row["tools"]] for row in rows]


def test_the_same_seed_makes_the_same_conversations(tmp_path: Path, invented: list[dict[str, Any]]):
    catalogs = [str(SCRIPTS / f"{name}.json") for name in ("everyday", "office")]
    again = config(tmp_path, 40, {"catalogs": catalogs, "offered": [3, 7]})

    assert said(made(again)[1]) == said(invented[:40])


def test_another_seed_makes_others(tmp_path: Path, demo: list[dict[str, Any]]):
    two = made(replace(config(tmp_path, 10), seed=6))[1]

    assert said(demo[:10]) != said(two)


def test_a_limit_ends_a_stage_and_the_same_command_goes_on(tmp_path: Path):
    first = asyncio.run(synthesize(config(tmp_path, 20, limits={"seconds": 0.0})))
    second, rows = made(config(tmp_path, 20))

    assert "limits.seconds is 0" in first.stages["tasks"].stopped
    assert not first.is_complete
    assert second.is_complete
    assert len(rows) == 20


def test_more_tasks_keep_the_first_ones(tmp_path: Path):
    made(config(tmp_path, 10))

    report, rows = made(config(tmp_path, 14))

    assert (report.stages["runs"].n_kept, len(rows)) == (10, 14)


def test_what_is_held_out_is_neither_asked_nor_answered(tmp_path: Path):
    catalogs = [str(SCRIPTS / "everyday.json")]
    given = config(tmp_path / "a", 30, {"catalogs": catalogs})
    text = json.dumps(tasks_of(made(given)[0].out), ensure_ascii=False)
    slots = json.loads((SCRIPTS / "slots_everyday.json").read_text())
    asked = [v for values in slots.values() for v in values if len(v) > 6 and f'"{v}"' in text]

    rows = made(config(tmp_path / "b", 30, {"catalogs": catalogs}), held_out=asked)[1]

    assert len(asked) > 10
    turns = json.dumps([row["messages"] for row in rows], ensure_ascii=False)
    assert [v for v in asked if f'"{v}"' in turns] == []


def test_a_toolset_that_allows_no_kind_says_so(tmp_path: Path):
    catalog = tmp_path / "c.json"
    catalog.write_text('{"tools": [{"id": "ping", "questions": ["Ping?"], "result": "pong"}]}')
    given = config(tmp_path, 3, {"catalogs": [str(catalog)]}, tasks={"kinds": {"dependent": 1}})

    report = asyncio.run(synthesize(given))

    assert "allows none of the kinds dependent" in report.stages["tasks"].failures[0].reason


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"questions": []}, "'t' has no questions"),
    ({"questions": ["Where is {x}?"]}, "has no parameter 'x'"),
    ({"parameters": [{"key": "x", "required": True, "slot": "code"}]}, "without 'x'"),
    ({"questions": ["{x}?"], "parameters": [{"key": "x", "slot": "nope"}]}, "no slot"),
    ({"result": {"a": "{nope}"}}, r"answers with \{nope\}"),
    ({"parameters": [{"names": ["x"]}]}, "is no tool: KeyError 'key'"),
    ({"draws": {"day": "nope"}}, "draws from 'nope', which is no slot"),
    ({"result": {"a": "{day.weekday}"}}, r"answers with \{day.weekday\}"),
    ({"result": {"a": "{=rate * 2}"}}, r"answers with \{=rate \* 2\}"),
    ({"result": "{=2 * 3:many}"}, "answers with"),
    ({"parameters": [{"key": "x", "slot": "code"}], "result": "{x}"}, "leaves out; draw one"),
    ({"cases": [{"arguments": {}, "result": "{nope}"}]}, r"answers with \{nope\}"),
]


@pytest.mark.parametrize(("tool", "message"), FAULTS)
def test_a_catalog_that_does_not_fit_together_names_the_entry(
    tmp_path: Path, tool: dict[str, Any], message: str
):
    catalog = tmp_path / "c.json"
    entry = {"id": "t", "questions": ["Now?"], "result": "yes"} | tool
    catalog.write_text(json.dumps({"tools": [entry]}))

    with pytest.raises(DataError, match=message):
        made(config(tmp_path, 1, {"catalogs": [str(catalog)]}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"linked": {"t.city": ["the city"]}}, "is linked, but 't' finds no 'city'"),
        ({"linked": {"t.a": ["the {who}"]}}, "is called 'the {who}', which does not fit"),
        ({"results": {"u": {}}}, "results names 'u', which no file defines"),
        ({"results": {"t": {"results": 1}}}, "results of 't' has an unknown 'results'"),
    ],
)
def test_what_a_catalog_says_of_other_tools_is_checked(
    tmp_path: Path, content: dict[str, Any], message: str
):
    catalog = tmp_path / "c.json"
    entry = {"id": "t", "questions": ["Now?"], "result": {"a": "yes"}}
    catalog.write_text(json.dumps({"tools": [entry]} | content))

    with pytest.raises(DataError, match=message):
        made(config(tmp_path, 1, {"catalogs": [str(catalog)]}))
