"""Texts are ranked by the words they share with a query, and the index changes in place."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.retrieval import Hit, LexicalIndex, fuse, terms


def keys(hits: list[Hit[str]]) -> list[str]:
    return [hit.key for hit in hits]


@pytest.fixture
def index() -> LexicalIndex[str]:
    made = LexicalIndex[str]()
    made.add("weather", "Current weather in a city.", title="get_weather")
    made.add("forecast", "Weather in the coming days.", title="weatherForecast")
    made.add("time", "Current time in a city.", title="get_time")
    made.add("mail", "Send a message to somebody.", title="send_email")
    return made


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("What's the weather like in Lima?", "weather"),
        ("forecasts for the weekend", "forecast"),
        ("current times", "time"),
        ("sending emails", "mail"),
        ("getTime", "time"),
    ],
)
def test_the_best_text_comes_first(index: LexicalIndex[str], query: str, best: str) -> None:
    assert keys(index.search(query))[0] == best


def test_a_text_that_shares_no_word_is_no_hit(index: LexicalIndex[str]) -> None:
    assert index.search("quantum chromodynamics") == []
    assert index.search("") == []


def test_a_text_is_replaced_and_removed_in_place(index: LexicalIndex[str]) -> None:
    index.add("mail", "Ring a bell.", title="bell")
    assert index.search("email") == []
    assert keys(index.search("bell")) == ["mail"]

    index.remove("mail")
    assert index.search("bell") == []
    assert len(index) == 3
    with pytest.raises(KeyError):
        index.remove("mail")


def test_names_in_code_and_endings_are_words() -> None:
    assert terms("getHTTPResponseCodes") == terms("http response code")
    assert terms("Quer\u00eda caf\u00e9s") == terms("queria cafe")


def test_chinese_is_cut_into_pairs() -> None:
    made = LexicalIndex[str]()
    made.add("w", "\u67e5\u8be2\u57ce\u5e02\u5929\u6c14")
    made.add("t", "\u67e5\u8be2\u5f53\u524d\u65f6\u95f4")

    assert keys(made.search("\u4eca\u5929\u5929\u6c14\u600e\u4e48\u6837"))[0] == "w"


words = st.sampled_from(["alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa", "lambda"])
texts = st.lists(words, min_size=1, max_size=8).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(st.lists(texts, min_size=1, max_size=12), texts, st.randoms())
def test_an_index_that_was_changed_answers_as_one_made_anew(
    rows: list[str], query: str, order: random.Random
) -> None:
    changed = LexicalIndex[int]()
    for key, text in enumerate(rows):
        changed.add(key, "something else entirely" if key % 2 else text)
    for key in order.sample(range(len(rows)), len(rows)):
        changed.add(key, rows[key])
    changed.remove(0)
    fresh = LexicalIndex[int]()
    fresh.add_all((key, text, "") for key, text in enumerate(rows) if key)

    def scores(index: LexicalIndex[int]) -> dict[int, float]:
        return {hit.key: round(hit.score, 6) for hit in index.search(query, 100)}

    assert scores(changed) == scores(fresh)


def test_rankings_are_joined_by_rank() -> None:
    first = [Hit("a", 100.0), Hit("b", 1.0)]
    second = [Hit("b", 0.5), Hit("c", 0.4)]

    assert keys(fuse([first, second], 2)) == ["b", "a"]
