"""`antiphon tools`: what a model sees of a function, how well it is described, what it answers."""

import argparse
import asyncio
import json
import sys
from typing import Any

from antiphon.cli._main import Subparsers
from antiphon.errors import UsageError
from antiphon.messages import ToolSpec
from antiphon.tools import Tool, check_tools, load_tools, serve_mcp

_EPILOG = """\
example:
  antiphon tools call antiphon.tools.builtin:get_weather '{"city": "Lima"}'"""
_DIALECTS = ("openai", "openai-strict", "anthropic", "gemini", "mcp")


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon tools`."""
    parser = subparsers.add_parser(
        "tools",
        help="show the schema that a model sees of a function, and check it",
        description="Show the schema that a model sees of a function, check how well it is "
        "described, call it as a model would, or serve it to programs that speak MCP.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    named = "MODULE:NAME, FILE.py:NAME, or MODULE for all of its tools"
    show = verbs.add_parser("show", help="the schema that a model sees")
    show.add_argument("tools", nargs="+", metavar="MODULE:NAME", help=named)
    show.add_argument("--as", dest="dialect", choices=_DIALECTS, default="openai")
    check = verbs.add_parser("check", help="missing descriptions, vague types, clashing names")
    check.add_argument("tools", nargs="+", metavar="MODULE:NAME", help=named)
    check.add_argument("--json", action="store_true", help="one JSON object a finding")
    serve = verbs.add_parser("serve", help="offer tools as an MCP server over stdio")
    serve.add_argument("tools", nargs="+", metavar="MODULE:NAME", help=named)
    call = verbs.add_parser("call", help="call a tool with a model's JSON")
    call.add_argument("tool", metavar="MODULE:NAME")
    call.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help="- reads stdin")
    call.add_argument("--json", action="store_true", help="the whole result as JSON")


def run(args: argparse.Namespace) -> int:
    """Do one verb.

    Returns:
        0; 1 where `check` found something or the called tool answered with an error.

    Raises:
        UsageError: A module does not import, or has no such tool.
    """
    if args.verb == "show":
        for one in _load(args.tools):
            sys.stdout.write(
                json.dumps(_shown(one.spec, args.dialect), ensure_ascii=False, indent=2)
            )
            sys.stdout.write("\n")
        return 0
    if args.verb == "serve":
        asyncio.run(serve_mcp(_load(args.tools)))
        return 0
    if args.verb == "check":
        return _check(_load(args.tools), as_json=args.json)
    return _call(_load([args.tool]), args.arguments, as_json=args.json)


def _load(specs: list[str]) -> list[Tool[..., Any]]:
    return [one for spec in specs for one in load_tools(spec)]


def _shown(spec: ToolSpec, dialect: str) -> dict[str, Any]:
    if dialect == "openai-strict":
        problem = spec.strict_problem()
        if problem:
            raise UsageError(f"tool {spec.name!r} cannot be said in strict mode: {problem}")
        return spec.to_openai(strict=True)
    if dialect == "anthropic":
        return spec.to_anthropic()
    if dialect == "gemini":
        return spec.to_gemini()
    return spec.to_mcp() if dialect == "mcp" else spec.to_openai()


def _check(tools: list[Tool[..., Any]], *, as_json: bool) -> int:
    found = check_tools(tools)
    for finding in found:
        fields = {f: getattr(finding, f) for f in ("where", "tool", "parameter", "message")}
        sys.stdout.write(
            (json.dumps(fields, ensure_ascii=False) if as_json else str(finding)) + "\n"
        )
    print(f"{len(tools)} tools, {len(found)} findings", file=sys.stderr)
    return 1 if found else 0


def _call(tools: list[Tool[..., Any]], arguments: str, *, as_json: bool) -> int:
    if len(tools) != 1:
        raise UsageError(f"call takes one tool, got {len(tools)}; name it: MODULE:NAME")
    text = sys.stdin.read() if arguments == "-" else arguments
    result = asyncio.run(tools[0].call(text))
    if as_json:
        row = {
            "name": result.name,
            "text": result.text,
            "is_error": result.is_error,
            "repairs": list(result.repairs),
        }
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(result.text + "\n")
        for repair in result.repairs:
            print(f"mended: {repair}", file=sys.stderr)
    return 1 if result.is_error else 0
