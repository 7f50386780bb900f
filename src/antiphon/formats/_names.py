"""Formats by name: a family is a module here, loaded when it is first asked for.

There is nothing to register: a module whose name does not begin with ``_`` is a family, and its
``FORMAT`` says which other names and model ids mean it.
"""

import importlib
import pkgutil
import re
from dataclasses import fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from antiphon.errors import UnknownNameError, UsageError, clip
from antiphon.formats._kept import Kept, kept
from antiphon.formats._types import Format


@cache
def list_formats() -> tuple[str, ...]:
    """The names of all families, sorted."""
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    return tuple(sorted(m.name for m in modules if not m.name.startswith("_")))


@cache
def family(name: str) -> Format:
    """The `Format` of one family by its module's name."""
    return cast("Format", importlib.import_module(f"antiphon.formats.{name}").FORMAT)


@cache
def _aliases() -> dict[str, tuple[str, dict[str, Any]]]:
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in list_formats():
        aliases = cast("dict[str, dict[str, Any]]", getattr(family(name), "aliases", {}))
        found |= {alias: (name, variant) for alias, variant in aliases.items()}
    return found


def get_format(name: str, **variants: Any) -> Format:
    """A model family's Format.

    Args:
        name: A family (``qwen3``), a name that others use for it (``llama3_json``), a model id
            (``Qwen/Qwen3-8B``), or a tokenizer directory.
        variants: Fields of the family's class, for example ``thinking=False``; and for every family
            ``history="keep"``: messages stay as they were written, see `_kept.py`.

    Raises:
        UnknownNameError: No family has that name.
        UsageError: The family has no such variant, or the variant no such value.

    >>> get_format("Qwen/Qwen3-8B").name
    'qwen3'
    """
    found, variant = _find(name)
    return with_variants(found, **(variant | variants))


def find_by_model(name: str) -> Format | None:
    """The Format that a model id means, if a family names it."""
    found = _by_model_id(name)
    return None if found is None else with_variants(found[0], **found[1])


def with_variants(format: Format, **variants: Any) -> Format:
    """The same family with other fields.

    Raises:
        UsageError: The family has no such field, or the field no such value.
    """
    if isinstance(format, Kept):
        return kept(with_variants(format.of, **variants))
    history = variants.pop("history", None)
    if history == "keep":
        return kept(with_variants(format, **variants))
    if history is not None:
        raise UsageError(f"history may be 'keep', got {clip(history)}; leave it out otherwise")
    known = [f.name for f in fields(cast("Any", format)) if f.init]
    for key in variants:
        if key not in known:
            has = f"it has: {', '.join(known)}" if known else "it has none"
            raise UsageError(f"format {format.name!r} has no variant {key!r}; {has}")
    if not variants:
        return format
    hints = get_type_hints(type(format))
    fitting = {k: _fitting(v, hints[k], f"{format.name}: {k}") for k, v in variants.items()}
    return replace(cast("Any", format), **fitting)


_PLAIN = {bool: "true or false", str: "a text", int: "a whole number", type(None): "nothing"}
"""The types of variants, in words; others are taken as they are."""


def _fitting(value: Any, hint: Any, what: str) -> Any:
    """A variant's value, seen to it that its field takes it.

    A version may be given as the number that it looks like.

    Raises:
        UsageError: The field takes other values.
    """
    choices: list[Any] = []
    words: list[str] = []
    for kind in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(kind) is Literal:
            choices += get_args(kind)
            words += map(repr, get_args(kind))
        elif kind not in _PLAIN or type(value) is kind:
            return value
        else:
            words.append(_PLAIN[kind])
    if value in choices:
        return value
    if isinstance(value, int | float) and str(value) in choices:
        return str(value)
    raise UsageError(f"{what} may be {', '.join(words)}, got {clip(value)}")


def describe(format: Format) -> str:
    """A Format's name with the variants that are not the usual ones.

    A chat template of no known family goes by the directory that it came from.

    >>> describe(get_format("qwen3", thinking=False))
    'qwen3(thinking=False)'
    """
    if isinstance(format, Kept):
        of = describe(format.of)
        return f"{of[:-1]}, history='keep')" if of.endswith(")") else f"{of}(history='keep')"
    if format.name in list_formats():
        name, usual = format.name, family(format.name)
    else:
        name = str(cast("Any", format).source)
        usual = with_variants(format, thinking=None, today="", options=())
    changed = [
        f"{f.name}={getattr(format, f.name)!r}"
        for f in fields(cast("Any", format))
        if f.init and getattr(format, f.name) != getattr(usual, f.name)
    ]
    return f"{name}({', '.join(changed)})" if changed else name


def _find(name: str) -> tuple[Format, dict[str, Any]]:
    key = re.sub(r"[-.\s]", "_", name.strip().lower())
    if key in list_formats():
        return family(key), {}
    if key in _aliases():
        found, variant = _aliases()[key]
        return family(found), variant
    by_model = _by_model_id(name)
    if by_model is not None:
        return by_model
    if Path(name).is_dir():
        from antiphon.formats._detect import detect_format

        return detect_format(name), {}
    raise _unknown(name, key)


def _by_model_id(name: str) -> tuple[Format, dict[str, Any]] | None:
    """The family, and the variant, with the most exact pattern for a model id."""
    patterns = [(p, of, variant) for p, (of, variant) in _aliases().items() if "/" in p]
    for known in list_formats():
        models = cast("tuple[str, ...]", getattr(family(known), "models", ()))
        patterns += [(pattern, known, {}) for pattern in models]
    fitting = [p for p in patterns if fnmatchcase(name.lower(), p[0].lower())]
    if not fitting:
        return None
    _, found, variant = max(fitting, key=lambda p: len(p[0].replace("*", "")))
    return family(found), variant


def _unknown(name: str, key: str) -> UnknownNameError:
    known = list_formats()
    close = get_close_matches(key, [*known, *_aliases()], n=1, cutoff=0.5)
    hint = f". Did you mean {close[0]!r}?" if close else ""
    return UnknownNameError(f"no format named {clip(name)}; known: {', '.join(known)}{hint}")
