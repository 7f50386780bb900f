"""What every model shares that continues text with a Format of ours: prompt, grammar, parser,
record."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from antiphon.formats import Format, Grammar, Rendered, StreamParser, describe
from antiphon.messages import (
    Completion,
    Conversation,
    Delta,
    InvalidToolCall,
    JsonObject,
    Message,
    StopReason,
    TokenLogprob,
    ToolCall,
    Usage,
    dump_json,
)
from antiphon.models._deltas import natural_stop
from antiphon.models._dialect import sampling_of
from antiphon.models._model import ModelSettings
from antiphon.models._wire import new_call_id

CUT = "the answer was cut at the token limit before the call was finished; the call was not run"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request as text."""

    format: Format
    """The family."""
    conversation: Conversation
    """What is shown; without tools where none may be called."""
    rendered: Rendered
    """Its text, up to where the model writes."""
    settings: ModelSettings
    """How it is sampled."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end the completion."""
        return tuple(dict.fromkeys((*self.format.stop, *self.settings.stop)))

    @property
    def is_held(self) -> bool:
        """Whether decoding is to be held to a grammar: it is wanted, and there is something to
        call or the answer may not be any text."""
        wanted = self.conversation.tools or self._answer
        return self.settings.constrain is not False and bool(wanted)

    def grammar(self) -> Grammar | None:
        """What decoding is to be held to, if it is."""
        if not self.is_held:
            return None
        return self.format.grammar(
            self.conversation.tools,
            choice=self.settings.tool_choice,
            parallel=self.settings.parallel_tool_calls,
            start=self.rendered.start,
            answer=self._answer,
        )

    @property
    def _answer(self) -> "JsonObject | str | None":
        return self.settings.response_schema or self.settings.response_pattern


def tokens_under_grammar(model: object, settings: ModelSettings) -> int | None:
    """How long an answer may be that is held to a grammar of ours; ``None`` where none is held.

    Args:
        model: Any model; those that are held say how long their answers are by default.
        settings: How it is asked.
    """
    default: int | None = getattr(model, "default_max_tokens", None)
    if default is None or settings.constrain is False:
        return None
    return settings.max_tokens or default


def marks_of(grammar: Grammar) -> frozenset[str]:
    """The marks in a grammar that are single tokens in the family's own vocabulary."""
    return getattr(grammar, "specials", frozenset[str]())


def prompt_of(format: Format, conversation: Conversation, settings: ModelSettings) -> Prompt:
    """Render a conversation for completion.

    Raises:
        RenderError: The family cannot express it.
    """
    if settings.tool_choice == "none" and conversation.tools:
        conversation = replace(conversation, tools=())
    return Prompt(format, conversation, format.render(conversation, generate=True), settings)


class FormatReader:
    """Reads one completion's text through the format's parser."""

    def __init__(self, prompt: Prompt, model: str) -> None:
        self.prompt = prompt
        self._model = model
        self._parser: StreamParser = prompt.format.parser(
            tools=prompt.conversation.tools, start=prompt.rendered.start
        )
        self._texts: list[str] = []

    def feed(self, text: str) -> Iterable[Delta]:
        """Take more text."""
        if not text:
            return ()
        self._texts.append(text)
        return self._parser.feed(text)

    def finish(
        self,
        stop: StopReason,
        usage: Usage,
        *,
        prompt_ids: tuple[int, ...] | None = None,
        tokens: tuple[TokenLogprob, ...] | None = None,
    ) -> tuple[Iterable[Delta], Completion]:
        """What was held back, and the answer.

        Args:
            stop: ``stop``, or why the answer was cut; the calls of a cut answer are invalid.
            usage: What it cost.
            prompt_ids: The tokens of the prompt, where known.
            tokens: The sampled tokens, where known.
        """
        rest = self._parser.finish()
        message = _with_ids(self._parser.message)
        if stop != "stop":
            message = _cut(message)
        return rest, Completion(
            message,
            natural_stop(message) if stop == "stop" else stop,
            usage,
            self._model,
            format=describe(self.prompt.format),
            prompt=self.prompt.rendered.text,
            text="".join(self._texts),
            prompt_ids=prompt_ids,
            tokens=tokens,
            sampling=sampling_of(self.prompt.settings),
        )


def _with_ids(message: Message) -> Message:
    """Calls of families without ids get one, so that results can be told apart."""
    if all(call.id for call in (*message.tool_calls, *message.invalid_tool_calls)):
        return message
    return replace(
        message,
        tool_calls=tuple(replace(c, id=c.id or new_call_id()) for c in message.tool_calls),
        invalid_tool_calls=tuple(
            replace(c, id=c.id or new_call_id()) for c in message.invalid_tool_calls
        ),
    )


def _cut(message: Message) -> Message:
    if not message.tool_calls:
        return message
    return replace(
        message,
        tool_calls=(),
        invalid_tool_calls=(*map(_invalid, message.tool_calls), *message.invalid_tool_calls),
    )


def _invalid(call: ToolCall) -> InvalidToolCall:
    return InvalidToolCall(call.raw or dump_json(call.arguments), CUT, call.name, call.id)
