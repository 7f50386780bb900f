"""Near duplicates are found and no others; a benchmark's questions are found in what is trained."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.errors import UsageError
from antiphon.messages import ToolCall
from antiphon.verification import Benchmarks, NearDuplicates
from antiphon.verification._near import likeness, shingles


def test_the_same_text_in_other_case_and_spacing_is_a_duplicate():
    near = NearDuplicates()

    assert near.add("a", "What is the weather in Lima today?") is None
    assert near.add("b", "what is  the weather in LIMA today?") == ("a", 1.0)


def test_texts_that_share_less_than_the_threshold_are_both_taken():
    near = NearDuplicates(0.85)

    assert near.add("a", "What is the weather in Lima today?") is None
    assert near.add("b", "What is the weather in Cape Town tomorrow?") is None


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text("ab ", max_size=12), max_size=6), st.sampled_from([0.5, 0.7, 0.9, 1.0]))
def test_nothing_is_called_a_duplicate_that_shares_less(texts: list[str], threshold: float):
    near = NearDuplicates(threshold)
    taken: dict[str, str] = {}

    for n, text in enumerate(texts):
        twin = near.add(str(n), text)
        if twin is None:
            taken[str(n)] = text
        else:
            assert likeness(shingles(text), shingles(taken[twin[0]])) == twin[1] >= threshold


def test_nearly_equal_texts_are_found_whatever_was_changed():
    """Counted beside comparing every pair, on 300 texts of which each has a near twin."""
    draw = random.Random(3)
    words = [
        f"{draw.choice('bdfglm')}{draw.choice('aeiou')}{draw.choice('nrst')}" for _ in range(200)
    ]
    texts = [" ".join(draw.choices(words, k=40)) for _ in range(300)]
    near = NearDuplicates(0.8)
    for n, text in enumerate(texts):
        near.add(str(n), text)

    missed = 0
    for text in texts:
        parts = text.split()
        parts[draw.randrange(40)] = "zzz"
        twin = " ".join(parts)
        if likeness(shingles(text), shingles(twin)) >= 0.8 and near.add("twin", twin) is None:
            missed += 1

    assert missed == 0


def test_a_threshold_that_bands_cannot_keep_is_refused():
    with pytest.raises(UsageError, match=r"0\.5 to 1, got 0\.2"):
        NearDuplicates(0.2)


CALL = ToolCall("book", {"hotel": "Hotel Miramar", "nights": 3})


@pytest.fixture
def benchmarks() -> Benchmarks:
    """Three cases."""
    found = Benchmarks()
    found.add("long", "Please book three nights at the Hotel Miramar for me and my wife.", [CALL])
    found.add("short", "How late is it?")
    found.add("number", "Add it up.", [ToolCall("add", {"a": 1})])
    return found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Hello, please book three nights at the hotel miramar!", "shares 'please book three"),
        ("how late is it", "asks what short asks"),
        ("Please book three nights somewhere else for me.", ""),
        ("How late is it in Rome?", ""),
    ],
)
def test_questions_of_a_benchmark_are_found(benchmarks: Benchmarks, text: str, reason: str):
    found = benchmarks.found_in([text], [])

    assert reason in found
    assert bool(found) == bool(reason)


def test_calls_of_a_benchmark_are_found_in_any_order_unless_they_say_too_little(
    benchmarks: Benchmarks,
):
    turned = ToolCall("book", {"nights": 3, "hotel": "Hotel Miramar"})

    assert benchmarks.found_in(["Get us a room."], [turned]) == "makes the calls of long"
    assert benchmarks.found_in(["Sum?"], [ToolCall("add", {"a": 1})]) == ""
    assert benchmarks.found_in(["Hm?"], []) == ""
