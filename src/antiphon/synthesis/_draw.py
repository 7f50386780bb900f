"""Draws values, tools and questions from a catalog, by a random generator that the caller seeds."""

import random
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, cast

from antiphon.messages import JsonObject, JsonValue, ToolSpec, dump_json
from antiphon.synthesis._catalog import Catalog, Entry, Parameter, filled_in, placeholders
from antiphon.synthesis._task import Offered, Saying, ScriptCall
from antiphon.tools import Tool
from antiphon.tools.builtin import calculate

_NUMBERS = re.compile(r"(-?[\d.]+)-(-?[\d.]+)(?::(\d+))?")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_SUMS = (
    "{e} is {result}.",
    "The result is {result}.",
    "That is {result}.",
    "It comes to {result}.",
)
_GREETINGS = ("Hi! ", "Hello, ", "Hey, ", "Quick question: ", "Please: ")
_THANKS = (" Thanks!", " Thank you.", " Please.", " Thanks in advance.")
_FOUND = "Here is what I found: {result}"

_MADE_UP = 0.5
"""How often a name that nobody would expect is made up."""
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t")
_RIMES = ("a", "ai", "an", "ar", "e", "el", "en", "er", "i", "in", "is", "o", "ol", "on", "or", "u")
_ARTICLE = re.compile(r"(?:an?|the|my|our) (?=\S)")
_SENTENCE = re.compile(r"\b(?:is|are|was|were|has|have|had|will|can|do|does|did)\b|n't|[.!?]$")

Values = dict[str, tuple[Any, str]]
"""By parameter key: a value, and how it is said."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about one tool, and what is right."""

    offered: Offered
    """The tool."""
    question: str
    """What the user says."""
    call: ScriptCall
    """The call that it means."""
    saying: Saying
    """What is said of the result; its place is set where the script is made."""


class Drawer:
    """Draws from a catalog."""

    def __init__(self, catalog: Catalog, draw: random.Random) -> None:
        self.catalog = catalog
        self.random = draw

    # -- values -----------------------------------------------------------------------------------

    def value(self, slot: str) -> tuple[Any, str]:
        """A value of a slot, and how it is said."""
        kind, _, rest = slot.partition(":")
        if kind in ("int", "float") and rest:
            return self._number(kind, rest)
        if slot == "code":
            letters = "".join(
                self.random.choices(string.ascii_uppercase, k=self.random.randint(1, 3))
            )
            text = letters + self.random.choice(["", "-"]) + str(self.random.randint(10, 99999))
        elif slot == "date":
            text = (date(2026, 1, 1) + timedelta(days=self.random.randint(0, 900))).isoformat()
        elif slot == "time":
            minute = self.random.choice([0, 5, 10, 15, 20, 30, 40, 45, 50])
            text = f"{self.random.randint(0, 23):02d}:{minute:02d}"
        else:
            text = self.random.choice(self.catalog.slots[slot])
            if self.catalog.odd and self.random.random() < self.catalog.odd:
                text = self._odd(text)
        return text, text

    def _odd(self, word: str) -> str:
        """What nobody would expect in a word's place: of another vocabulary, or a made-up name."""
        if word[:1].isupper() and self.random.random() < _MADE_UP:
            names = ["".join(self._syllables()).capitalize() for _ in range(word.count(" ") + 1)]
            return " ".join(names[:2])
        vocabularies = list(self.catalog.slots.values())
        for _ in range(10):
            other = self.random.choice(self.random.choice(vocabularies))
            if other[:1].isupper() == word[:1].isupper() and len(other) <= len(word) + 12:
                return other
        return word

    def _syllables(self) -> list[str]:
        return [
            self.random.choice(_ONSETS) + self.random.choice(_RIMES)
            for _ in range(self.random.randint(2, 3))
        ]

    def _number(self, kind: str, bounds: str) -> tuple[Any, str]:
        match = _NUMBERS.fullmatch(bounds)
        assert match is not None  # the catalog is checked when it is read
        if kind == "int":
            whole = self.random.randint(int(match[1]), int(match[2]))
            return whole, str(whole)
        number = round(self.random.uniform(float(match[1]), float(match[2])), int(match[3] or 1))
        return number, f"{number:g}" if number.is_integer() else str(number)

    def argument(
        self, parameter: Parameter, others: Mapping[str, tuple[Any, str]]
    ) -> tuple[Any, str]:
        """A value for a parameter, and how it is said; text that no other parameter has."""
        taken = [value for value, _ in others.values()]
        made = self._argument(parameter)
        for _ in range(20):
            if made[0] not in taken or parameter.type != "string":
                break
            made = self._argument(parameter)
        return made

    def _argument(self, parameter: Parameter) -> tuple[Any, str]:
        if parameter.enum:
            value, said = self.random.choice(list(parameter.enum.items()))
            spoken = self.random.choice(said)
            if parameter.type == "boolean":
                return value == "true", spoken
            return (int(value) if parameter.type == "integer" else value), spoken
        if parameter.type == "array":
            n = self.random.randint(*parameter.count)
            values = list(dict.fromkeys(self.value(parameter.slot)[1] for _ in range(n)))
            return [_bare(value) for value in values], join_words(values)
        value, said = self.value(parameter.slot)
        if parameter.type == "number" and isinstance(value, float) and value.is_integer():
            value = int(value)
        return (_bare(said) if parameter.type == "string" else value), said

    # -- tools ------------------------------------------------------------------------------------

    def offer(self, entry: Entry) -> Offered:
        """A tool of the catalog under names and descriptions drawn at random."""
        names: dict[str, str] = {}
        properties: dict[str, Any] = {}
        for parameter in entry.parameters:
            free = [n for n in parameter.names if n not in names.values()] or [parameter.key]
            name = names[parameter.key] = self.random.choice(free)
            properties[name] = _schema(parameter, self.random.choice(parameter.descriptions))
        required = [names[p.key] for p in entry.parameters if p.required]
        spec = ToolSpec(
            self.random.choice(entry.names),
            self.random.choice(entry.descriptions),
            {"type": "object", "properties": properties, "required": required},
        )
        return Offered(spec.name, "rule", spec.to_openai(), entry.id, names)

    def offers(
        self,
        ids: Sequence[str],
        real: Mapping[str, Tool[..., Any]],
        *,
        simulate: bool,
        in_order: bool = False,
    ) -> list[Offered]:
        """Tools of the catalog and real ones, no two of one name, in an order drawn at random.

        Args:
            ids: Ids of the catalog, and names of real tools.
            real: The real tools, by name.
            simulate: Whether a real tool that is in the catalog is answered by rule.
            in_order: Whether they stay in the order of their ids.
        """
        chosen: dict[str, Offered] = {}
        for id in ids:
            entry = self.catalog.tools.get(id)
            if id in real:
                made = offer_real(real[id], entry, simulate=simulate)
                chosen[made.name] = made
            elif entry is not None:
                for _ in range(5):
                    made = self.offer(entry)
                    if made.name not in chosen and made.name not in real:
                        chosen[made.name] = made
                        break
        offered = list(chosen.values())
        if not in_order:
            self.random.shuffle(offered)
        return offered

    # -- questions --------------------------------------------------------------------------------

    def ask(self, offered: Offered) -> Asked:
        """A question for one tool of the catalog."""
        entry = self.catalog.tools[offered.entry]
        if entry.worded:
            return self._ask_worded(offered, entry)
        keys = offered.names.keys()
        usable = [q for q in entry.questions if placeholders(q) <= keys] or entry.questions
        question = self.random.choice(usable)
        return self.asked(offered, question, self.values(entry, placeholders(question), {}))

    def values(self, entry: Entry, keys: set[str], given: Values) -> Values:
        """Values for the parameters of some keys, besides those that are given."""
        values = dict(given)
        for parameter in entry.parameters:
            if parameter.key in keys and parameter.key not in values:
                values[parameter.key] = self.argument(parameter, values)
        return values

    def asked(self, offered: Offered, question: str, values: Values) -> Asked:
        """A question with values in their places, and what is right."""
        entry = self.catalog.tools[offered.entry]
        said = {key: spoken for key, (_, spoken) in values.items()}
        arguments = {
            offered.names[p.key]: values[p.key][0] for p in entry.parameters if p.key in values
        }
        return Asked(
            offered,
            fill(question, said),
            ScriptCall(offered.name, arguments),
            Saying([*self._shuffled(entry.answers), _FOUND], said),
        )

    def _ask_worded(self, offered: Offered, entry: Entry) -> Asked:
        wording, expression = self.random.choice(entry.worded)
        said: dict[str, str] = {}
        written = ""
        for _ in range(50):
            said = {key: self.value(slot)[1] for key, slot in entry.worded_slots.items()}
            written = fill(expression, said)
            if len(calculate(written)) < 16:
                break
        name = next(iter(offered.names.values()))
        return Asked(
            offered,
            fill(wording, said),
            ScriptCall(offered.name, {name: written}),
            Saying(self._shuffled(_SUMS), {"e": written}),
        )

    def _shuffled(self, texts: Sequence[str]) -> list[str]:
        return self.random.sample(list(texts), len(texts))

    def noise(self, question: str) -> str:
        """The same question, sometimes as people type it."""
        draw = self.random.random()
        if draw < 0.06:
            return question.rstrip("?.!")
        if draw < 0.10:
            return self.random.choice(_GREETINGS) + question
        if draw < 0.14:
            return question + self.random.choice(_THANKS)
        return question

    # -- results ----------------------------------------------------------------------------------

    def result(self, offered: Offered, arguments: Mapping[str, Any]) -> JsonValue:
        """What a tool of the catalog answers to a call."""
        entry = self.catalog.tools[offered.entry]
        if entry.worded:
            return calculate(str(next(iter(arguments.values()), "")))
        keys = {name: key for key, name in offered.names.items()}
        given = {keys.get(name, name): value for name, value in arguments.items()}
        case = next((r for wanted, r in entry.cases if wanted.items() <= given.items()), None)
        known = {name: self.value(slot)[0] for name, slot in entry.draws.items()} | given
        return self._fill(entry.result if case is None else case, known)

    def _fill(self, template: Any, known: Mapping[str, Any]) -> Any:
        if isinstance(template, dict):
            items = cast("dict[str, Any]", template).items()
            return {key: self._fill(value, known) for key, value in items}
        if isinstance(template, list):
            return [self._fill(value, known) for value in cast("list[Any]", template)]
        if not isinstance(template, str):
            return template
        whole = _PLACEHOLDER.fullmatch(template)
        if whole:
            return self._named(whole[1], known)[0]
        return _PLACEHOLDER.sub(lambda m: self._named(m[1], known)[1], template)

    def _named(self, name: str, known: Mapping[str, Any]) -> tuple[Any, str]:
        if name in known:
            return known[name], spoken(known[name])
        of, dot, part = name.partition(".")
        if dot and part == "weekday" and of in known:
            day = f"{date.fromisoformat(str(known[of])[:10]):%A}"
            return day, day
        if name.startswith("="):
            number = _calculated(name[1:], known)
            return number, str(number)
        return self.value(name)


def _calculated(formula: str, known: Mapping[str, Any]) -> int | float:
    """A formula over known values, to some decimals: ``amount * rate:2``."""
    expression, _, decimals = formula.partition(":")
    number = round(float(calculate(filled_in(expression, known))), int(decimals or 0))
    return number if decimals and int(decimals) else int(number)


def offer_real(one: Tool[..., Any], entry: Entry | None, *, simulate: bool) -> Offered:
    """A real tool, with what the catalog asks of it."""
    properties = cast("dict[str, Any]", one.spec.parameters.get("properties") or {})
    names = {p.key: p.key for p in (entry.parameters if entry else ()) if p.key in properties}
    by_rule = simulate and entry is not None
    return Offered(
        one.name,
        "rule" if by_rule else "python",
        one.spec.to_openai(),
        entry.id if entry else "",
        names,
    )


def _schema(parameter: Parameter, description: str) -> JsonObject:
    schema: JsonObject = {"type": parameter.type}
    if parameter.type == "array":
        schema["items"] = {"type": "string"}
    if parameter.enum and parameter.type == "string" and len(parameter.enum) <= 8:
        schema["enum"] = list(parameter.enum)
    if description:
        schema["description"] = description
    return schema


def fill(text: str, values: Mapping[str, str]) -> str:
    """A text with every placeholder replaced."""
    return _PLACEHOLDER.sub(lambda m: values[m[1]], text)


def _bare(said: str) -> str:
    """A thing without its article, as a call names it; a sentence stays what it is."""
    short = said.count(" ") < 5 and not _SENTENCE.search(said)
    return _ARTICLE.sub("", said, count=1) if short and _ARTICLE.match(said) else said


def join_words(values: Sequence[str]) -> str:
    """``a, b and c``."""
    return values[0] if len(values) == 1 else ", ".join(values[:-1]) + " and " + values[-1]


def spoken(value: Any) -> str:
    """A value as people say it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return join_words([str(v) for v in cast("list[Any]", value)]) if value else "none"
    return dump_json(cast("JsonValue", value)) if isinstance(value, dict) else str(value)
