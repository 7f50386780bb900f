"""What a Python callable takes, read from its signature, annotations and docstring.

Functions, methods, partials, callable objects and decorated functions all come out as one list of
`Parameter`s with evaluated annotations.  This module knows no JSON Schema; see `_schema.py`.
"""

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import Parameter as _P
from typing import Any, Literal, NamedTuple, cast

import typing_extensions

from antiphon.errors import ToolDefinitionError
from antiphon.tools._annotations import field_texts, readable, text_of
from antiphon.tools._context import RunContext
from antiphon.tools._docstring import Docstring, parse_docstring

EMPTY: Any = inspect.Parameter.empty
Kind = Literal["named", "positional", "star", "double_star", "context"]
_SCALARS: frozenset[Any] = frozenset({str, int, float, bool})
_PLAIN = _SCALARS | {type(None)}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, as a tool sees it."""

    name: str
    """Its name in the signature."""
    kind: Kind
    """How it is passed; ``context`` ones are filled by the run."""
    annotation: Any = Any
    """Its type, evaluated, with ``Annotated`` metadata kept."""
    description: str = ""
    """What the docstring or the annotation says of it."""
    required: bool = True
    """Whether the function cannot be called without it."""
    default: Any = EMPTY
    """Its default, where it has one."""
    fill: bool = False
    """Whether Python must be given the default: the signature holds a ``Field`` in its place."""
    group: str = ""
    """The ``**`` parameter it belongs to, for a field of ``Unpack[TypedDict]``."""

    @property
    def wire_name(self) -> str:
        """What a call names it: its name, or the alias that a ``Field`` gives it."""
        if type(self.annotation) is type:
            return self.name
        for extra in reversed(getattr(self.annotation, "__metadata__", ())):
            alias = getattr(extra, "validation_alias", None)
            if isinstance(alias, str):
                return alias
        return self.name


@dataclass(frozen=True, slots=True)
class Signature:
    """A callable, taken apart."""

    name: str
    """The function's own name."""
    description: str
    """Its docstring without the sections on parameters and results."""
    parameters: tuple[Parameter, ...]
    """In the order of the signature; bound ones (``self``, a partial's) are left out."""
    returns: Any
    """The evaluated return annotation; `EMPTY` where there is none or it cannot be evaluated."""
    returns_text: str
    """What the docstring says of the result."""
    where: str
    """``file:line`` of the definition, or the callable's name where there is no source."""
    is_async: bool
    """Whether calling gives an awaitable."""
    is_generator: bool
    """Whether calling gives a generator, plain or async."""


def read_signature(function: Callable[..., Any], *, skip_first: bool = False) -> Signature:
    """Take a callable apart.

    Args:
        function: Anything that can be called and has a signature.
        skip_first: Leave out the first parameter (``self`` of a function in a class body).

    Raises:
        ToolDefinitionError: It has no signature, or an annotation cannot be evaluated.
    """
    inner = _innermost(function)
    name = _name(function)
    where = _where(inner, name)
    try:
        raw, returns = _raw(function)
    except (ValueError, TypeError) as error:
        raise ToolDefinitionError(
            f"{where}: {name!r} has no signature that Python can read; "
            "wrap it in a function with annotated parameters"
        ) from error
    doc = parse_docstring(_doc(function, inner))
    scope = _Scope(inner, where)
    parameters: list[Parameter] = []
    for parameter in raw[1 if skip_first else 0 :]:
        plain = _plain_parameter(parameter, doc)
        if plain is None:
            parameters.extend(_parameters(parameter, doc, scope))
        else:
            parameters.append(plain)
    _no_twins(parameters, where, name)
    is_async, is_generator = _kinds(function, inner)
    return Signature(
        name=name,
        description=doc.description,
        parameters=tuple(parameters),
        returns=scope.returns(returns),
        returns_text=doc.returns,
        where=where,
        is_async=is_async,
        is_generator=is_generator,
    )


class _Raw(NamedTuple):
    """A parameter as the function has it; the fields are those of `inspect.Parameter`."""

    name: str
    kind: Any
    annotation: Any
    default: Any


def _raw(function: Callable[..., Any]) -> tuple[list[_Raw], Any]:
    """The parameters of a callable, in order, and its return annotation.

    A plain function is read directly: `inspect.signature` does the same at five times the cost.

    Raises:
        ValueError, TypeError: It has no signature.
    """
    if type(function) is not types.FunctionType or function.__dict__:
        signature = inspect.signature(function)
        given = signature.parameters.values()
        return [
            _Raw(p.name, p.kind, p.annotation, p.default) for p in given
        ], signature.return_annotation
    code, annotations = function.__code__, function.__annotations__
    names, n_args = code.co_varnames, code.co_argcount
    n_named = n_args + code.co_kwonlyargcount
    defaults = function.__defaults__ or ()
    by_keyword = function.__kwdefaults__ or {}
    first_default = n_args - len(defaults)
    made: list[_Raw] = []
    for at, name in enumerate(names[:n_args]):
        kind = _P.POSITIONAL_ONLY if at < code.co_posonlyargcount else _P.POSITIONAL_OR_KEYWORD
        default = defaults[at - first_default] if at >= first_default else EMPTY
        made.append(_Raw(name, kind, annotations.get(name, EMPTY), default))
    at = n_named
    if code.co_flags & inspect.CO_VARARGS:
        made.append(_Raw(names[at], _P.VAR_POSITIONAL, annotations.get(names[at], EMPTY), EMPTY))
        at += 1
    for name in names[n_args:n_named]:
        default = by_keyword.get(name, EMPTY)
        made.append(_Raw(name, _P.KEYWORD_ONLY, annotations.get(name, EMPTY), default))
    if code.co_flags & inspect.CO_VARKEYWORDS:
        made.append(_Raw(names[at], _P.VAR_KEYWORD, annotations.get(names[at], EMPTY), EMPTY))
    return made, annotations.get("return", EMPTY)


def _plain_parameter(parameter: _Raw, doc: Docstring) -> Parameter | None:
    """A parameter of the commonest sort, passed by name and of a scalar type; else ``None``."""
    name, kind, annotation, default = parameter
    if (
        not (kind is _P.POSITIONAL_OR_KEYWORD or kind is _P.KEYWORD_ONLY)
        or not _among(annotation, _PLAIN)
        or not (default is EMPTY or type(default) in _SCALARS)
        or name in doc.choices
    ):
        return None
    described = doc.parameters.get(name, "")
    return Parameter(name, "named", annotation, described, default is EMPTY, default)


def _parameters(parameter: _Raw, doc: Docstring, scope: "_Scope") -> list[Parameter]:
    name = parameter.name
    annotation = scope.evaluate(name, parameter.annotation)
    if _is_context(annotation):
        return [Parameter(name, "context", annotation, required=parameter.default is EMPTY)]
    described = text_of(annotation) or doc.parameters.get(name, "")
    if parameter.kind is _P.VAR_POSITIONAL:
        inner = Any if annotation is EMPTY else annotation
        return [Parameter(name, "star", list[inner], described, required=False)]
    if parameter.kind is _P.VAR_KEYWORD:
        return _double_star(name, annotation, described, doc, scope)
    kind: Kind = "positional" if parameter.kind is _P.POSITIONAL_ONLY else "named"
    if name in doc.choices:
        annotation = _narrow(annotation, doc.choices[name])
    made = Parameter(
        name,
        kind,
        Any if annotation is EMPTY else annotation,
        described,
        required=parameter.default is EMPTY,
        default=parameter.default,
    )
    return [_with_default(made)]


def _with_default(made: Parameter) -> Parameter:
    """Read what the default says: an implicit Optional, or pydantic's ``Field(...)``."""
    if made.default is None:
        if made.annotation is not Any and not allows_none(made.annotation):
            return replace(made, annotation=made.annotation | None)
        return made
    if type(made.default).__name__ != "FieldInfo" or not hasattr(made.default, "is_required"):
        return made
    info = made.default
    text = info.description or made.description
    annotation = typing.Annotated[made.annotation, info]
    if info.is_required():
        return replace(made, annotation=annotation, description=text, default=EMPTY, required=True)
    default = info.get_default(call_default_factory=True)
    return replace(
        made, annotation=annotation, description=text, default=default, required=False, fill=True
    )


def _double_star(
    name: str, annotation: Any, described: str, doc: Docstring, scope: "_Scope"
) -> list[Parameter]:
    if typing.get_origin(annotation) not in (typing.Unpack, typing_extensions.Unpack):
        inner = Any if annotation is EMPTY else annotation
        return [Parameter(name, "double_star", dict[str, inner], described, required=False)]
    (fields,) = typing.get_args(annotation)
    hints = typing_extensions.get_type_hints(fields, include_extras=True)
    texts = field_texts(fields)
    made: list[Parameter] = []
    for key, hint in hints.items():
        while typing.get_origin(hint) in (
            typing.Required,
            typing.NotRequired,
            typing_extensions.Required,
            typing_extensions.NotRequired,
        ):
            (hint,) = typing.get_args(hint)
        text = text_of(hint) or doc.parameters.get(key) or texts.get(key, "")
        required = key in fields.__required_keys__
        made.append(Parameter(key, "named", readable(hint), text, required=required, group=name))
    return made


def _no_twins(parameters: list[Parameter], where: str, name: str) -> None:
    seen: set[str] = set()
    for parameter in parameters:
        if parameter.name in seen:
            raise ToolDefinitionError(
                f"{where}: tool {name!r} takes {parameter.name!r} twice, by itself and in its "
                "Unpack[TypedDict]; rename one of them"
            )
        seen.add(parameter.name)


def _narrow(annotation: Any, choices: tuple[Any, ...]) -> Any:
    """``(choices: [...])`` of a docstring as a Literal, kept optional if the annotation is."""
    if not choices or not all(isinstance(c, str | int | bool | None) for c in choices):
        return annotation
    literal: Any = Literal[choices]  # pyright: ignore[reportInvalidTypeForm]
    if typing.get_origin(annotation) is list:
        return list[literal]
    if annotation is not EMPTY and annotation is not Any and allows_none(annotation):
        return typing.Optional[literal]  # noqa: UP045  # a Literal made here
    return literal


def allows_none(annotation: Any) -> bool:
    if annotation is None or annotation is type(None) or annotation is object:
        return True
    if isinstance(annotation, str) or _among(annotation, _PLAIN):
        return False
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return allows_none(typing.get_args(annotation)[0])
    if origin is typing.Literal:
        return None in typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        return any(allows_none(a) for a in typing.get_args(annotation))
    value = getattr(annotation, "__value__", None)  # a PEP 695 alias
    return value is not None and allows_none(value)


def _among(annotation: Any, kinds: frozenset[Any]) -> bool:
    """Whether an annotation is one of some classes; metadata may make others unhashable."""
    return isinstance(annotation, type) and annotation in kinds


def _is_context(annotation: Any) -> bool:
    if annotation is EMPTY or _among(annotation, _PLAIN):
        return False
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _is_context(typing.get_args(annotation)[0])
    if origin is typing.Union or origin is types.UnionType:
        return any(_is_context(a) for a in typing.get_args(annotation))
    kind = origin or annotation
    return isinstance(kind, type) and issubclass(kind, RunContext)


class _Scope:
    """Where the names in a function's annotations are looked up."""

    def __init__(self, inner: Callable[..., Any], where: str) -> None:
        self.inner = inner
        self.where = where
        code_holder: Any = inner
        self.globals: dict[str, Any] = getattr(code_holder, "__globals__", {})
        self._locals: dict[str, Any] | None = None

    def evaluate(self, name: str, annotation: Any) -> Any:
        if annotation is EMPTY or _among(annotation, _SIMPLE):
            return annotation
        try:
            return self._resolve(annotation)
        except ToolDefinitionError:
            raise
        except Exception as error:
            raise ToolDefinitionError(
                f"{self.where}: parameter {name!r} is annotated {annotation!r}, which cannot be "
                f"evaluated ({type(error).__name__}: {error}); import the name at run time, "
                "or define it before the tool is made"
            ) from error

    def returns(self, annotation: Any) -> Any:
        if annotation is EMPTY or _among(annotation, _SIMPLE):
            return annotation
        try:
            return self._resolve(annotation)
        except Exception:  # a return type may be imported for type checkers only
            return EMPTY

    def _resolve(self, annotation: Any) -> Any:
        if annotation is None:
            return type(None)
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        while True:
            try:
                hints = typing_extensions.get_type_hints(
                    holder, self.globals, self.locals, include_extras=True
                )
            except NameError as error:
                if not self._add_from_callers(error.name):
                    raise
            else:
                return readable(hints["it"])

    @property
    def locals(self) -> dict[str, Any]:
        if self._locals is None:
            found: dict[str, Any] = {"RunContext": self.globals.get("RunContext", RunContext)}
            for type_parameter in getattr(self.inner, "__type_params__", ()):
                found[type_parameter.__name__] = type_parameter
            found |= _closure(self.inner)
            self._locals = found
        return self._locals

    def _add_from_callers(self, name: str | None) -> bool:
        """Find a name that only the code that makes the tool can see, such as a local class."""
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and name:
            if name in frame.f_locals and not frame.f_globals.get("__name__", "").startswith(
                "antiphon.tools._"
            ):
                self.locals[name] = frame.f_locals[name]
                return True
            frame = frame.f_back
        return False


_SIMPLE: frozenset[Any] = frozenset({str, int, float, bool, list, dict, object})


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    cells: tuple[Any, ...] = getattr(function, "__closure__", None) or ()
    if code is None:
        return {}
    found: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned later than this function is made a tool
            continue
    return found


def _innermost(function: Any) -> Callable[..., Any]:
    """The plain function under partials, wrappers, methods and callable objects."""
    seen = 0
    while seen < 100:
        seen += 1
        if isinstance(function, functools.partial):
            function = cast("Any", function).func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif hasattr(function, "__func__"):
            function = function.__func__
        elif (
            not isinstance(function, type)
            and not hasattr(function, "__code__")
            and hasattr(type(function).__call__, "__code__")
        ):
            function = type(function).__call__
        else:
            break
    return function


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = cast("Any", function).func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _doc(function: Any, inner: Callable[..., Any]) -> str | None:
    while isinstance(function, functools.partial):
        function = cast("Any", function).func
    if hasattr(function, "__name__"):
        own = function.__doc__ if type(function) is types.FunctionType else None
        return own or inspect.getdoc(function) or inspect.getdoc(inner)
    return inspect.getdoc(inner) or inspect.getdoc(cast("Any", type(function)))


def _where(inner: Any, name: str) -> str:
    code = getattr(inner, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    module = getattr(inner, "__module__", None)
    return f"{module}.{name}" if module else name


def _kinds(function: Any, inner: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether calling gives an awaitable, and whether it gives a generator of either sort."""
    if function is inner and type(function) is types.FunctionType and not function.__dict__:
        flags = function.__code__.co_flags
        generates = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
        return bool(flags & inspect.CO_COROUTINE), bool(flags & generates)
    generator = _any_of(function, inner, inspect.isgeneratorfunction)
    generator = generator or _any_of(function, inner, inspect.isasyncgenfunction)
    return _any_of(function, inner, inspect.iscoroutinefunction), generator


def _any_of(function: Any, inner: Callable[..., Any], test: Callable[[Any], bool]) -> bool:
    while isinstance(function, functools.partial):
        function = cast("Any", function).func
    if test(function):
        return True
    call: Any = getattr(type(cast("object", function)), "__call__", None)  # noqa: B004  # to look at it
    return test(call) or (test(inner) and not hasattr(function, "__wrapped__"))


def is_data_class(value: object) -> bool:
    """Whether this is a class whose instances are made from named fields: these are arguments."""
    return isinstance(value, type) and (
        hasattr(value, "model_fields")
        or hasattr(value, "__dataclass_fields__")
        or hasattr(value, "__required_keys__")
    )


def class_signature(kind: type) -> Signature:
    """A class as a tool: its name and docstring; its fields are pydantic's to describe."""
    doc = parse_docstring(kind.__dict__.get("__doc__"))
    return Signature(
        name=kind.__name__,
        description=doc.description,
        parameters=(),
        returns=EMPTY,
        returns_text="",
        where=f"{kind.__module__}.{kind.__qualname__}",
        is_async=False,
        is_generator=False,
    )


def looks_like_a_method(function: Any) -> bool:
    """Whether a function stands in a class body and takes ``self`` or ``cls``."""
    qualified = getattr(function, "__qualname__", "")
    outer = qualified.rpartition(".")[0]
    if not outer or outer.endswith("<locals>") or not inspect.isfunction(function):
        return False
    names = list(inspect.signature(function).parameters)
    return bool(names) and names[0] in ("self", "cls")
