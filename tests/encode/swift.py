"""Where our text is not ms-swift's: what is recorded of its text, and how it is recorded.

`tests/encode/cases/swift_differences.jsonl` holds, for every conversation that ms-swift 4.6 could
encode, the digest of its text and what of our text must be replaced to have its own, so that the
record stays small and still holds each byte of both.  Each replacement is of a kind that has a
name; `docs/why/ms-swift.md` lists the kinds of each template and says why we do not follow.

After a change of our text, with the folder of ms-swift's rows:

    PYTHONPATH=src:tests python -m encode.swift FOLDER
"""

import difflib
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from antiphon.datasets import read_row
from antiphon.errors import RenderError
from antiphon.formats import Format, get_format
from antiphon.messages import Conversation

CASES = Path(__file__).parent / "cases" / "swift_differences.jsonl"
_CONVERSATIONS = Path(__file__).parents[1] / "formats" / "cases" / "conversations.jsonl"

_PYTHON = {"arguments": "python"}
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "deepseek_v41": ("deepseek_v4_1", {"thinking": False}),
    "gemma4_nothinking": ("gemma4", {}),
    "glm5_1": ("glm5_1", {"thinking": False}),
    "glm5_2": ("glm5_2", {"thinking": False}),
    "hermes": ("qwen2_5", {}),
    "kimi_k25": ("kimi_k25", {"thinking": False}),
    "kimi_k3": ("kimi_k3", {"effort": None}),
    "minimax_m3_vl": ("minimax_m3", {"thinking": "disabled"}),
    "mistral_2501": ("mistral", {}),
    "qwen3_8": ("qwen3_8", {"thinking": False}),
    "qwen_en": ("qwen_en", _PYTHON),
    "qwen_en_parallel": ("qwen_en_parallel", _PYTHON),
    "qwen_zh": ("qwen_zh", _PYTHON),
    "qwen_zh_parallel": ("qwen_zh_parallel", _PYTHON),
    "react_en": ("react_en", _PYTHON),
    "react_grpo": ("react_grpo", _PYTHON),
    "react_zh": ("react_zh", _PYTHON),
    "seed_oss": ("seed_oss", {"budget": 0}),
    "toolbench": ("toolbench", _PYTHON),
}
"""The format and variant that a template is nearest to, where it is not the one of its name."""

NO_FORMAT = ("hunyuan",)
"""Templates that nothing here is compared with."""

TOKENIZERS = ("qwen2_5", "qwen3")
"""Vocabularies of ms-swift's rows that a package ships; of others it knew only the marks."""

_LINE_FEED = 198

Hunk = tuple[int, str, str]
"""Where in our text, what stands there, and what stands in ms-swift's."""


def name_of(row: dict[str, Any]) -> str:
    """The template of a row, by one name: those that share a way of calls have their own."""
    ways = ("qwen_", "react_", "toolbench")
    agent, model = row["agent_template"], row["template_type"]
    if agent == "hermes":
        return "hermes" if model == "qwen2_5" else model
    return agent if agent.startswith(ways) else model


def format_of(template: str) -> Format:
    """The format and variant that a template is compared with."""
    name, variants = FORMATS.get(template, (template, {}))
    return get_format(name, **variants)


def conversations() -> dict[str, Conversation]:
    """What was rendered, by name."""
    lines = _CONVERSATIONS.read_text("utf-8").splitlines()
    return {case["id"]: read_row(case["unified"]) for case in map(json.loads, lines)}


def digest(value: object) -> str:
    """What stands for a text or a list in the record."""
    text = value if isinstance(value, str) else json.dumps(value)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


# ---- what differs -----------------------------------------------------------------------------

_TOKEN = re.compile(r"<[^<>\s]*>|\w+|\s|[^\w\s]")


def hunks(ours: str, theirs: str) -> list[Hunk]:
    """What must be replaced in our text to have ms-swift's."""
    a, b = _TOKEN.findall(ours), _TOKEN.findall(theirs)
    starts = [0]
    for token in a:
        starts.append(starts[-1] + len(token))
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [
        (starts[i], "".join(a[i:i_end]), "".join(b[j:j_end]))
        for tag, i, i_end, j, j_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def replaced(text: str, changes: Sequence[Hunk]) -> str:
    """A text with its hunks replaced.

    Raises:
        ValueError: What a hunk replaces does not stand in the text.
    """
    parts: list[str] = []
    end = 0
    for at, ours, theirs in changes:
        if not text.startswith(ours, at):
            raise ValueError(f"at {at} stands {text[at : at + len(ours)]!r}, not {ours!r}")
        parts += [text[end:at], theirs]
        end = at + len(ours)
    return "".join([*parts, text[end:]])


_KINDS: tuple[tuple[str, str, str, str], ...] = (
    # what it is called; our text up to it, what is ours, what is theirs; as patterns
    ("marks of reasoning", "", "</?mm:think>|</?think:opensource>", r"\s*</?think>\s*"),
    ("reasoning in `<think>`", "", r"<\|channel>thought|<channel\|>", r"</?think>\s*"),
    ("reasoning in `<think>`", "", "", r"<channel\|><think>\s*"),
    ("reasoning in `<think>`", "", "(?:Thought: |Final Answer: )?", r"<think>\n|\n?</think>\s*"),
    ("text beside a call", "", "", "The code needs a dash; I will try again\\."),
    (
        "reasoning that is not shown",
        "",
        r"\s?",
        r"(?:<\|channel>thought\n<channel\|>)?\s*"
        r"(?:<think>)?\s*(?=\w|[.])[^<>]*(?:</think>\s*\w*)?",
    ),
    (
        "empty thoughts",
        "",
        "",
        r"\s*<think>\s*</think>\s*|<\|channel>thought\n<channel\|>"
        r"|<seed:think><seed:cot_budget_reflect>[^<]*</seed:cot_budget_reflect>\n</seed:think>",
    ),
    ("empty thoughts", "", r"<think>\n\n</think>\n\n", ""),
    ("closing marks of reasoning", "", "</think>", ""),
    ("line feeds around reasoning", r"think[^<>\n]*>[^<]*|<\|sep\|>[^<]*", "", r"\n+"),
    (
        "the end of the last turn",
        "",
        r"(?:<\|tool_response>)?",
        r"<\|user\|>|<\|observation\|>|<turn\|>|<\|im_end\|>",
    ),
    ("values as Python spells them", "", '"|true|false|null', "'|True|False|None"),
    ("values as JSON", "", "'|True|False|None", '"|true|false|null'),
    ("results as JSON text", "", r'\\+|"', ""),
    ("the role of results", "", "ipython", "tool"),
    ("names in results", r"response:", r"\w+", "unknown"),
    ("numbers of calls", r"functions\.\w+:", r"\d+", r"\d+"),
    (
        "marks around calls",
        "",
        r"(?:<\|python_(?:start|end)\|>)+",
        r"(?:<think>[^<>]*</think>\s*)?",
    ),
    ("an empty line in a call without arguments", r'(?:<tool_sep[^<>]*>|"clock">)\n?', "", r"\n"),
    ("line feeds around a call's name", r"(?:<tool_call>\w*|</tool_call>\n)", r"\n?", r"\n?"),
    ("a space behind a call's name", r"<\|assistant\|>\w+", " ", ""),
    ("line feeds before a call", r"[^>\]]|ai\n|\]~b\]ai", r"\n+", ""),
    ("spaces behind `[INST]`", r"\[/?INST\]", " ", ""),
    ("line feeds between calls", "</tool_call>", r"\n", ""),
    ("line feeds between calls", r"\}\}", "", r"\n"),
    ("line feeds behind the mark of a turn", r"<\|assistant\|>", r"\n", ""),
    ("the mark of a turn before a call", "", r"<\|assistant\|>", ""),
)
_HEAD_KINDS: tuple[tuple[str, str, str, str], ...] = (
    # of what stands before the first message of the user
    ("the first marks", "", r"\[gMASK\]<sop>", ""),
    ("`Environment: ipython`, dates", "", r"[^\x00]*Environment: ipython[^\x00]*", ""),
    (
        "a system text that nobody wrote",
        "You are |a helpful | helpful assistant|system",
        "",
        r"\nYou are Qwen[^<]*|MiniMax-M2, |AI | built by MiniMax. Knowledge cutoff: 2025-06",
    ),
    ("the model's own name", "", "ChatGLM", "GLM-4"),
    ("the system text", "", r"(?:<\|system\|>|\n)(?:\n?你是|You are|Use tools)[^<]*", ""),
    ("the heading `# Tools`", "", "", r"\n\n# Tools"),
    ("values as JSON", "", "'|True|False|None", '"|true|false|null'),
    ("types in declarations", "", r"\['NUMBER', 'NULL'\]|\?|\"邮政\"[^;]*", "|string"),
    ("white space in the tool text", "", r"\s*", r"\s*"),
    ("braces in the tool text", "", r"\{|\}", ""),
    ("the text on the budget", r"[^\x00]*intelligent assistant [^\x00]*", "[^\x00]*", "[^\x00]*"),
    ("where tools stand", "", r"[^\x00]*", r"[^\x00]*"),
)
REFUSED = "refused by name"


def kind_of(text: str, hunk: Hunk, head: int) -> str:
    """What a difference is called.

    Args:
        text: Our text.
        hunk: The difference.
        head: Where the first message of the user stands in our text.

    Raises:
        LookupError: It has no name yet.
    """
    at, ours, theirs = hunk
    before = text[max(0, at - 400) : at]
    for name, behind, mine, other in _HEAD_KINDS if at < head else _KINDS:
        if (
            re.search(f"(?:{behind})\\Z", before)
            and re.fullmatch(mine, ours)
            and re.fullmatch(other, theirs)
        ):
            return name
    raise LookupError(f"no name for {ours!r} that is {theirs!r} behind {before[-60:]!r}")


def head_of(conversation: Conversation, text: str) -> int:
    """Where the first message of the user stands in a text."""
    said = next(m.text for m in conversation.messages if m.role == "user")
    return text.find(said)


# ---- the record -------------------------------------------------------------------------------


def recorded() -> list[dict[str, Any]]:
    """The record."""
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]


def own_text(template: str, conversation: Conversation) -> str | None:
    """Our text without the line feeds at its end; ``None`` where the family cannot say it."""
    try:
        return format_of(template).render(conversation).text.rstrip("\n")
    except RenderError:
        return None


def _entries(folder: Path) -> Iterator[dict[str, Any]]:
    known = conversations()
    for path in sorted(folder.glob("*.jsonl")):
        done: set[tuple[str, str, str]] = set()
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            template = name_of(row)
            if "text" not in row or "loss_scale" in row["settings"] or template in NO_FORMAT:
                continue
            theirs = row["text"].rstrip("\n")
            key = (template, row["conversation"], theirs)
            if key in done:
                continue
            done.add(key)
            yield _entry(row, theirs, own_text(template, known[row["conversation"]]))


def _entry(row: dict[str, Any], theirs: str, ours: str | None) -> dict[str, Any]:
    entry = {
        "template": name_of(row),
        "conversation": row["conversation"],
        "text": digest(theirs),
        "hunks": None if ours is None else hunks(ours, theirs),
    }
    if ours == theirs:
        entry["trained"] = _trained_bytes(row["segments"], len(theirs.encode()))
        if row["tokenizer"] in TOKENIZERS and row["ids_equal_whole_text_ids"]:
            entry |= {"tokenizer": row["tokenizer"], "ids": digest(without_end(row["input_ids"]))}
    return entry


def without_end(ids: Sequence[int]) -> list[int]:
    """Ids without a line feed at their end."""
    return [*ids[:-1]] if ids[-1] == _LINE_FEED else [*ids]


def _trained_bytes(segments: Sequence[tuple[str, float]], n: int) -> list[int]:
    """How many bytes in turn are not trained and are, of the first `n`."""
    flags = [bool(weight) for text, weight in segments for _ in text.encode()][:n]
    runs = [(flag, len(list(group))) for flag, group in groupby(flags)]
    return [*([0] if runs[0][0] else []), *(length for _, length in runs)]


def main() -> None:
    """Record."""
    with CASES.open("w", encoding="utf-8") as file:
        for entry in _entries(Path(sys.argv[1])):
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
