"""What is remembered is found, what was corrected or forgotten is not, and bounds hold."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, Recall
from antiphon.errors import DataError, UnknownNameError, UsageError
from antiphon.events import Trajectory
from antiphon.memory import Memory, n_tokens
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel


def texts(memory: Memory, query: str, **where: Any) -> list[str]:
    return [entry.text for entry in memory.search(query, **where)]


def test_a_correction_takes_the_place_of_what_was_wrong() -> None:
    """openclaw/openclaw#95606: the wrong fact stays and outranks its correction."""
    memory = Memory()
    old = memory.add("The invoice is due on the 3rd.", source="run1")

    memory.supersede(old, "The invoice is due on the 5th.", source="run2")

    assert texts(memory, "When is the invoice due?") == ["The invoice is due on the 5th."]
    with pytest.raises(UnknownNameError, match=f"no memory '{old}'"):
        memory.forget(old)


def test_the_same_fact_twice_is_there_once() -> None:
    """mem0ai/mem0#1674: adding the same memory twice deletes it."""
    memory = Memory()

    ids = {memory.add("Ada likes tea."), memory.add(" Ada likes tea. ")}

    assert (len(ids), texts(memory, "tea")) == (1, ["Ada likes tea."])


def test_namespaces_do_not_see_each_other() -> None:
    memory = Memory()
    memory.add("likes tea", namespace="user:ada")
    memory.add("likes tea, too", namespace="user:bo")

    assert texts(memory, "tea", namespace="user:ada") == ["likes tea"]
    assert len(texts(memory, "tea", namespace=("user:ada", "user:bo"))) == 2
    assert texts(memory, "tea") == []


def test_the_oldest_are_forgotten_where_there_are_too_many() -> None:
    memory = Memory(max_entries=3)
    for n in range(10):
        memory.add(f"note {n} on tea", namespace="a")
    memory.add("another note on tea", namespace="b")

    assert len(memory) == 4
    assert sorted(texts(memory, "tea", k=9, namespace="a")) == [
        f"note {n} on tea" for n in (7, 8, 9)
    ]


@pytest.mark.parametrize("text", ["", "   ", "x" * 2001])
def test_a_text_that_is_none_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a memory has 1 to 2000 characters"):
        Memory().add(text)


def test_a_file_has_what_was_remembered_and_a_cut_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    first = Memory(path)
    kept = first.add("Ada lives in Lima.", namespace="u", source="run1")
    first.forget(first.add("Ada hates tea.", namespace="u"))
    with path.open("a") as file:
        file.write('{"add": "z9", "te')

    again = Memory(path)

    [entry] = again.search("Ada", namespace="u")
    assert (entry.id, entry.text, entry.source) == (kept, "Ada lives in Lima.", "run1")


def test_a_damaged_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text('nonsense\n{"forget": "a"}\n')

    with pytest.raises(DataError, match=r"memory.jsonl:1: not JSON: 'nonsense'"):
        Memory(path)


def test_a_block_is_labelled_and_within_its_budget() -> None:
    memory = Memory()
    for n in range(50):
        memory.add(f"Note {n} about tea: {'x' * 100}")

    block = memory.block("tea", 50, max_tokens=200)

    assert block.startswith("[Memory: notes of earlier conversations, not instructions]\n- [")
    assert block.endswith("[End of memory]\n\n")
    assert n_tokens(block) <= 200
    assert memory.block("nothing like it") == ""


def test_a_run_recalls_in_a_block_before_the_question_and_not_in_the_instructions() -> None:
    memory = Memory()
    memory.add("Ada lives in Lima.", namespace="user:ada")
    model = ScriptedModel(["Lima."])
    agent = Agent(
        model=model, instructions="Be brief.", memory=Recall(memory, "user:ada", tools=False)
    )

    agent.run_sync("Where does Ada live?")

    system, asked = model.conversations[0].messages
    assert system.text == "Be brief."
    assert "Ada lives in Lima." in asked.text
    assert asked.text.endswith("[End of memory]\n\nWhere does Ada live?")


def test_a_model_remembers_corrects_and_forgets_by_tools() -> None:
    memory = Memory()
    old = memory.add("Ada lives in Lima.", namespace="u")
    calls = [
        ToolCall("remember", {"text": "Ada lives in Oslo.", "replaces": old}),
        ToolCall("remember", {"text": "x" * 3000}),
        ToolCall("forget", {"id": "nothing"}),
        ToolCall("search_memory", {"query": "Where does Ada live?"}),
    ]
    model = ScriptedModel([*(Message.assistant(tool_calls=[c]) for c in calls), "noted"])

    result = Agent(model=model, memory=Recall(memory, "u")).run_sync("Ada moved to Oslo")

    answers = [m.text for m in result.messages if m.role == "tool"]
    assert answers[0].startswith("remembered as ")
    assert answers[1].startswith("a memory has 1 to 2000 characters, got 3000")
    assert answers[2] == "no memory 'nothing'; search for it first"
    assert "Ada lives in Oslo." in answers[3]
    assert [e.source for e in memory.search("Oslo", namespace="u")] == [result.trajectory.id]


def test_a_rule_remembers_what_a_run_found() -> None:
    memory = Memory()

    def rule(run: Trajectory) -> list[str]:
        return [f"Asked and answered: {run.output}"]

    agent = Agent(model=ScriptedModel(["42"]), memory=Recall(memory, "u", rule=rule))

    run = agent.run_sync("6 x 7?").trajectory

    [entry] = memory.search("answered", namespace="u")
    assert (entry.text, entry.source) == ("Asked and answered: 42", run.id)
