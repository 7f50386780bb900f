"""Conversations are judged by the state that they end in, and by what the user was told."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

import pytest

from antiphon.errors import UnknownNameError, UsageError
from antiphon.evaluation import (
    DeskCase,
    Library,
    Mode,
    Outcome,
    OwnCase,
    TurnCase,
    desk_cases,
    evaluate,
    load_benchmark,
    turn_cases,
)
from antiphon.evaluation._bfcl_turns import TURN_CATEGORIES
from antiphon.evaluation._desk import first_state
from antiphon.messages import Message, ToolCall
from antiphon.models import ModelSettings, ScriptedModel

DESK = {case.id: case for case in desk_cases()}


def judged(case: OwnCase, *answers: Message | str) -> Outcome:
    mode = Mode("native", ScriptedModel(answers), ModelSettings())
    return asyncio.run(case.judged(mode))


def calls(*made: ToolCall) -> Message:
    return Message.assistant(tool_calls=made)


def rightly(case: DeskCase) -> list[Message | str]:
    """What an agent does that knows the answer: at the end, one call a step."""
    last = [calls(call) for call in case.changes]
    return [*["One moment."] * (len(case.says) - 1), *last, "Done: " + " ".join(case.told)]


@pytest.mark.parametrize("case", DESK.values(), ids=DESK)
def test_who_makes_the_right_changes_and_tells_what_counts_is_right(case: DeskCase):
    assert judged(case, *rightly(case)).error == ""


@pytest.mark.parametrize("case", DESK.values(), ids=DESK)
def test_who_does_nothing_is_right_only_where_nothing_may_be_done(case: DeskCase):
    told = " ".join(case.told)

    outcome = judged(case, *["I am sorry. " + told] * len(case.says))

    assert outcome.right == (not case.changes)


def test_what_the_rules_forbid_is_a_wrong_state_though_the_tool_obeys():
    renew = ToolCall("renew_loan", {"loan_id": "L2"})

    outcome = judged(DESK["refuse-1"], calls(renew), "Renewed.", "You are welcome.")

    assert outcome.error == "wrong_state"


def test_who_does_not_tell_what_counts_is_told_apart():
    case = DESK["pay-1"]

    assert judged(case, calls(*case.changes), "Paid, thank you.").error == "not_told"


def test_the_order_of_two_loans_does_not_count():
    case = DESK["lend-3"]

    assert judged(case, calls(*reversed(case.changes)), "Both are yours.").right


def test_a_conversation_that_comes_to_no_answer_says_why():
    find = ToolCall("find_book", {"title": "salt"})

    assert judged(DESK["lend-2"], *[calls(find)] * 30).error == "step_limit"


def test_every_case_begins_in_the_same_state():
    before = Library(first_state()).state()

    judged(DESK["pay-1"], calls(*DESK["pay-1"].changes), "4.5")

    assert Library(first_state()).state() == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (ToolCall("find_member", {"name_or_id": "Nobody"}), "nobody called 'Nobody'"),
        (ToolCall("find_book", {"title": "zebra"}), "no book has 'zebra'"),
        (ToolCall("lend_book", {"member_id": "M1", "book_id": "B2"}), "no copy"),
        (ToolCall("lend_book", {"member_id": "M9", "book_id": "B1"}), "no member 'M9'"),
        (ToolCall("reserve_book", {"member_id": "M4", "book_id": "B2"}), "already"),
        (ToolCall("cancel_reservation", {"member_id": "M1", "book_id": "B2"}), "not reserved"),
        (ToolCall("return_book", {"loan_id": "L99"}), "no loan 'L99'"),
        (ToolCall("pay_fee", {"member_id": "M3", "amount": 5}), "the member owes 4"),
        (ToolCall("reserve_book", {"member_id": "M1", "book_id": "B99"}), "no book 'B99'"),
    ],
)
def test_the_desk_answers_what_cannot_be_done(call: ToolCall, message: str):
    library = Library(first_state())
    named = {tool.name: tool for tool in library.tools()}

    result = asyncio.run(named[call.name].call(call.arguments))

    assert result.is_error
    assert message in result.text
    assert library.state() == Library(first_state()).state()


def test_a_model_plays_the_person_until_it_is_done():
    user = ScriptedModel(["My name is Ruth Adler.", "DONE"])
    case = next(c for c in desk_cases(user) if c.id == "lend-1")

    outcome = judged(case, "Who are you?", calls(*case.changes), "For 21 days.")

    assert outcome.right
    assert "You are Ruth Adler" in user.conversations[0].messages[0].text
    assert user.conversations[1].messages[1].text.count("\n") == 4


def test_cases_that_judge_for_themselves_are_run_like_others():
    case = DESK["refuse-7"]
    mode = Mode("native", ScriptedModel(["I cannot do that."]), ModelSettings())

    async def run(cases: Sequence[OwnCase]) -> list[Outcome]:
        return [o async for o in evaluate(cases, mode)]

    assert [o.right for o in asyncio.run(run([case]))] == [True]
    assert len(load_benchmark("desk")) == 24
    assert len(load_benchmark("demo")) == 100


# ---- the Berkeley leaderboard's classes -------------------------------------------------------

installed = pytest.mark.skipif(
    find_spec("bfcl_eval") is None or find_spec("mpmath") is None,
    reason="bfcl-eval is not installed, or mpmath is not",
)


def test_a_category_that_is_not_there_is_named():
    with pytest.raises((UnknownNameError, UsageError), match="multi_turn_bse"):
        turn_cases("multi_turn_bse")


def by_right_calls(case: TurnCase) -> Outcome:
    script: list[Message | str] = []
    for turn in case.truth:
        script += [calls(*turn), "Done."] if turn else ["I cannot."]
    return judged(case, *script)


@installed
@pytest.mark.parametrize("category", TURN_CATEGORIES)
def test_the_right_calls_of_a_berkeley_conversation_are_right(category: str):
    for case in turn_cases(category)[::50]:
        assert by_right_calls(case).error == "", case.id


@installed
@pytest.mark.slow
@pytest.mark.parametrize("category", TURN_CATEGORIES)
def test_the_right_calls_of_every_berkeley_conversation_are_right(category: str):
    assert [case.id for case in turn_cases(category) if not by_right_calls(case).right] == []


@installed
def test_a_call_of_another_type_or_of_what_is_held_back_is_for_the_class_to_answer():
    """As in the leaderboard, some of whose right calls are such ones."""
    typed = next(c for c in turn_cases("multi_turn_base") if c.id == "multi_turn_base_173")
    early = next(c for c in turn_cases("multi_turn_miss_func") if c.id == "multi_turn_miss_func_49")

    assert isinstance(typed.truth[3][0].arguments["ticket_id"], str)
    assert by_right_calls(typed).right
    assert early.truth[1][1].name in early.held_back[3]
    assert by_right_calls(early).right


@installed
def test_what_is_held_back_is_not_shown():
    case = next(c for c in turn_cases("multi_turn_miss_func") if c.held_back)
    ((turn, names),) = case.held_back.items()
    model = ScriptedModel(lambda conversation: "I cannot.")

    asyncio.run(
        replace(case, truth=((),) * len(case.truth)).judged(Mode("native", model, ModelSettings()))
    )

    shown = [{spec.name for spec in c.tools} for c in model.conversations]
    assert [names[0] in one for one in shown] == [n >= turn for n in range(len(case.turns))]


@installed
def test_a_call_that_leaves_another_state_is_wrong_and_none_at_all_is_told_apart():
    case = turn_cases("multi_turn_base")[0]
    other = ToolCall("mkdir", {"dir_name": "elsewhere"})

    assert judged(case, calls(other), "Done.").error == "wrong_state"
    assert judged(case, "Done.").error == "no_call"
