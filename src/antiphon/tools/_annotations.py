"""Annotations as pydantic reads them, where the ones that people write say the same otherwise.

Python before 3.12 has a ``typing.TypedDict`` that pydantic refuses; a Literal of enum members is
shown to the model as their values and must be readable from them; a text or a ``Doc`` in
``Annotated`` describes, also inside lists and unions.  This module knows no signature and no
schema.
"""

import itertools
import sys
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal

import typing_extensions

from antiphon.tools._docstring import parse_docstring

_QUALIFIERS = (
    typing.Required,
    typing.NotRequired,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)
_REPLACED = sys.version_info < (3, 12)
"""Whether pydantic refuses the TypedDicts of this Python."""
_COPIES: dict[type, type] = {}
"""typing's TypedDicts, each with the one that stands for it."""


def readable(annotation: Any) -> Any:
    """An annotation that pydantic can read; the one that is given where it can."""
    if annotation is typing.LiteralString or annotation is typing_extensions.LiteralString:
        return str
    if typing.get_origin(annotation) is Literal:
        return _literal(annotation)
    if _REPLACED and isinstance(annotation, type) and type(annotation).__module__ == "typing":
        return _typed_dict(annotation)
    return _changed(annotation, readable)


def with_texts(annotation: Any) -> Any:
    """An annotation whose texts are descriptions to pydantic, too."""
    made = _changed(annotation, with_texts)
    if typing.get_origin(annotation) is not typing.Annotated:
        return made
    text = text_of(annotation)
    if not text or any(getattr(extra, "description", None) for extra in annotation.__metadata__):
        return made
    from pydantic import Field

    return typing.Annotated[made, Field(description=text)]


def text_of(annotation: Any) -> str:
    """What ``Annotated[T, ...]`` says in a text, a ``Doc`` or a ``Field``, also of an Optional."""
    if type(annotation) is type:
        return ""
    origin = typing.get_origin(annotation)
    if origin is typing.Union or origin is types.UnionType:
        real = [a for a in typing.get_args(annotation) if a is not type(None)]
        return text_of(real[0]) if len(real) == 1 else ""
    if origin in _QUALIFIERS:
        return text_of(typing.get_args(annotation)[0])
    if origin is not typing.Annotated:
        return ""
    for extra in reversed(annotation.__metadata__):
        if isinstance(extra, str):
            return extra
        for attribute in ("documentation", "description"):
            text = getattr(extra, attribute, None)
            if isinstance(text, str) and text:
                return text
    return text_of(typing.get_args(annotation)[0])


def field_texts(kind: type) -> dict[str, str]:
    """What a class and those that it derives from say of their fields."""
    texts: dict[str, str] = {}
    for base in (*getattr(kind, "__orig_bases__", ()), *kind.__mro__[:0:-1]):
        origin = typing.get_origin(base) or base
        if isinstance(origin, type) and origin is not kind and hasattr(origin, "__annotations__"):
            texts |= attribute_docs(origin)
            texts |= parse_docstring(origin.__dict__.get("__doc__")).parameters
    texts |= attribute_docs(kind)
    texts |= parse_docstring(kind.__dict__.get("__doc__")).parameters
    try:
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
    except Exception:  # names that only a type checker sees: pydantic has said what it can
        return texts
    return texts | {name: text for name, hint in hints.items() if (text := text_of(hint))}


_ATTRIBUTE_DOCS: dict[type, Mapping[str, str]] = {}


def attribute_docs(kind: type) -> Mapping[str, str]:
    """The text literals below a class's fields, read from its source; cached by class."""
    cached = _ATTRIBUTE_DOCS.get(kind)
    if cached is not None:
        return cached
    import ast
    import inspect
    import textwrap

    found: dict[str, str] = {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        tree = ast.Module(body=[], type_ignores=[])
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    for field, text in itertools.pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found[field.target.id] = " ".join(inspect.cleandoc(text.value.value).split())
    _ATTRIBUTE_DOCS[kind] = found
    return found


def _changed(annotation: Any, change: Callable[[Any], Any]) -> Any:
    """An annotation with the ones inside it changed; the very same where none is."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None or origin is Literal or origin is Callable:
        return annotation
    if origin is typing.Annotated:
        inner = change(arguments[0])
        if inner is arguments[0]:
            return annotation
        return typing.Annotated[(inner, *annotation.__metadata__)]
    made = tuple(map(change, arguments))
    if all(new is old for new, old in zip(made, arguments, strict=True)):
        return annotation
    if origin is types.UnionType:
        return typing.Union[made]  # noqa: UP007  # members are known only now
    if hasattr(annotation, "copy_with"):
        return annotation.copy_with(made)
    return origin[made]


def _literal(annotation: Any) -> Any:
    """A Literal whose enum members are read from their values."""
    values = typing.get_args(annotation)
    members = [value for value in values if isinstance(value, Enum)]
    plain = [value.value if isinstance(value, Enum) else value for value in values]
    if not members or not all(isinstance(v, str | int | bool | None) for v in plain):
        return annotation
    from pydantic import AfterValidator

    by_value: dict[Any, Enum] = {(type(m.value), m.value): m for m in members}  # 1 is not True

    def member(value: Any) -> Any:
        key: Any = (type(value), value)
        return by_value.get(key, value)

    literal: Any = Literal[tuple(plain)]  # pyright: ignore[reportInvalidTypeForm]
    return typing.Annotated[literal, AfterValidator(member)]


def _typed_dict(kind: type) -> type:
    """A ``typing.TypedDict`` as the one of typing_extensions that has its fields."""
    if not typing_extensions.is_typeddict(kind):
        return kind
    if kind in _COPIES:
        return _COPIES[kind]
    try:
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
    except Exception:  # pydantic looks further, and says what it does not find
        return kind
    _COPIES[kind] = kind  # where it contains itself
    needed: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        while typing.get_origin(hint) in _QUALIFIERS:
            (hint,) = typing.get_args(hint)
        wrap: Any = typing_extensions.Required if name in needed else typing_extensions.NotRequired
        fields[name] = wrap[readable(hint)]
    make: Any = typing_extensions.TypedDict
    made = make(kind.__name__, fields)
    for name in ("__doc__", "__module__", "__qualname__", "__pydantic_config__"):
        if hasattr(kind, name):
            setattr(made, name, getattr(kind, name))
    _COPIES[kind] = made
    return made
