"""Writes the generated tables of the documents: ``make docs``; with ``--check`` only compares.

A table stands between two marks of a page, ``<!-- table: NAME -->`` and ``<!-- end -->``.
"""

import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import format_pages
from antiphon.formats import get_format, list_formats

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent != format_pages.FOLDER),
]
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def formats() -> str:
    """Each family: how it writes, the models it is for, its variants."""
    rows = ["| format | writes | models | variants |", "| --- | --- | --- | --- |"]
    for name in list_formats():
        module = importlib.import_module(f"antiphon.formats.{name}")
        paragraph = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
        sentence = paragraph.partition(". ")[0]
        writes = sentence.partition(": ")[2] if ": " in sentence else sentence
        fmt = cast("Any", get_format(name))
        models = ", ".join(f"`{model}`" for model in getattr(fmt, "models", ()))
        variants = ", ".join(f"`{field.name}`" for field in fields(fmt))
        rows.append(f"| `{name}` | {_prose(writes)} | {models} | {variants} |")
    return "\n".join(rows) + "\n"


def _prose(text: str) -> str:
    """Text for a table's cell: markup in it becomes code."""
    marked = re.sub(r"``(.*?)``|<[^<>\s]+>", lambda mark: f"`{mark[1] or mark[0]}`", text)
    return marked.replace("|", "\\|").rstrip(".")


def serving() -> str:
    """Each family that models are known of: what a spec ends in, and what may follow."""
    rows = ["| models | format | variants |", "| --- | --- | --- |"]
    for name in list_formats():
        fmt = cast("Any", get_format(name))
        models = ", ".join(f"`{model}`" for model in getattr(fmt, "models", ()))
        if models:
            variants = ", ".join(
                f"`{f.name}={getattr(fmt, f.name)}`" for f in fields(fmt) if f.init
            )
            rows.append(f"| {models} | `?format={name}` | {variants} |")
    return "\n".join(rows) + "\n"


TABLES: dict[str, Callable[[], str]] = {"formats": formats, "serving": serving}


def written(page: str) -> str:
    """A page with its tables as they are now."""
    return _TABLE.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], page)


def main(argv: list[str]) -> int:
    """Write the tables, or with ``--check`` say which pages are behind; 1 when one is."""
    behind: list[Path] = []
    for path in PAGES:
        page = path.read_text("utf-8")
        new = written(page)
        if new != page:
            behind.append(path)
            if "--check" not in argv:
                path.write_text(new, "utf-8")
    for path, new in format_pages.pages().items():
        if not path.exists() or path.read_text("utf-8") != new:
            behind.append(path)
            if "--check" not in argv:
                path.parent.mkdir(exist_ok=True)
                path.write_text(new, "utf-8")
    for path in behind:
        print(f"{path.relative_to(ROOT)}: {'behind' if '--check' in argv else 'written'}")
    return int(bool(behind) and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
