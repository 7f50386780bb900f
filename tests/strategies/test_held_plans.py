"""A planner that can be held to it writes plans that can be carried out."""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from antiphon.agent import Agent
from antiphon.formats import get_format
from antiphon.formats._grammar import Texts
from antiphon.messages import Completion, Message, ToolCall
from antiphon.models import ModelSettings, ScriptedModel, load_model
from antiphon.strategies import PlanAndExecute
from antiphon.strategies._dialects import Dialect
from antiphon.strategies._held import Room, held
from antiphon.strategies._plan import Plan, Task
from antiphon.strategies._progress import Progress
from antiphon.tools import Tool, tool
from formats.test_grammars import accepts
from formats.walker import Walker
from models.loopback import Loopback, Reply, Request, body, chat, stream

DIALECTS: tuple[Dialect, ...] = ("json", "rewoo", "llmcompiler")


@dataclass
class Spot:
    """A place."""

    x: float
    name: str = ""


@tool
def search(query: str) -> str:
    """Finds pages."""
    return query


@tool
def add(a: int, b: int = 0) -> int:
    """Adds."""
    return a + b


@tool
def ride(
    to: str, by: Literal["car", "train"] = "car", kilometres: float = 1, back: bool = True
) -> str:
    """Goes somewhere."""
    return f"{to} {by} {kilometres} {back}"


@tool
def route(start: Spot, by: Literal["car", "train"] = "car", note: str = "") -> str:
    """Finds a way."""
    return f"{start.name} {by} {note}"


@tool
def plot(marks: list[Spot], wide: bool) -> str:
    """Draws a map."""
    return f"{len(marks)} {wide}"


@tool
def now() -> str:
    """The time."""
    return "noon"


TOOLS = (search, add, ride, now, route, plot)
AFTER: dict[str, tuple[Task, ...]] = {
    "json": (Task("a", "now", status="completed", result="noon"), Task("b", "now")),
    "rewoo": (Task("E1", "now", status="completed", result="noon"), Task("E2", "now")),
    "llmcompiler": (Task("1", "now", status="completed", result="noon"), Task("2", "now")),
}


def progress_of(dialect: Dialect, tasks: tuple[Task, ...] = (), **how: Any) -> Progress:
    agent = Agent(name="clerk", model=ScriptedModel([]), tools=TOOLS)
    progress = Progress(PlanAndExecute(agent, dialect=dialect, **how))
    if tasks:
        progress.take(Plan("g", tasks))
    return progress


def settings_of(
    progress: Progress, tools: Sequence[Tool[..., Any]] = TOOLS, **room: Any
) -> ModelSettings:
    made = Room(
        [item.spec for item in tools],
        known=list(progress.known),
        done=progress.done(),
        **room,
    )
    return held(ModelSettings(), progress.how.dialect, made)


def grammar_of(settings: ModelSettings) -> Texts:
    answer = settings.response_schema or settings.response_pattern
    grammar = get_format("qwen2_5").grammar((), answer=answer)
    assert isinstance(grammar, Texts)
    return grammar


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_whatever_a_held_planner_writes_is_a_plan(dialect: Dialect, anew: bool) -> None:
    """What stands inside lists and objects is held by a schema only."""
    progress = progress_of(dialect, AFTER[dialect] if anew else ())
    tools = TOOLS if dialect == "json" else TOOLS[:4]
    settings = settings_of(progress, tools, tokens=200, min_tasks=1)
    walker = Walker(grammar_of(settings))
    rng = random.Random(f"{dialect}{anew}")
    plans: list[Plan] = []

    for _ in range(8):
        text = walker.text(rng)
        if text is not None:
            reader = progress.reader()
            plans.append(progress.merged("g", [*reader.feed(text), *reader.finish()]))

    assert len(plans) > 2
    assert all(0 < len([t for t in plan if t.status == "pending"]) <= 3 for plan in plans)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_plan_that_refers_to_what_comes_later_is_not_written(dialect: Dialect) -> None:
    texts = {
        "json": [
            '{"tasks": [{"id": "a", "tool": "search", "arguments": {"query": "of ${b}"}}]}',
            '{"tasks": [{"id": "b", "tool": "search", "arguments": {"query": "x"}}]}',
            '{"tasks": [{"id": "a", "tool": "serch", "arguments": {"query": "x"}}]}',
        ],
        "rewoo": [
            "Plan: x\n#E1 = search[of #E2]",
            "Plan: x\n#E1 = serch[x]",
            "Plan: x\n#E2 = now[]",
            "Plan: #E1 = add[a=1]\n#E1 = add[a=1]",
        ],
        "llmcompiler": ['1. search("of $2")\n2. join()', '1. serch("x")\n2. join()', "1. now()"],
    }
    right = {
        "json": '{"tasks": [{"id": "a", "tool": "search", "arguments": {"query": "a \\"b\\" $5"}}, '
        '{"id": "b", "tool": "add", "arguments": {"a": "${a.n[0]}"}, "depends_on": ["a"], '
        '"title": "why"}]}',
        "rewoo": "Plan: x\n#E1 = search[C# [1]]\nPlan: y\n#E2 = add[a=#E1, b=2]",
        "llmcompiler": '1. search("a \\"b\\"")\n2. add(a=$1, b=2)\n3. join()',
    }
    grammar = grammar_of(settings_of(progress_of(dialect), TOOLS[:2], tokens=1024))

    lark = grammar.to_lark()
    assert accepts(lark, right[dialect])
    assert not any(accepts(lark, text) for text in texts[dialect])


@pytest.mark.parametrize("tokens", [200, 400, 900])
def test_a_short_answer_has_room_for_few_tasks_of_short_texts(tokens: int) -> None:
    room = Room([search.spec], tokens=tokens)
    n_chars = room.n_chars(1)

    assert n_chars is not None
    assert room.n_tasks * (25 + n_chars / 3) <= tokens


def test_a_long_answer_has_room_for_anything() -> None:
    room = Room([search.spec], tokens=4000)

    assert room.n_tasks == 20
    assert room.n_chars(1) is None


class HeldModel(ScriptedModel):
    """A script of a model whose decoding is held to grammars of ours."""

    default_max_tokens = 300


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_planner_is_held_where_its_model_can_be(dialect: Dialect) -> None:
    plans = {
        "json": '{"tasks": [{"id": "a", "tool": "now", "arguments": {}}]}',
        "rewoo": "Plan: x\n#E1 = now[]",
        "llmcompiler": "1. now()\n2. join()",
    }
    model = HeldModel([plans[dialect], "noon"])
    agent = Agent(model=model, tools=TOOLS, settings=ModelSettings(response_schema={"const": 1}))

    result = PlanAndExecute(agent, dialect=dialect).run_sync("When?")

    planner, joiner = model.settings
    assert result.stop_reason == "answer", result.trajectory.error
    answer = planner.response_schema or planner.response_pattern
    assert "search" in json.dumps(answer)
    assert joiner.response_schema == {"const": 1}


def test_a_model_that_is_not_to_be_constrained_plans_freely() -> None:
    model = HeldModel(['{"tasks": []}', "noon"])
    settings = ModelSettings(constrain=False)

    PlanAndExecute(Agent(model=model, tools=TOOLS, settings=settings)).run_sync("When?")

    assert model.settings[0].response_schema is None


def test_where_a_joiner_asked_for_more_a_plan_has_tasks() -> None:
    replan = Message.assistant("", tool_calls=[ToolCall("replan", {"feedback": "when?"}, id="r")])
    plan = '{"tasks": [{"id": "a", "tool": "now", "arguments": {}}]}'
    model = HeldModel(['{"tasks": []}', replan, plan, "noon"])

    result = PlanAndExecute(Agent(model=model, tools=TOOLS)).run_sync("When?")

    schemas = [json.dumps(s.response_schema) for s in model.settings if s.response_schema]
    assert result.output == "noon"
    assert ['"minItems": 1' in schema for schema in schemas] == [False, True]


def test_a_server_that_takes_no_schema_is_asked_without() -> None:
    async def main() -> tuple[list[Any], Any]:
        asked: list[Any] = []

        def answer(request: Request) -> Reply:
            asked.append(request.json)
            if "response_format" in asked[-1]:
                return body({"error": {"message": "This response_format is unavailable"}}, 400)
            plan = '{"tasks": []}' if len(asked) == 2 else "noon"
            return stream(chat({"content": plan}), chat(finish="stop"))

        async with Loopback(answer) as server:
            model = load_model(f"{server.url}/v1#small")
            result = await PlanAndExecute(Agent(model=model, tools=TOOLS)).run("When?")
            await model.close()
        return asked, result

    asked, result = asyncio.run(main())

    assert result.output == "noon"
    assert ["response_format" in one for one in asked] == [True, False, False]


def test_a_plan_that_was_cut_is_written_again_shorter() -> None:
    cut = Completion(Message.assistant('{"tasks": [{"id": '), "length")
    model = ScriptedModel([cut, '{"tasks": []}', "noon"])

    result = PlanAndExecute(Agent(model=model, tools=TOOLS)).run_sync("When?")

    assert result.output == "noon"
    assert "shorter" in model.conversations[1].messages[-1].text


def test_a_plan_that_is_cut_again_and_again_is_an_error() -> None:
    cut = Completion(Message.assistant('{"tasks": [{"id": '), "length")
    strategy = PlanAndExecute(Agent(model=ScriptedModel([cut, cut]), tools=TOOLS))

    result = strategy.run_sync("When?")

    assert result.stop_reason == "error"
    assert "token limit" in str(result.error)
