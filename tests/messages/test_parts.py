"""Rows keep what content and reasoning_content alone cannot tell."""

from typing import Any

import pytest

from antiphon.messages import (
    AudioPart,
    ImagePart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    VideoPart,
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
        (AudioPart("a.wav"), AudioPart("data:audio/wav;base64,UklG"), TextPart("a")),
        (AudioPart("data:audio/mpeg;codecs=mp3;base64,UklG"), AudioPart("data:audio/wav,x")),
        (VideoPart("a.mp4"), TextPart("a"), VideoPart(("1.png", "2.png"))),
    ],
)
def test_parts_in_any_order_survive_a_row(parts: tuple[Part, ...]) -> None:
    message = Message("assistant", parts)

    assert message_from_row(message_to_row(message)) == message


def test_parts_in_the_usual_order_need_no_field_of_their_own() -> None:
    assert "parts" not in message_to_row(Message.assistant("Hi", reasoning="greet"))


@pytest.mark.parametrize(
    ("part", "read"),
    [
        (
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}},
            AudioPart("data:audio/mp3;base64,UklG"),
        ),
        ({"type": "audio_url", "audio_url": {"url": "https://x.org/a.wav"}}, AudioPart),
        ({"type": "audio", "audio": "a.wav"}, AudioPart("a.wav")),
        ({"type": "audio", "audio_url": "a.wav"}, AudioPart("a.wav")),
        ({"type": "video_url", "video_url": {"url": "a.mp4"}}, VideoPart("a.mp4")),
        ({"type": "video", "video": "a.mp4"}, VideoPart("a.mp4")),
        ({"type": "video", "video": ["1.png", "2.png"]}, VideoPart(("1.png", "2.png"))),
    ],
)
def test_sounds_and_films_are_read_in_the_spellings_of_servers(
    part: dict[str, Any], read: Part | type
) -> None:
    found = message_from_row({"role": "user", "content": [part]}).parts[0]

    assert found == read if not isinstance(read, type) else isinstance(found, read)
