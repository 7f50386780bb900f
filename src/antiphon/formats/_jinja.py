"""A chat template as transformers runs it: Jinja in a sandbox, with the same filters and globals.

It knows no family.  jinja2 is optional and loaded when a template is first compiled.
Source: transformers 5.24 ``utils/chat_template_utils.py`` (``render_jinja_template``).
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from antiphon.errors import DataError, MissingExtraError, clip

if TYPE_CHECKING:
    from jinja2 import Environment, Template


class Refused(Exception):
    """The template raised, by its own word or by a fault."""


def render(source: str, context: Mapping[str, Any], *, today: str = "") -> str:
    """A template's text.

    Args:
        source: The template.
        context: Its variables: ``messages``, ``tools``, ``add_generation_prompt`` and its tokens.
        today: The day that ``strftime_now`` tells, as ``2025-06-30``; the day of the call where
            empty.

    Raises:
        MissingExtraError: jinja2 is not installed.
        DataError: The text is no template.
        Refused: The template raised.
    """
    template = _compiled(source)
    now = datetime.fromisoformat(today) if today else None

    def strftime_now(format: str) -> str:
        return (now or datetime.now()).strftime(format)

    from jinja2 import TemplateError

    try:
        return template.render(**context, strftime_now=strftime_now)
    except TemplateError as error:
        raise Refused(str(error) or type(error).__name__) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


@lru_cache(maxsize=32)
def _compiled(source: str) -> "Template":
    from jinja2 import TemplateError

    try:
        return _environment().from_string(source)
    except TemplateError as error:
        raise DataError(f"the chat template is no Jinja: {clip(str(error))}") from error


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    try:
        from jinja2.exceptions import TemplateError
        from jinja2.ext import Extension, loopcontrols
        from jinja2.nodes import CallBlock, Node
        from jinja2.parser import Parser
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise MissingExtraError("a chat template", "templates") from error

    class Generation(Extension):
        """``{% generation %}`` marks what an assistant writes; it changes no text."""

        tags = {"generation"}

        def parse(self, parser: Parser) -> Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

        def _same(self, caller: Callable[[], str]) -> str:
            return caller()

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    cast("dict[str, Any]", environment.globals)["raise_exception"] = raise_exception
    return environment


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is, where Jinja's own filter escapes it for HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
