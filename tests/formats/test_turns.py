"""A turn that is written as one stretch is cut where its parts would have been."""

import pytest

from antiphon.formats._render import CHATML, Writer

SPECIALS = CHATML.specials | {"<tool_call>", "</tool_call>"}
MARKS = "<|im_end|><tool_call>"


@pytest.mark.parametrize("text", ["Hello.", "", MARKS])
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "critic"])
def test_a_whole_turn_has_the_pieces_of_its_parts(role: str, text: str) -> None:
    author = "written" if role == "assistant" else "given"
    one, parts = Writer("acme", SPECIALS), Writer("acme", SPECIALS)
    CHATML.begin(parts, role, 3)
    parts.text(text, author, 3)
    CHATML.finish(parts, role, 3)

    CHATML.whole(one, role, text, 3)

    assert len(one.pieces) == 1
    assert one.done() == parts.done()


@pytest.mark.parametrize("text", ["{}", "", MARKS])
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_only_the_family_s_own_text_around_another_is_special(role: str, text: str) -> None:
    own, other = ("written", "written") if role == "assistant" else ("frame", "given")
    one, parts = Writer("acme", SPECIALS), Writer("acme", SPECIALS)
    CHATML.begin(parts, role, 3)
    parts.put("<tool_call>\n", own, 3)
    parts.text(text, other, 3)
    parts.put("\n</tool_call>", own, 3)
    CHATML.finish(parts, role, 3)

    CHATML.around(one, role, "<tool_call>\n", text, "\n</tool_call>", 3)

    assert len(one.pieces) == 1
    assert one.done() == parts.done()


def test_what_stands_around_a_text_has_authors_of_its_own() -> None:
    w = Writer("acme", SPECIALS)

    CHATML.around(w, "assistant", (("Think. ", "frame"), ("So: ", "written")), "Yes.", "", 0)

    assert [(p.text, p.author) for p in w.done().pieces] == [
        ("<|im_start|>", "frame"),
        ("assistant\n", "frame"),
        ("Think. ", "frame"),
        ("So: ", "written"),
        ("Yes.", "written"),
        ("<|im_end|>", "written"),
        ("\n", "frame"),
    ]


def test_the_end_of_a_turn_that_is_one_stretch_can_be_taken_back() -> None:
    w = Writer("acme", SPECIALS)
    CHATML.whole(w, "assistant", "Yes.", 0)

    w.take_back(CHATML.between)

    assert w.done().text == "<|im_start|>assistant\nYes.<|im_end|>"


def test_only_what_the_model_wrote_of_a_turn_is_read_back() -> None:
    w = Writer("acme", SPECIALS)
    CHATML.whole(w, "user", "Go.", 0)
    CHATML.around(w, "assistant", (("Think. ", "frame"), ("So: ", "written")), "Yes.", "", 1)

    assert w.written(0) == "So: Yes.<|im_end|>"
