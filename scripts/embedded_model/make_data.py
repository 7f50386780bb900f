"""Draw training conversations from the catalog, by rule and by seed.

    python scripts/embedded_model/make_data.py --conversations 4800 --seed 7 --out build/train.jsonl

Each line is a row (messages and tools).  Consecutive rows of one ``metadata.group`` share their
tools
and their format, so that training can compute their common prompt once.  A conversation is drawn in
three moves: a set of tools with names and descriptions chosen at random, a task over that set (one
call, parallel calls, two dependent calls, no call, a missing argument, a failing tool), and values.
"""

import argparse
import json
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from antiphon.messages import (
    Conversation,
    JsonObject,
    Message,
    ThinkingPart,
    ToolCall,
    ToolSpec,
    conversation_to_row,
    dump_json,
)
from antiphon.tools.builtin import DEMO_TOOLS, calculate
from antiphon.tools.builtin._data import people

CATALOG = Path(__file__).parent / "catalog"
TRAINING = (
    "demo",
    "everyday",
    "office",
    "more",
    "further",
    "wider",
    "leisure",
    "works",
    "phrases",
    "home",
)
DEMO_IDS = ("calculator", "current_time", "get_address", "get_weather", "convert_currency")


@dataclass
class Catalog:
    """Everything that can be drawn."""

    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Tools by id."""
    chains: list[dict[str, Any]] = field(default_factory=list)
    """Two-step tasks."""
    no_tool: list[list[str]] = field(default_factory=list)
    """Questions that need no tool, with answers."""
    slots: dict[str, list[str]] = field(default_factory=dict)
    """Vocabularies."""
    linked: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """How people name what a tool finds: (tool id, field of its result) -> noun phrases."""


def load_catalog(names: Sequence[str]) -> Catalog:
    """Read ``<name>.json`` and ``slots_<name>.json`` for every name."""
    catalog = Catalog()
    linked = json.loads((CATALOG / "linked.json").read_text("utf-8"))
    for name in names:
        slots = json.loads((CATALOG / f"slots_{name}.json").read_text("utf-8"))
        for slot, values in slots.items():
            known = catalog.slots.setdefault(slot, [])
            known.extend(v for v in values if v not in known)
        content = json.loads((CATALOG / f"{name}.json").read_text("utf-8"))
        for one in content.get("tools", ()):
            catalog.tools[one["id"]] = one
        catalog.chains.extend(content.get("chains", ()))
        catalog.no_tool.extend(content.get("no_tool", ()))
        _add_phrasings(catalog, content)
        linked |= content.get("linked", {})
    for name, phrases in linked.items():
        tool, _, result = name.partition(".")
        if tool in catalog.tools:
            catalog.linked[tool, result] = phrases
    return catalog


def _add_phrasings(catalog: Catalog, content: Mapping[str, Any]) -> None:
    """Further questions for tools and chains that an earlier file defines."""
    for name, questions in content.get("more_questions", {}).items():
        catalog.tools[name]["questions"].extend(questions)
    if "more_worded" in content:
        catalog.tools["calculator"]["worded"].extend(content["more_worded"])
    chains = {chain["id"]: chain for chain in catalog.chains}
    for name, questions in content.get("more_chain_questions", {}).items():
        chains[name]["questions"].extend(questions)


def hold_out(catalog: Catalog, values: Iterable[str]) -> None:
    """Drop values that another set asks for from every vocabulary; short lists stay."""
    held = set(values)
    for slot, known in catalog.slots.items():
        left = [value for value in known if value not in held]
        catalog.slots[slot] = left if len(left) > 5 else known


def trained_values() -> Iterator[str]:
    """Every name that training conversations are drawn from."""
    for known in load_catalog(TRAINING).slots.values():
        yield from known


def held_out_values() -> Iterator[str]:
    """Everything that `antiphon eval demo` may ask for by name."""
    for known in load_catalog(["heldout", "test"]).slots.values():
        yield from known
    for entry in people():
        yield from (entry["name"], entry["street"], *entry["name"].split())


@dataclass(frozen=True)
class Link:
    """Two tools where the second one takes what the first one finds."""

    first: str
    """Id of the tool that finds a value."""
    field: str
    """The field of its result."""
    second: str
    """Id of the tool that takes the value."""
    parameter: str
    """The key of the parameter that takes it."""


def links(catalog: Catalog) -> list[Link]:
    """Every pair of tools that can be composed: what one finds is what the other one takes."""
    takers: dict[str, list[tuple[str, str]]] = {}
    for tool in catalog.tools.values():
        for parameter in tool.get("parameters", ()):
            if parameter["type"] == "string" and parameter.get("slot", "code") != "code":
                takers.setdefault(parameter["slot"], []).append((tool["id"], parameter["key"]))
    found: list[Link] = []
    for tool, result in catalog.linked:
        slot = re.fullmatch(r"\{([^{}]+)\}", catalog.tools[tool]["result"][result])
        for taker, key in takers.get(slot.group(1), ()) if slot else ():
            if taker != tool:
                found.append(Link(tool, result, taker, key))
    return found


@dataclass
class Offer:
    """One tool as it is offered in one group: names and descriptions are chosen."""

    entry: dict[str, Any]
    """The tool's catalog entry."""
    spec: ToolSpec
    """What the model sees."""
    names: dict[str, str]
    """Parameter key -> the name chosen for it."""


class Drawer:
    """Draws conversations; the state is a random generator."""

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self.catalog = catalog
        self.random = random.Random(seed)
        by_first: dict[str, list[Link]] = {}
        for link in links(catalog):
            by_first.setdefault(link.first, []).append(link)
        self.links = by_first
        """What a tool's findings can be used for, by tool id."""

    def link(self) -> Link:
        """One pair of tools; every first tool is as likely as the others."""
        return self.random.choice(self.random.choice(list(self.links.values())))

    def value(self, slot: str) -> tuple[Any, str]:
        """A value of a slot, and how it is said."""
        kind, _, rest = slot.partition(":")
        if kind == "int":
            low, high = (int(part) for part in re.fullmatch(r"(-?\d+)-(-?\d+)", rest).groups())  # type: ignore[union-attr]
            number = self.random.randint(low, high)
            return number, str(number)
        if kind == "float":
            bounds, _, decimals = rest.partition(":")
            low, high = (
                float(part) for part in re.fullmatch(r"(-?[\d.]+)-(-?[\d.]+)", bounds).groups()
            )  # type: ignore[union-attr]
            number = round(self.random.uniform(low, high), int(decimals or 1))
            return number, f"{number:g}" if number == int(number) else str(number)
        if slot == "code":
            letters = "".join(
                self.random.choices(string.ascii_uppercase, k=self.random.randint(1, 3))
            )
            text = letters + self.random.choice(["", "-"]) + str(self.random.randint(10, 99999))
            return text, text
        if slot == "date":
            day = date(2026, 1, 1) + timedelta(days=self.random.randint(0, 900))
            return day.isoformat(), day.isoformat()
        if slot == "time":
            minute = self.random.choice([0, 5, 10, 15, 20, 30, 40, 45, 50])
            text = f"{self.random.randint(0, 23):02d}:{minute:02d}"
            return text, text
        text = self.random.choice(self.catalog.slots[slot])
        return text, text

    def argument(
        self, parameter: Mapping[str, Any], other_than: Mapping[str, tuple[Any, str]] | None = None
    ) -> tuple[Any, str]:
        """A value for a parameter, and how it is said; not one that another parameter has."""
        taken = [value for value, _ in (other_than or {}).values()]
        for _ in range(20):
            value, said = self._argument(parameter)
            if value not in taken or parameter["type"] != "string":
                break
        return value, said

    def _argument(self, parameter: Mapping[str, Any]) -> tuple[Any, str]:
        if "enum" in parameter:
            value, said = self.random.choice(list(parameter["enum"].items()))
            if parameter["type"] == "boolean":
                return value == "true", self.random.choice(said)
            if parameter["type"] == "integer":
                return int(value), self.random.choice(said)
            return value, self.random.choice(said)
        if parameter["type"] == "array":
            low, high = (int(n) for n in str(parameter.get("count", "2-3")).split("-"))
            values: list[str] = []
            for _ in range(self.random.randint(low, high)):
                value = self.value(parameter["slot"])[1]
                if value not in values:
                    values.append(value)
            return values, join_words(values)
        value, said = self.value(parameter["slot"])
        if parameter["type"] == "number" and isinstance(value, float) and value == int(value):
            value = int(value)
        if parameter["type"] == "string":
            value = said
        return value, said

    def offer(self, entry: dict[str, Any], *, canonical: bool = False) -> Offer:
        """A tool under names and descriptions drawn at random, or its first ones."""
        pick: Callable[[Sequence[Any]], Any] = (
            (lambda seq: seq[0]) if canonical else self.random.choice
        )
        names: dict[str, str] = {}
        properties: JsonObject = {}
        for parameter in entry.get("parameters", ()):
            name = pick(
                [n for n in parameter["names"] if n not in names.values()] or [parameter["key"]]
            )
            names[parameter["key"]] = name
            properties[name] = schema_of(parameter, pick(parameter.get("descriptions") or [""]))
        spec = ToolSpec(
            pick(entry["names"]),
            pick(entry["descriptions"]),
            {
                "type": "object",
                "properties": properties,
                "required": [
                    names[p["key"]] for p in entry.get("parameters", ()) if p.get("required")
                ],
            },
        )
        return Offer(entry, spec, names)

    def demo_offers(self) -> list[Offer]:
        """The demonstration tools exactly as the package offers them."""
        offers: list[Offer] = []
        for tool in DEMO_TOOLS:
            entry = self.catalog.tools[tool.spec.name]
            names = {p["key"]: p["key"] for p in entry.get("parameters", ())}
            names["expression"] = "expression"
            offers.append(Offer(entry, tool.spec, names))
        return offers

    def offers(self, ids: Sequence[str]) -> list[Offer]:
        """Tools for one group, no two of the same name."""
        chosen: list[Offer] = []
        taken: set[str] = set()
        for one in ids:
            for _ in range(5):
                offer = self.offer(self.catalog.tools[one])
                if offer.spec.name not in taken:
                    taken.add(offer.spec.name)
                    chosen.append(offer)
                    break
        self.random.shuffle(chosen)
        return chosen

    def ask(
        self,
        offer: Offer,
        *,
        question: str | None = None,
        given: Mapping[str, tuple[Any, str]] | None = None,
    ) -> "Asked":
        """A question for one tool, the call it means, its result and an answer."""
        if "worded" in offer.entry:
            return self._ask_worded(offer)
        text = question or self.random.choice(offer.entry["questions"])
        values: dict[str, tuple[Any, str]] = dict(given or {})
        mentioned = {f for _, f, _, _ in string.Formatter().parse(text) if f}
        for parameter in offer.entry.get("parameters", ()):
            if parameter["key"] in mentioned and parameter["key"] not in values:
                values[parameter["key"]] = self.argument(parameter, other_than=values)
        called = {
            offer.names[p["key"]]: values[p["key"]][0]
            for p in offer.entry.get("parameters", ())
            if p["key"] in values
        }
        said = {key: spoken for key, (_, spoken) in values.items()}
        result = self.result(offer.entry, {key: value for key, (value, _) in values.items()})
        return Asked(
            offer,
            text.format_map(Lenient(said)),
            ToolCall(offer.spec.name, called),
            result,
            self.answer(offer.entry, said, result),
            values,
        )

    def _ask_worded(self, offer: Offer) -> "Asked":
        wording, expression = self.random.choice(offer.entry["worded"])
        for _ in range(50):
            said = {key: self.value(slot)[1] for key, slot in offer.entry["worded_slots"].items()}
            written = expression.format_map(Lenient(said))
            result = calculate(written)
            if len(result) < 16:
                break
        question = wording.format_map(Lenient(said))
        answers = ["{e} is {r}.", "The result is {r}.", "That is {r}.", "It comes to {r}.", "{r}."]
        answer = self.random.choice(answers).format(e=written, r=result)
        return Asked(
            offer,
            question,
            ToolCall(offer.spec.name, {offer.names["expression"]: written}),
            result,
            answer,
            {},
        )

    def result(self, entry: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
        """What a tool answers: the catalog's template with arguments repeated and values drawn."""
        if entry["id"] == "current_time":
            day = date(2026, 1, 1) + timedelta(days=self.random.randint(0, 900))
            clock = f"{self.random.randint(0, 23):02d}:{self.random.randint(0, 59):02d}"
            zone = arguments.get("timezone", "UTC")
            return {
                "timezone": zone,
                "time": f"{day.isoformat()}T{clock}:00",
                "weekday": f"{day:%A}",
            }
        if entry["id"] == "convert_currency":
            rate = round(self.random.uniform(0.05, 160), 4)
            return {
                "amount": round(float(arguments["amount"]) * rate, 2),
                "currency": arguments["to_currency"],
                "rate": rate,
            }
        result = self._fill(entry["result"], arguments)
        if entry["id"] == "get_weather" and arguments.get("unit") == "fahrenheit":
            result["unit"], result["temperature"] = (
                "fahrenheit",
                round(result["temperature"] * 1.8 + 32),
            )
        return result

    def _fill(self, template: Any, arguments: Mapping[str, Any]) -> Any:
        if isinstance(template, dict):
            return {key: self._fill(value, arguments) for key, value in template.items()}
        if isinstance(template, list):
            return [self._fill(value, arguments) for value in template]
        if not isinstance(template, str):
            return template
        whole = re.fullmatch(r"\{([^{}]+)\}", template)
        if whole:
            return self._named(whole.group(1), arguments)[0]
        return re.sub(r"\{([^{}]+)\}", lambda m: self._named(m.group(1), arguments)[1], template)

    def _named(self, name: str, arguments: Mapping[str, Any]) -> tuple[Any, str]:
        if name in arguments:
            value = arguments[name]
            return value, join_words(value) if isinstance(value, list) else str(value)
        return self.value(name)

    def answer(self, entry: Mapping[str, Any], said: Mapping[str, str], result: Any) -> str:
        """An answer that uses the result."""
        if entry["id"] == "current_time":
            place = said.get("timezone", "UTC")
            return self.random.choice(
                ["It is {t} in {p}.", "It is {t} on {d} in {p}.", "In {p} it is {d}, {t}."]
            ).format(t=result["time"][11:16], d=result["weekday"], p=place)
        fields = {f"result.{k}": v for k, v in result.items()} if isinstance(result, dict) else {}
        values: dict[str, Any] = {**said, **fields, "result": result}
        usable = [a for a in entry["answers"] if placeholders(a) <= values.keys()]
        if not usable:
            return f"Here is what I found: {result_text(result)}"
        text = self.random.choice(usable)
        return re.sub(r"\{([^{}]+)\}", lambda m: _spoken(values[m.group(1)]), text)

    def noise(self, question: str) -> str:
        """The same question, sometimes as people type it."""
        draw = self.random.random()
        if draw < 0.06:
            return question.rstrip("?.!")
        if draw < 0.10:
            return (
                self.random.choice(["Hi! ", "Hello, ", "Hey, ", "Quick question: ", "Please: "])
                + question
            )
        if draw < 0.14:
            return question + self.random.choice(
                [" Thanks!", " Thank you.", " Please.", " Thanks in advance."]
            )
        return question


@dataclass
class Asked:
    """One question about one tool."""

    offer: Offer
    question: str
    call: ToolCall
    result: Any
    answer: str
    values: dict[str, tuple[Any, str]]


class Lenient(dict[str, str]):
    """Leaves a placeholder without a value as it is, so that a mistake in the catalog shows."""

    def __missing__(self, key: str) -> str:
        raise KeyError(f"the catalog has no value for {{{key}}}")


def placeholders(text: str) -> set[str]:
    """The names in braces."""
    return set(re.findall(r"\{([^{}]+)\}", text))


def join_words(values: Sequence[str]) -> str:
    """``a, b and c``."""
    return values[0] if len(values) == 1 else ", ".join(values[:-1]) + " and " + values[-1]


def result_text(result: Any) -> str:
    """A result as the model reads it."""
    return result if isinstance(result, str) else dump_json(result)


def _spoken(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return join_words([str(v) for v in value]) if isinstance(value, list) else str(value)


def schema_of(parameter: Mapping[str, Any], description: str) -> JsonObject:
    """The JSON Schema of one catalog parameter."""
    schema: JsonObject = {"type": parameter["type"]}
    if parameter["type"] == "array":
        schema["items"] = {"type": "string"}
    if "enum" in parameter and parameter["type"] == "string" and len(parameter["enum"]) <= 8:
        schema["enum"] = list(parameter["enum"])
    if description:
        schema["description"] = description
    return schema


def exchange(asked: Sequence[Asked], question: str, answer: str) -> list[Message]:
    """Question, calls of one step, results, answer."""
    return [
        Message.user(question),
        Message.assistant(tool_calls=[a.call for a in asked]),
        *(Message.tool(result_text(a.result), name=a.call.name) for a in asked),
        Message.assistant(answer),
    ]


def single(drawer: Drawer, offers: Sequence[Offer]) -> list[Message]:
    """One call and the answer; often for a tool that is part of a chain, so that both are seen."""
    if drawer.random.random() < 0.3:
        composable = _composable(drawer, offers)
        ends = {i for link in composable for i in (link.first, link.second)}
        offers = [o for o in offers if o.entry["id"] in ends] or offers
    asked = drawer.ask(drawer.random.choice(offers))
    return exchange([asked], drawer.noise(asked.question), asked.answer)


def parallel(drawer: Drawer, offers: Sequence[Offer]) -> list[Message]:
    """Two or three calls of one step."""
    first = drawer.ask(drawer.random.choice(offers))
    same = drawer.random.random() < 0.5
    second = drawer.ask(first.offer if same else drawer.random.choice(offers))
    if second.call == first.call:
        return single(drawer, offers)
    joined = first.question.rstrip("?.!") + drawer.random.choice(
        ["? And ", ", and also: ", "? Also, ", "; then ", " and "]
    )
    question = joined + second.question[:1].lower() + second.question[1:]
    if drawer.random.random() < 0.35:
        question = f"{first.question} {second.question}"
    return exchange([first, second], question, f"{first.answer} {second.answer}")


def chain(drawer: Drawer, offers: Sequence[Offer]) -> list[Message] | None:
    """Two dependent calls, where the group's tools hold a chain."""
    by_id = {o.entry["id"]: o for o in offers}
    usable = [c for c in drawer.catalog.chains if c["first"] in by_id and c["second"] in by_id]
    composable = _composable(drawer, offers)
    if not usable and not composable:
        return None
    if composable and (not usable or drawer.random.random() < 0.6):
        steps = composed(drawer, drawer.random.choice(composable), by_id)
        if steps is None:
            return None
        first, second, question = steps
    else:
        first, second, question = two_steps(drawer, drawer.random.choice(usable), by_id)
    return [
        Message.user(drawer.noise(question)),
        Message.assistant(tool_calls=[first.call]),
        Message.tool(result_text(first.result), name=first.call.name),
        Message.assistant(tool_calls=[second.call]),
        Message.tool(result_text(second.result), name=second.call.name),
        Message.assistant(second.answer),
    ]


def _composable(drawer: Drawer, offers: Sequence[Offer]) -> list[Link]:
    ids = dict.fromkeys(o.entry["id"] for o in offers)
    return [link for one in ids for link in drawer.links.get(one, ()) if link.second in ids]


_LABELS = {"city": "city", "person": "person", "date": "day", "time": "time", "company": "company"}


def composed(
    drawer: Drawer, link: Link, offers: Mapping[str, Offer]
) -> tuple[Asked, Asked, str] | None:
    """Two calls of a pair: the second tool's question, with the first one's noun for the value."""
    first_offer, second_offer = offers[link.first], offers[link.second]
    phrase = drawer.random.choice(drawer.catalog.linked[link.first, link.field])
    placeholder = f"{{{link.parameter}}}"
    questions = [q for q in second_offer.entry["questions"] if q.count(placeholder) == 1]
    if re.match("who|what|where|when", phrase):
        possessive_or_governed = re.compile(
            r"\b(in|at|to|of|on|for|from|near) " + re.escape(placeholder)
            if re.match("where|when", phrase)
            else re.escape(placeholder) + "'"
        )
        questions = [q for q in questions if not possessive_or_governed.search(q)]
    if not questions:
        return None
    question = drawer.random.choice(questions)
    wanted = placeholders(phrase)
    given = {
        p["key"]: drawer.argument(p)
        for p in first_offer.entry.get("parameters", ())
        if p["key"] in wanted
    }
    first = drawer.ask(first_offer, question=_naming(given), given=given)
    value = first.result[link.field]
    parameters = {p["key"]: p for p in second_offer.entry["parameters"]}
    then = {link.parameter: (value, str(value))}
    for key in sorted(placeholders(question) - {link.parameter}):
        then[key] = drawer.argument(parameters[key], other_than=then)
    second = drawer.ask(second_offer, question=_naming(then), given=then)
    noun = phrase.format_map(Lenient({key: said for key, (_, said) in given.items()}))
    label = _LABELS.get(parameters[link.parameter]["slot"])
    lead = ""
    if label and drawer.random.random() < 0.15:
        lead = drawer.random.choice(["Find {n}. ", "Look up {n} first. ", "First get {n}, then: "])
        lead, noun = lead.format(n=noun), f"that {label}"
    said = {key: spoken for key, (_, spoken) in then.items()} | {link.parameter: noun}
    asked = question.format_map(Lenient(said))
    return first, second, lead + asked[:1].upper() + asked[1:]


def two_steps(
    drawer: Drawer, one: Mapping[str, Any], offers: Mapping[str, Offer]
) -> tuple[Asked, Asked, str]:
    """A chain's two calls and its question; the second call gets what the first one found."""
    question = drawer.random.choice(one["questions"])
    wanted = placeholders(question)
    first_offer, second_offer = offers[one["first"]], offers[one["second"]]
    given = {
        p["key"]: drawer.argument(p)
        for p in first_offer.entry.get("parameters", ())
        if p["key"] in wanted
    }
    first = drawer.ask(first_offer, question=_naming(given), given=given)
    then = {key: (first.result[name], str(first.result[name])) for key, name in one["link"].items()}
    for parameter in second_offer.entry.get("parameters", ()):
        key = parameter["key"]
        if key in wanted and key not in then:
            then[key] = given[key] if key in given else drawer.argument(parameter, other_than=then)
    second = drawer.ask(second_offer, question=_naming(then), given=then)
    said = {k: s for k, (_, s) in {**then, **given}.items()}
    return first, second, question.format_map(Lenient(said))


def _naming(values: Mapping[str, object]) -> str:
    return " ".join(f"{{{key}}}" for key in values) or "-"


def no_tool(drawer: Drawer, offers: Sequence[Offer]) -> list[Message]:
    """A question that needs none of the tools."""
    question, answer = drawer.random.choice(drawer.catalog.no_tool)
    return [Message.user(question), Message.assistant(answer)]


def missing(drawer: Drawer, offers: Sequence[Offer]) -> list[Message] | None:
    """A request that lacks an argument: the model asks, and calls once it is told."""
    usable = [o for o in offers if o.entry.get("missing")]
    if not usable:
        return None
    question, answer = drawer.random.choice(drawer.random.choice(usable).entry["missing"])
    return [Message.user(question), Message.assistant(answer)]


_FAILURES = (
    "Error: the service is not available right now.",
    "Error: timed out after 10 seconds.",
    "Error: nothing found for this request.",
    "Error: access denied.",
)


def failing(drawer: Drawer, offers: Sequence[Offer]) -> list[Message]:
    """A tool that fails: the answer says so and invents nothing."""
    asked = drawer.ask(drawer.random.choice(offers))
    failure = drawer.random.choice(_FAILURES)
    reason = failure.removeprefix("Error: ").rstrip(".")
    answer = drawer.random.choice(
        [
            "Sorry, that did not work: {r}.",
            "I could not do that: {r}.",
            "The tool failed: {r}. Please try again later.",
        ]
    ).format(r=reason)
    return [
        Message.user(drawer.noise(asked.question)),
        Message.assistant(tool_calls=[asked.call]),
        Message.tool(failure, name=asked.call.name, is_error=True),
        Message.assistant(answer),
    ]


def with_thoughts(messages: Sequence[Message]) -> list[Message]:
    """The same messages with the short thoughts that ReAct asks for."""
    return [
        replace(m, parts=(ThinkingPart(_thought(m)), *m.parts)) if m.role == "assistant" else m
        for m in messages
    ]


def _thought(message: Message) -> str:
    names = [call.name for call in message.tool_calls]
    return f"I should use {join_words(names)}." if names else "I now know the final answer"


KINDS: dict[str, tuple[float, Callable[[Drawer, Sequence[Offer]], list[Message] | None]]] = {
    "single": (0.41, single),
    "chain": (0.24, chain),
    "parallel": (0.06, parallel),
    "no_tool": (0.20, no_tool),
    "missing": (0.05, missing),
    "failing": (0.04, failing),
}

_SYSTEMS = (
    "You are a helpful assistant.",
    "Be brief.",
    "You are a careful assistant that uses tools when they help.",
    "Answer in one sentence.",
)


def groups(
    drawer: Drawer,
    n_conversations: int,
    *,
    demo: float = 0.32,
    react: float = 0.16,
    n_rows: int = 7,
    short: float = 0.0,
) -> Iterator[list[JsonObject]]:
    """Groups of rows that share tools and format, until there are enough.

    Args:
        drawer: Draws tools, tasks and values.
        n_conversations: How many rows to draw at least.
        demo: The share of groups that offer exactly the demonstration tools.
        react: The share of groups in ReAct.
        n_rows: Rows of a group, at most.
        short: The share of conversations that end with their last call.
    """
    done = 0
    number = 0
    while done < n_conversations:
        draw = drawer.random.random()
        offers = drawer.demo_offers() if draw < demo else _mixed_offers(drawer)
        format_name = "react_en" if drawer.random.random() < react else "smollm2"
        rows = _group(drawer, number, offers, format_name, n_rows, short)
        number += 1
        done += len(rows)
        yield rows


def without_ending(messages: list[Message]) -> list[Message]:
    """Up to the last call: what follows is the same in every conversation and long."""
    last = max((i for i, m in enumerate(messages) if m.tool_calls), default=None)
    return messages if last is None else messages[: last + 1]


def _group(
    drawer: Drawer,
    number: int,
    offers: Sequence[Offer],
    format_name: str,
    n_rows: int = 7,
    short: float = 0.0,
) -> list[JsonObject]:
    system = drawer.random.choice(_SYSTEMS) if drawer.random.random() < 0.15 else ""
    rows: list[JsonObject] = []
    names = list(KINDS)
    weights = [KINDS[n][0] for n in names]
    seen: set[str] = set()
    for _ in range(40 * n_rows):
        if len(rows) == n_rows:
            break
        kind = drawer.random.choices(names, weights)[0]
        messages = KINDS[kind][1](drawer, offers)
        if messages is None or messages[0].text in seen:
            continue
        seen.add(messages[0].text)
        if drawer.random.random() < short:
            messages = without_ending(messages)
        elif drawer.random.random() < 0.06:
            messages = [*messages, *single(drawer, offers)]
        if format_name == "react_en":
            messages = with_thoughts(messages)
        if system:
            messages = [Message.system(system), *messages]
        conversation = Conversation(
            tuple(messages),
            tuple(o.spec for o in offers),
            {"kind": kind, "group": number, "format": format_name},
        )
        rows.append(conversation_to_row(conversation))
    return rows


def _mixed_offers(drawer: Drawer) -> list[Offer]:
    ids = list(drawer.catalog.tools)
    size = drawer.random.randint(3, 7)
    if drawer.random.random() < 0.3:
        one = drawer.random.choice(drawer.catalog.chains)
        chosen = [one["first"], one["second"]]
    else:
        link = drawer.link()
        chosen = [link.first, link.second]
    while len(chosen) < size:
        extra = drawer.random.choice(ids)
        if extra not in chosen:
            chosen.append(extra)
    return drawer.offers(chosen)


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--conversations", type=int, default=4800)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--demo", type=float, default=0.32, help="share of the demonstration tools")
    parser.add_argument("--react", type=float, default=0.16, help="share of ReAct")
    parser.add_argument("--rows", type=int, default=7, help="rows that share their tools")
    parser.add_argument("--short", type=float, default=0.0, help="share that ends with a call")
    parser.add_argument("--catalog", nargs="+", default=list(TRAINING))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    catalog = load_catalog(arguments.catalog)
    hold_out(catalog, held_out_values())
    drawer = Drawer(catalog, arguments.seed)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with arguments.out.open("w", encoding="utf-8") as file:
        for rows in groups(
            drawer,
            arguments.conversations,
            demo=arguments.demo,
            react=arguments.react,
            n_rows=arguments.rows,
            short=arguments.short,
        ):
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
    print(f"{count} conversations written to {arguments.out}")


if __name__ == "__main__":
    main()
