"""Conversations as rows of published data sets, the shapes that `_adapters.py` reads.

Such a shape holds less than a conversation.  What a row lost is not listed by hand: the row is read
again by its adapter and held against what it was made from, so that nothing is lost without its
name.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

from antiphon.datasets._adapters import adapter_named
from antiphon.datasets._schemas import PYTHON_WORDS
from antiphon.errors import DataError
from antiphon.messages import (
    AudioPart,
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    ToolCall,
    ToolSpec,
    VideoPart,
    dump_json,
)

Maker = Callable[[Conversation], JsonObject]


def publisher(name: str, make: Maker) -> Callable[[Conversation], tuple[JsonObject, list[str]]]:
    """What writes a shape: the row, and the names of what it lost.

    Args:
        name: The adapter that reads the shape.
        make: Makes the row, without what stands beside the messages.
    """

    def write(conversation: Conversation) -> tuple[JsonObject, list[str]]:
        derived = _DERIVED.get(name, ())
        beside = {k: v for k, v in conversation.metadata.items() if k not in derived}
        row = beside | make(conversation)
        try:
            read = adapter_named(name).read(cast("dict[str, Any]", json.loads(dump_json(row))))
        except DataError as error:
            return row, [f"a form that can be read again ({error})"]
        return row, list(lost(conversation, read))

    return write


def lost(before: Conversation, after: Conversation) -> Iterator[str]:
    """The names of what a conversation held and what was read again does not."""
    ours, theirs = _spoken(before), _spoken(after)
    if [m.role for m in ours] != [m.role for m in theirs]:
        yield "messages"
    for name, read in _FIELDS.items():
        held, found = ([*filter(None, map(read, side))] for side in (ours, theirs))
        # Reasoning that is read as text is text that nobody said; ids may be made up.
        if held != found and (held or name == "text"):
            yield name
    if len(before.messages) - len(ours) > len(after.messages) - len(theirs):
        yield "the system message"
    if [t.to_openai() for t in before.tools] != [t.to_openai() for t in after.tools]:
        yield "tool schemas"
    if any(after.metadata.get(key) != value for key, value in before.metadata.items()):
        yield "metadata"


_FIELDS: dict[str, Callable[[Message], object]] = {
    "text": lambda m: m.text.strip(),
    "reasoning": lambda m: m.reasoning.strip(),
    "images": lambda m: m.images,
    "audio": lambda m: [p for p in m.media if isinstance(p, AudioPart)],
    "video": lambda m: [p for p in m.media if isinstance(p, VideoPart)],
    "calls": lambda m: [(c.name, c.arguments) for c in m.tool_calls],
    "call ids": lambda m: [*filter(None, [m.tool_call_id, *(c.id for c in m.tool_calls)])],
    "names of results": lambda m: m.name,
    "is_error": lambda m: m.is_error,
    "invalid calls": lambda m: m.invalid_tool_calls,
    "loss": lambda m: [] if m.loss is None else [m.loss],
    "metadata of a message": lambda m: dict(m.metadata),
}
"""What a message may hold; false where it holds none of it."""


# ---- shapes -----------------------------------------------------------------------------------


def _system(conversation: Conversation) -> str:
    first = conversation.messages[:1]
    return first[0].text if first and first[0].role == "system" else ""


def _spoken(conversation: Conversation) -> tuple[Message, ...]:
    """The messages without a first system message."""
    messages = conversation.messages
    return messages[1:] if messages and messages[0].role == "system" else messages


def _said(message: Message) -> str:
    """Text with its reasoning, in the tags that most data sets write it in."""
    thought = f"<think>\n{message.reasoning}\n</think>\n\n" if message.reasoning else ""
    return thought + message.text


def _functions(tools: Sequence[ToolSpec]) -> list[JsonValue]:
    return [cast("JsonValue", tool.to_openai()["function"]) for tool in tools]


def _one_by_one(messages: Sequence[Message]) -> Iterator[Message]:
    """Messages with one call each: of several made at once, each stands before its own result."""
    results: dict[str, Message] = {m.tool_call_id: m for m in messages if m.role == "tool"}
    used: set[str] = set()
    for message in messages:
        if message.role == "tool" and message.tool_call_id in used:
            continue
        if len(message.tool_calls) < 2:
            yield message
            continue
        for n, call in enumerate(message.tool_calls):
            beside = message if n == 0 else Message.assistant()
            yield replace(beside, tool_calls=(call,))
            if call.id in results:
                used.add(call.id)
                yield results[call.id]


def _turn(who: str, value: str) -> JsonObject:
    return {"from": who, "value": value}


def hermes(conversation: Conversation) -> JsonObject:
    """Hermes function-calling v1."""
    system = _system(conversation)
    entries: list[JsonValue] = [_turn("system", system)] if system else []
    if conversation.tools:
        tools = [cast("JsonValue", tool.to_openai()) for tool in conversation.tools]
        prose = conversation.metadata.get("system_text")
        entries.append(_turn("system", str(prose or _HERMES.format(dump_json(tools)))))
    for message in _spoken(conversation):
        if message.role == "tool":
            given = dump_json({"name": message.name, "content": message.text})
            value = f"<tool_response>\n{given}\n</tool_response>"
            entries.append(_turn("tool", value))
        elif message.role == "assistant":
            calls = map(_hermes_call, message.tool_calls)
            entries.append(_turn("gpt", "\n".join([*filter(None, [_said(message)]), *calls])))
        else:
            entries.append(_turn("human", message.text))
    return {"conversations": entries}


def _hermes_call(call: ToolCall) -> str:
    made: JsonObject = {"arguments": call.arguments, "name": call.name}
    return f"<tool_call>\n{dump_json(made)}\n</tool_call>"


_HERMES = (
    "You are a function calling AI model. You are provided with function signatures within "
    "<tools></tools> XML tags.\n<tools>\n{}\n</tools>\nFor each function call return a JSON object "
    "with function name and arguments within <tool_call></tool_call> tags."
)


def glaive(conversation: Conversation) -> JsonObject:
    """Glaive v2: one call a message, written as text."""
    functions = [
        json.dumps(f, ensure_ascii=False, indent=4) for f in _functions(conversation.tools)
    ]
    system = "\n".join(["SYSTEM: " + _system(conversation), *functions])
    parts: list[str] = []
    for message in _one_by_one(_spoken(conversation)):
        if message.role == "tool":
            parts.append(f"FUNCTION RESPONSE: {message.text}")
        elif message.role == "assistant":
            calls = "".join(map(_glaive_call, message.tool_calls))
            said = " ".join(filter(None, [_said(message), calls]))
            parts.append(f"ASSISTANT: {said} <|endoftext|>")
        else:
            parts.append(f"USER: {message.text}")
    return {"system": system, "chat": "\n\n\n".join(parts) + "\n\n\n"}


def _glaive_call(call: ToolCall) -> str:
    arguments = dump_json(call.arguments).replace("'", "\\'")
    return f'<functioncall> {{"name": {dump_json(call.name)}, "arguments": \'{arguments}\'}}'


def xlam(conversation: Conversation) -> JsonObject:
    """xLAM-60k: a question and the calls that answer it."""
    question = next((m.text for m in conversation.messages if m.role == "user"), "")
    first = next((m for m in conversation.messages if m.tool_calls), Message.assistant())
    calls: list[JsonValue] = [{"name": c.name, "arguments": c.arguments} for c in first.tool_calls]
    tools: list[JsonValue] = [_flat(tool) for tool in conversation.tools]
    return {"query": question, "answers": dump_json(calls), "tools": dump_json(tools)}


def _flat(tool: ToolSpec) -> JsonObject:
    """A spec with a flat map of parameters in Python's words; its schema where it says more."""
    schema = tool.parameters
    required = cast("list[str]", schema.get("required") or [])
    flat: dict[str, Any] = {}
    for name, given in cast("dict[str, Any]", schema.get("properties") or {}).items():
        word = PYTHON_WORDS.get(str(given.get("type")))
        if word is None or given.keys() - {"type", "description", "default"}:
            return cast("JsonObject", tool.to_openai()["function"])
        is_free = name in required or "default" in given
        flat[name] = {**given, "type": word if is_free else f"{word}, optional"}
    if schema.keys() - {"type", "properties", "required"}:
        return cast("JsonObject", tool.to_openai()["function"])
    return {"name": tool.name, "description": tool.description, "parameters": flat}


def toolace(conversation: Conversation) -> JsonObject:
    """ToolACE: calls in Python's form, results in a list."""
    tools = dump_json(_functions(conversation.tools))
    prose = conversation.metadata.get("system_text")
    system = str(prose or f"{_system(conversation)}\n{_TOOLACE.format(tools)}".strip())
    entries: list[JsonValue] = []
    for role, group in groupby(_spoken(conversation), key=lambda m: m.role):
        messages = list(group)
        if role == "tool":
            results: list[JsonValue] = [{"name": m.name, "results": m.text} for m in messages]
            entries.append(_turn("tool", dump_json(results)))
        else:
            entries += [_turn(role, _toolace_said(m)) for m in messages]
    return {"system": system, "conversations": entries}


_TOOLACE = (
    "You are given a question and a set of possible functions. Here is a list of functions in "
    "JSON format that you can invoke:\n{}. \nShould you decide to return the function call(s), "
    "put it in the format of [func1(params_name=params_value, params_name2=params_value2...), "
    "func2(params)]"
)


def _toolace_said(message: Message) -> str:
    if not message.tool_calls:
        return _said(message)
    calls = [
        f"{c.name}({', '.join(f'{k}={dump_json(v)}' for k, v in c.arguments.items())})"
        for c in message.tool_calls
    ]
    return f"[{', '.join(calls)}]"


def toolbench(conversation: Conversation) -> JsonObject:
    """ToolBench's trajectories for fine-tuning: ReAct's lines, and an answer is a call too."""
    tools = dump_json(_functions(conversation.tools))
    prose = conversation.metadata.get("system_text")
    system = str(prose or f"{_system(conversation)}\n{_TOOLBENCH.format(tools)}".strip())
    entries: list[JsonValue] = [_turn("system", system)]
    for message in _one_by_one(_spoken(conversation)):
        if message.role == "tool":
            entries.append(_turn("function", message.text))
        elif message.role == "assistant":
            entries.append(_turn("assistant", _toolbench_said(message)))
        else:
            entries.append(_turn("user", f"\n{message.text}\nBegin!\n"))
    return {"conversations": entries}


_TOOLBENCH = (
    "You can use many tools(functions) to do the following task. Specifically, you have access to "
    "the following APIs: {}\n"
)


def _toolbench_said(message: Message) -> str:
    known = message.metadata.get("thought")
    thought = message.reasoning or (message.text if message.tool_calls else str(known or ""))
    answer: JsonObject = {"return_type": "give_answer", "final_answer": message.text}
    call = message.tool_calls[0] if message.tool_calls else ToolCall("Finish", answer)
    written = dump_json(call.arguments)
    return f"\nThought: {thought}\nAction: {call.name}\nAction Input: {written}"


def agentinstruct(conversation: Conversation) -> JsonObject:
    """AgentInstruct: text alone, and whether each answer is trained."""
    system = _system(conversation)
    entries: list[JsonValue] = [_turn("system", system) | {"loss": None}] if system else []
    for message in _spoken(conversation):
        who = "gpt" if message.role == "assistant" else "human"
        loss = bool(message.loss) if message.loss in (0.0, 1.0) else None
        entries.append({"from": who, "loss": loss, "value": _said(message)})
    return {"conversations": entries}


def nemotron(conversation: Conversation) -> JsonObject:
    """Nemotron's post-training rows: results in the order of their calls, tools in the metadata."""
    beside = conversation.metadata
    asked = beside.get("chat_template_kwargs")
    reasons = any(message.reasoning for message in conversation.messages)
    if isinstance(asked, dict) and "enable_thinking" in asked:
        reasons = bool(asked["enable_thinking"])
    kept = beside.get("metadata")
    tools = [cast("JsonValue", tool.to_openai()) for tool in conversation.tools]
    metadata: JsonObject = {"tools": tools} if tools else {}
    metadata |= kept if isinstance(kept, dict) else {}
    return {
        "reasoning": beside.get("reasoning", "on" if reasons else "off"),
        "messages": [_nemotron_entry(message) for message in conversation.messages],
        "metadata": dump_json(metadata),
    }


def _nemotron_entry(message: Message) -> JsonValue:
    calls: list[JsonValue] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": dump_json(call.arguments)},
        }
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": _said(message), "tool_calls": calls}


def swe_smith(conversation: Conversation) -> JsonObject:
    """SWE-smith's trajectories: calls in SWE-agent's XML, results as a user's turns."""
    entries: list[JsonValue] = []
    for message in conversation.messages:
        if message.role == "tool":
            entries.append({"role": "user", "content": f"OBSERVATION:\n{message.text}"})
            continue
        calls = map(_swe_call, message.tool_calls)
        said = "\n".join([*filter(None, [_said(message)]), *calls])
        entries.append({"role": message.role, "content": said})
    return {"messages": entries}


def _swe_call(call: ToolCall) -> str:
    given = "".join(
        f"<parameter={key}>{value if isinstance(value, str) else dump_json(value)}</parameter>\n"
        for key, value in call.arguments.items()
    )
    return f"<function={call.name}>\n{given}</function>"


def nebius(conversation: Conversation) -> JsonObject:
    """Nebius' SWE-agent trajectories: text alone, and which answers are masked."""
    steps: list[JsonValue] = []
    for message in conversation.messages:
        is_system = message.role == "system"
        text = _said(message)
        steps.append(
            {
                "role": {"system": "system", "assistant": "ai"}.get(message.role, "user"),
                "system_prompt": text if is_system else None,
                "text": None if is_system else text,
                "mask": message.role == "assistant" and message.loss == 0,
                "cutoff_date": message.metadata.get("cutoff_date"),
            }
        )
    return {"trajectory": steps}


_DERIVED = {"nemotron": ("chat_template_kwargs",)}
"""What reading a shape makes of what stands elsewhere in it, and no row of it holds."""

PUBLISHED: dict[str, Maker] = {
    "hermes-fc-v1": hermes,
    "glaive-v2": glaive,
    "xlam-60k": xlam,
    "toolace": toolace,
    "toolbench-sft": toolbench,
    "agentinstruct": agentinstruct,
    "nemotron": nemotron,
    "swe-smith-xml": swe_smith,
    "nebius-swe-agent": nebius,
}
"""The shapes that are written here, by the names of their adapters."""
