"""XGrammar takes a format's structural tag, and holds a model to it."""

import json
from typing import Any

import pytest

from antiphon.errors import RenderError
from antiphon.formats import Format, Start
from antiphon.formats._react import React
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats.format_cases import VARIANTS, variant, written

xgrammar: Any = pytest.importorskip("xgrammar")
testing: Any = pytest.importorskip("xgrammar.testing")

TOOLS = (
    ToolSpec(
        "book",
        "Book a seat.",
        {
            "type": "object",
            "properties": {
                "flight": {"type": "string"},
                "row": {"type": "integer"},
                "kind": {"enum": ["window", "aisle"]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["flight", "row"],
        },
    ),
    ToolSpec("ping", "Answer.", {"type": "object", "properties": {}}),
)
GOOD: dict[str, Any] = {"flight": "LX 3", "row": 14, "kind": "aisle", "tags": ["a", "b"]}
BAD: list[dict[str, Any]] = [
    {"flight": "LX 3", "row": 14.5},
    {"flight": "LX 3", "row": 14, "kind": "sofa"},
    {"flight": "LX 3"},
    {"flight": "LX 3", "row": 14, "meal": "fish"},
]


UNMARKED = ("pythonic", "toolace")
"""No mark tells a call from text: where none is required, what does not fit is text."""


def _written(fmt: Format, answer: Message) -> tuple[str, Start]:
    """What a model of the family writes, with the mark that ends ReAct's calls."""
    rendered = fmt.render(Conversation((Message.user("Go."), answer), TOOLS))
    text, start = written(rendered, 1, fmt)
    acts = isinstance(fmt, React) and fmt.words.action in text
    return text + (fmt.stop[0] if acts else ""), start


def _calling(fmt: Format, name: str, arguments: dict[str, Any]) -> tuple[str, Start]:
    call = ToolCall(name, arguments, "call00000")
    return _written(fmt, Message.assistant(tool_calls=[call]))


def _grammar(fmt: Format, choice: str, start: Start) -> Any:
    tag = fmt.grammar(TOOLS, choice=choice, start=start).to_structural_tag()
    return xgrammar.Grammar.from_structural_tag(json.dumps(tag))


def _takes(grammar: Any, text: str) -> bool:
    return bool(testing._is_grammar_accept_string(grammar, text))


@pytest.mark.parametrize("name", [n for n in VARIANTS if n != "react_python"])
def test_a_structural_tag_takes_calls_that_fit_and_no_others(name: str) -> None:
    fmt = variant(name)
    good, start = _calling(fmt, "book", GOOD)
    grammar = _grammar(fmt, "auto", start)

    assert _takes(grammar, good)
    assert _takes(grammar, _written(fmt, Message.assistant("No seat is free."))[0])
    if name in UNMARKED:
        grammar = _grammar(fmt, "required", start)
    n_refused = 0
    for bad in BAD:
        try:
            text, _ = _calling(fmt, "book", bad)
        except RenderError:  # it would be read as something else
            continue
        assert not _takes(grammar, text), bad
        n_refused += 1
    assert n_refused >= 2


@pytest.mark.parametrize("name", [n for n in VARIANTS if n != "react_python"])
def test_a_structural_tag_asks_for_a_call_or_for_one_tool(name: str) -> None:
    fmt = variant(name)
    good, start = _calling(fmt, "book", GOOD)
    other, _ = _calling(fmt, "ping", {})
    text, _ = _written(fmt, Message.assistant("No seat is free."))
    required, named = _grammar(fmt, "required", start), _grammar(fmt, "book", start)

    assert _takes(required, other)
    assert not _takes(required, text)
    assert _takes(named, good)
    assert not _takes(named, other)
