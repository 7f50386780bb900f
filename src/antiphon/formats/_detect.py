"""The Format of a tokenizer directory, told by its chat template.

A family is known by what its template writes: the one whose own text of a few conversations is the
template's, byte for byte, is it, in the variant that fits.  That takes jinja2.  Without it a family
is known by texts that its template must hold (`signs`) and by the model's own name.  A template of
no known family is wrapped as it is (`_template.py`).
"""

import importlib.util
import json
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, MissingExtraError, RenderError, UsageError, clip
from antiphon.formats._example import example_conversation
from antiphon.formats._kept import Kept, without_keeping
from antiphon.formats._names import family, find_by_model, list_formats
from antiphon.formats._template import TemplateFormat
from antiphon.formats._template_reader import variants_of
from antiphon.formats._types import Format
from antiphon.messages import Conversation, Message, ToolCall

_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")


def detect_format(directory: str | Path) -> Format:
    """The Format of a tokenizer directory: a known family, or its template itself.

    Args:
        directory: Holds ``tokenizer_config.json`` or ``chat_template.jinja``.

    Raises:
        DataError: There is no chat template, or it is no Jinja.
        MissingExtraError: The template is of no family that is known without running it, and jinja2
            is not installed.
        UsageError: The template does not even write what a user says.
    """
    path = Path(directory)
    config = _read(path / "tokenizer_config.json")
    template = _template(path, config)
    original = without_keeping(template)
    if original is not None:
        return Kept(_detected(path, config, original))
    return _detected(path, config, template)


def _detected(path: Path, config: dict[str, Any], template: str) -> Format:
    named = find_by_model(str(config.get("name_or_path") or path.name))
    signed = _by_signs(template)
    if importlib.util.find_spec("jinja2") is None:
        if named is not None and (not signed or named.name in [f.name for f in signed]):
            return named
        if not signed:
            raise MissingExtraError(f"the chat template in {clip(str(path))}", "templates")
        return signed[0]
    wrapped = _wrapped(path, config, template)
    first = tuple(dict.fromkeys(format for format in (named, *signed) if format is not None))
    try:
        found = _same_text(wrapped, first)
        if found is None and not wrapped.reads_like:
            found = _same_but_for_tools(wrapped, first)
    except UsageError:
        if not first:
            raise
        return first[0]
    if found is None and signed and not wrapped.reads_like:
        return signed[0]  # it writes no calls that could be read; a family does
    return found or wrapped


def wrapped_template(directory: str | Path) -> TemplateFormat:
    """The template of a tokenizer directory as a Format, whether a family is known or not.

    Raises:
        DataError: There is no chat template.
    """
    path = Path(directory)
    config = _read(path / "tokenizer_config.json")
    return _wrapped(path, config, _template(path, config))


def _by_signs(template: str) -> list[Format]:
    """Families whose signs a template holds, the one with the most of them first."""
    fitting: list[tuple[int, str]] = []
    for name in list_formats():
        signs = cast("tuple[str, ...]", getattr(family(name), "signs", ()))
        if signs and all(sign in template for sign in signs):
            fitting.append((sum(map(len, signs)), name))
    return [family(name) for _, name in sorted(fitting, reverse=True)]


@lru_cache(maxsize=64)
def _same_text(wrapped: TemplateFormat, first: tuple[Format, ...]) -> Format | None:
    """The family whose text of the probes is the template's; `first` are tried before others."""
    known = _Known(wrapped)
    others = [family(name) for name in list_formats()]
    tried: list[Format] = []
    for format in (*first, *others):
        for variant in variants_of(format):
            if variant not in tried and known.is_text_of(variant):
                return variant
            tried.append(variant)
    return None


def _same_but_for_tools(wrapped: TemplateFormat, first: tuple[Format, ...]) -> Format | None:
    """The family that a template without tools is of, where the family adds them to it."""
    known = _Known(wrapped)
    return next((f for f in first if known.is_text_of(f, tools=False)), None)


class _Known:
    """What a template writes of the probes, each run once and when it is first compared."""

    def __init__(self, wrapped: TemplateFormat) -> None:
        self._wrapped = wrapped
        self._texts: dict[int, str | None] = {}

    def is_text_of(self, format: Format, *, tools: bool = True) -> bool:
        """Whether a family writes all probes that both can express as the template does.

        Args:
            format: The family.
            tools: Whether to compare conversations with tools, too.
        """
        fmt = cast("Any", format)
        today = _iso(getattr(fmt, "date", "") or getattr(fmt, "now", ""))
        dated = replace(self._wrapped, today=today)
        n_same = 0
        for n, (conversation, generate) in enumerate(probes()):
            if conversation.tools and not tools:
                continue
            text = self._text(n, dated, conversation, generate)
            if text is None:
                continue
            try:
                own = format.render(conversation, generate=generate).text
            except RenderError:
                continue
            if own == text or own in [text + mark for mark in format.stop]:
                n_same += 1  # a template may leave the last turn open
            elif not _loses(conversation, text, own):
                return False
        return n_same >= _ENOUGH

    def _text(
        self, n: int, wrapped: TemplateFormat, conversation: Conversation, generate: bool
    ) -> str | None:
        key = n if not wrapped.today else hash((n, wrapped.today))
        if key not in self._texts:
            self._texts[key] = wrapped.plain_text(conversation, generate=generate)
        return self._texts[key]


_ENOUGH = 4


@cache
def probes() -> tuple[tuple[Conversation, bool], ...]:
    """Conversations that tell families apart, and whether each ends where the model writes."""
    example = example_conversation()
    tools = example.tools
    system, ask, call, result, answer = example.messages
    told = Message.assistant("It is 19 degrees.", reasoning="Nineteen is warm.")
    thinks = Message.assistant(reasoning="Look it up.", tool_calls=call.tool_calls)
    more = ToolCall("get_weather", {"city": "Quito", "hourly": True, "at": None}, id="call00001")
    two = Message.assistant("Both.", tool_calls=[*call.tool_calls, more])
    second = Message.tool("cold", call_id="call00001", name="get_weather")
    thanks = Message.user("Thank you.")
    return (
        (Conversation((ask,)), True),
        (Conversation((system, ask)), True),
        (Conversation((system, ask, answer, thanks)), True),
        (Conversation((ask,), tools), True),
        (Conversation((system, ask, call, result), tools), True),
        (Conversation((system, ask, call, result, answer), tools), False),
        (Conversation((ask, thinks, result, told), tools), False),
        (Conversation((ask, told, thanks), tools), True),
        (Conversation((ask, told, thanks)), True),
        (Conversation((ask, two, result, second, answer, thanks), tools), True),
    )


def _loses(conversation: Conversation, text: str, own: str) -> bool:
    """Whether a template does not write calls or reasoning at all, where a family does."""
    said = [message.reasoning for message in conversation.messages if message.reasoning]
    said += [call.name for message in conversation.messages for call in message.tool_calls]
    return any(text.count(word) < own.count(word) for word in said)


def _iso(date: str) -> str:
    """A day or a moment as families spell it, as ``2025-06-30`` or with the time behind."""
    from datetime import datetime

    for form in ("%Y-%m-%d", "%d %b %Y", "%d %B %Y", "%B %d, %Y"):
        try:
            return datetime.strptime(date, form).date().isoformat()
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(date[:19]).isoformat()
    except ValueError:
        return ""


def _wrapped(path: Path, config: dict[str, Any], template: str) -> TemplateFormat:
    """The template of a directory, with the tokens that its vocabulary has."""
    names = _read(path / "special_tokens_map.json") | config
    tokens = {key: _content(names.get(key)) for key in _TOKENS}
    added = cast("dict[str, Any]", config.get("added_tokens_decoder") or {}).values()
    listed = cast("list[Any]", _read(path / "tokenizer.json").get("added_tokens") or [])
    entries = [cast("dict[str, Any]", e) for e in (*added, *listed) if isinstance(e, dict)]
    control = {str(e["content"]) for e in entries if e.get("special")}
    control |= {text for text in tokens.values() if text}
    marks = {str(e["content"]) for e in entries} | control
    return TemplateFormat(
        template,
        str(path),
        tuple((key, text) for key, text in tokens.items() if text),
        frozenset(mark for mark in marks if mark.strip()),
        frozenset(mark for mark in control if mark.strip()),
    )


def _content(token: Any) -> str:
    """A token's text: it stands alone, or in an object with its settings."""
    if isinstance(token, dict):
        token = cast("dict[str, Any]", token).get("content")
    return token if isinstance(token, str) else ""


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        value: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"not JSON: {error}", path=file) from error
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _template(path: Path, config: dict[str, Any]) -> str:
    file = path / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template: Any = config.get("chat_template")
    if isinstance(template, str):
        return template
    if isinstance(template, list):
        named = {t.get("name"): t.get("template") for t in cast("list[dict[str, Any]]", template)}
        found = named.get("tool_use") or named.get("default")
        if isinstance(found, str):
            return found
    raise DataError("no chat_template.jinja, and no chat_template in its config", path=path)
