"""The Berkeley leaderboard's cases: their answers are accepted, ours are judged as theirs are.

Tests that need the leaderboard's files are skipped where ``bfcl-eval`` is not installed
(``pip install --no-deps bfcl-eval``).
"""

import importlib
import random
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from antiphon.errors import DataError, UnknownNameError, UsageError
from antiphon.evaluation import bfcl_cases, calls_error, first_answer, load_cases, round_trip
from antiphon.evaluation._bfcl import CATEGORIES, WITH_ANSWERS, categories_of
from antiphon.evaluation._cases import Case
from antiphon.evaluation._round_trip import CANNOT
from antiphon.formats import get_format, list_formats
from antiphon.messages import ToolCall, find_problems

installed = pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed")

BOOK: dict[str, Any] = {
    "name": "hotel.book",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer"},
            "price": {"type": "float"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "guest": {"type": "dict", "properties": {"name": {"type": "string"}}},
        },
        "required": ["city", "nights"],
    },
}
ANSWER = {
    "hotel.book": {
        "city": ["New York", "NYC"],
        "nights": [3],
        "price": ["", 99.5],
        "tags": ["", ["quiet", "sea view"]],
        "guest": ["", {"name": ["Ada"], "age": ["", 36]}],
    }
}
CALL: dict[str, Any] = {"city": "New York", "nights": 3}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (CALL, ""),
        (CALL | {"city": "new-york."}, ""),
        (CALL | {"price": 99.5, "tags": ["Quiet", "seaview"]}, ""),
        (CALL | {"guest": {"name": "ada"}}, ""),
        (CALL | {"guest": {"name": "Ada", "age": 36}}, ""),
        ({"city": "NYC"}, "missing_argument"),
        (CALL | {"colour": "red"}, "extra_argument"),
        (CALL | {"nights": "3"}, "wrong_type"),
        (CALL | {"nights": 3.0}, "wrong_type"),
        (CALL | {"nights": True}, "wrong_type"),
        (CALL | {"nights": 4}, "wrong_arguments"),
        (CALL | {"price": 99}, "wrong_arguments"),
        (CALL | {"tags": ["quiet"]}, "wrong_arguments"),
        (CALL | {"tags": "quiet"}, "wrong_type"),
        (CALL | {"guest": {"name": "Bob"}}, "wrong_arguments"),
        (CALL | {"guest": {"age": 36}}, "wrong_arguments"),
    ],
)
def test_a_call_is_judged_by_what_is_accepted(arguments: dict[str, Any], error: str):
    assert calls_error([ToolCall("hotel.book", arguments)], [BOOK], [ANSWER]) == error


def test_calls_are_counted_and_named_and_their_order_is_free():
    other = BOOK | {"name": "hotel.cancel"}
    two = [ANSWER, {"hotel.cancel": ANSWER["hotel.book"]}]
    book, cancel = ToolCall("hotel.book", CALL), ToolCall("hotel.cancel", CALL)

    def error(*calls: ToolCall) -> str:
        return calls_error(calls, [BOOK, other], two)

    assert error(cancel, book) == ""
    assert error() == "no_call"
    assert error(book) == "missing_call"
    assert error(book, cancel, book) == "extra_call"
    assert error(book, book) == "wrong_tool"
    assert error(book, ToolCall("hotel.burn", CALL)) == "hallucinated_tool"


@pytest.mark.parametrize(
    ("value", "accepted", "fits"),
    [
        (42, 42, True),
        ("42L", 42, True),
        ("0.5f", 0.5, True),
        ("true", True, True),
        (1, True, False),
        ("mapController", "mapController", True),
        (["a", 1], ["a", 1], True),
        (["a"], ["a", 1], False),
        ({"limit": 50}, {"limit": [50]}, True),
        ({"limit": 51}, {"limit": [50]}, False),
        ({}, {"limit": [50]}, False),
    ],
)
def test_java_values_may_be_json_or_source_text(value: Any, accepted: Any, fits: bool):
    function = {"name": "f", "parameters": {"properties": {"x": {"type": "any"}}}}

    error = calls_error(
        [ToolCall("f", {"x": value})], [function], [{"f": {"x": [accepted]}}], language="java"
    )

    assert (error == "") == fits


def test_the_first_answer_leaves_out_what_may_be_left_out():
    assert first_answer(ANSWER, BOOK) == ToolCall("hotel.book", CALL)


def test_a_category_that_is_not_there_is_named():
    with pytest.raises(UnknownNameError, match="no category bfcl/simpel"):
        categories_of("simpel")


def test_a_folder_without_the_data_says_how_to_get_it(tmp_path: Path):
    with pytest.raises(UsageError, match="pip install --no-deps bfcl-eval"):
        bfcl_cases("multiple", folder=tmp_path / "nowhere")
    with pytest.raises(DataError, match="cannot be read"):
        bfcl_cases("multiple", folder=tmp_path)


# ---- with the leaderboard's files -------------------------------------------------------------


def _answers(case: Case) -> list[ToolCall]:
    documents = {f["name"]: f for f in case.functions}
    return [first_answer(a, documents[next(iter(a))], case.language) for a in case.accepts]


@installed
def test_every_category_is_whole():
    sizes = {name: len(bfcl_cases(name)) for name in CATEGORIES}

    assert sum(sizes[name] for name in WITH_ANSWERS) == 2501
    assert (sizes["irrelevance"], sizes["live_irrelevance"]) == (240, 884)
    assert load_cases("bfcl/live_relevance")[0].wants_call


@installed
@pytest.mark.parametrize("safe_names", [True, False])
@pytest.mark.parametrize("category", WITH_ANSWERS)
def test_every_accepted_answer_is_accepted(category: str, safe_names: bool):
    for case in bfcl_cases(category, safe_names=safe_names):
        error = calls_error(_answers(case), case.functions, case.accepts, language=case.language)
        assert error == "", case.id


@installed
def test_every_schema_is_json_schema_and_most_answers_fit_theirs():
    n_calls = n_problems = 0
    for case in bfcl_cases("ast"):
        specs = {spec.name: spec for spec in case.tools}
        for call in _answers(case):
            n_calls += 1
            n_problems += bool(find_problems(specs[call.name].parameters, call.arguments))
    # The rest are answers that leave out what their schema requires, or name a variable.
    assert (n_calls, n_problems < 120) == (3302, True)


@pytest.fixture
def ast_checker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The leaderboard's own checker, without the registry of models that it asks one thing of."""

    class Registry(dict[str, Any]):
        def __missing__(self, key: str) -> Any:
            return SimpleNamespace(underscore_to_dot=False)

    stub: Any = SimpleNamespace(MODEL_CONFIG_MAPPING=Registry())
    before = set(sys.modules)
    monkeypatch.setitem(sys.modules, "bfcl_eval.constants.model_config", stub)
    yield importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    for name in set(sys.modules) - before:
        del sys.modules[name]


def _mutated(calls: list[ToolCall], draw: random.Random) -> list[ToolCall]:
    """Calls with one thing changed."""
    calls = list(calls)
    place = draw.randrange(len(calls))
    arguments = dict(calls[place].arguments)
    how = draw.choice(["same", "drop", "extra", "value", "type", "name", "count", "case", "float"])
    key = draw.choice(list(arguments)) if arguments else ""
    value = arguments.get(key)
    if how == "drop" and key:
        del arguments[key]
    elif how == "extra":
        arguments["surplus"] = 1
    elif how == "value" and key:
        arguments[key] = draw.choice(["x", 17, 1.5, True, [], ["x"], {}, {"x": 1}, None])
    elif how == "type" and key:
        arguments[key] = str(arguments[key])
    elif how == "case" and isinstance(value, str):
        arguments[key] = value.upper().replace(" ", "-")
    elif how == "float" and isinstance(value, int):
        arguments[key] = float(value)
    name = "nobody" if how == "name" else calls[place].name
    calls[place] = ToolCall(name, arguments)
    return calls + calls[:1] if how == "count" else calls


@installed
@pytest.mark.parametrize("category", [c for c in WITH_ANSWERS if "java" not in c])
def test_verdicts_are_those_of_the_leaderboard(category: str, ast_checker: Any):
    """On every entry that the leaderboard's checker lets anybody pass, right and changed calls."""
    draw = random.Random(category)
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON
    n_right = n_wrong = 0
    for case in bfcl_cases(category, safe_names=False):

        def theirs(calls: list[ToolCall], case: Case = case) -> bool:
            output = [{c.name: c.arguments} for c in calls]
            functions, answers = [dict(f) for f in case.functions], list(case.accepts)
            return ast_checker(functions, output, answers, python, category, "any")["valid"]

        if not theirs(_answers(case)):
            continue
        for _ in range(4):
            calls = _mutated(_answers(case), draw)
            try:
                wanted = theirs(calls)
            except (TypeError, KeyError, AttributeError):
                continue  # their checker stumbles over this value
            ours = calls_error(calls, case.functions, case.accepts)
            assert (ours == "") == wanted, (case.id, calls, ours)
            n_right += wanted
            n_wrong += not wanted
    assert n_right > 10
    assert n_wrong > 10


ONE_AT_A_TIME = "writes one call at a time"


@installed
@pytest.mark.slow
@pytest.mark.parametrize("name", list_formats())
def test_every_accepted_answer_comes_back_from_what_a_family_writes(name: str):
    """Rendered, parsed and judged: 2,501 answers a family.

    What a family cannot write it refuses by name: several calls of one step, or, in a few cases
    whose answers do not fit their own schemas, values that it would read as something else.
    """
    cases = {case.id: case for one in WITH_ANSWERS for case in bfcl_cases(one)}

    outcomes = list(round_trip(cases.values(), get_format(name)))

    assert len(outcomes) == 2501
    assert {o.error for o in outcomes} <= {"", CANNOT}
    refused = [o for o in outcomes if not o.right]
    several = [o for o in refused if ONE_AT_A_TIME in o.wrote]
    assert all(len(cases[o.case].accepts) > 1 for o in several)
    assert len(refused) - len(several) <= 10 or name == "plain"
