"""What is measured without a model, and how runs are compared."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.errors import UsageError
from antiphon.evaluation import (
    Case,
    Mode,
    Outcome,
    compare_page,
    evaluate,
    judge,
    load_cases,
    paired,
    retrieve,
    right_calls,
    round_trip,
)
from antiphon.formats import get_format, list_formats
from antiphon.messages import Completion, Message, ToolCall, ToolSpec
from antiphon.models import Answer, ModelSettings, ScriptedModel

SPEC = ToolSpec("book", "Book a hotel.", {"type": "object", "properties": {"city": {}}})
CASE = Case("c", "single", "Book Oslo.", (SPEC,), ((ToolCall("book", {"city": "Oslo"}),),))


def error(answer: Answer, case: Case = CASE) -> str:
    mode = Mode("free", ScriptedModel([answer]), ModelSettings())
    return asyncio.run(judge(case, mode)).error


def call(name: str = "book", **arguments: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall(name, dict(arguments))])


def test_mistakes_are_told_apart():
    two = replace(CASE, steps=(CASE.steps[0] * 2,))

    assert error(call("bok", city="Oslo")) == "hallucinated_tool"
    assert error(call()) == "missing_argument"
    assert error(call(city="Oslo", day="Monday")) == "extra_argument"
    assert error(call(city="Rome")) == "wrong_arguments"
    assert error(call(city="Oslo"), two) == "missing_call"
    assert error(Completion(Message.assistant("I may not."), "refusal")) == "refused"


def test_a_case_that_wants_any_call_takes_any():
    case = Case("r", "live_relevance", "Do it.", (SPEC,), wants_call=True)

    assert error(call(city="Rome"), case) == ""
    assert error("No.", case) == "no_call"


def test_accepted_values_judge_the_one_step_of_a_case():
    case = Case(
        "a",
        "simple_python",
        "Book Oslo.",
        (SPEC,),
        accepts=({"book": {"city": ["Oslo", "Christiania"]}},),
        functions=({"name": "book", "parameters": {"properties": {"city": {"type": "string"}}}},),
    )

    assert error(call(city="christiania"), case) == ""
    assert error(call(city="Bergen"), case) == "wrong_arguments"


def test_cases_asked_at_once_are_all_judged():
    cases = [replace(CASE, id=str(n)) for n in range(7)]
    mode = Mode("free", ScriptedModel(lambda _: call(city="Oslo")), ModelSettings())

    async def run() -> list[Outcome]:
        return [o async for o in evaluate(cases, mode, concurrency=3)]

    outcomes = asyncio.run(run())
    assert sorted(o.case for o in outcomes) == [str(n) for n in range(7)]
    assert all(o.right for o in outcomes)


def test_no_case_at_once_is_refused():
    mode = Mode("free", ScriptedModel([]), ModelSettings())

    async def run() -> None:
        async for _ in evaluate([], mode, concurrency=0):
            pass

    with pytest.raises(UsageError, match="at least 1"):
        asyncio.run(run())


@pytest.mark.parametrize("name", list_formats())
def test_right_calls_are_right_after_a_round_trip_or_refused_by_name(name: str):
    outcomes = list(round_trip(load_cases("demo")[::4], get_format(name)))

    assert {o.error for o in outcomes if not o.right} <= {"cannot_express"}
    if name != "plain":
        assert all(o.right for o in outcomes)


def test_a_tool_is_found_by_what_its_question_says():
    other = ToolSpec("sing", "Sing a song.")
    cases = [CASE, replace(CASE, id="d", question="Sing!", tools=(other, SPEC))]
    cases[1] = replace(cases[1], steps=((ToolCall("sing", {}),),))

    found = retrieve(cases)

    assert [f.ranks for f in found] == [(1,), (1,)]
    assert found[0].within(1)


def test_what_is_not_found_is_within_no_depth():
    case = replace(CASE, steps=((ToolCall("fly", {}),),))

    assert not retrieve([case])[0].within(10)


def outcomes(right: str) -> list[Outcome]:
    return [Outcome(str(n), "single", right=c == "1") for n, c in enumerate(right)]


def test_two_runs_are_compared_case_by_case():
    assert paired(outcomes("1100"), outcomes("1010")) == (4, 1, 1, 1.0)
    n, better, worse, chance = paired(outcomes("0" * 8), outcomes("1" * 8))
    assert (n, better, worse) == (8, 8, 0)
    assert chance == pytest.approx(2 / 2**8)  # all eight one way, two-sided
    assert paired(outcomes("1"), []) == (0, 0, 0, 1.0)


def test_the_page_shows_runs_beside_each_other_and_no_markup_of_a_model():
    wrong = Outcome("0", "single", right=False, error="no_call", wrote="<script>x</script>")

    page = compare_page({"old": [wrong], "new": [Outcome("0", "single", right=True)]})

    assert "no_call" in page
    assert "<script>" not in page
    assert "only the second" in page


def test_the_number_of_a_mistake_leads_to_its_first_case():
    runs = {
        "old": [Outcome("0", "a", True), Outcome("1", "a", False, "no_call", wrote="No.")],
        "new": [Outcome("0", "a", False, "no_call", wrote="Hm."), Outcome("1", "a", True)],
    }

    page = compare_page(runs)

    (old, new) = re.findall(r'<a href="#([^"]+)">1</a>', page)
    assert old != new
    assert re.search(f'id="{old}"[^>]*>no_call<pre>No.</pre>', page)
    assert re.search(f'id="{new}"[^>]*>no_call<pre>Hm.</pre>', page)


def test_the_accepted_answers_of_a_demo_case_are_its_steps():
    case = load_cases("demo")[0]

    assert right_calls(case) == case.steps


def test_a_run_that_was_cut_in_the_middle_of_a_line_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    script = tmp_path / "s.json"
    script.write_text(json.dumps(["I do not know."] * 4))
    out = tmp_path / "out.jsonl"
    command = ["eval", "demo", "--model", f"script/{script}", "--modes", "native", "--limit", "1"]

    assert main([*command, "--out", str(out), "--html", str(tmp_path / "page.html")]) == 0
    lines = out.read_text().splitlines()
    out.write_text("\n".join(lines)[:-20])
    assert main([*command, "--out", str(out), "--beside", str(out)]) == 0

    assert len(lines) == 3
    assert [json.loads(x)["case"] for x in out.read_text().splitlines()] == [
        json.loads(x)["case"] for x in lines
    ]
    assert "out native" in capsys.readouterr().out


def test_a_kind_that_no_case_has_is_named(capsys: pytest.CaptureFixture[str]):
    assert main(["eval", "demo", "--kinds", "singel"]) == 2
    assert "known: single, chain, no_tool" in capsys.readouterr().err
