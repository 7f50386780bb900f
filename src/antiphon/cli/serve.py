"""`antiphon serve`: models behind HTTP, in the dialects that clients speak."""

import argparse
import asyncio
import inspect
import logging
import os
import sys
from pathlib import Path
from typing import Any, cast

from antiphon.cli._main import Subparsers
from antiphon.cli._tools import find_object
from antiphon.errors import DataError, UsageError, clip
from antiphon.serve import Runnable, Server, ServeSettings, read_settings
from antiphon.store import open_store

_EPILOG = """\
Settings come from --config FILE (TOML), then from ANTIPHON_SERVE_* in the environment, then from
the arguments. Without a key only this machine is served.

example:
  antiphon serve --model local
  antiphon serve --model 'http://127.0.0.1:8000/v1#Qwen/Qwen3-8B?format=qwen3' --port 8080
  antiphon serve --agent clerk.py:agent --store runs.db"""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon serve`."""
    parser = subparsers.add_parser(
        "serve",
        help="serve a model as an OpenAI-compatible endpoint",
        description="Serve models over HTTP: Chat Completions, Responses, Messages, Completions "
        "and Models, streamed or whole, with tools read and held by the family's own format; or an "
        "agent whose tools run here, with its runs, its events and people's consent.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model",
        metavar="SPEC",
        action="append",
        help="what answers: local (default), http://HOST:PORT/v1#NAME, gguf/FILE, ...; may "
        "be given more than once",
    )
    parser.add_argument(
        "--format", metavar="NAME", help="write and read calls as this family does, such as qwen3"
    )
    parser.add_argument(
        "--agent",
        metavar="MODULE:NAME",
        help="an Agent or a strategy, or a function that makes one: its tools run here; "
        "MODULE:NAME or path.py:NAME",
    )
    parser.add_argument(
        "--store", metavar="FILE", help="keep the agent's runs here; in memory without it"
    )
    parser.add_argument("--host", help="where to listen (default 127.0.0.1); others need a key")
    parser.add_argument("--port", type=int, help="the port (default 8321); 0 takes a free one")
    parser.add_argument(
        "--key-file", metavar="FILE", help="keys of which a client must have one, one a line"
    )
    parser.add_argument(
        "--alias",
        metavar="NAME",
        action="append",
        help="a further name of the first model; '*' answers for any name",
    )
    parser.add_argument("--config", metavar="FILE", help="settings, as TOML")
    parser.add_argument("--quiet", action="store_true", help="write no access log to stderr")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM.

    Raises:
        UsageError: The settings cannot be used, or the address cannot be had.
        DataError: A file cannot be read.
        ModelError: A model cannot be had.
    """
    agent = None if args.agent is None else _agent(args.agent)
    specs = args.model or ([] if agent is not None else ["local"])
    server = Server(
        [_spec(spec, args.format) for spec in specs],
        settings=_settings(args),
        agent=agent,
        store=open_store(args.store) if args.store else None,
    )
    _log_to_stderr(quiet=args.quiet)
    asyncio.run(_serve(server))
    return 0


async def _serve(server: Server) -> None:
    await server.run(lambda: print(f"{server.url}/v1  (Ctrl-C stops)", flush=True))


def _agent(name: str) -> Runnable:
    """The agent that MODULE:NAME stands for.

    Raises:
        UsageError: It is none.
    """
    if ":" not in name:
        raise UsageError(f"an agent is named MODULE:NAME or path.py:NAME, got {clip(name)}")
    found = find_object(name)
    if inspect.isfunction(found):
        found = found()
    if not all(hasattr(found, part) for part in ("name", "run", "resume")):
        raise UsageError(f"{name} is no Agent and no strategy, but {clip(found)}")
    return cast("Runnable", found)


def _spec(spec: str, format: str | None) -> str:
    if not format:
        return spec
    return f"{spec}{'&' if '?' in spec else '?'}format={format}"


def _settings(args: argparse.Namespace) -> ServeSettings:
    given: dict[str, Any] = {
        "host": args.host,
        "port": args.port,
        "aliases": None if args.alias is None else tuple(args.alias),
        "keys": None if args.key_file is None else _keys(Path(args.key_file)),
    }
    return read_settings(args.config, os.environ, given)


def _keys(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"keys cannot be read: {error}", path=path) from error
    keys = tuple(line.strip() for line in lines if line.strip())
    if not keys:
        raise UsageError(f"there is no key in {path}; write one a line")
    return keys


def _log_to_stderr(*, quiet: bool) -> None:
    """Lines of JSON for requests, plain lines for what goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("antiphon.serve")
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
