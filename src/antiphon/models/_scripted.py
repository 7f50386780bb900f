"""A model whose answers are written beforehand: for tests, examples and documentation.

It is a real `Model`: it streams, and text in a family's spelling goes through that Format's own
renderer and parser, so what follows it sees what a model's answer would show.  It samples nothing.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from antiphon.errors import DataError, ModelError, UsageError, clip
from antiphon.formats import Format, describe, get_format
from antiphon.messages import (
    Completion,
    Conversation,
    Message,
    Usage,
    message_from_row,
)
from antiphon.models._deltas import cut, deltas_of, natural_stop
from antiphon.models._model import Model, ModelOutput, ModelSettings

Answer: TypeAlias = str | Message | Completion | ModelError
"""What a script may say: text, a message, a whole completion, or an error to raise."""

AnswerFunction: TypeAlias = Callable[[Conversation], Answer]
"""Makes an answer from what the model is shown."""


class ScriptedModel:
    """Answers each request with the next line of a script."""

    def __init__(
        self,
        answers: Iterable[Answer | AnswerFunction] | AnswerFunction,
        *,
        format: Format | str | None = None,
        chunk_chars: int = 16,
        spec: str = "script",
    ) -> None:
        """Set up a script.

        Args:
            answers: One answer a request, in order; a callable is asked with the conversation. One
                callable in place of the list answers every request.
            format: The family whose text the strings are written in, or its name; without one a
                string is the answer's text as it is.
            chunk_chars: The longest text of one delta, in characters.
            spec: What `spec` says.

        Raises:
            UsageError: `chunk_chars` is not positive, the answers are one string, or no family
                has that name.
        """
        if chunk_chars < 1:
            raise UsageError(f"chunk_chars must be at least 1, got {chunk_chars}")
        if isinstance(answers, str):
            raise UsageError(
                f"a script is a list of answers, got the text {clip(answers)}; put it in brackets"
            )
        self._every = answers if callable(answers) else None
        self._answers = () if callable(answers) else tuple(answers)
        self._format = get_format(format) if isinstance(format, str) else format
        self._chunk_chars = chunk_chars
        self._spec = spec
        self.conversations: list[Conversation] = []
        """Every conversation that was asked with, in order."""
        self.settings: list[ModelSettings] = []
        """The settings of every request, in order."""

    @property
    def spec(self) -> str:
        """How the model was named."""
        return self._spec

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Say the next line of the script.

        Raises:
            ModelError: The script is over, or its line is this error.
        """
        started = perf_counter()
        answer = self._next(conversation)
        self.conversations.append(conversation)
        self.settings.append(settings or ModelSettings())
        if isinstance(answer, ModelError):
            raise answer
        if isinstance(answer, str) and self._format is not None:
            outputs = self._formatted(self._format, answer, conversation)
        elif isinstance(answer, Completion):
            outputs = self._whole(answer)
        else:
            message = Message.assistant(answer) if isinstance(answer, str) else answer
            outputs = self._whole(
                Completion(message, natural_stop(message), Usage(n_requests=1), self._spec)
            )
        first: float | None = None
        for output in outputs:
            if isinstance(output, Completion):
                output = _timed(output, first, perf_counter() - started)
            elif first is None:
                first = perf_counter() - started
            yield output

    async def close(self) -> None:
        """Nothing is held."""

    def _next(self, conversation: Conversation) -> Answer:
        if self._every is not None:
            return self._every(conversation)
        n = len(self.conversations)
        if n >= len(self._answers):
            last = conversation.messages[-1].text if conversation.messages else ""
            raise ModelError(
                f"the script has {len(self._answers)} answers and was asked for one more; "
                f"the last message was {clip(last)}"
            )
        answer = self._answers[n]
        return answer(conversation) if callable(answer) else answer

    def _whole(self, completion: Completion) -> Iterable[ModelOutput]:
        yield from deltas_of(completion.message, self._chunk_chars)
        yield completion

    def _formatted(
        self, format: Format, text: str, conversation: Conversation
    ) -> Iterable[ModelOutput]:
        prompt = format.render(conversation, generate=True)
        parser = format.parser(tools=conversation.tools, start=prompt.start)
        for piece in cut(text, self._chunk_chars):
            yield from parser.feed(piece)
        yield from parser.finish()
        yield Completion(
            parser.message,
            natural_stop(parser.message),
            Usage(n_requests=1),
            self._spec,
            format=describe(format),
            prompt=prompt.text,
            text=text,
        )


def _timed(completion: Completion, first: float | None, duration: float) -> Completion:
    if completion.duration is not None:
        return completion
    return replace(completion, time_to_first_token=first, duration=duration)


def read_script(path: Path | str) -> list[Answer]:
    """Read the answers of a script file.

    Args:
        path: JSON (a list, or an object with ``messages`` or ``answers``) or JSONL (one answer a
            line). An answer is a string or an assistant message as a row; messages of other roles
            are what the answers were said to, and are passed over.

    Raises:
        DataError: The file cannot be read, or an entry is no answer.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DataError(f"cannot read the script: {reason}", path=path) from error
    answers = [_answer(row, path, line) for row, line in _rows(text, path)]
    return [answer for answer in answers if answer is not None]


def _rows(text: str, path: Path | str) -> list[tuple[Any, int | None]]:
    try:
        whole: Any = json.loads(text)
    except json.JSONDecodeError:
        return [
            (_json_line(line, path, n), n)
            for n, line in enumerate(text.splitlines(), start=1)
            if line.strip()
        ]
    if isinstance(whole, dict):
        row = cast("dict[str, Any]", whole)
        whole = row.get("answers", row.get("messages", [row]))
    if isinstance(whole, list):
        return [(row, None) for row in cast("list[Any]", whole)]
    return [(whole, None)]


def _json_line(line: str, path: Path | str, n: int) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {clip(line)} ({error.msg})", path=path, line=n) from error


def _answer(row: Any, path: Path | str, line: int | None) -> Answer | None:
    if isinstance(row, str):
        return row
    if not isinstance(row, dict):
        raise DataError(
            f"an answer is a string or an assistant message, got {clip(row)}", path=path, line=line
        )
    fields = cast("dict[str, Any]", row)
    try:
        message = message_from_row({"role": "assistant"} | fields)
    except DataError as error:
        raise DataError(str(error), path=path, line=line) from error
    return message if message.role == "assistant" else None


if TYPE_CHECKING:
    _model: Model = ScriptedModel([])
