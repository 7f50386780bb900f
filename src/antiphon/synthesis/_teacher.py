"""A teacher that needs no model: it does what a task's script says, on what the tools answer.

It is asked like any model and is shown the conversation.  Where it stands in the script it works
out from what was said, so that a run that goes on after a kill goes on rightly.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from antiphon.messages import Conversation, JsonValue, Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.synthesis._catalog import placeholders
from antiphon.synthesis._draw import fill, join_words, spoken
from antiphon.synthesis._task import Saying, ScriptTurn, Task, resolved, result_value

_SORRY = (
    "Sorry, that did not work: {reason}.",
    "I could not do that: {reason}.",
    "The tool failed: {reason}. Please try again later.",
)
_NOT_FOUND = "I could not find what is needed to go on: {result}"
_DONE = "I now know the final answer."


def rule_teacher(task: Task) -> ScriptedModel:
    """A model that does a task by its script.

    Args:
        task: A task that a rule wrote.
    """
    return ScriptedModel(lambda conversation: next_message(task, conversation), spec="rules")


def next_message(task: Task, conversation: Conversation) -> Message:
    """What the teacher says next."""
    messages = conversation.messages
    users = [i for i, m in enumerate(messages) if m.role == "user"]
    turn = task.script[min(len(users), len(task.script)) - 1]
    progress = _progress(turn, messages[users[-1] + 1 :])
    message = _next(task, turn, progress)
    if not task.thoughts:
        return message
    names = [call.name for call in message.tool_calls]
    thought = f"I should use {join_words(names)}." if names else _DONE
    return Message.assistant(message.text, reasoning=thought, tool_calls=message.tool_calls)


@dataclass(slots=True)
class _Progress:
    """What of a turn is done."""

    results: list[list[JsonValue]] = field(default_factory=list[list[JsonValue]])
    """The values of the steps that are done."""
    calls: list[tuple[ToolCall, ...]] = field(default_factory=list[tuple[ToolCall, ...]])
    """Their calls."""
    n_failed: int = 0
    """How often the next step has failed."""
    failure: str = ""
    """What it said."""


def _progress(turn: ScriptTurn, said: Sequence[Message]) -> _Progress:
    progress = _Progress()
    for index, message in enumerate(said):
        if not message.tool_calls:
            continue
        answers = list(takewhile(lambda m: m.role == "tool", said[index + 1 :]))
        failed = [m.text for m in answers if m.is_error]
        if failed:
            progress.n_failed += 1
            progress.failure = failed[0]
        else:
            progress.n_failed = 0
            progress.results.append([result_value(m.text) for m in answers])
            progress.calls.append(message.tool_calls)
    return progress


def _next(task: Task, turn: ScriptTurn, progress: _Progress) -> Message:
    n = len(progress.results)
    if progress.n_failed >= turn.tries:
        sorry = _SORRY[task.seed % len(_SORRY)]
        return Message.assistant(sorry.format(reason=_reason(progress.failure)))
    if n == len(turn.steps):
        return Message.assistant(" ".join(_say(task, one, progress) for one in turn.sayings))
    calls: list[ToolCall] = []
    for call in turn.steps[n]:
        arguments = resolved(call.arguments, progress.results)
        if arguments is None:
            found = spoken(progress.results[-1][0])
            return Message.assistant(_NOT_FOUND.format(result=found))
        calls.append(ToolCall(call.name, arguments))
    return Message.assistant(tool_calls=calls)


def _reason(text: str) -> str:
    """The first sentence of what a tool said, without what it tells the model to do."""
    first = re.split(r"[;\n]", text.removeprefix("Error: "), maxsplit=1)[0]
    return first.strip().rstrip(".")


def _say(task: Task, saying: Saying, progress: _Progress) -> str:
    values = dict(saying.said)
    if saying.step >= 0:
        values |= _values(task, saying, progress)
    usable = [text for text in saying.templates if placeholders(text) <= values.keys()]
    return fill(usable[0], values) if usable else values.get("result", "")


def _values(task: Task, saying: Saying, progress: _Progress) -> dict[str, str]:
    """What a sentence may name: arguments by their keys, the result, and its fields."""
    result = progress.results[saying.step][saying.call]
    call = progress.calls[saying.step][saying.call]
    offered = next((o for o in task.tools if o.name == call.name), None)
    names = offered.names if offered else {}
    values = {
        key: spoken(call.arguments[name]) for key, name in names.items() if name in call.arguments
    }
    values |= saying.said  # how the user said it goes before how the call has it
    values["result"] = spoken(result)
    if isinstance(result, dict):
        values |= {f"result.{key}": spoken(value) for key, value in result.items()}
    return values
