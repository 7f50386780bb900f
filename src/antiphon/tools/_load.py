"""Tools named on a command line: ``package.module:name`` or ``path/to/file.py:name``.

This imports code, so the text must come from whoever starts the program, never from a model.
"""

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from antiphon.errors import UsageError
from antiphon.tools._tool import Tool, tool
from antiphon.tools._wrapped import is_wrappable, wrap_tool

_MISSING = object()


def load_tools(spec: str) -> list[Tool[..., Any]]:
    """Import the tools that a text names.

    Args:
        spec: ``MODULE:NAME``, where the name is a tool, a function, a class of arguments, or a list
            of those, with dots for what is inside; or ``MODULE`` alone for all tools in it.  The
            module may be a path that ends in ``.py``.

    Raises:
        UsageError: There is no such module or name, or the module does not import.
        ToolDefinitionError: A function cannot be described exactly.

    >>> [t.name for t in load_tools("antiphon.tools.builtin:get_weather")]
    ['get_weather']
    """
    module_name, _, name = _split(spec)
    module = _import(module_name, spec)
    if not name:
        values: list[Any] = list(vars(module).values())
        found = cast("list[Tool[..., Any]]", [v for v in values if isinstance(v, Tool)])
        if not found:
            raise UsageError(
                f"module {module_name!r} has no tools; decorate functions with @tool, "
                "or name one: MODULE:NAME"
            )
        return found
    return _as_tools(_attribute(module, name, spec), spec)


def _split(spec: str) -> tuple[str, str, str]:
    module, colon, name = spec.rpartition(":")
    if not colon or (os.name == "nt" and len(module) == 1):
        return spec, "", ""
    if not module or not name:
        raise UsageError(
            f"tools are named MODULE:NAME, got {spec!r}; "
            "for example antiphon.tools.builtin:get_weather"
        )
    return module, colon, name


def _import(name: str, spec: str) -> ModuleType:
    path = name.endswith(".py") or "/" in name or os.sep in name
    try:
        return _from_file(Path(name)) if path else _from_name(name)
    except UsageError:
        raise
    except BaseException as error:  # whatever the module's own code raises, SystemExit included
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UsageError(
            f"module {name!r} does not import: {type(error).__name__}: {_line(error)}"
        ) from error


def _from_name(name: str) -> ModuleType:
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise UsageError(
            f"no module named {name!r}; give MODULE:NAME of an installed module or of one in this "
            "folder, or path/to/file.py:NAME"
        ) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}; give path/to/file.py:NAME")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{str(path)!r} is no Python file; give path/to/file.py:NAME")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec.loader.exec_module(module)
    return module


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or "no further words"


def _attribute(module: ModuleType, name: str, spec: str) -> object:
    here: Any = module
    for part in name.split("."):
        inside = getattr(here, part, _MISSING)
        if inside is _MISSING:
            known = [n for n in dir(here) if not n.startswith("_")]
            near = difflib.get_close_matches(part, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{spec!r}: {module.__name__} has no {part!r}{hint}")
        here = inside
    return here


def _as_tools(value: object, spec: str) -> list[Tool[..., Any]]:
    if isinstance(value, Tool):
        return [cast("Tool[..., Any]", value)]
    if isinstance(value, list | tuple):
        items = cast("Iterable[object]", value)
        return [made for item in items for made in _as_tools(item, spec)]
    if is_wrappable(value):
        return [wrap_tool(value)]
    if callable(value) and not inspect.ismodule(value):
        return [tool(value)]
    raise UsageError(
        f"{spec!r} is {type(value).__name__}, not a tool; "
        "name a function, a Tool, or a list of them"
    )
