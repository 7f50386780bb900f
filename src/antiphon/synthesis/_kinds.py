"""Tasks by rule, one function a kind: question, right calls, and what is then said.

A kind that the tools on offer do not allow gives ``None``, and another one is drawn.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from antiphon.synthesis._catalog import Chain, Linked, placeholders
from antiphon.synthesis._draw import Asked, Drawer, Values, fill
from antiphon.synthesis._task import (
    Fault,
    Link,
    Offered,
    Saying,
    ScriptCall,
    ScriptTurn,
    link_value,
    moved,
)

_PASSING = (
    "the service is not available right now",
    "timed out after 10 seconds",
    "the server is busy",
    "the connection was lost",
)
_LASTING = ("nothing found for this request", "access denied")
_CANNOT = (
    "I am sorry, none of my tools can do that.",
    "I have no tool for that.",
    "That is something I cannot look up here.",
)
_LINKED, _COMPOSED, _LED = 0.3, 0.6, 0.15
"""How often a single question is about a tool that is linked to another one, how often a dependent
task is composed where there is a chain too, and how often it first says what to find."""
_JOINS = ("? And ", ", and also: ", "? Also, ", "; then ", " and ")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A task before it has a name and tools."""

    kind: str
    """Its kind."""
    turns: list[str]
    """What the user says."""
    script: list[ScriptTurn]
    """What is right."""
    faults: list[Fault] = field(default_factory=list[Fault])
    """Tools that do not work for a while."""


def _turn(*asked: Asked, tries: int = 1) -> ScriptTurn:
    """One step with all the calls, and a sentence about each."""
    sayings = [replace(a.saying, step=0, call=n) for n, a in enumerate(asked)]
    return ScriptTurn([[a.call for a in asked]], sayings, tries)


def _said(text: str) -> ScriptTurn:
    return ScriptTurn([], [Saying([text])])


def askable(drawer: Drawer, offers: Sequence[Offered]) -> list[Offered]:
    """The tools on offer that the catalog has questions for."""
    return [o for o in offers if o.entry in drawer.catalog.tools]


def single(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """One call and the answer; often of a tool that others are linked to, so that both are seen."""
    if drawer.random.random() < _LINKED:
        ends = {id for link in _usable(drawer, offers) for id in (link.first, link.second)}
        offers = [o for o in offers if o.entry in ends] or offers
    asked = drawer.ask(drawer.random.choice(offers))
    return Drawn("single", [drawer.noise(asked.question)], [_turn(asked)])


def parallel(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """Two calls of one step that do not need each other."""
    first = drawer.ask(drawer.random.choice(offers))
    same = drawer.random.random() < 0.5
    second = drawer.ask(first.offered if same else drawer.random.choice(offers))
    if second.call == first.call:
        return None
    later = second.question[:1].lower() + second.question[1:]
    question = first.question.rstrip("?.!") + drawer.random.choice(_JOINS) + later
    if drawer.random.random() < 0.35:
        question = f"{first.question} {second.question}"
    return Drawn("parallel", [question], [_turn(first, second)])


def dependent(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """Two calls, of which the second needs what the first one finds."""
    by_id = {o.entry: o for o in offers}
    chains = [c for c in drawer.catalog.chains if c.first in by_id and c.second in by_id]
    links = _usable(drawer, offers)
    if links and (not chains or drawer.random.random() < _COMPOSED):
        made = _composed(drawer, drawer.random.choice(links), by_id)
    elif chains:
        made = _chained(drawer, drawer.random.choice(chains), by_id)
    else:
        made = None
    if made is None:
        return None
    turn, question = made
    return Drawn("dependent", [drawer.noise(question)], [turn])


def _usable(drawer: Drawer, offers: Sequence[Offered]) -> list[Linked]:
    """The pairs of tools on offer that are linked."""
    by_id = {o.entry: o for o in offers}
    return [
        link
        for id in by_id
        for link in drawer.catalog.links.get(id, ())
        if link.second in by_id and link.parameter in by_id[link.second].names
    ]


def _composed(
    drawer: Drawer, link: Linked, offers: Mapping[str, Offered]
) -> tuple[ScriptTurn, str] | None:
    """The second tool's question, with what people call the first one's finding in its place."""
    entries = drawer.catalog.tools
    phrase = drawer.random.choice(drawer.catalog.linked[link.first, link.field])
    hole = f"{{{link.parameter}}}"
    second = offers[link.second]
    questions = [
        q
        for q in entries[link.second].questions
        if q.count(hole) == 1 and placeholders(q) <= second.names.keys() and _reads(q, hole, phrase)
    ]
    if not questions:
        return None
    question = drawer.random.choice(questions)
    given = drawer.values(entries[link.first], placeholders(phrase), {})
    own = drawer.values(entries[link.second], placeholders(question) - {link.parameter}, {})
    turn = _two_steps(drawer, offers[link.first], given, second, own, {link.parameter: link.field})
    noun = fill(phrase, {key: spoken for key, (_, spoken) in given.items()})
    slots = {p.key: p.slot for p in entries[link.second].parameters}
    label = _LABELS.get(slots[link.parameter])
    lead = ""
    if label and drawer.random.random() < _LED:
        lead = _lead(drawer, noun, label)
        noun = f"that {label}"
    said = {key: spoken for key, (_, spoken) in own.items()} | {link.parameter: noun}
    asked = fill(question, said)
    return turn, lead + asked[:1].upper() + asked[1:]


_LABELS = {"city": "city", "person": "person", "date": "day", "time": "time", "company": "company"}
_LEADS = ("Find {}. ", "Look up {} first. ", "First get {}, then: ")
_CLAUSE = re.compile("who|what|where|when")
_ASKED = 0.5
"""How often what to find is asked for instead of ordered, where it can be."""


def _lead(drawer: Drawer, noun: str, label: str) -> str:
    """What is said of the first tool's finding before the question about it."""
    question = _question_for(noun, label)
    if question and drawer.random.random() < _ASKED:
        return question
    return drawer.random.choice(_LEADS).format(noun)


def _question_for(noun: str, label: str) -> str:
    """A question for what is called by a noun or a clause; none where its words would not fit."""
    if not _CLAUSE.match(noun):
        return f"{'Who' if label == 'person' else 'What'} is {noun}? "
    # `who called`, `what the town is called`: only the first has a question's order of words.
    asks = noun.startswith("who ") and not noun.startswith("who the ")
    return f"{noun[:1].upper()}{noun[1:]}? " if asks else ""


def _reads(question: str, hole: str, phrase: str) -> bool:
    """Whether a clause (`who called`, `where she lives`) can stand in a question's hole."""
    if not _CLAUSE.match(phrase):
        return True
    if re.match("where|when", phrase):
        return not re.search(r"\b(in|at|to|of|on|for|from|near) " + re.escape(hole), question)
    return f"{hole}'" not in question


def _chained(drawer: Drawer, chain: Chain, offers: Mapping[str, Offered]) -> tuple[ScriptTurn, str]:
    question = drawer.random.choice(chain.questions)
    wanted = placeholders(question)
    first, second = offers[chain.first], offers[chain.second]
    entries = drawer.catalog.tools
    given = drawer.values(entries[chain.first], wanted, {})
    then: Values = {key: value for key, value in given.items() if key in wanted}
    own = drawer.values(entries[chain.second], wanted - set(chain.link), then)
    keys = [p.key for p in entries[chain.second].parameters]
    own_only = {key: own[key] for key in keys if key in own and key not in chain.link}
    turn = _two_steps(drawer, first, given, second, own_only, chain.link)
    said = {key: spoken for key, (_, spoken) in {**own, **given}.items()}
    return turn, fill(question, said)


def _two_steps(
    drawer: Drawer,
    first: Offered,
    given: Values,
    second: Offered,
    own: Values,
    links: Mapping[str, str],
) -> ScriptTurn:
    """A call, then one with what the first one found: key of the second -> field of the result."""
    one = drawer.asked(first, _naming(given), given)
    two = drawer.asked(second, "-", own)
    linked = {second.names[key]: link_value(Link(0, 0, name)) for key, name in links.items()}
    parameters = drawer.catalog.tools[second.entry].parameters
    order = [second.names[p.key] for p in parameters if p.key in second.names]
    arguments = linked | two.call.arguments
    call = ScriptCall(second.name, {n: arguments[n] for n in order if n in arguments})
    return ScriptTurn([[one.call], [call]], [replace(two.saying, step=1, call=0)])


def _naming(values: Values) -> str:
    return " ".join(f"{{{key}}}" for key in values)


def multi_turn(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """Two or three questions one after the other."""
    asked = [drawer.ask(drawer.random.choice(offers)) for _ in range(drawer.random.randint(2, 3))]
    return Drawn("multi_turn", [drawer.noise(a.question) for a in asked], [_turn(a) for a in asked])


def missing(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """A request that lacks an argument: the assistant asks, is told, and calls."""
    usable = [o for o in offers if drawer.catalog.tools[o.entry].missing]
    if not usable:
        return None
    offered = drawer.random.choice(usable)
    request, back = drawer.random.choice(drawer.catalog.tools[offered.entry].missing)
    asked = drawer.ask(offered)
    return Drawn("missing", [request, asked.question], [_said(back), _turn(asked)])


def no_tool(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """A question that needs no tool, or one that only a tool that is not there could answer."""
    others = [
        entry
        for id, entry in drawer.catalog.tools.items()
        if not entry.worded and all(id != o.entry and not _alike(entry.names, o) for o in offers)
    ]
    if others and (not drawer.catalog.no_tool or drawer.random.random() < 0.3):
        asked = drawer.ask(drawer.offer(drawer.random.choice(others)))
        return Drawn("no_tool", [asked.question], [_said(drawer.random.choice(_CANNOT))])
    if not drawer.catalog.no_tool:
        return None
    question, answer = drawer.random.choice(drawer.catalog.no_tool)
    return Drawn("no_tool", [question], [_said(answer)])


def _alike(names: Sequence[str], offered: Offered) -> bool:
    """Whether a tool on offer may do what another one does: their names share a word."""
    words = {word for name in names for word in name.split("_")}
    return bool(words & set(offered.name.split("_")) - {"get", "find", "check", "list", "my"})


def recovery(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """A tool that fails once and works the next time."""
    asked = drawer.ask(drawer.random.choice(offers))
    fault = Fault(asked.offered.name, fault_text(drawer.random, again=True))
    return Drawn("recovery", [drawer.noise(asked.question)], [_turn(asked, tries=2)], [fault])


def failing(drawer: Drawer, offers: Sequence[Offered]) -> Drawn | None:
    """A tool that does not work: the answer says so and invents nothing."""
    asked = drawer.ask(drawer.random.choice(offers))
    fault = Fault(asked.offered.name, fault_text(drawer.random, again=False), times=1_000)
    return Drawn("failing", [drawer.noise(asked.question)], [_turn(asked)], [fault])


def fault_text(draw: random.Random, *, again: bool) -> str:
    """What a tool says that does not work, for now or at all."""
    return f"{draw.choice(_PASSING)}; try again" if again else draw.choice(_PASSING + _LASTING)


def merged(first: Drawn, second: Drawn) -> Drawn | None:
    """Two tasks of one turn as one longer task; ``None`` where they cannot be joined."""
    mergeable = ("single", "parallel", "dependent")
    if first.kind not in mergeable or second.kind not in mergeable:
        return None
    one, two = first.script[0], second.script[0]
    n = len(one.steps)
    later = [[replace(c, arguments=moved(c.arguments, n)) for c in step] for step in two.steps]
    sayings = [*one.sayings, *(replace(s, step=s.step + n) for s in two.sayings)]
    question = f"{first.turns[0]} {second.turns[0]}"
    return Drawn("merged", [question], [ScriptTurn([*one.steps, *later], sayings)])


BY_RULE: dict[str, Callable[[Drawer, Sequence[Offered]], Drawn | None]] = {
    "single": single,
    "parallel": parallel,
    "dependent": dependent,
    "multi_turn": multi_turn,
    "missing": missing,
    "no_tool": no_tool,
    "recovery": recovery,
    "failing": failing,
}
