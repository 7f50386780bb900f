"""Models write tasks, act, play the user and stand in for tools; what they do wrong is told."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from antiphon.messages import Message, ToolCall, ToolSpec, message_to_row
from antiphon.models import ModelSettings, ScriptedModel
from antiphon.synthesis import SynthReport, config_from, find_object, synthesize
from antiphon.synthesis._config import TasksConfig
from antiphon.synthesis._task import Offered, Task
from antiphon.synthesis._writer import Dropped, write_task

WEATHER = ToolSpec("get_weather", "Weather.", {"type": "object", "properties": {"city": {}}})
BLANK = Task("t", "single", [], [Offered("get_weather", "model", WEATHER.to_openai())])


def written(*answers: str, task: Task = BLANK, **config: Any) -> Task | Dropped:
    model = ScriptedModel(answers)
    made = write_task(task, TasksConfig(**config), model, ModelSettings(), random.Random(0))
    return asyncio.run(made)


def request(message: str, *tools: str) -> str:
    return json.dumps({"message": message, "goal": f"wants {message}", "tools": list(tools)})


def test_a_task_is_what_the_writer_says():
    task = written(f"Here you are: {request('Rain in Lima?', 'get_weather')}")

    assert isinstance(task, Task)
    assert (task.turns, task.goal) == (["Rain in Lima?"], "wants Rain in Lima?")
    assert task.targets == ["get_weather"]


def test_the_writer_is_told_the_tools_the_persona_and_the_kind():
    model = ScriptedModel([request("Rain?")])
    config = TasksConfig(personas=("a sailor",), scenarios=("a storm",), seeds=("Wind?",))

    asyncio.run(write_task(BLANK, config, model, ModelSettings(), random.Random(0)))

    prompt = model.conversations[0].messages[-1].text
    for part in ('"get_weather"', "a sailor", "a storm", "Wind?", "exactly one call"):
        assert part in prompt


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I would rather not.", "it holds no JSON object"),
        ('{"message": ""}', "'message' is no text"),
        (request("Rain?", "get_rain"), "'get_rain', which is not on offer"),
    ],
)
def test_an_answer_that_is_no_use_is_told_why_and_then_the_task_is_dropped(
    answer: str, reason: str
):
    model = ScriptedModel([answer] * 3)

    made = asyncio.run(write_task(BLANK, TasksConfig(), model, ModelSettings(), random.Random(0)))

    assert isinstance(made, Dropped)
    assert reason in made.reason
    assert reason in model.conversations[1].messages[-1].text


def test_a_task_is_made_harder_as_often_as_is_asked():
    task = written(request("a"), request("b"), request("c"), evolve=2)

    assert isinstance(task, Task)
    assert task.turns == ["c"]


def test_two_requests_are_joined_into_one():
    task = written(request("a", "get_weather"), request("b"), request("a and b"), merge=1.0)

    assert isinstance(task, Task)
    assert (task.kind, task.turns) == ("merged", ["a and b"])
    assert task.goal == "wants a wants b"


def test_an_object_is_found_among_other_words_and_nothing_else_is():
    assert find_object('I {think} so: {"a": [1]} {"b": 2}') == {"a": [1]}
    assert find_object("none [1]") is None


# ---- whole runs, with models that speak by script ---------------------------------------------


def script(path: Path, *answers: Message | str) -> str:
    rows = [a if isinstance(a, str) else message_to_row(a) for a in answers]
    path.write_text(json.dumps(rows))
    return f"script/{path}"


def call(name: str, **arguments: Any) -> Message:
    return Message.assistant(tool_calls=[ToolCall(name, arguments)])


def made(tmp_path: Path, **more: Any) -> tuple[SynthReport, list[dict[str, Any]]]:
    (tmp_path / "specs.json").write_text(json.dumps([WEATHER.to_openai()]))
    content = {
        "out": str(tmp_path / "out"),
        "toolset": [{"specs": [str(tmp_path / "specs.json")]}],
        "limits": {"concurrency": 1},
    }
    report = asyncio.run(synthesize(config_from(content | more)))
    path = report.out / "runs.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return report, [json.loads(line) for line in lines]


def test_a_tool_without_a_function_is_answered_by_a_model_and_marked(tmp_path: Path):
    models = {
        "writer": script(tmp_path / "w.json", request("Rain in Lima?", "get_weather")),
        "teacher": script(tmp_path / "t.json", call("get_weather", city="Lima"), "It rains."),
        "simulator": script(tmp_path / "s.json", 'Sure: {"sky": "rain"}'),
    }

    report, rows = made(tmp_path, models=models, tasks={"count": 1, "kinds": {"single": 1}})

    assert report.is_complete
    (row,) = rows
    assert [m.get("content") for m in row["messages"]][-2:] == ['{"sky": "rain"}', "It rains."]
    assert row["metadata"]["simulated"] == {"get_weather": f"model {models['simulator']}"}
    assert report.ledger.total.n_requests == 4


def test_a_simulated_user_goes_on_until_it_is_done(tmp_path: Path):
    models = {
        "writer": script(tmp_path / "w.json", request("Rain?", "get_weather")),
        "teacher": script(tmp_path / "t.json", "Where?", "In Lima it is dry."),
        "user": script(tmp_path / "u.json", "In Lima.", "DONE"),
        "simulator": "rules",
    }
    models["simulator"] = models["writer"]

    _, rows = made(tmp_path, models=models, tasks={"count": 1, "kinds": {"missing": 1}})

    said = [(m["role"], m["content"]) for m in rows[0]["messages"]]
    assert said == [
        ("user", "Rain?"),
        ("assistant", "Where?"),
        ("user", "In Lima."),
        ("assistant", "In Lima it is dry."),
    ]
    assert len(rows[0]["steps"]) == 2
    assert rows[0]["steps"][1]["n_prompt_messages"] == 3


def test_a_task_that_could_not_be_written_is_dropped_with_its_reason(tmp_path: Path):
    models = {
        "writer": script(tmp_path / "w.json", "no", "no", "no"),
        "teacher": script(tmp_path / "t.json"),
    }

    report, rows = made(tmp_path, models=models, tasks={"count": 1})

    assert rows == []
    assert report.is_complete
    assert "it holds no JSON object" in next(iter(report.dropped))


def test_a_limit_on_calls_counts_those_of_earlier_runs(tmp_path: Path):
    models = {
        "writer": script(tmp_path / "w.json", *[request(f"{n}?") for n in range(9)]),
        "teacher": script(tmp_path / "t.json", *(["Yes."] * 9)),
    }
    tasks = {"count": 4, "kinds": {"single": 1}}

    first, _ = made(tmp_path, models=models, tasks=tasks, limits={"concurrency": 1, "calls": 2})
    again, _ = made(tmp_path, models=models, tasks=tasks, limits={"concurrency": 1, "calls": 2})

    assert "limits.calls is 2, and 2 are spent" in first.stages["tasks"].stopped
    assert (again.stages["tasks"].n_kept, again.stages["tasks"].n_done) == (2, 0)


def test_a_model_that_cannot_be_asked_fails_the_row_and_nothing_is_lost(tmp_path: Path):
    models = {
        "writer": script(tmp_path / "w.json", request("a?"), request("b?")),
        "teacher": "http://127.0.0.1:9/v1#nobody",
    }

    report, rows = made(tmp_path, models=models, tasks={"count": 2, "kinds": {"single": 1}})

    assert rows == []
    assert len(report.stages["runs"].failures) == 2
    assert len((tmp_path / "out" / "tasks.jsonl").read_text().splitlines()) == 2
