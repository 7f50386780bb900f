"""The rooms: which part of the package may import which."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import antiphon

ROOT = Path(antiphon.__file__).parent

OPEN_TO_ALL = {"errors", "messages"}
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "messages": set(),
    "events": set(),
    "formats": set(),
    "store": {"events"},
    "batch": {"events"},
    "retrieval": set(),
    "tools": {"retrieval"},
    "models": {"formats", "events"},  # ReplayModel answers from a Trajectory
    "memory": {"models", "retrieval", "store"},
    "agent": {"memory", "models", "tools", "events", "store"},
    "strategies": {"agent", "memory", "models", "tools", "events", "store"},
    "datasets": {"formats", "events"},
    "encode": {"formats"},
    "train": {"encode", "datasets", "formats", "events"},
    "viewer": {"events", "store"},
    "serve": {"agent", "models", "events", "store", "viewer"},
}
ACTING_ARM = {"retrieval", "tools", "models", "memory", "agent", "strategies"}
LEARNING_ARM = {"datasets", "encode", "train"}
BELOW["synthesis"] = set(BELOW) - {"viewer", "serve", "train"}
BELOW["evaluation"] = {
    "formats",
    "retrieval",
    "agent",
    "strategies",
    "datasets",
    "batch",
    "models",
    "tools",
    "viewer",
}
BELOW["verification"] = BELOW["synthesis"] | {"synthesis", "evaluation"}
BELOW["cli"] = set(BELOW)
BELOW["__main__"] = {"cli"}
"""What each room may import besides what is open to all."""


def _room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def _imported_rooms(module: ast.Module) -> Iterator[str]:
    """Every room that a module imports, wherever in the module it does."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "antiphon":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            head, _, rest = node.module.partition(".")
            if head == "antiphon":
                yield rest.partition(".")[0]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                head, _, rest = alias.name.partition(".")
                if head == "antiphon" and rest:
                    yield rest.partition(".")[0]


def _relative_imports(module: ast.Module) -> Iterator[int]:
    """The lines of a module that import by a relative name."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno


@pytest.mark.parametrize("room", sorted({*map(_room, _modules())}))
def test_a_module_imports_only_the_rooms_below_its_own(room: str) -> None:
    """And by absolute names."""
    assert room in BELOW, f"{room!r} is no room of the map; add it here and to ARCHITECTURE.md"
    allowed = BELOW[room] | OPEN_TO_ALL | {room}
    beyond: dict[str, set[str]] = {}
    relative: list[str] = []
    for path in (path for path in _modules() if _room(path) == room):
        name, module = str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))
        if more := set(_imported_rooms(module)) - allowed:
            beyond[name] = more
        relative += [f"{name}:{line}" for line in _relative_imports(module)]

    assert beyond == {}
    assert relative == []


def test_the_arms_never_touch() -> None:
    for room in ACTING_ARM:
        assert not BELOW[room] & LEARNING_ARM
    for room in LEARNING_ARM:
        assert not BELOW[room] & ACTING_ARM


def test_the_map_has_no_cycle() -> None:
    placed: set[str] = set()
    waiting = dict(BELOW)
    while waiting:
        ready = {room for room, below in waiting.items() if below <= placed}
        assert ready, f"these rooms import each other: {sorted(waiting)}"
        placed |= ready
        waiting = {room: below for room, below in waiting.items() if room not in ready}


def test_imports_are_found_wherever_they_stand() -> None:
    source = """
import antiphon.tools._schema
from antiphon import models
from antiphon.messages import Message
def late():
    from antiphon.formats._scan import scan
"""
    assert sorted(_imported_rooms(ast.parse(source))) == ["formats", "messages", "models", "tools"]
