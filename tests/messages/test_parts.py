"""Rows keep what content and reasoning_content alone cannot tell."""

import pytest

from antiphon.messages import (
    ImagePart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    message_from_row,
    message_to_row,
)


@pytest.mark.parametrize(
    "parts",
    [
        (TextPart("a"), ThinkingPart("b"), TextPart("c")),
        (ThinkingPart("b", signature="proof"), TextPart("c")),
        (TextPart("a"), TextPart("b")),
        (ImagePart("cat.png"), ThinkingPart("a cat")),
    ],
)
def test_parts_in_any_order_survive_a_row(parts: tuple[Part, ...]) -> None:
    message = Message("assistant", parts)

    assert message_from_row(message_to_row(message)) == message


def test_parts_in_the_usual_order_need_no_field_of_their_own() -> None:
    assert "parts" not in message_to_row(Message.assistant("Hi", reasoning="greet"))
