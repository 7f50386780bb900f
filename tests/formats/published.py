"""The chat templates that families publish, from packages that ship them, and how to render them.

Templates are other people's work and are not copied in.  A reference is ``trl:FILE`` or
``xinference:FILE``, found where that package is installed (``pip install --no-deps trl
xinference``: they are only read), or a file that the folder holds which the environment variable
``ANTIPHON_TEMPLATES`` names: ``llama.cpp:FILE`` of ``models/templates`` in its source,
``vllm:FILE`` of ``examples`` in vLLM's, ``minja:FILE`` of ``tests`` in ochafik/minja.
``cohere_melody:NAME`` is no file but a function of that package (``pip install cohere-melody``).

What they write of our own conversations is recorded as digests in ``cases/published.json``, so that
every run of the tests compares with it.  After a change of the conversations or the table here:

    PYTHONPATH=src:tests python -m formats.published
"""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock, Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

from antiphon.formats._kimi_tools import tools_text
from antiphon.messages import Conversation, Message, ToolSpec, message_to_row
from formats.format_cases import CASES, prompt_of
from formats.own_conversations import own_conversations

_FOLDERS = {"trl": "chat_templates", "xinference": "model/llm/models"}


@dataclass(frozen=True, slots=True)
class Published:
    """A family's published template, and what is passed to it."""

    source: str
    """Where it is found; see above."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the template is rendered with besides messages and tools."""
    ids: str = ""
    """How a call's id is made, with ``{name}`` and ``{n}``, which counts over the conversation;
    ``""`` keeps the conversation's own."""
    reasoning: str = "reasoning_content"
    """The key that the template reads reasoning from."""
    names: bool = False
    """Whether results carry the tool's name."""
    text_arguments: bool = False
    """Whether the template wants arguments as a JSON string."""
    lists_tools: bool = True
    """Whether the template lists tools; if not, it is compared on conversations without any."""
    prompts: bool = True
    """Whether prompts are compared, too."""
    tools_in_row: bool = False
    """Whether tools stand in a system row of their own."""
    squeezed: bool = False
    """Whether white space between tags is left out, where line feeds became spaces."""
    tools_text: Callable[[Sequence[ToolSpec]], str] | None = None
    """What the family's own code makes of the tools and passes to the template."""
    tools_key: str = "tools_ts_str"
    """The name under which the template takes `tools_text`."""
    rows: Callable[[list[dict[str, Any]]], None] | None = None
    """What a caller does to the rows first: calls as text or rows of their own, a word that stops
    reasoning."""
    key: str = ""
    """The key that calls are written with, where the template's is ``arguments``."""
    cut: str = ""
    """What the template writes at the end even where nothing is to be generated."""
    end: str = ""
    """What the template leaves out behind a last answer."""


def _trl(file: str, **values: Any) -> Published:
    return Published(f"trl:{file}.jinja", values)


def _xinference(file: str, **values: Any) -> Published:
    return Published(f"xinference:{file}.json", values)


def _llama_cpp(file: str, **values: Any) -> Published:
    return Published(f"llama.cpp:{file}.jinja", values)


def _vllm(file: str, **values: Any) -> Published:
    return Published(f"vllm:tool_chat_template_{file}.jinja", values)


def _melody(**values: Any) -> Published:
    return Published("cohere_melody:render_cmd3", {"citation_quality": "OFF", **values})


def _strftime(format: str) -> str:
    return datetime(2025, 6, 30, 12).strftime(format)


def _calls(row: dict[str, Any]) -> str:
    functions = [call["function"] for call in row.pop("tool_calls", ())]
    return json.dumps(functions, ensure_ascii=False) if functions else ""


def _granite_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["role"] == "tool":
            row["role"] = "tool_response"
        if calls := _calls(row):
            row["content"] += f"<|tool_call|>{calls}"


def _phi_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if calls := _calls(row):
            row["content"] += (" " if row["content"] else "") + f"functools{calls}"


def _no_think(rows: list[dict[str, Any]]) -> None:
    next(row for row in rows if row["role"] == "user")["content"] += " /no_think"


def _youtu_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if reasoning := row.pop("reasoning_content", None):
            row["content"] = f"<think>\n{reasoning}\n</think>\n\n{row['content']}"


def _glm_rows(rows: list[dict[str, Any]]) -> None:
    """Calls as rows of their own, with the name as metadata."""
    rows[:] = [new for row in rows for new in _with_metadata(row)]


def _with_metadata(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if row["role"] == "tool":
        yield {"role": "observation", "content": row["content"]}
        return
    calls = row.pop("tool_calls", ())
    if row["content"] or not calls:
        yield row
    for call in calls:
        function = call["function"]
        text = json.dumps(function["arguments"], ensure_ascii=False)
        yield {"role": "assistant", "metadata": function["name"], "content": text}


def _indented_functions(tools: Sequence[ToolSpec]) -> str:
    functions = [spec.to_openai()["function"] for spec in tools]
    return json.dumps(functions, indent=4, ensure_ascii=False)


def _deepseek_v3_1(*, thinking: bool) -> Published:
    published = _xinference("Deepseek-V3.1", thinking=thinking, **_DEEPSEEK)
    return replace(published, squeezed=True)


def _kimi(published: Published) -> Published:
    return replace(published, ids="functions.{name}:{n}", tools_text=tools_text)


_DEEPSEEK: dict[str, Any] = {"bos_token": "<｜begin▁of▁sentence｜>"}
_LLAMA: dict[str, Any] = {"bos_token": "<|begin_of_text|>", "date_string": "26 Jul 2024"}
_LFM: dict[str, Any] = {"bos_token": "<|startoftext|>"}
_MISTRAL: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>"}
_LLAMA3: dict[str, Any] = {"bos_token": "<|begin_of_text|>"}
_COHERE: dict[str, Any] = {"bos_token": "<BOS_TOKEN>"}
_BOS: dict[str, Any] = {"bos_token": "<s>"}
_DATED: dict[str, Any] = {"strftime_now": _strftime}
_SEED: dict[str, Any] = {"bos_token": "<seed:bos>", "eos_token": "<seed:eos>"}

PUBLISHED: dict[str, Published] = {
    "apertus": replace(
        _llama_cpp("Apertus-8B-Instruct", **_BOS, **_DATED),
        end="<|assistant_end|>",
    ),
    "apriel_1_5": replace(
        _llama_cpp("unsloth-Apriel-1.5", **_BOS, eos_token="</s>"), text_arguments=True
    ),
    "apriel": _llama_cpp("Apriel-1.6-15b-Thinker-fixed", training_prompt=True, **_BOS),
    "chatglm4": replace(_xinference("glm4-chat"), rows=_glm_rows, tools_in_row=True),
    "command_a": _melody(),
    "command_a_direct": _melody(reasoning_type="disabled"),
    "command_a_grounded": _melody(citation_quality="ON"),
    "command_a_reasoning": _melody(reasoning_type="enabled"),
    "command_r7b": replace(
        _llama_cpp(
            "CohereForAI-c4ai-command-r7b-12-2024-tool_use", enable_thinking=True, **_COHERE
        ),
        cut="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    ),
    "command_r_plus": _llama_cpp("CohereForAI-c4ai-command-r-plus-tool_use", **_COHERE),
    "deepseek_r1": _xinference("deepseek-r1-0528", **_DEEPSEEK),
    "deepseek_v3": replace(
        _xinference("deepseek-v3-0324", **_DEEPSEEK), text_arguments=True, lists_tools=False
    ),
    "deepseek_v3_1": _deepseek_v3_1(thinking=False),
    "deepseek_v3_1_thinking": _deepseek_v3_1(thinking=True),
    "firefunction": replace(
        _llama_cpp(
            "fireworks-ai-llama-3-firefunction-v2",
            datetime="2025-06-30 12:00:00 UTC",
            functions="",
            **_LLAMA3,
        ),
        cut="<|start_header_id|>assistant<|end_header_id|>\n\n",
        tools_key="functions",
        tools_text=_indented_functions,
    ),
    "gemma4": _trl("gemma4_v5", enable_thinking=False, bos_token="<bos>"),
    "gemma4_thinking": _trl("gemma4_v5", enable_thinking=True, bos_token="<bos>"),
    "gigachat3": _llama_cpp("GigaChat3-10B-A1.8B", **_BOS),
    "gigachat3_1": _llama_cpp("GigaChat3.1-10B-A1.8B", **_BOS),
    "glm4": replace(_xinference("glm4-0414"), rows=_glm_rows),
    "glm4_5": _trl("glm4moe", enable_thinking=False),
    "glm4_5_thinking": _trl("glm4moe", enable_thinking=True),
    "glm4_7": _xinference("GLM-4.7", enable_thinking=False),
    "glm4_7_thinking": _xinference("GLM-4.7", enable_thinking=True),
    "glm5_1": _xinference("glm-5.1", enable_thinking=False),
    "glm5_2": _xinference("glm-5.2", enable_thinking=False),
    "glm5_3": _xinference("glm-5.3", enable_thinking=False),
    "gpt_oss": replace(_trl("gptoss"), reasoning="thinking"),
    "granite3_3": replace(
        _llama_cpp("ibm-granite-granite-3.3-2B-Instruct", **_DATED), rows=_granite_rows
    ),
    "granite4": _llama_cpp("ibm-granite-granite-4.0"),
    "granite4_1": _llama_cpp("ibm-granite-granite-4.1"),
    "hunyuan_a13b": _vllm("hunyuan_a13b", **_DATED),
    "internlm2": replace(_vllm("internlm2_tool", **_BOS), key="parameters"),
    "kimi_k25": _kimi(_xinference("Kimi-K2.5", thinking=False)),
    "kimi_k25_thinking": _kimi(_xinference("Kimi-K2.5", thinking=True)),
    "kimi_k2_instruct": _kimi(_llama_cpp("Kimi-K2-Instruct")),
    "kimi_k2_thinking": _kimi(_llama_cpp("Kimi-K2-Thinking")),
    "lfm2": _trl("lfm2_v2", **_LFM),
    "lfm2_5": _trl("lfm2_2_5_v2", **_LFM),
    "ling3": _xinference("Ling-3.0-flash", enable_thinking=False),
    "ling3_thinking": _xinference("Ling-3.0-flash", enable_thinking=True),
    "llama3_2": _trl("llama3_2", **_LLAMA),
    "minicpm5": _xinference("minicpm5-1b", enable_thinking=False),
    "minicpm5_2b": _xinference("minicpm5-2b"),
    "minimax_m1": _llama_cpp("MiniMax-M1"),
    "minimax_m2": _xinference("MiniMax-M2"),
    "minimax_m2_5": _xinference("MiniMax-M2.5"),
    "minimax_m3": _xinference("MiniMax-M3"),
    "minimax_m3_vl": _xinference("MiniMax-M3", thinking_mode="disabled"),
    "mistral_2501": _xinference("mistral-instruct-v0.3", **_MISTRAL),
    "mistral_nemo": _llama_cpp("mistralai-Mistral-Nemo-Instruct-2407", **_MISTRAL),
    "mistral_small_3_2": _llama_cpp("Mistral-Small-3.2-24B-Instruct-2506", **_MISTRAL),
    "nemotron_nano": replace(_llama_cpp("NVIDIA-Nemotron-Nano-v2"), rows=_no_think),
    "north": _llama_cpp("Cohere2MoE", **_COHERE),
    "north_direct": _llama_cpp("Cohere2MoE", reasoning=False, **_COHERE),
    "phi4_mini": replace(_vllm("phi4_mini"), rows=_phi_rows, cut="<|assistant|>"),
    "qwen2_5": _trl("qwen2_5"),
    "qwen3": _trl("qwen3", enable_thinking=False),
    "qwen3_5": _xinference("qwen3.5", enable_thinking=False),
    "qwen3_5_thinking": _xinference("qwen3.5", enable_thinking=True),
    "qwen3_6": _trl("qwen3_6", preserve_thinking=True),
    "qwen3_8": _trl("qwen3_8", enable_thinking=False),
    "qwen3_coder": _xinference("Qwen3-Coder"),
    "qwen3_hybrid": _trl("qwen3", enable_thinking=True),
    "qwen3_nothinking": _trl("qwen3_instruct_2507"),
    "qwen3_thinking": _xinference("Qwen3-Thinking"),
    "qwq": _xinference("QwQ-32B"),
    "seed_oss": replace(
        _llama_cpp("ByteDance-Seed-OSS", thinking_budget=0, **_SEED), prompts=False
    ),
    "seed_oss_thinking": _llama_cpp("ByteDance-Seed-OSS", **_SEED),
    "xlam": _vllm("xlam_llama", **_LLAMA3),
    "youtu": replace(
        Published("minja:tool-thinking-template.jinja", {"enable_thinking": False, **_LLAMA3}),
        rows=_youtu_rows,
    ),
    "youtu_thinking": replace(
        Published("minja:tool-thinking-template.jinja", _LLAMA3), rows=_youtu_rows
    ),
}
"""The published template of each variant in `format_cases.VARIANTS` that has one."""


class Template(Protocol):
    """What writes a conversation."""

    def render(self, *, add_generation_prompt: bool, **values: Any) -> str:
        """Write it."""
        ...


@dataclass(frozen=True, slots=True)
class _Melody:
    """A renderer of cohere-melody, which takes rows of its own and always asks for an answer."""

    write: Callable[[dict[str, Any]], str]

    def render(
        self,
        *,
        add_generation_prompt: bool,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        **values: Any,
    ) -> str:
        """Write a conversation."""
        rows = list(messages)
        if rows and rows[0]["role"] == "system":
            values["dev_instruction"] = rows.pop(0)["content"]
        if tools:
            values["available_tools"] = [tool["function"] for tool in tools]
        text = self.write({"messages": list(map(self._row, rows)), **values})
        end = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
        return text if add_generation_prompt else text.removesuffix(end)

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        calls = row.get("tool_calls", ())
        content: list[dict[str, Any]] = []
        if row.get("reasoning_content"):
            content.append({"type": "thinking", "thinking": row["reasoning_content"]})
        if row["content"] or not calls:
            content.append({"type": "text", "text": row["content"]})
        role = {"assistant": "Chatbot"}.get(row["role"], row["role"].capitalize())
        new: dict[str, Any] = {"role": role, "content": content}
        if row["role"] == "tool":
            new["tool_call_id"] = row["tool_call_id"]
        if calls:
            new["tool_calls"] = [
                {
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "parameters": json.dumps(call["function"]["arguments"], ensure_ascii=False),
                }
                for call in calls
            ]
        return new


class _Generation(Extension):
    """The ``generation`` block of transformers, which only says what an assistant wrote."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> Node | list[Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_whole"), [], [], body).set_lineno(line)

    def _whole(self, caller: Callable[[], str]) -> str:
        return caller()


def _tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _today(format: str) -> str:
    return "2025-06-30"


@cache
def _environment(*, immutable: bool = False) -> SandboxedEnvironment:
    """Templates as transformers renders them; some of llama.cpp's change lists in place, which
    transformers' own environment, the immutable one, refuses."""
    kind = ImmutableSandboxedEnvironment if immutable else SandboxedEnvironment
    environment = kind(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _tojson
    cast("dict[str, Any]", environment.globals).update(raise_exception=_refuse, strftime_now=_today)
    return environment


def template(published: Published, *, immutable: bool = False) -> Template | None:
    """The template; ``None`` where its package is not installed."""
    return _template(published.source, published.squeezed, published.key, immutable)


@cache
def _template(source: str, squeezed: bool, key: str, immutable: bool) -> Template | None:
    package, _, file = source.partition(":")
    if package == "cohere_melody":
        found = importlib.util.find_spec(package) is not None
        return _Melody(getattr(importlib.import_module(package), file)) if found else None
    folder = _folder(package)
    if folder is None or not (folder / file).exists():
        return None
    text = (folder / file).read_text("utf-8")
    if file.endswith(".json"):
        editions = cast("list[dict[str, Any]]", json.loads(text))
        text = str(editions[-1]["chat_template"])
    if squeezed:
        text = re.sub(r"(?<=[%}]\}) +(?=\{[%{])", "", text)
    if key:
        text = text.replace('"arguments": ', f'"{key}": ')
    return _environment(immutable=immutable).from_string(text)


def _folder(package: str) -> Path | None:
    if package not in _FOLDERS:
        named = os.environ.get("ANTIPHON_TEMPLATES")
        return Path(named) if named else None
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / _FOLDERS[package]


def given(published: Published, conversation: Conversation) -> dict[str, Any]:
    """What a template is rendered with for a conversation."""
    n, ids = 0, dict[str, str]()
    messages: list[dict[str, Any]] = []
    for message in conversation.messages:
        row = _row(published, message)
        for call in row.get("tool_calls", ()):
            if published.ids:
                new = published.ids.format(name=call["function"]["name"], n=n)
                ids[call["id"]] = new
                call["id"] = new
                n += 1
        if row["role"] == "tool":
            row["tool_call_id"] = ids.get(row["tool_call_id"], row["tool_call_id"])
        messages.append(row)
    tools = [spec.to_openai() for spec in conversation.tools]
    values: dict[str, Any] = {"messages": messages, "tools": tools or None, **published.values}
    if published.tools_text and conversation.tools:
        values[published.tools_key] = published.tools_text(conversation.tools)
    if published.rows:
        published.rows(messages)
    if tools and published.tools_in_row:
        messages.insert(0, {"role": "system", "content": "", "tools": tools})
    return values


def _row(published: Published, message: Message) -> dict[str, Any]:
    row = cast("dict[str, Any]", message_to_row(message))
    row.pop("is_error", None)
    row["content"] = row.get("content") or ""
    if not published.names:
        row.pop("name", None)
    if "reasoning_content" in row:
        row[published.reasoning] = row.pop("reasoning_content")
    for call in row.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        if isinstance(arguments, str) and not published.text_arguments:
            call["function"]["arguments"] = json.loads(arguments)
        elif not isinstance(arguments, str) and published.text_arguments:
            call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False)
    return row


def digest(text: str) -> str:
    """What is recorded of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def compared(published: Published, conversation: Conversation) -> list[tuple[Conversation, bool]]:
    """What of a conversation is compared: all of it, and its prompt."""
    if not published.lists_tools:
        conversation = replace(conversation, tools=())
    prompts = [(prompt_of(conversation), True)] if published.prompts else []
    return [(conversation, False), *prompts]


def written_digests(published: Published) -> list[list[str]]:
    """What the template writes of our own conversations, in order; ``""`` where it refuses.

    Raises:
        LookupError: The template is not installed.
    """
    found = template(published)
    if found is None:
        raise LookupError(published.source)
    digests: list[list[str]] = []
    for conversation in own_conversations().values():
        digests.append([])
        for part, generate in compared(published, conversation):
            values = given(published, part)
            try:
                text = found.render(add_generation_prompt=generate, **values)
            except (jinja2.TemplateError, TypeError):
                digests[-1].append("")
            else:
                digests[-1].append(digest(text if generate else _closed(published, part, text)))
    return digests


def _closed(published: Published, conversation: Conversation, text: str) -> str:
    last = conversation.messages[-1]
    answered = last.role == "assistant" and not last.tool_calls
    return text.removesuffix(published.cut) + (published.end if answered else "")


RECORD = CASES / "published.json"


def main() -> int:
    """Record what the installed templates write; keep the record of the others."""
    known: dict[str, Any] = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    record: dict[str, list[list[str]]] = {}
    for name in sorted(PUBLISHED):
        try:
            record[name] = written_digests(PUBLISHED[name])
        except LookupError as missing:
            print(f"{name}: {missing.args[0]} is not installed")
            record |= {name: known["written"][name]} if name in known.get("written", {}) else {}
    cases = json.dumps({"cases": list(own_conversations())})
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in record.items())
    RECORD.write_text(f'{cases[:-1]},\n"written": {{\n{lines}\n}}}}\n', "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
