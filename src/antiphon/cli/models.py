"""``antiphon models``: which local models there are, what is here, and how to get and check the
rest."""

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from antiphon.cli._main import Subparsers
from antiphon.messages import JsonObject
from antiphon.models._catalog import CARDS, DEFAULT, Card, card_named
from antiphon.models._weights import (
    Progress,
    adapter_path,
    expected_sha256,
    fetch,
    find,
    models_dir,
    terminal_progress,
    verify,
)

_EPILOG = """\
example:
  antiphon models list
"""


def add_parser(subparsers: Subparsers) -> None:
    """Add the noun's parser."""
    parser = subparsers.add_parser(
        "models",
        help="which local models there are; fetch and verify them",
        description="Models that run in this process. 'local' alone is the embedded default.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser("list", help="all local models, and which are here")
    show = verbs.add_parser("show", help="the card of one model")
    check = verbs.add_parser("verify", help="compare files with their checksums")
    get = verbs.add_parser("fetch", help="fetch a model's file into the cache")
    show.add_argument("name", nargs="?", default="local", help="local, or local/<name>")
    check.add_argument("name", nargs="?", help="one model; all that are here by default")
    get.add_argument("name", nargs="?", default="local", help="local, or local/<name>")
    for verb in (listing, show, check, get):
        verb.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """List, show, verify or fetch.

    Raises:
        UsageError: No model has that name.
        ModelError: It cannot be had, or a file is damaged.
    """
    match args.verb:
        case "list":
            rows = [_row(card) for card in CARDS.values()]
            _print(args, _listing(rows), [row.to_json() for row in rows])
        case "show":
            row = _row(card_named(args.name))
            _print(args, _card_text(row), row.to_json())
        case "verify":
            return _verify(args)
        case _:
            card = card_named(args.name)
            path = asyncio.run(fetch(card, _report))
            _print(args, [str(path)], _row(card).to_json())
    return 0


@dataclass(frozen=True, slots=True)
class _Row:
    card: Card
    path: Path | None
    adapter: Path | None

    @property
    def spec(self) -> str:
        return "local" if self.card.name == DEFAULT else f"local/{self.card.name}"

    def to_json(self) -> JsonObject:
        card = self.card
        return {
            "spec": self.spec,
            "here": self.path is not None,
            "path": None if self.path is None else str(self.path),
            "file": card.file,
            "size": card.size_bytes,
            "sources": [source.location for source in card.sources],
            "sha256": expected_sha256(card, self.path or models_dir() / card.file) or None,
            "format": card.format,
            "variants": dict(card.variants),
            "n_ctx": card.n_ctx,
            "licence": card.licence,
            "about": card.about,
            "adapter": card.adapter or None,
            "adapter_here": self.adapter is not None,
        }


def _row(card: Card) -> _Row:
    return _Row(card, find(card), adapter_path(card))


def _listing(rows: list[_Row]) -> list[str]:
    width = max(len(row.spec) for row in rows)
    return [
        f"{row.spec:{width}}  {'here' if row.path else 'not here':8}  "
        f"{_size(row.card):>8}  {row.card.about}"
        for row in rows
    ]


def _card_text(row: _Row) -> list[str]:
    card = row.card
    checksum = expected_sha256(card, row.path or models_dir() / card.file)
    variants = "".join(f", {name}={value}" for name, value in card.variants)
    lines = [
        f"{row.spec}: {card.about}",
        f"file       {row.path or f'{card.file}, not here'} ({_size(card)})",
        f"checksum   {checksum or 'recorded at the first fetch'}",
        *(f"from       {source.location}" for source in card.sources),
        f"format     {card.format}{variants}",
        f"context    {card.n_ctx} tokens",
        f"licence    {card.licence}",
    ]
    if card.adapter:
        state = row.adapter or f"{card.adapter}, not in this package: it runs without"
        lines.append(f"adapter    {state}")
    if row.path is None:
        lines.append(f"get it with: antiphon models fetch {card.name}")
    return lines


def _verify(args: argparse.Namespace) -> int:
    cards = [card_named(args.name)] if args.name else [c for c in CARDS.values() if find(c)]
    rows: list[JsonObject] = []
    lines = [] if cards else ["no local model is here; get one with: antiphon models fetch"]
    for card in cards:
        path, checksum = verify(card)
        known = bool(expected_sha256(card, path))
        rows.append({"name": card.name, "path": str(path), "sha256": checksum, "checked": known})
        word = "ok" if known else "no checksum is known for this file:"
        lines.append(f"{card.name}  {word}  {checksum}  {path}")
    _print(args, lines, rows)
    return 0


def _size(card: Card) -> str:
    return (
        f"{card.size_bytes / 1e6:.0f} MB"
        if card.size_bytes < 1e9
        else f"{card.size_bytes / 1e9:.1f} GB"
    )


def _report(progress: Progress) -> None:
    if sys.stderr.isatty():
        terminal_progress(progress)
    elif not progress.done_bytes:
        print(progress.message, file=sys.stderr)


def _print(args: argparse.Namespace, lines: list[str], value: object) -> None:
    print(json.dumps(value, indent=2) if args.json else "\n".join(lines))
