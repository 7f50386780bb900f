"""A model's spec as text: how it is taken apart.

    local   local/<name>   openai/<name>   anthropic/<name>   ollama/<name>
    http://host:port/v1#<name>   hf/<id or directory>   gguf/<file>   script/<file>

each optionally with ``?format=<family>&<variant>=<value>``; those behind an API also with
``?api=chat``, ``responses`` or ``anthropic`` for its dialect.  Nothing is opened here.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from antiphon.errors import UnknownNameError, UsageError, clip
from antiphon.messages import JsonObject, JsonValue

KINDS = ("local", "openai", "anthropic", "ollama", "hf", "gguf", "script")
_FORMS = (
    "local, local/<name>, openai/<name>, anthropic/<name>, ollama/<name>, "
    "http://host:port/v1#<name>, hf/<id or directory>, gguf/<file>, script/<file>"
)
_QUERY = re.compile(r"\?(?=[A-Za-z_]\w*=)([^?]*)$")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A spec, taken apart."""

    text: str
    """The spec as it was given."""
    kind: str
    """``http`` or one of `KINDS`."""
    name: str
    """The model's name, id, file or directory; empty for plain ``local``."""
    base_url: str = ""
    """For ``http``: where the API begins."""
    format: str = ""
    """The family that renders and parses, where one is asked for."""
    options: JsonObject = field(default_factory=dict[str, JsonValue])
    """Everything else after the question mark: variants of the format, settings of the engine."""


def parse_spec(text: str) -> ModelSpec:
    """Take a spec apart.

    Raises:
        UsageError: It has no such form.

    >>> parse_spec("http://localhost:8000/v1#qwen3?format=react_en").format
    'react_en'
    >>> parse_spec("gguf/model.gguf?n_ctx=2048").options
    {'n_ctx': 2048}
    """
    query = _QUERY.search(text)
    rest = text[: query.start()] if query else text
    options = _options(query[1], text) if query else {}
    format = options.pop("format", "")
    if not isinstance(format, str):
        raise UsageError(f"format must be a name, got {format!r} in {clip(text)}")
    if rest.startswith(("http://", "https://")):
        base_url, _, name = rest.partition("#")
        if not urlsplit(base_url).hostname:
            raise UsageError(f"no host in the address {clip(base_url)}")
        if not name:
            raise UsageError(
                f"the spec {clip(text)} does not name a model; write {base_url}#<name>"
            )
        return ModelSpec(text, "http", name, base_url, format, options)
    kind, slash, name = rest.partition("/")
    if kind not in KINDS:
        raise UnknownNameError(f"no model spec {clip(text)}; the forms are {_FORMS}")
    if not name and (kind != "local" or slash):
        raise UsageError(f"the spec {clip(text)} does not name a model; write {kind}/<name>")
    return ModelSpec(text, kind, name, "", format, options)


def _options(query: str, text: str) -> JsonObject:
    options: JsonObject = {}
    for item in query.split("&"):
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise UsageError(f"expected key=value after '?' in {clip(text)}, got {item!r}")
        options[key] = _value(value)
    return options


def _value(text: str) -> JsonValue:
    words: dict[str, JsonValue] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
