"""Tools named on the command line: ``MODULE:NAME``, ``MODULE``, ``path.py:NAME`` or ``path.py``."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from antiphon.errors import ToolDefinitionError, UsageError, clip
from antiphon.tools import Tool, tool


def find_tools(names: Iterable[str]) -> list[Tool[..., Any]]:
    """The tools that names stand for, in order, each once.

    Args:
        names: As the command line takes them. A name may stand for one function or tool, or for a
            list of them; a module alone for every tool in it, or, if it has none, for every public
            function that it defines.

    Raises:
        UsageError: A module cannot be imported, or there is no such tool in it.
    """
    found: dict[str, Tool[..., Any]] = {}
    for name in names:
        for item in _named(name):
            found.setdefault(item.name, item)
    return list(found.values())


def find_object(spec: str) -> object:
    """What ``MODULE:NAME`` or ``path.py:NAME`` stands for.

    Raises:
        UsageError: The module cannot be imported, or has no such name.
    """
    place, _, name = spec.rpartition(":")
    module = _module(place)
    value: object = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            known = ", ".join(_public(module)) or "nothing public"
            raise UsageError(f"{place!r} has no {name!r}; it has: {known}") from error
    return value


def _named(spec: str) -> list[Tool[..., Any]]:
    if ":" not in spec or _is_drive(spec):
        return _all_of(_module(spec), spec)
    value = find_object(spec)
    items = cast("list[object]", list(value)) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]
    return [_tool(item, spec) for item in items]


def _is_drive(spec: str) -> bool:
    """Whether the only colon is that of a Windows drive."""
    return spec.count(":") == 1 and spec[1:3] in (":\\", ":/")


def _module(place: str) -> ModuleType:
    if not place:
        raise UsageError(
            "a tool is named MODULE:NAME, MODULE or path.py:NAME; the module is missing"
        )
    if place.endswith(".py"):
        return _from_file(Path(place))
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise _broken(place, error) from error
        raise UsageError(
            f"no module named {place!r}; name an installed module, one in this directory, or a "
            "file such as tools.py:NAME"
        ) from error
    except Exception as error:  # whatever a user's module raises while it is imported
        raise _broken(place, error) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"no file {clip(str(path))}; tools are named path.py:NAME")
    name = f"antiphon_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's module raises while it is imported
        raise _broken(str(path), error) from error
    finally:
        sys.path.remove(str(path.parent.absolute()))
    return module


def _broken(place: str, error: Exception) -> UsageError:
    return UsageError(f"{place!r} cannot be imported: {type(error).__name__}: {error}")


def _public(module: ModuleType) -> list[str]:
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type)
    )


def _all_of(module: ModuleType, spec: str) -> list[Tool[..., Any]]:
    values = list(vars(module).values())
    tools = [cast("Tool[..., Any]", value) for value in values if isinstance(value, Tool)]
    if tools:
        return tools
    functions = [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if not functions:
        raise UsageError(f"{spec!r} has no tool and no public function; name one: {spec}:NAME")
    return [_tool(function, spec) for function in functions]


def _tool(value: object, spec: str) -> Tool[..., Any]:
    if isinstance(value, Tool):
        return cast("Tool[..., Any]", value)
    if not callable(value):
        raise UsageError(f"{spec!r} is {clip(value)}, which is no tool and no function")
    try:
        return tool(cast("Callable[..., Any]", value))
    except ToolDefinitionError as error:
        raise UsageError(f"{spec!r} cannot be a tool: {error}") from error
