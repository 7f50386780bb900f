"""Catalogs: what can be asked of a tool, what it answers, and what is said of the answer.

A catalog is a JSON file of tools, chains of two tools, and questions that need none; beside
``<name>.json`` may lie ``slots_<name>.json`` with the vocabularies that values are drawn from, and
``linked.json``, which says how people name what tools of the folder's catalogs find.
An entry whose id is the name of a real tool holds questions for that one; every other entry is a
tool of its own, whose names and descriptions are drawn so that a model has to read the prompt.
The guide "The closed loop" describes the format.  Nothing here draws or runs.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, ToolError, clip
from antiphon.tools.builtin import calculate

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_NUMERIC = re.compile(r"(int:-?\d+--?\d+|float:-?[\d.]+--?[\d.]+(:\d+)?)")
_SHAPES = ("code", "date", "time")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool."""

    key: str
    """How questions and answers name it."""
    names: tuple[str, ...]
    """Names that the schema may give it."""
    type: str = "string"
    """Its JSON type."""
    slot: str = ""
    """Where values are drawn from: a vocabulary, ``int:LO-HI``, ``float:LO-HI:DECIMALS``, ``code``,
    ``date`` or ``time``."""
    required: bool = False
    """Whether a call must have it."""
    descriptions: tuple[str, ...] = ("",)
    """What the schema may say of it."""
    enum: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Value -> the ways people say it."""
    count: tuple[int, int] = (2, 3)
    """For arrays: the fewest and the most items."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool."""

    id: str
    """Its name in the catalog."""
    names: tuple[str, ...]
    """Names that it may be offered under."""
    descriptions: tuple[str, ...]
    """What its spec may say."""
    parameters: tuple[Parameter, ...] = ()
    """Its arguments."""
    questions: tuple[str, ...] = ()
    """What people ask, with ``{key}`` where a value stands."""
    missing: tuple[tuple[str, str], ...] = ()
    """Requests that lack an argument, with the question that they call for."""
    result: Any = None
    """What it answers, with ``{key}`` for an argument and ``{slot}`` for a value that is drawn."""
    draws: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values that are drawn once for each answer: name -> slot.  With them, parts of a result
    agree: ``{day}`` and ``{day.weekday}``, ``{rate}`` and ``{=amount * rate:2}``."""
    cases: tuple[tuple[Mapping[str, Any], Any], ...] = ()
    """Results for calls with certain arguments, by key, in place of `result`."""
    answers: tuple[str, ...] = ()
    """What is said of the result, with ``{key}``, ``{result}`` and ``{result.field}``."""
    worded: tuple[tuple[str, str], ...] = ()
    """For arithmetic: a question and the expression that it means."""
    worded_slots: Mapping[str, str] = field(default_factory=dict[str, str])
    """The slots of `worded`."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A task whose second call needs what the first one found."""

    id: str
    """Its name."""
    first: str
    """The id of the first tool."""
    second: str
    """The id of the second tool."""
    link: Mapping[str, str]
    """Key of the second tool -> field of the first one's result."""
    questions: tuple[str, ...]
    """What people ask."""


@dataclass(frozen=True, slots=True)
class Linked:
    """Two tools of which the second one can take what the first one finds."""

    first: str
    """The id of the tool that finds a value."""
    field: str
    """The field of its result."""
    second: str
    """The id of the tool that takes it."""
    parameter: str
    """The key of the parameter that takes it."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything that can be drawn."""

    tools: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    """Tools by id."""
    chains: tuple[Chain, ...] = ()
    """Tasks of two steps."""
    no_tool: tuple[tuple[str, str], ...] = ()
    """Questions that need no tool, with answers."""
    slots: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Vocabularies."""
    linked: Mapping[tuple[str, str], tuple[str, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[str, ...]]
    )
    """How people name what a tool finds: tool and field -> noun phrases."""
    links: Mapping[str, tuple[Linked, ...]] = field(default_factory=dict[str, tuple[Linked, ...]])
    """Every pair of tools that such a phrase joins, by the first one's id: what it finds and what
    the second one takes are of one vocabulary."""
    kin: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Tools that are easily taken for each other, by id: they do the same with other things."""
    odd: float = 0.0
    """How often a word gives its place to one that nobody would expect there."""


def load_catalog(paths: Iterable[Path | str]) -> Catalog:
    """Read catalogs into one.

    Args:
        paths: JSON files; ``demo`` is the catalog in the package. A later file may add phrasings to
            entries of an earlier one (``more_questions``, ``more_worded``,
            ``more_chain_questions``), and answer for its tools otherwise (``results``).

    Raises:
        DataError: A file cannot be read, or an entry does not fit together; it is named.
    """
    reader = _Reader()
    for path in paths:
        reader.read(path)
    return reader.catalog()


def placeholders(text: str) -> set[str]:
    """The names in braces.

    >>> sorted(placeholders("From {a} to {b}"))
    ['a', 'b']
    """
    return set(_PLACEHOLDER.findall(text))


class _Reader:
    def __init__(self) -> None:
        self.tools: dict[str, dict[str, Any]] = {}
        self.chains: dict[str, dict[str, Any]] = {}
        self.no_tool: list[tuple[str, str]] = []
        self.slots: dict[str, list[str]] = {}
        self.linked: dict[str, tuple[str, ...]] = {}
        self.places: dict[str, Path | str] = {}

    def read(self, path: Path | str) -> None:
        for slot, values in _content(path, "slots_").items():
            known = self.slots.setdefault(slot, [])
            known.extend(v for v in values if v not in known)
        beside = _content(path, "linked.json")
        content = _content(path, "")
        for one in content.get("tools", ()):
            self.tools[one["id"]] = dict(one)
            self.places[one["id"]] = path
        for one in content.get("chains", ()):
            self.chains[one["id"]] = dict(one)
            self.places[one["id"]] = path
        self.no_tool += [(question, answer) for question, answer in content.get("no_tool", ())]
        for name, phrases in {**beside, **content.get("linked", {})}.items():
            self.linked[name] = tuple(phrases)
            self.places.setdefault(name, path)
        self._add(content, path)

    def _add(self, content: Mapping[str, Any], path: Path | str) -> None:
        """Further phrasings, and other results, for what an earlier file defines."""
        places = (("more_questions", self.tools), ("more_chain_questions", self.chains))
        for key, known in places:
            for name, questions in content.get(key, {}).items():
                if name not in known:
                    raise DataError(f"{key} names {name!r}, which no file defines", path=path)
                known[name]["questions"] = [*known[name]["questions"], *questions]
        for name, changes in content.get("results", {}).items():
            if name not in self.tools:
                raise DataError(f"results names {name!r}, which no file defines", path=path)
            unknown = sorted(set(changes) - {"result", "draws", "cases", "answers"})
            if unknown:
                raise DataError(f"results of {name!r} has an unknown {unknown[0]!r}", path=path)
            self.tools[name] |= changes
        if "more_worded" in content:
            calculator = self.tools.get("calculator")
            if calculator is None:
                raise DataError("more_worded needs a tool 'calculator' before it", path=path)
            calculator["worded"] = [*calculator["worded"], *content["more_worded"]]

    def catalog(self) -> Catalog:
        tools = {name: self._entry(one) for name, one in self.tools.items()}
        chains = [self._chain(one, tools) for one in self.chains.values()]
        slots = {name: tuple(values) for name, values in self.slots.items()}
        linked = {
            self._finding(name, tools): phrases
            for name, phrases in self.linked.items()
            if name.partition(".")[0] in tools
        }
        links: dict[str, tuple[Linked, ...]] = {}
        for link in _links(linked, tools):
            links[link.first] = (*links.get(link.first, ()), link)
        return Catalog(tools, tuple(chains), tuple(self.no_tool), slots, linked, links)

    def _finding(self, name: str, tools: Mapping[str, Entry]) -> tuple[str, str]:
        """Tool and field of what is linked; the phrases name what the tool must be given."""
        id, _, found = name.partition(".")
        tool = tools[id]
        template: Any = tool.result
        if not isinstance(template, dict) or found not in cast("dict[str, Any]", template):
            raise self._fault(name, f"is linked, but {id!r} finds no {found!r}")
        keys = {p.key for p in tool.parameters}
        needed = {p.key for p in tool.parameters if p.required}
        for phrase in self.linked[name]:
            if not needed <= placeholders(phrase) <= keys:
                raise self._fault(name, f"is called {phrase!r}, which does not fit its parameters")
        return id, found

    def _fault(self, id: str, what: str) -> DataError:
        return DataError(f"{id!r} {what}", path=self.places[id])

    def _entry(self, one: Mapping[str, Any]) -> Entry:
        id = str(one["id"])
        try:
            entry = Entry(
                id=id,
                names=tuple(one.get("names") or [id]),
                descriptions=tuple(one.get("descriptions") or [""]),
                parameters=tuple(_parameter(p) for p in one.get("parameters", ())),
                questions=tuple(one.get("questions", ())),
                missing=tuple((q, a) for q, a in one.get("missing", ())),
                result=one.get("result"),
                answers=tuple(one.get("answers", ())),
                worded=tuple((q, e) for q, e in one.get("worded", ())),
                worded_slots=dict(one.get("worded_slots", {})),
                draws=dict(one.get("draws", {})),
                cases=tuple((case["arguments"], case["result"]) for case in one.get("cases", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._fault(id, f"is no tool: {type(error).__name__} {error}") from error
        self._check(entry)
        return entry

    def _check(self, entry: Entry) -> None:
        if not entry.questions and not entry.worded:
            raise self._fault(entry.id, "has no questions")
        keys = {p.key for p in entry.parameters}
        needed = {p.key for p in entry.parameters if p.required}
        for question in entry.questions:
            unknown, absent = placeholders(question) - keys, needed - placeholders(question)
            if unknown:
                raise self._fault(
                    entry.id, f"asks {question!r}, but has no parameter {min(unknown)!r}"
                )
            if absent:
                raise self._fault(
                    entry.id, f"asks {question!r} without {min(absent)!r}, which is required"
                )
        for parameter in entry.parameters:
            if parameter.enum or entry.worded:
                continue
            if not self._can_draw(parameter.slot):
                raise self._fault(
                    entry.id, f"draws {parameter.key!r} from {parameter.slot!r}, which is no slot"
                )
        for slot in entry.draws.values():
            if not self._can_draw(slot):
                raise self._fault(entry.id, f"draws from {slot!r}, which is no slot")
        known = keys | entry.draws.keys()
        for name in _names_in([entry.result, *(result for _, result in entry.cases)]):
            optional = name in keys - needed and name not in entry.draws
            if optional and not self._can_draw(name):
                less = [q for q in entry.questions if name not in placeholders(q)]
                if less:
                    raise self._fault(
                        entry.id, f"answers with {{{name}}}, which {less[0]!r} leaves out; draw one"
                    )
            if name not in known and not self._can_draw(name) and not _follows(name, known):
                raise self._fault(entry.id, f"answers with {{{name}}}, which is no slot")

    def _can_draw(self, slot: str) -> bool:
        return slot in self.slots or slot in _SHAPES or _NUMERIC.fullmatch(slot) is not None

    def _chain(self, one: Mapping[str, Any], tools: Mapping[str, Entry]) -> Chain:
        id = str(one["id"])
        try:
            chain = Chain(
                id, one["first"], one["second"], dict(one["link"]), tuple(one["questions"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._fault(id, f"is no chain: {type(error).__name__} {error}") from error
        for tool in (chain.first, chain.second):
            if tool not in tools:
                raise self._fault(id, f"names the tool {tool!r}, which no file defines")
        keys = {p.key for t in (chain.first, chain.second) for p in tools[t].parameters}
        for question in chain.questions:
            unknown = placeholders(question) - keys
            if unknown:
                raise self._fault(id, f"asks {question!r}, but has no parameter {min(unknown)!r}")
        return chain


def _parameter(one: Mapping[str, Any]) -> Parameter:
    low, _, high = str(one.get("count", "2-3")).partition("-")
    enum: Mapping[str, Sequence[str]] = one.get("enum") or {}
    return Parameter(
        key=one["key"],
        names=tuple(one.get("names") or [one["key"]]),
        type=one.get("type", "string"),
        slot=one.get("slot", ""),
        required=bool(one.get("required")),
        descriptions=tuple(one.get("descriptions") or [""]),
        enum={value: tuple(said) for value, said in enum.items()},
        count=(int(low), int(high or low)),
    )


def _follows(name: str, known: Collection[str]) -> bool:
    """Whether a placeholder follows from known values: a weekday, or a formula."""
    if not name.startswith("="):
        return name.endswith(".weekday") and name.removesuffix(".weekday") in known
    expression, _, decimals = name[1:].partition(":")
    try:
        calculate(filled_in(expression, {name: i + 2.5 for i, name in enumerate(sorted(known))}))
    except ToolError:
        return False
    return not decimals or decimals.isdecimal()


def filled_in(expression: str, values: Mapping[str, Any]) -> str:
    """A formula with values in the places of their names."""
    return _NAME.sub(lambda m: f"({values[m[0]]})" if m[0] in values else m[0], expression)


def _links(
    linked: Mapping[tuple[str, str], object], tools: Mapping[str, Entry]
) -> Iterable[Linked]:
    takers: dict[str, list[tuple[str, str]]] = {}
    for tool in tools.values():
        for one in tool.parameters:
            if one.type == "string" and one.slot not in ("", "code"):
                takers.setdefault(one.slot, []).append((tool.id, one.key))
    for id, found in linked:
        whole = _PLACEHOLDER.fullmatch(str(tools[id].result[found]))
        for second, key in takers.get(whole[1], ()) if whole else ():
            if second != id:
                yield Linked(id, found, second, key)


def _names_in(template: Any) -> set[str]:
    if isinstance(template, str):
        return placeholders(template)
    inner: Iterable[Any] = ()
    if isinstance(template, dict):
        inner = cast("dict[str, Any]", template).values()
    elif isinstance(template, list):
        inner = cast("list[Any]", template)
    return {name for item in inner for name in _names_in(item)}


def _content(path: Path | str, prefix: str) -> dict[str, Any]:
    """The JSON object of a file, or of one beside it: ``slots_`` before its name, or a name."""
    if str(path) == "demo":
        name = prefix if prefix.endswith(".json") else f"{prefix}demo.json"
        source: Any = files("antiphon.synthesis").joinpath(f"data/{name}")
    else:
        name = prefix if prefix.endswith(".json") else prefix + Path(path).name
        source = Path(path).with_name(name)
    if prefix and not source.is_file():
        return {}
    try:
        content: Any = json.loads(source.read_text("utf-8"))
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise DataError(f"cannot be read: {reason}", path=path) from error
    except ValueError as error:
        raise DataError(f"is not JSON: {error}", path=path) from error
    if not isinstance(content, dict):
        raise DataError(f"a catalog is an object, got {clip(content)}", path=path)
    return cast("dict[str, Any]", content)
