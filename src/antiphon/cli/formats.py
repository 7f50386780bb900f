"""`antiphon formats`: list, show, render, parse and detect the text of model families."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from antiphon.cli._main import Subparsers
from antiphon.errors import DataError, RenderError, UsageError
from antiphon.formats import (
    Format,
    Rendered,
    describe,
    detect_format,
    example_conversation,
    get_format,
    list_formats,
)
from antiphon.messages import (
    Conversation,
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolSpec,
    conversation_from_row,
    message_to_row,
)

_EPILOG = """\
example:
  antiphon formats show qwen3"""
_COLOURS = {"frame": "\x1b[2m", "given": "", "written": "\x1b[32m"}


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon formats`."""
    parser = subparsers.add_parser(
        "formats",
        help="list, show, render and parse the text of model families",
        description="How each model family writes a conversation with tools, and reads it back.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="every family: what it can express, models, variants")
    listed.add_argument("--json", action="store_true", help="one JSON object a family")
    show = verbs.add_parser("show", help="the literal text of an example, the marks coloured")
    show.add_argument("name", metavar="NAME", help="a family, an alias or a model id")
    render = verbs.add_parser("render", help="the text of conversations (JSONL rows)")
    render.add_argument("file", metavar="FILE", help="rows of messages and tools; - reads stdin")
    render.add_argument("--generate", action="store_true", help="end where the model writes next")
    read = verbs.add_parser("parse", help="what a model wrote, as one message")
    read.add_argument("file", metavar="FILE", help="the text; - reads stdin")
    read.add_argument("--tools", metavar="FILE", help="JSON list of tool specs, for their types")
    read.add_argument("--start", choices=("content", "reasoning"), default="content")
    read.add_argument("--strict", action="store_true", help="mend nothing")
    for verb in (render, read):
        verb.add_argument("--format", required=True, metavar="NAME", help="the family")
    for verb in (show, render, read):
        verb.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="a variant of the family",
        )
    detect = verbs.add_parser("detect", help="the family of a tokenizer directory")
    detect.add_argument("directory", metavar="DIR")


def run(args: argparse.Namespace) -> int:
    """Do one verb.

    Raises:
        UsageError: No family has that name or variant.
        DataError: A file cannot be read.
        RenderError: The family cannot express a conversation.
    """
    match args.verb:
        case "list":
            return _list(as_json=args.json)
        case "show":
            _write(_format(args.name, args.set).render(example_conversation()))
        case "render":
            fmt = _format(args.format, args.set)
            for conversation in _conversations(args.file):
                _write(fmt.render(conversation, generate=args.generate))
        case "parse":
            fmt = _format(args.format, args.set)
            message = fmt.parse(
                _text(args.file), tools=_tools(args.tools), start=args.start, strict=args.strict
            )
            sys.stdout.write(json.dumps(message_to_row(message), ensure_ascii=False) + "\n")
            return 1 if message.invalid_tool_calls else 0
        case _:
            fmt = detect_format(args.directory)
            sys.stdout.write((getattr(fmt, "summary", "") or describe(fmt)) + "\n")
    return 0


def _list(*, as_json: bool) -> int:
    for name in list_formats():
        fmt: Any = get_format(name)
        variants = [f.name for f in fields(fmt) if f.init]
        can = _abilities(fmt)
        row = {
            "name": name,
            "variants": variants,
            "models": list(fmt.models),
            "aliases": sorted(fmt.aliases),
            "prefix_stable": fmt.prefix_stable,
            "can": can,
        }
        if as_json:
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
            continue
        if name == list_formats()[0]:
            sys.stdout.write(f"{'':20} {'  '.join(can)}  models; variants\n")
        marks = "  ".join(f"{'yes' if able else '-':{len(what)}}" for what, able in can.items())
        models = ", ".join(fmt.models) or "any model"
        told = f"; {', '.join(variants)}" if variants else ""
        sys.stdout.write(f"{name:20} {marks}  {models}{told}\n")
    return 0


def _abilities(fmt: Format) -> dict[str, bool]:
    """What a family can express in its default variant, by trying."""
    plain = example_conversation()
    system, user, asks, result, answer = plain.messages
    (call,) = asks.tool_calls
    again = replace(call, id="call00001")
    said: dict[str, tuple[int, tuple[Message, ...]]] = {
        "system": (0, (system, user, answer)),
        "text beside calls": (1, (user, replace(asks, parts=(TextPart("I look."),)), result)),
        "several calls": (
            1,
            (
                user,
                replace(asks, tool_calls=(call, again)),
                result,
                replace(result, tool_call_id=again.id),
            ),
        ),
        "reasoning": (1, (user, replace(answer, parts=(ThinkingPart("Hm."), *answer.parts)))),
        "images": (0, (Message.user((TextPart("See "), ImagePart("a.png"))), answer)),
    }
    can = {
        what: _is_written(fmt, Conversation(messages, plain.tools), index)
        for what, (index, messages) in said.items()
    }
    return {**can, "stable prefixes": bool(cast("Any", fmt).prefix_stable)}


def _is_written(fmt: Format, conversation: Conversation, index: int) -> bool:
    """Whether a message of a conversation is written, and all of it."""
    try:
        return index not in fmt.render(conversation).changed
    except RenderError:
        return False


def _format(name: str, settings: list[str]) -> Format:
    variants: dict[str, Any] = {}
    for setting in settings:
        key, found, value = setting.partition("=")
        if not found:
            raise UsageError(f"a variant is KEY=VALUE, got {setting!r}")
        try:
            variants[key] = json.loads(value)
        except json.JSONDecodeError:
            variants[key] = value
    return get_format(name, **variants)


def _write(rendered: Rendered) -> None:
    if not sys.stdout.isatty():
        sys.stdout.write(rendered.text)
        return
    for piece in rendered.pieces:
        colour = "\x1b[36m" if piece.special else _COLOURS[piece.author]
        sys.stdout.write(f"{colour}{piece.text}\x1b[0m")
    sys.stdout.write("\n")


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise DataError(f"cannot be read: {reason.lower()}", path=file) from error


def _conversations(file: str) -> Iterator[Conversation]:
    for number, line in enumerate(_text(file).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
            yield conversation_from_row(row)
        except (json.JSONDecodeError, AttributeError) as error:
            raise DataError(f"not a row of JSON: {error}", path=file, line=number) from error


def _tools(file: str | None) -> list[ToolSpec]:
    if file is None:
        return []
    try:
        specs: Any = json.loads(_text(file))
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error}", path=file) from error
    if not isinstance(specs, list):
        raise DataError("tools are a JSON list of specs", path=file)
    return [ToolSpec.from_openai(spec) for spec in cast("list[Any]", specs)]
