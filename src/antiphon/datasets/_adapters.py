"""The shapes in which others publish calls, each with what it cannot hold.

An adapter says whether a row is of its shape and reads it; the first that recognises a row reads
it, and the unified shape is the last.  Sources: the data sets' cards and the converters of
LLaMA-Factory, ms-swift and xLAM, as described in design §5.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.datasets._call_text import (
    CallText,
    read_functions,
    read_python_calls,
    read_react,
    read_tagged,
)
from antiphon.datasets._literal import parse_literal, parse_object
from antiphon.datasets._schemas import list_after, objects_in, spec_from, spec_from_flat
from antiphon.datasets._turns import join_turns, tie_results
from antiphon.datasets._unified import read_tools, read_unified
from antiphon.errors import DataError, UnknownNameError, clip
from antiphon.messages import (
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolSpec,
    dump_json,
)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One published shape of rows."""

    name: str
    """How it is asked for."""
    detect: Callable[[Row], bool]
    """Whether a row has the shape."""
    read: Callable[[Row], Conversation]
    """Reads a row of the shape."""
    loses: tuple[str, ...] = ()
    """What the shape does not hold, of what a conversation can."""


def adapter_of(row: Row) -> Adapter:
    """The adapter that reads a row."""
    return next(adapter for adapter in ADAPTERS if adapter.detect(row))


def adapter_named(name: str) -> Adapter:
    """An adapter by name.

    Raises:
        UnknownNameError: There is none.
    """
    for adapter in ADAPTERS:
        if adapter.name == name:
            return adapter
    known = ", ".join(adapter.name for adapter in ADAPTERS)
    raise UnknownNameError(f"no dataset shape named {clip(name)}; known: {known}")


# ---- helpers ----------------------------------------------------------------------------------


def _objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none where there is no list."""
    if not isinstance(value, list):
        return []
    items = cast("list[object]", value)
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _values(row: Row) -> list[tuple[str, str]]:
    """Who speaks and what is said, of a list of ``from`` and ``value``."""
    entries = _objects(row.get("conversations"))
    return [(str(e.get("from", "")), str(e.get("value") or "")) for e in entries]


def _says(row: Row, who: tuple[str, ...], what: str) -> bool:
    return any(speaker in who and what in value for speaker, value in _values(row))


def _assistant(read: CallText) -> Message:
    thinking = (ThinkingPart(read.thought),) if read.thought else ()
    text = (TextPart(read.text),) if read.text else ()
    return Message("assistant", (*thinking, *text), tool_calls=read.calls)


def _tool(content: Any, name: str = "") -> Message:
    text = content if isinstance(content, str) else dump_json(content)
    return Message.tool(text, name=name)


def _conversation(
    messages: list[Message], tools: tuple[ToolSpec, ...], metadata: Mapping[str, Any]
) -> Conversation:
    tied = tie_results(join_turns(messages))
    return Conversation(tied, tools, cast("JsonObject", dict(metadata)))


def _beside(row: Row, *used: str) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in used}


# ---- shapes -----------------------------------------------------------------------------------

_TOOLS = re.compile(r"<tools>\s*([\[{].*?)\s*</tools>", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)


def _is_hermes(row: Row) -> bool:
    return _says(row, ("gpt", "assistant"), "<tool_call>") or _says(row, ("system",), "<tools>")


def _read_hermes(row: Row) -> Conversation:
    messages: list[Message] = []
    metadata = _beside(row, "conversations", "tools")
    tools = read_tools(row.get("tools"))
    for who, value in _values(row):
        if who == "system":
            match = _TOOLS.search(value)
            if match and not tools:
                tools = tuple(spec_from(item) for _, _, item in objects_in(match[1]))
            if match:
                metadata["system_text"] = value
            else:
                messages.append(Message.system(value))
        elif who in ("gpt", "assistant"):
            messages.append(_assistant(read_tagged(value)))
        elif who == "tool":
            messages += [_hermes_result(text) for text in _RESPONSE.findall(value) or [value]]
        else:
            messages.append(Message.user(value))
    return _conversation(messages, tools, metadata)


def _hermes_result(text: str) -> Message:
    try:
        value = parse_literal(text, "a tool result")
    except DataError:
        return _tool(text)
    if isinstance(value, dict) and {"name", "content"} <= value.keys():
        return _tool(value["content"], name=str(value["name"]))
    return _tool(text)


_GLAIVE_TURN = re.compile(r"^(USER|ASSISTANT|FUNCTION RESPONSE):", re.MULTILINE)
_GLAIVE_CALL = re.compile(
    r"""\{\s*"name":\s*"(?P<name>[^"]+)"(?:,\s*"arguments":\s*(?P<arguments>.*))?\}\s*$""",
    re.DOTALL,
)


def _read_glaive(row: Row) -> Conversation:
    system = str(row.get("system") or "").removeprefix("SYSTEM:").strip()
    found = list(objects_in(system))
    prose = system[: found[0][0]].strip() if found else system
    messages = [Message.system(prose)] if prose else []
    chat = str(row["chat"])
    parts = _GLAIVE_TURN.split(chat)
    for who, text in zip(parts[1::2], parts[2::2], strict=True):
        said = text.replace("<|endoftext|>", "").strip()
        if who == "USER":
            messages.append(Message.user(said))
        elif who == "ASSISTANT":
            messages.append(_assistant(_glaive_answer(said)))
        else:
            messages.append(_tool(said))
    tools = tuple(spec_from(item) for _, _, item in found)
    return _conversation(messages, tools, _beside(row, "system", "chat"))


def _glaive_answer(said: str) -> CallText:
    before, mark, call = said.partition("<functioncall>")
    if not mark:
        return CallText(said)
    match = _GLAIVE_CALL.match(call.strip())
    if match is None:
        raise DataError(f"a function call must be an object with a name, got {clip(call)}")
    given = (match["arguments"] or "{}").strip()
    if given.startswith("'") and given.endswith("'"):
        given = given[1:-1].replace("\\'", "'")
    arguments = parse_object(given, f"arguments of call {match['name']!r}")
    return CallText(before.strip(), (ToolCall(match["name"], arguments, raw=mark + call),))


def _read_xlam(row: Row) -> Conversation:
    tools = parse_literal(row["tools"], "tools") if isinstance(row["tools"], str) else row["tools"]
    answers: Any = row["answers"]
    calls = parse_literal(answers, "answers") if isinstance(answers, str) else answers
    made = [
        ToolCall(str(call["name"]), parse_object(call.get("arguments") or {}, "arguments"))
        for call in cast("list[dict[str, Any]]", calls)
    ]
    messages = [Message.user(str(row["query"])), Message.assistant(tool_calls=made)]
    specs = tuple(spec_from_flat(tool) for tool in cast("list[dict[str, Any]]", tools))
    return _conversation(messages, specs, _beside(row, "query", "answers", "tools"))


_TOOLACE = "list of functions in JSON format that you can invoke"


def _is_toolace(row: Row) -> bool:
    return _TOOLACE in str(row.get("system") or "") and bool(_values(row))


def _read_toolace(row: Row) -> Conversation:
    system = str(row["system"])
    tools = tuple(spec_from(item) for item in list_after(system, _TOOLACE))
    messages: list[Message] = []
    for who, value in _values(row):
        if who == "assistant":
            messages.append(_assistant(read_python_calls(value)))
        elif who == "tool":
            messages += _toolace_results(value)
        else:
            messages.append(Message.user(value))
    metadata = _beside(row, "system", "conversations") | {"system_text": system}
    return _conversation(messages, tools, metadata)


def _toolace_results(value: str) -> list[Message]:
    try:
        results = parse_literal(value, "tool results")
    except DataError:
        return [_tool(value)]
    items = results if isinstance(results, list) else [results]
    if not all(isinstance(item, dict) and "results" in item for item in items):
        return [_tool(value)]
    named = cast("list[dict[str, Any]]", items)
    return [_tool(item["results"], name=str(item.get("name", ""))) for item in named]


_TOOLBENCH = "access to the following APIs:"


def _is_toolbench(row: Row) -> bool:
    return _says(row, ("system",), _TOOLBENCH)


def _read_toolbench(row: Row) -> Conversation:
    metadata = _beside(row, "conversations")
    tools: tuple[ToolSpec, ...] = ()
    messages: list[Message] = []
    for who, value in _values(row):
        if who == "system":
            tools = tuple(spec_from(item) for item in list_after(value, _TOOLBENCH))
            metadata["system_text"] = value
        elif who == "assistant":
            messages.append(_toolbench_step(read_react(value), metadata))
        elif who == "function":
            messages.append(_tool(value))
        else:
            messages.append(Message.user(value.strip().removesuffix("Begin!").strip()))
    return _conversation(messages, tools, metadata)


def _toolbench_step(read: CallText, metadata: dict[str, Any]) -> Message:
    if not read.calls or read.calls[0].name != "Finish":
        return _assistant(read)
    given = read.calls[0].arguments
    beside: JsonObject = {"thought": read.thought, "finish": given}
    if given.get("return_type") == "give_answer":
        text = str(given.get("final_answer", ""))
    else:
        text = read.thought
        metadata["outcome"] = {"status": "failed", "reason": str(given.get("return_type", ""))}
    return replace(Message.assistant(text), metadata=beside)


def _is_toolbench_raw(row: Row) -> bool:
    answer: Any = row.get("answer_generation")
    return isinstance(answer, Mapping) and "train_messages" in answer


def _read_toolbench_raw(row: Row) -> Conversation:
    answer = cast("dict[str, Any]", row["answer_generation"])
    steps = cast("list[list[Any]]", answer["train_messages"])
    if not steps:
        raise DataError("'train_messages' is empty; there is no trajectory in this row")
    kept = {k: v for k, v in answer.items() if k not in ("train_messages", "function")}
    conversation = read_unified({"messages": steps[-1]})
    tools = tuple(spec_from(item) for item in answer.get("function") or ())
    metadata = _beside(row, "answer_generation") | {"answer_generation": kept}
    return replace(conversation, tools=tools, metadata=metadata)


def _is_nemotron(row: Row) -> bool:
    return "reasoning" in row and "messages" in row and "metadata" in row and "tools" not in row


def _read_nemotron(row: Row) -> Conversation:
    conversation = read_unified(_beside(row, "metadata"))
    given: Any = row["metadata"]
    beside = parse_object(given, "metadata") if given else {}
    metadata = {**conversation.metadata, "metadata": _beside(beside, "tools")}
    if row["reasoning"] in ("on", "off"):
        metadata["chat_template_kwargs"] = {"enable_thinking": row["reasoning"] == "on"}
    return replace(
        conversation,
        tools=read_tools(beside.get("tools")),
        metadata=cast("JsonObject", metadata),
    )


_OBSERVATION = "OBSERVATION:\n"


def _is_swe_smith(row: Row) -> bool:
    messages = _objects(row.get("messages"))
    return (
        "instance_id" in row
        and any("<function=" in str(m.get("content")) for m in messages)
        and not any(m.get("tool_calls") for m in messages)
    )


def _read_swe_smith(row: Row) -> Conversation:
    conversation = read_unified(row)
    messages: list[Message] = []
    for message in conversation.messages:
        if message.role == "assistant":
            messages.append(replace(_assistant(read_functions(message.text)), loss=message.loss))
        elif message.role == "user" and message.text.startswith(_OBSERVATION):
            messages.append(_tool(message.text.removeprefix(_OBSERVATION)))
        else:
            messages.append(message)
    return _conversation(messages, conversation.tools, conversation.metadata)


def _is_nebius(row: Row) -> bool:
    steps = _objects(row.get("trajectory"))
    return any(step.get("role") == "ai" and "text" in step for step in steps)


def _read_nebius(row: Row) -> Conversation:
    messages: list[Message] = []
    for step in cast("list[dict[str, Any]]", row["trajectory"]):
        text = str(step.get("text") or "")
        if step["role"] == "system":
            message = Message.system(str(step.get("system_prompt") or text))
        elif step["role"] == "ai":
            message = replace(Message.assistant(text), loss=0.0 if step.get("mask") else 1.0)
        else:
            message = Message.user(text)
        dated = {"cutoff_date": step["cutoff_date"]} if step.get("cutoff_date") else {}
        messages.append(replace(message, metadata=cast("JsonObject", dated)))
    return _conversation(messages, (), _beside(row, "trajectory"))


def _is_agentinstruct(row: Row) -> bool:
    entries = _objects(row.get("conversations"))
    return bool(entries) and all(entry.keys() == {"from", "loss", "value"} for entry in entries)


def _read_bfcl(row: Row) -> Conversation:
    turns = cast("list[list[dict[str, Any]]]", row["question"])
    messages = list(read_unified({"messages": [m for turn in turns for m in turn]}).messages)
    calls = [
        ToolCall(
            name, {k: v[0] for k, v in cast("dict[str, list[Any]]", given).items() if "" not in v}
        )
        for item in cast("list[dict[str, Any]]", row.get("ground_truth") or [])
        for name, given in item.items()
    ]
    if calls:
        messages.append(Message.assistant(tool_calls=calls))
    tools = tuple(spec_from(item) for item in cast("list[Row]", row["function"]))
    return _conversation(messages, tools, _beside(row, "question", "function"))


def _read_api_bank(row: Row) -> Conversation:
    messages: list[Message] = []
    for line in cast("list[dict[str, Any]]", row["lines"]):
        if line["role"] == "API":
            result: Any = line.get("result") or {}
            made = ToolCall(str(line["api_name"]), line.get("param_dict") or {})
            messages.append(Message.assistant(tool_calls=[made]))
            known = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
            failure = known.get("exception")
            answer = _tool(failure or known.get("output", result))
            messages.append(replace(answer, is_error=bool(failure)))
        elif line["role"] == "AI":
            messages.append(Message.assistant(str(line.get("text") or "")))
        else:
            messages.append(Message.user(str(line.get("text") or "")))
    return _conversation(messages, (), _beside(row, "lines"))


def _read_nodes(row: Row) -> Conversation:
    """One branch of a verifiers trace: the ids are what was sampled."""
    nodes = cast("list[dict[str, Any]]", row["nodes"])
    entries: list[dict[str, Any]] = []
    ids: list[int] = []
    weights: list[float] = []
    logprobs: list[float] = []
    for node in nodes:
        entry = dict(node["message"])
        own = [int(i) for i in node.get("token_ids") or ()]
        mask = [bool(m) for m in node.get("mask") or [False] * len(own)]
        if own and all(mask):
            entry["token_ids"] = own
        entries.append(entry)
        streams = cast("dict[str, list[float]]", node.get("loss_weights") or {})
        given = streams.get("sft") or [float(m) for m in mask]
        ids += own
        weights += [w if m else 0.0 for w, m in zip(given, mask, strict=True)]
        known = cast("list[float]", node.get("logprobs") or [0.0] * len(own))
        logprobs += known
    conversation = read_unified({"messages": entries, "tools": row.get("tools")})
    metadata: dict[str, JsonValue] = {
        **_beside(row, "nodes", "tools"),
        "input_ids": list[JsonValue](ids),
        "weights": list[JsonValue](weights),
        "logprobs": list[JsonValue](logprobs),
    }
    return replace(conversation, metadata=metadata)


def _read_art(row: Row) -> Conversation:
    entries: list[dict[str, Any]] = []
    for item in cast("list[dict[str, Any]]", row["messages_and_choices"]):
        if "message" in item:
            entry = {**item["message"], "loss": True}
            if item.get("finish_reason") == "length":
                entry["stop_reason"] = "length"
            entries.append(entry)
        else:
            entries.append({**item, "loss": False} if item.get("role") == "assistant" else item)
    rest = _beside(row, "messages_and_choices")
    return read_unified({"messages": entries, **rest})


def _is_dolci(row: Row) -> bool:
    return any({"function_calls", "functions"} & m.keys() for m in _objects(row.get("messages")))


def _read_dolci(row: Row) -> Conversation:
    messages: list[Message] = []
    tools: tuple[ToolSpec, ...] = ()
    for entry in cast("list[dict[str, Any]]", row["messages"]):
        rest = {k: v for k, v in entry.items() if k not in ("functions", "function_calls")}
        if entry.get("functions"):
            found = objects_in(str(entry["functions"]))
            tools = (*tools, *(spec_from(item) for _, _, item in found))
        (message,) = read_unified({"messages": [rest]}, report=lambda problem: None).messages
        if entry.get("function_calls"):
            calls = read_python_calls(str(entry["function_calls"]).replace("\n", ", ")).calls
            message = replace(message, tool_calls=calls)
        messages.append(message)
    return _conversation(messages, tools, _beside(row, "messages"))


def _has(*keys: str) -> Callable[[Row], bool]:
    return lambda row: all(row.get(key) is not None for key in keys)


_PROSE = ("the exact system text", "call ids")

ADAPTERS = (
    Adapter("hermes-fc-v1", _is_hermes, _read_hermes, _PROSE),
    Adapter("toolace", _is_toolace, _read_toolace, _PROSE),
    Adapter("toolbench-sft", _is_toolbench, _read_toolbench, _PROSE),
    Adapter("toolbench", _is_toolbench_raw, _read_toolbench_raw, ("call ids",)),
    Adapter("glaive-v2", _has("chat"), _read_glaive, ("call ids",)),
    Adapter(
        "xlam-60k",
        _has("query", "answers", "tools"),
        _read_xlam,
        ("results", "final answer", "call ids"),
    ),
    Adapter("nemotron", _is_nemotron, _read_nemotron),
    Adapter("swe-smith-xml", _is_swe_smith, _read_swe_smith, ("tool schemas", "call ids")),
    Adapter(
        "nebius-swe-agent",
        _is_nebius,
        _read_nebius,
        ("tool schemas", "which user turns are observations"),
    ),
    Adapter(
        "agentinstruct",
        _is_agentinstruct,
        read_unified,
        ("tool schemas", "calls", "which user turns are observations"),
    ),
    Adapter("bfcl", _has("question", "function"), _read_bfcl, ("results", "call ids")),
    Adapter("api-bank", _has("lines"), _read_api_bank, ("tool schemas", "call ids")),
    Adapter("verifiers", _has("nodes"), _read_nodes),
    Adapter("art", _has("messages_and_choices"), _read_art),
    Adapter("dolci", _is_dolci, _read_dolci, ("call ids",)),
    Adapter("unified", lambda row: True, read_unified),
)
"""All shapes, the more telling first; the last reads OpenAI, TRL, ms-swift, ShareGPT and kin."""
