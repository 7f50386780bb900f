"""Cases and helpers that the tests of formats share."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from antiphon.formats import Format, Rendered, Start, get_format
from antiphon.messages import (
    Conversation,
    Delta,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolSpec,
    conversation_from_row,
)

CASES = Path(__file__).parent / "cases"
TEMPLATES = Path(__file__).parent / "templates"

OFFICIAL: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2_5": ("qwen2_5", {}),
    "qwen3": ("qwen3", {"thinking": False}),
    "qwen3_nothinking": ("qwen3_nothinking", {}),
    "qwen3_thinking": ("qwen3_thinking", {}),
    "llama3_2": ("llama3_2", {}),
    "deepseek_v3_1": ("deepseek_v3_1", {}),
    "deepseek_v3": ("deepseek_v3", {}),
    "deepseek_r1": ("deepseek_r1", {}),
    "kimi_k25": ("kimi_k25", {"thinking": False}),
    "glm4": ("glm4", {}),
    "chatglm4": ("chatglm4", {}),
    "gpt_oss": ("gpt_oss", {}),
    "gemma4": ("gemma4", {}),
    "lfm2": ("lfm2", {}),
    "lfm2_5": ("lfm2_5", {}),
    "kimi_k2_instruct": ("kimi_k2_instruct", {}),
    "kimi_k2_thinking": ("kimi_k2_thinking", {}),
    "qwen3_coder": ("qwen3_coder", {}),
    "qwen3_5": ("qwen3_5", {"thinking": False}),
    "qwen3_8": ("qwen3_8", {"thinking": False}),
    "glm4_5": ("glm4_5", {"thinking": False}),
    "glm4_7": ("glm4_7", {"thinking": False}),
    "glm5_1": ("glm5_1", {"thinking": False}),
    "glm5_2": ("glm5_2", {"thinking": False}),
    "glm5_3": ("glm5_3", {"thinking": False}),
    "minimax_m2": ("minimax_m2", {}),
    "minimax_m2_5": ("minimax_m2_5", {}),
    "minimax_m3_vl": ("minimax_m3", {"thinking": "disabled"}),
    "seed_oss": ("seed_oss", {"budget": 0}),
    "ling3": ("ling3", {"thinking": False}),
    "minicpm5": ("minicpm5", {"thinking": False}),
    "qwq": ("qwq", {}),
    "minimax_m1": ("minimax_m1", {}),
    "granite4": ("granite4", {}),
    "granite4_1": ("granite4_1", {}),
    "mistral_2501": ("mistral", {}),
    "mistral_nemo": ("mistral_nemo", {}),
    "mistral_small_3_2": ("mistral_v13", {}),
    "granite3_0": ("granite3_0", {}),
    "granite3_1": ("granite3_1", {}),
    "granite3_3": ("granite3_3", {}),
    "firefunction": ("firefunction", {}),
    "phi4_mini": ("phi4_mini", {}),
    "xlam": ("xlam", {}),
    "xlam_qwen": ("xlam_qwen", {}),
    "internlm2": ("internlm2", {}),
    "nemotron_nano": ("nemotron_nano", {"thinking": False}),
    "hunyuan_a13b": ("hunyuan_a13b", {}),
    "command_r7b": ("command_r7b", {}),
    "north": ("north", {}),
    "north_direct": ("north", {"thinking": False}),
    "command_r_plus": ("command_r_plus", {}),
    "jamba": ("jamba", {}),
    "youtu": ("youtu", {"thinking": False}),
    "llama4": ("llama4", {}),
    "intern_s1": ("intern_s1", {"thinking": False}),
    "intern_s1_thinking": ("intern_s1", {}),
    "gigachat3": ("gigachat3", {"version": "3"}),
    "gigachat3_1": ("gigachat3_1", {}),
    "apertus": ("apertus", {}),
    "apriel": ("apriel", {}),
    "smollm3": ("smollm3", {"thinking": False}),
    "smollm3_thinking": ("smollm3", {}),
    "deepseek_v3_2": ("deepseek_v3_2", {}),
    "deepseek_v3_2_thinking": ("deepseek_v3_2", {"thinking": True}),
    "deepseek_v4_1": ("deepseek_v4_1", {"thinking": False}),
    "spark2_5": ("spark2_5", {"thinking": False}),
    "xing4_0": ("xing4_0", {}),
    "hunyuan_v3": ("hunyuan_v3", {}),
    "olmo3": ("olmo3", {}),
    "muse": ("muse", {}),
    "solar_open": ("solar_open", {}),
    "functionary_v3_1": ("functionary_v3_1", {}),
    "functionary_v3_2": ("functionary_v3_2", {}),
    "command_a": ("command_a", {}),
    "apriel_1_5": ("apriel_1_5", {}),
}
"""Golden files of published templates: the format and the variant that they are of."""

_TEXT_ONLY = {"granite3_0", "granite3_1", "xlam_qwen", "intern_s1"}
"""Variants of `OFFICIAL` whose answers are written as another's are."""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: of for name, of in OFFICIAL.items() if name not in _TEXT_ONLY},
    "deepseek_v4": ("deepseek_v4", {"thinking": True}),
    "magistral": ("magistral", {}),
    "mistral_v7": ("mistral_v7", {}),
    "mistral_v7_tekken": ("mistral_v7_tekken", {}),
    "kimi_k3": ("kimi_k3", {}),
    "qwen3_5_thinking": ("qwen3_5", {}),
    "qwen3_6": ("qwen3_6", {"preserve": True}),
    "glm4_5_thinking": ("glm4_5", {}),
    "glm4_7_thinking": ("glm4_7", {}),
    "minimax_m3": ("minimax_m3", {}),
    "seed_oss_thinking": ("seed_oss", {}),
    "ling3_thinking": ("ling3", {}),
    "minicpm5_2b": ("minicpm5", {"edition": "2b"}),
    "nemotron_nano_thinking": ("nemotron_nano", {}),
    "hunyuan_a13b_direct": ("hunyuan_a13b", {"thinking": False}),
    "youtu_thinking": ("youtu", {}),
    "hermes": ("hermes", {}),
    "pythonic": ("pythonic", {}),
    "toolace": ("toolace", {}),
    "gemma4_thinking": ("gemma4", {"thinking": True}),
    "kimi_k25_thinking": ("kimi_k25", {}),
    "deepseek_v3_1_thinking": ("deepseek_v3_1", {"thinking": True}),
    "qwen3_hybrid": ("qwen3", {}),
    "smollm2": ("smollm2", {}),
    "smollm2_compact": ("smollm2", {"compact": True}),
    "react_en": ("react_en", {}),
    "react_zh": ("react_zh", {}),
    "spark2_5_thinking": ("spark2_5", {}),
    "hunyuan_v3_preview": ("hunyuan_v3", {"suffix": "", "effort": "high"}),
    "react_grpo": ("react_grpo", {}),
    "toolbench": ("toolbench", {}),
    "qwen_en": ("qwen_en", {}),
    "qwen_zh_parallel": ("qwen_zh_parallel", {}),
    "react_smollm2": ("react_en", {"frame": "smollm2"}),
    "react_python": ("react_en", {"arguments": "python"}),
    "command_a_grounded": ("command_a", {"grounding": True}),
    "command_a_reasoning": ("command_a", {"thinking": True}),
    "command_a_direct": ("command_a", {"thinking": False}),
    "functiongemma": ("functiongemma", {}),
    "dots": ("dots", {}),
    "dots_direct": ("dots", {"thinking": False}),
    "ernie4_5": ("ernie4_5", {}),
    "k2_horizon": ("k2_horizon", {}),
    "k2_horizon_json": ("k2_horizon", {"calls": "json", "effort": "low", "tools": "json"}),
    "mimo": ("mimo", {}),
    "mimo_direct": ("mimo", {"thinking": False, "preserve_thinking": False}),
    "longcat": ("longcat", {}),
    "longcat_thinking": ("longcat", {"thinking": True}),
    "step3": ("step3", {}),
    "plamo3": ("plamo3", {}),
    "template_chatml": (str(TEMPLATES / "chatml"), {}),
    "template_roles": (str(TEMPLATES / "roles"), {}),
}
"""Every variant that the common tests run on."""


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a case file."""
    with (CASES / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def conversations() -> dict[str, Conversation]:
    """The shared conversations by their names."""
    return {
        row["id"]: conversation_from_row(
            {"messages": row["openai"], "tools": row["unified"]["tools"]}
        )
        for row in rows("conversations.jsonl")
    }


def variant(name: str) -> Format:
    """One of `VARIANTS`."""
    family, fields = VARIANTS[name]
    return get_format(family, **fields)


def apart(ours: str, theirs: str) -> str:
    """Where two texts part and how each goes on; empty where they are one."""
    if ours == theirs:
        return ""
    same = (a == b for a, b in zip(ours, theirs, strict=False))
    at = next((n for n, equal in enumerate(same) if not equal), min(len(ours), len(theirs)))
    begin = max(0, at - 20)
    return f"from character {at} {ours[begin : at + 60]!r} for {theirs[begin : at + 60]!r}"


def prompt_of(conversation: Conversation) -> Conversation:
    """The conversation up to where its last answer begins."""
    messages = list(conversation.messages)
    while messages and messages[-1].role == "assistant":
        messages.pop()
    return replace(conversation, messages=tuple(messages))


def parse(
    fmt: Format,
    chunks: Iterable[str],
    *,
    tools: Sequence[ToolSpec] = (),
    start: Start = "content",
    strict: bool = False,
) -> tuple[Message, list[Delta]]:
    """Feed chunks; give back the message and all deltas."""
    parser = fmt.parser(tools=tools, start=start, strict=strict)
    deltas: list[Delta] = []
    for chunk in chunks:
        deltas += parser.feed(chunk)
    deltas += parser.finish()
    return parser.message, deltas


def cuts(text: str) -> Iterator[list[str]]:
    """A text whole, by characters, and in random chunks."""
    yield [text]
    yield list(text)
    for seed in range(3):
        chance = random.Random(seed)
        chunks: list[str] = []
        rest = text
        while rest:
            size = chance.randint(1, 24)
            chunks.append(rest[:size])
            rest = rest[size:]
        yield chunks


def joined(deltas: Iterable[Delta]) -> tuple[str, str, list[tuple[str, str]]]:
    """What deltas say together: text, reasoning, and each call's name and arguments text."""
    text, thinking = "", ""
    calls: dict[int, tuple[str, str]] = {}
    for delta in deltas:
        match delta:
            case TextDelta():
                text += delta.text
            case ThinkingDelta():
                thinking += delta.text
            case ToolCallDelta():
                name, arguments = calls.get(delta.index, ("", ""))
                calls[delta.index] = (name + delta.name, arguments + delta.arguments)
    return text, thinking, [calls[i] for i in sorted(calls)]


_THINK_MARKS = (
    "<think>",
    "<seed:think>",
    "<mm:think>",
    "<|open|>think<|sep|>",
    "<|channel>thought",
    "<|START_THINKING|>",
    "<ifm|think>",
    "<ifm|think_fast>",
    "<ifm|think_faster>",
)


def written(rendered: Rendered, index: int, fmt: Format) -> tuple[str, Start]:
    """What the model wrote of one message, without the end mark, and where its prompt left off."""
    pieces = [p for p in rendered.pieces if p.message == index]
    text = "".join(p.text for p in pieces if p.author == "written")
    frame = ""
    for piece in pieces:
        if piece.author == "written":
            break
        frame += piece.text
    opened = frame.rstrip("\n").endswith(_THINK_MARKS)
    for stop in fmt.stop:
        text = text.removesuffix(stop)
    return text, "reasoning" if opened else "content"


def loose(text: str | None) -> str:
    """A text with its white space made simple, for cases that compare it loosely."""
    return " ".join((text or "").split())


def means(message: Message, expected: dict[str, Any]) -> bool:
    """Whether a message says what a case expects."""
    calls = cast("list[dict[str, Any]]", expected["tool_calls"])
    return (
        loose(message.text) == loose(expected["content"])
        and loose(message.reasoning) == loose(expected["reasoning"])
        and [(c.name, c.arguments) for c in message.tool_calls]
        == [(c["name"], c["arguments"]) for c in calls]
    )
