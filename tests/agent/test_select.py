"""Of many tools a model is shown the few that fit, and finds the others itself."""

from collections.abc import Sequence
from typing import Any

import pytest

from antiphon.agent import Agent, Retrieve
from antiphon.errors import ModelError, UsageError
from antiphon.messages import Message, ToolCall, ToolSpec
from antiphon.models import ScriptedModel
from antiphon.store import SqliteStore
from antiphon.tools import Tool, ToolIndex, tool

NOUNS = ["invoice", "ticket", "server", "badge", "recipe", "playlist", "survey", "license"]
VERBS = ["get", "list", "create", "delete", "archive"]


def make(name: str, description: str = "") -> Tool[..., Any]:
    def act(subject: str = "") -> str:
        return f"{name} done"

    return tool(act, name=name, description=description or name.replace("_", " "), threaded=False)


TOOLS = [make(f"{verb}_{noun}") for verb in VERBS for noun in NOUNS]
WEATHER = make("weather_forecast", "Forecast of the weather for a city")


def call(name: str, **arguments: Any) -> Message:
    return Message.assistant(tool_calls=[ToolCall(name, arguments)])


def names_shown(model: ScriptedModel) -> list[list[str]]:
    return [[spec.name for spec in c.tools] for c in model.conversations]


def chooser(answers: list[Any], **how: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(answers)
    options: dict[str, Any] = {"k": 4, **how}
    select = Retrieve(**options)
    return Agent(model=model, tools=[*TOOLS, WEATHER], select=select), model


def test_a_few_tools_that_fit_are_shown_in_an_order_that_stays() -> None:
    agent, model = chooser(
        [call("search_tools", query="weather in a city"), call("weather_forecast"), "sunny"],
        always=["get_badge"],
    )

    result = agent.run_sync("Create a ticket for the weather in Rome")

    first, second, third = names_shown(model)
    assert first[:2] == ["get_badge", "search_tools"]
    assert "create_ticket" in first
    assert len(first) <= 6
    assert second[: len(first)] == first
    assert second == third
    assert "weather_forecast" in second
    assert (result.output, len(result.trajectory.conversation.tools)) == ("sunny", len(third))


def test_a_tool_that_was_not_shown_is_loaded_and_not_run_on_guessed_arguments() -> None:
    """kirodotdev/KiroCrew#8082: a deferred tool stays unavailable for the rest of the session."""
    agent, model = chooser([call("weather_forecast", place="Rome"), call("weather_forecast"), "ok"])

    result = agent.run_sync("Archive the survey")

    answers = [m.text for m in result.messages if m.role == "tool"]
    assert "is now loaded" in answers[0]
    assert '"subject"' in answers[0]
    assert answers[1] == "weather_forecast done"
    assert "weather_forecast" in names_shown(model)[1]


def test_a_tool_that_there_is_not_is_unknown_and_only_shown_ones_are_named() -> None:
    agent, model = chooser([call("fly"), "ok"])

    agent.run_sync("Archive the survey")

    text = model.conversations[-1].messages[-1].text
    assert text.startswith("unknown tool 'fly'")
    assert text.count("_") < 12


def test_few_tools_are_all_shown() -> None:
    agent, model = chooser(["ok"], threshold=100)

    agent.run_sync("Archive the survey")

    assert names_shown(model)[0] == [item.name for item in (*TOOLS, WEATHER)]


def test_a_model_has_the_last_word_and_its_call_is_recorded() -> None:
    selector = ScriptedModel(['["weather_forecast", "no_such", "get_badge"]'])
    agent, model = chooser(["ok"], refine=selector)

    result = agent.run_sync("weather or badge, whichever")

    assert names_shown(model)[0] == ["search_tools", "weather_forecast", "get_badge"]
    assert [c.metadata["role"] for c in result.trajectory.children] == ["selector"]


@pytest.mark.parametrize("answer", ["no idea", "[1, 2]", ModelError("offline")])
def test_a_choice_that_is_none_leaves_the_ranking(answer: Any) -> None:
    agent, model = chooser(["ok"], refine=ScriptedModel([answer]))

    agent.run_sync("weather forecast")

    assert "weather_forecast" in names_shown(model)[0]


def test_a_resumed_run_shows_what_was_shown() -> None:
    store = SqliteStore("")
    agent, model = chooser([call("search_tools", query="weather")])
    first = agent.run("Archive the survey", store=store)
    assert first.wait().stop_reason == "error"  # the script is over
    again, later = chooser(["ok"])

    again.resume(first.id, store=store).wait()

    assert set(names_shown(model)[0]) | {"weather_forecast"} <= set(names_shown(later)[0])
    store.close()


def test_recorded_runs_teach_which_requests_a_tool_answers() -> None:
    specs = [ToolSpec(n, d) for n, d in [("q7", "Query seven."), ("zz", "Umbrella stock.")]]
    index = ToolIndex(specs)
    q7 = tool(lambda: "rain", name="q7", description="Query seven.")
    runs = [
        Agent(model=ScriptedModel([call("q7"), "rain"]), tools=[q7]).run_sync(text).trajectory
        for text in ("Will I need an umbrella tomorrow?", "Does it rain in Lima?")
    ]
    before = index.search("Will it rain in Oslo?")

    n_new = index.learn(runs)

    assert (before, n_new) == ([], 2)
    assert index.search("Will it rain in Oslo?") == ["q7"]
    assert index.learn(runs) == 0


def test_a_call_that_failed_teaches_nothing() -> None:
    index = ToolIndex([ToolSpec("q7", "Query seven.")])
    model = ScriptedModel([call("q7"), "no such tool"])

    assert index.learn([Agent(model=model).run_sync("rain?").trajectory]) == 0


def test_a_name_that_is_no_tool_cannot_be_shown_always() -> None:
    with pytest.raises(UsageError, match="shows 'fly' always, which is no tool of it"):
        chooser([], always=["fly"])


def test_an_index_may_find_tools_by_their_meaning() -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float("umbrella" in t or "weather" in t)] for t in texts]

    agent, model = chooser(["ok"], index=ToolIndex([*TOOLS, WEATHER], embed=embed))

    agent.run_sync("Do I need an umbrella?")

    assert "weather_forecast" in names_shown(model)[0]


def test_tools_are_chosen_by_words_where_nothing_makes_vectors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        raise ModelError("no embeddings today")

    agent, model = chooser(["ok"], index=ToolIndex([*TOOLS, WEATHER], embed=embed))

    assert agent.run_sync("How is the weather?").output == "ok"
    assert "weather_forecast" in names_shown(model)[0]
    assert "no embeddings today" in caplog.text
