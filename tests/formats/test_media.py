"""Media stand where each family's published template puts them, or are refused by name."""

from dataclasses import replace
from typing import Any

import jinja2
import pytest

from antiphon.errors import RenderError
from antiphon.formats import get_format, list_formats
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    MediaPart,
    Message,
    Part,
    TextPart,
    ToolCall,
    VideoPart,
)
from formats.published import Published, template

IMAGE, AUDIO, VIDEO = ImagePart("a.png"), AudioPart("a.wav"), VideoPart("a.mp4")
SEEN = (IMAGE, VIDEO)
TYPES: dict[type, str] = {ImagePart: "image", AudioPart: "audio", VideoPart: "video"}
CALL = (ToolCall("look", {}, "c0"),)


def shown(*media: MediaPart, by_tool: bool) -> Conversation:
    """A question and, perhaps, a tool's result that show media between words."""
    parts: list[Part] = []
    for part in media:
        parts += [TextPart(f"See {len(parts)}: "), part]
    messages = [Message.system("Be brief."), Message("user", (*parts, TextPart("What?")))]
    if by_tool:
        messages.append(Message.assistant("", tool_calls=CALL))
        messages.append(Message("tool", tuple(parts), tool_call_id="c0", name="look"))
    messages += [Message.assistant("A ferry."), Message("user", media)]
    return Conversation(tuple(messages))


def published_text(published: Any, conversation: Conversation) -> str:
    """What a template writes."""
    rows: list[dict[str, Any]] = []
    for message in conversation.messages:
        row: dict[str, Any] = {"role": message.role, "content": message.text}
        if message.media:
            row["content"] = [
                {"type": "text", "text": part.text}
                if isinstance(part, TextPart)
                else {"type": TYPES[type(part)]}
                for part in message.parts
            ]
        if message.tool_calls:
            row["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": {}}}
                for c in message.tool_calls
            ]
        rows.append(row | ({"tool_call_id": "c0", "name": "look"} if message.name else {}))
    return published.render(messages=rows, tools=None, bos_token="<bos>")


@pytest.mark.parametrize(
    ("name", "file", "media", "by_tool"),
    [
        ("qwen2_5_vl", "qwen2_5_vl", SEEN, False),
        ("qwen3_vl", "qwen3_vl", SEEN, True),
        ("qwen3_5", "qwen3_5_think", SEEN, True),
        ("qwen3_6", "qwen3_6", SEEN, True),
        ("qwen3_8", "qwen3_8", SEEN, True),
        ("gemma4", "gemma4_v5", (IMAGE, AUDIO, VIDEO), True),
    ],
)
def test_media_are_the_published_text(
    name: str, file: str, media: tuple[MediaPart, ...], by_tool: bool
) -> None:
    published = template(Published(f"trl:{file}.jinja"))
    if published is None:
        pytest.skip("trl is not installed")
    conversation = shown(*media, by_tool=by_tool)

    ours = get_format(name).render(conversation).text

    assert ours.removesuffix("\n") == published_text(published, conversation).removesuffix("\n")
    assert all(ours.count(TYPES[type(part)]) > 1 for part in media)


def test_sounds_are_the_text_of_qwen2_audios_template() -> None:
    module: Any = pytest.importorskip("transformers.models.qwen2_audio.processing_qwen2_audio")
    source = module.Qwen2AudioProcessor.default_chat_template.fget(None)
    published = jinja2.Environment(autoescape=False).from_string(source)
    conversation = shown(AUDIO, AUDIO, by_tool=False)

    ours = get_format("qwen2_audio").render(conversation).text

    assert ours == published_text(published, conversation).removesuffix("\n")


def test_qwen2_audio_counts_its_sounds() -> None:
    text = get_format("qwen2_audio").render(shown(AUDIO, AUDIO, by_tool=False)).text

    heard = "<|audio_bos|><|AUDIO|><|audio_eos|>"
    assert f"See 0: Audio 1: {heard}\nSee 2: Audio 2: {heard}\nWhat?<|im_end|>" in text
    assert text.endswith(f"user\nAudio 3: {heard}\nAudio 4: {heard}\n<|im_end|>")


def test_qwen2_5_omni_writes_all_three() -> None:
    """As the chat template published with Qwen/Qwen2.5-Omni-7B does."""
    conversation = Conversation((Message("user", (IMAGE, AUDIO, VIDEO, TextPart("What?"))),))

    assert get_format("qwen2_5_omni").render(conversation, generate=True).text == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
        "<|vision_bos|><|IMAGE|><|vision_eos|><|audio_bos|><|AUDIO|><|audio_eos|>"
        "<|vision_bos|><|VIDEO|><|vision_eos|>What?<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("part", [IMAGE, AUDIO, VIDEO], ids=lambda part: TYPES[type(part)])
@pytest.mark.parametrize("name", [*list_formats(), "qwen2_5_vl", "qwen3_vl", "qwen2_5_omni"])
def test_what_a_family_does_not_show_it_refuses_by_name(name: str, part: MediaPart) -> None:
    """No family drops what a message shows, whoever shows it."""
    fmt = get_format(name)
    texts: list[Part] = [TextPart("x")]
    asked, called = Message.user("Hi"), Message.assistant(tool_calls=CALL)
    for messages in (
        (Message("system", (*texts, part)), asked),
        (Message("user", (*texts, part)),),
        (asked, Message("assistant", (*texts, part))),
        (asked, called, Message("tool", (*texts, part), tool_call_id="c0", name="look")),
    ):
        bare = tuple(replace(m, parts=tuple(p for p in m.parts if p != part)) for m in messages)
        try:
            text = fmt.render(Conversation(messages)).text
        except RenderError as error:
            refused = str(error)
        else:
            refused = ""
            assert len(text) > len(fmt.render(Conversation(bare)).text)
        assert not refused or TYPES[type(part)] in refused or name == "plain"
