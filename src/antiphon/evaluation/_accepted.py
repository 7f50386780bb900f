"""Calls beside the answers that the Berkeley Function-Calling Leaderboard accepts.

An answer is ``{name: {parameter: [accepted values]}}``; an accepted ``""`` means that the parameter
may be left out.  For Python the verdicts are those of the leaderboard's own checker
(`bfcl_eval.eval_checker.ast_eval.ast_checker` of bfcl-eval 2026.3.23), held equal by
`tests/evaluation/test_bfcl.py`, but where no answer could satisfy it: a parameter that an answer
needs and the schema does not have is known here; one that the schema needs may be left out where
the answer accepts nothing.  Java and JavaScript values are JSON here, or the source text of a
literal; the leaderboard wants source text only.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.messages import ToolCall

Answer = Mapping[str, Mapping[str, Sequence[Any]]]
"""A call that is accepted."""
Function = Mapping[str, Any]
"""A function document of the leaderboard."""

_PYTHON: dict[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_NESTING = ("array", "tuple")
_LOOSE = re.compile(r"[ ,./\-_*^]")
_LITERAL = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[lLfFdDn]?")


def calls_error(
    calls: Sequence[ToolCall],
    functions: Sequence[Function],
    answers: Sequence[Answer],
    *,
    language: str = "python",
) -> str:
    """What is wrong with the calls of one step; empty where they are accepted.

    Args:
        calls: What a model called.
        functions: What was on offer.
        answers: What is accepted, one for each call; their order is free.
        language: ``python``, ``java`` or ``javascript``.

    Returns:
        ``no_call``, ``missing_call``, ``extra_call``, ``hallucinated_tool``, ``wrong_tool``,
        ``missing_argument``, ``extra_argument``, ``wrong_type`` or ``wrong_arguments``.
    """
    if len(calls) != len(answers):
        return "no_call" if not calls else _of_count(len(calls), len(answers))
    documents = {str(f["name"]): f for f in functions}
    left = list(calls)
    for answer in answers:
        name = next(iter(answer))
        errors = [_call_error(c, name, documents, answer[name], language) for c in left]
        if "" not in errors:
            return _worst(errors)
        del left[errors.index("")]
    return ""


def _of_count(n: int, n_wanted: int) -> str:
    return "extra_call" if n > n_wanted else "missing_call"


def _worst(errors: Sequence[str]) -> str:
    """Of the calls that might have been meant, the error of the one that comes nearest."""
    order = (
        "wrong_arguments",
        "wrong_type",
        "extra_argument",
        "missing_argument",
        "wrong_tool",
        "hallucinated_tool",
    )
    return min(errors, key=order.index)


def _call_error(
    call: ToolCall,
    name: str,
    documents: Mapping[str, Function],
    accepted: Mapping[str, Sequence[Any]],
    language: str,
) -> str:
    if call.name != name:
        return "wrong_tool" if call.name in documents else "hallucinated_tool"
    parameters = cast("Mapping[str, Any]", documents[name].get("parameters") or {})
    properties = cast("Mapping[str, Any]", parameters.get("properties") or {})
    needed = cast("Sequence[str]", parameters.get("required") or ())
    given = call.arguments
    if any(p not in given and any(v != "" for v in accepted.get(p, ())) for p in needed):
        return "missing_argument"
    for parameter, value in given.items():
        if parameter not in accepted:
            return "extra_argument"
        schema = cast("Mapping[str, Any]", properties.get(parameter) or {"type": "any"})
        error = (
            _python_error(value, schema, accepted[parameter])
            if language == "python"
            else _literal_error(value, accepted[parameter])
        )
        if error:
            return error
    absent = (p for p in accepted if p not in given and not _is_optional(accepted[p]))
    return "missing_argument" if next(absent, None) is not None else ""


def _is_optional(accepted: Sequence[Any]) -> bool:
    """Whether a parameter may be left out; one that accepts nothing at all must be."""
    return "" in accepted or not accepted


# ---- Python -----------------------------------------------------------------------------------


def _python_error(value: Any, schema: Mapping[str, Any], accepted: Sequence[Any]) -> str:
    kind = str(schema.get("type"))
    wanted = _PYTHON.get(kind, str)
    nested = None
    if kind in _NESTING:
        items = cast("Mapping[str, Any]", schema.get("items") or {})
        nested = _PYTHON.get(str(items.get("type")), str)
    if kind == "float" and type(value) is int:
        value = float(value)
    fits, is_variable = _fits(value, wanted, nested, accepted)
    if not fits:
        return "wrong_type"
    right = value in accepted if is_variable else _is_accepted(value, wanted, nested, accepted)
    return "" if right else "wrong_arguments"


def _fits(
    value: Any, wanted: type, nested: type | None, accepted: Sequence[Any]
) -> tuple[bool, bool]:
    """Whether a value is of the type, and whether it is the name of a variable instead."""
    kinds: list[type[Any]] = [type(a) for a in accepted if a != ""]
    meant = kinds[0] if kinds else None
    is_variable = meant is not None and meant is not wanted
    if type(value) is wanted:
        if nested is None:
            return True, is_variable
        items = cast("list[Any]", value)
        for one in accepted:
            inside = cast("list[Any]", one) if isinstance(one, list) else []
            if not isinstance(one, list) or all(
                _fits(item, nested, None, inside)[0] for item in items
            ):
                return True, is_variable
    return (True, True) if meant is not None and type(value) is meant else (False, False)


def _is_accepted(value: Any, wanted: type, nested: type | None, accepted: Sequence[Any]) -> bool:
    if wanted is dict:
        return _dict_is_accepted(value, accepted)
    if wanted is list and nested is dict:
        return any(_dicts_are_accepted(value, one) for one in accepted)
    if wanted is str:
        texts = [_plain(a) for a in accepted if isinstance(a, str)]
        return _plain(value) in texts
    if wanted is list:
        plain = [_plain(item) for item in cast("list[Any]", value)]
        return any(plain == [_plain(item) for item in one] for one in accepted)
    return value in accepted


def _plain(value: Any) -> Any:
    """A text without case, spaces and punctuation, so that dates and names may be spelled
    freely."""
    return _LOOSE.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _dicts_are_accepted(value: Sequence[Any], accepted: Any) -> bool:
    if not isinstance(accepted, list) or len(value) != len(cast("list[Any]", accepted)):
        return False
    pairs = zip(value, cast("list[Any]", accepted), strict=True)
    return all(_dict_is_accepted(item, [one]) for item, one in pairs)


def _dict_is_accepted(value: Mapping[str, Any], accepted: Sequence[Any]) -> bool:
    return any(
        _fits_keys(value, cast("Mapping[str, Sequence[Any]]", one))
        for one in accepted
        if isinstance(one, Mapping)
    )


def _fits_keys(value: Mapping[str, Any], one: Mapping[str, Sequence[Any]]) -> bool:
    if any(key not in one for key in value):
        return False
    if any(_plain(item) not in [_plain(a) for a in one[key]] for key, item in value.items()):
        return False
    return all(key in value or "" in allowed for key, allowed in one.items())


# ---- Java and JavaScript ------------------------------------------------------------------------


def _literal_error(value: Any, accepted: Sequence[Any]) -> str:
    return "" if any(_means(value, one) for one in accepted) else "wrong_arguments"


def _means(value: Any, one: Any) -> bool:
    """Whether a JSON value, or the source text of a literal, is an accepted value."""
    if isinstance(one, Mapping):
        keys = cast("Mapping[str, Any]", one)
        return isinstance(value, Mapping) and _fits_nested(cast("Mapping[str, Any]", value), keys)
    if isinstance(one, list):
        items = cast("list[Any]", one)
        given = cast("list[Any]", value) if isinstance(value, list) else []
        return (
            isinstance(value, list)
            and len(given) == len(items)
            and all(_means(g, i) for g, i in zip(given, items, strict=True))
        )
    if isinstance(one, bool) or isinstance(value, bool):
        return value is one or (isinstance(value, str) and value == str(one).lower())
    if isinstance(one, int | float):
        literal = _LITERAL.fullmatch(value) if isinstance(value, str) else None
        number = float(literal[1]) if literal else value
        return isinstance(number, int | float) and number == one
    return _plain(value) == _plain(one)


def _fits_nested(value: Mapping[str, Any], one: Mapping[str, Any]) -> bool:
    if any(key not in one for key in value):
        return False
    return all(
        any(_means(value[key], a) for a in allowed) if key in value else "" in allowed
        for key, allowed in one.items()
    )


# ---- the answer itself --------------------------------------------------------------------------


def first_answer(answer: Answer, function: Function, language: str = "python") -> ToolCall:
    """A call that is accepted: of each parameter the first value, what may be left out is.

    Args:
        answer: What is accepted.
        function: The function's document.
        language: Whose values they are; a Java or JavaScript value of no type is source text.
    """
    ((name, accepted),) = answer.items()
    parameters = cast("Mapping[str, Any]", function.get("parameters") or {})
    properties = cast("Mapping[str, Any]", parameters.get("properties") or {})
    needed = cast("Sequence[str]", parameters.get("required") or ())
    arguments: dict[str, Any] = {}
    for parameter, values in accepted.items():
        says = [v for v in values if v != ""]
        if "" in values and parameter not in needed:
            continue
        if says or "" in values:
            value = _first(says[0] if says else "")
            schema = cast("Mapping[str, Any]", properties.get(parameter) or {})
            is_source = language != "python" and schema.get("type") == "any"
            as_text = is_source and isinstance(value, bool | int | float)
            arguments[parameter] = str(value).lower() if as_text else value
    return ToolCall(name, arguments)


def _first(value: Any) -> Any:
    """A value in which the lists of what an inner key accepts are their first values.

    As in the checker, only the keys of an object, or of objects in a list, have such lists; what
    is inside is said as it is.
    """
    if isinstance(value, Mapping):
        items = cast("Mapping[str, list[Any]]", value).items()
        return {key: values[0] for key, values in items if "" not in values}
    if isinstance(value, list):
        return [_first(v) if isinstance(v, Mapping) else v for v in cast("list[Any]", value)]
    return value
