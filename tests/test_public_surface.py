"""What the package shows: names, errors, and an import that loads nothing."""

import ast
import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import antiphon
from antiphon import errors

ROOT = Path(antiphon.__file__).parent
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))

CORE = ("annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection")
"""The core's dependencies and what they bring."""

ERRORS: list[errors.AntiphonError] = [
    errors.AntiphonError("a"),
    errors.UsageError("a"),
    errors.UnknownNameError("a"),
    errors.ToolDefinitionError("a"),
    errors.PlanError("a"),
    errors.MissingExtraError("serving", "serve"),
    errors.DataError("a", path="rows.jsonl", line=3),
    errors.RenderError("a", format="qwen3", index=2),
    errors.EncodeError("a"),
    errors.SpanError("a"),
    errors.ModelError("a"),
    errors.ModelNotFoundError("a"),
    errors.ModelConnectionError("a"),
    errors.ModelAuthError("a"),
    errors.RateLimitError("a", retry_after=1.5),
    errors.ContextLengthError("a"),
    errors.ModelResponseError("a"),
    errors.ToolError("a"),
    errors.RunError("a"),
]


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def _style(name: str) -> tuple[int, str]:
    """The order of isort and ruff: constants, classes, then everything else."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def test_importing_the_package_loads_nothing_that_is_installed() -> None:
    code = (
        "import sys; before = set(sys.modules); import antiphon;"
        "print(sorted({m.partition('.')[0] for m in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))"
    )
    assert _printed(code) == "['antiphon']"


def test_every_room_imports_with_the_core_alone() -> None:
    code = f"""
import importlib, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        top = name.partition('.')[0]
        ours = top in sys.stdlib_module_names or top in {("antiphon", *CORE)!r}
        if not ours and not top.startswith('_sysconfigdata'):  # part of zoneinfo's start
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
for name in {ROOMS!r}:
    try:
        room = importlib.import_module('antiphon.' + name)
        [getattr(room, public) for public in room.__all__]
    except ImportError as error:
        print(name, error)
"""
    assert _printed(code) == ""


@pytest.mark.parametrize("name", antiphon.__all__)
def test_every_public_name_of_the_root_is_there(name: str) -> None:
    assert getattr(antiphon, name) is not None
    assert name in dir(antiphon)


def test_the_root_shows_what_it_imports_for_the_type_checker_and_nothing_else() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    typed = {
        (alias.name, node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("antiphon.")
        for alias in node.names
    }

    loaded = {
        (name, f"antiphon.{room}")
        for room, names in antiphon._ROOMS.items()  # pyright: ignore[reportPrivateUsage]
        for name in names
    }

    assert typed == loaded
    assert {name for name, _ in loaded} | {"__version__"} == set(antiphon.__all__)


def test_a_name_that_the_root_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Assistant'"):
        _ = antiphon.Assistant  # pyright: ignore


@pytest.mark.parametrize("room", ["", *(f".{room}" for room in ROOMS), ".errors", ".events"])
def test_public_names_are_sorted_resolve_and_are_not_private(room: str) -> None:
    module = importlib.import_module(f"antiphon{room}")
    names: list[str] = list(module.__all__)

    public = [name for name in names if name != "__version__"]

    assert names == sorted(set(names), key=_style)
    assert [name for name in public if name.startswith("_")] == []
    assert [name for name in public if not hasattr(module, name)] == []
    assert module.__doc__


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_error_survives_pickling_with_its_fields(error: errors.AntiphonError) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_the_errors_above_are_all_there_are() -> None:
    classes = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.AntiphonError)
    }
    assert {type(error) for error in ERRORS} == classes
    assert {kind.__name__ for kind in classes} == set(errors.__all__) - {"clip", "first_error"}


def test_the_tree_drawn_above_the_errors_is_the_tree() -> None:
    drawn: dict[str, str] = {}
    stack: list[str] = ["AntiphonError"]
    for indent, name in re.findall(r"^    ([│├└─ ]+)(\w+)", errors.__doc__ or "", re.MULTILINE):
        depth = len(indent) // 4
        del stack[depth:]
        drawn[name] = stack[-1]
        stack.append(name)

    assert drawn == {
        type(error).__name__: type(error).__bases__[0].__name__
        for error in ERRORS
        if type(error) is not errors.AntiphonError
    }
