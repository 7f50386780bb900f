"""One conversation as each family writes it whose published template no package ships.

The texts were compared, by eye, with the sources that each family's docstring names, and stand
under ``cases/golden/``, a file a variant.  After a change that is meant:

    PYTHONPATH=src:tests python -m formats.golden
"""

import sys
from pathlib import Path

from antiphon.messages import Conversation, Message, ToolCall
from formats.format_cases import CASES, variant
from formats.own_conversations import BOOK, FERRY

FOLDER = CASES / "golden"
NAMES = (
    "dots",
    "dots_direct",
    "ernie4_5",
    "functiongemma",
    "k2_horizon",
    "k2_horizon_json",
    "longcat",
    "longcat_thinking",
    "magistral",
    "mimo",
    "mimo_direct",
    "mistral_v7",
    "mistral_v7_tekken",
    "plamo3",
    "step3",
)


def conversation() -> Conversation:
    """Two calls at once, one behind text, reasoning in every step, and a second question."""
    brest = ToolCall("ferry_times", {"harbour": "Brest", "limit": 2}, "call00000")
    nantes = ToolCall("ferry_times", {"harbour": 'Nantes, "Quai"'}, "call00001")
    seat = ToolCall(
        "book_seat",
        {"passenger": {"name": "Zoë"}, "crossings": ["Brest"], "price": 12.5, "return": True},
        "call00002",
    )
    return Conversation(
        (
            Message.system("Answer shortly."),
            Message.user("Which ferry is next?"),
            Message.assistant(reasoning="I need both.", tool_calls=[brest, nantes]),
            Message.tool("09:10", call_id="call00000", name="ferry_times"),
            Message.tool("none", call_id="call00001", name="ferry_times"),
            Message.assistant("At 9:10."),
            Message.user("Book it."),
            Message.assistant("I book.", reasoning="One seat.", tool_calls=[seat]),
            Message.tool('{"seat": 12}', call_id="call00002", name="book_seat"),
            Message.assistant("Seat 12.", reasoning="Done."),
        ),
        (FERRY, BOOK),
    )


def text_of(name: str) -> str:
    """The conversation, and what a prompt for its last answer ends with."""
    fmt, whole = variant(name), conversation()
    asked = Conversation(whole.messages[:-1], whole.tools)
    prompt = fmt.render(asked, generate=True).text
    return f"{fmt.render(whole).text}\n\n=== the prompt ends with ===\n\n{prompt[-80:]}\n"


def path_of(name: str) -> Path:
    """The file of a variant's text."""
    return FOLDER / f"{name}.txt"


def main() -> int:
    """Write every file again."""
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        path_of(name).write_text(text_of(name), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
