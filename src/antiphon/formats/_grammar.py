"""What constrained decoding may write: a small grammar of texts, and its spellings for engines.

`grammar_of` puts a family's `CallForm` and the tools together into a `Texts` grammar of one
assistant message; `_gbnf.py` and `_lark.py` spell it for llama.cpp and llguidance.  Arguments obey
their JSON Schema (`_schema_grammar.py`), spaced as `render` writes JSON, with properties in the
schema's order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from antiphon.errors import UnknownNameError, UsageError, clip
from antiphon.messages import JsonObject, ToolSpec, dump_json


@dataclass(frozen=True, slots=True)
class Lit:
    """Exactly this text."""

    text: str
    """The text."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: tuple[tuple[str, str], ...]
    """First and last character of each range."""
    negated: bool = False
    """Whether it is any character but these."""


@dataclass(frozen=True, slots=True)
class Seq:
    """One after another."""

    parts: tuple["Node", ...]
    """What comes, in order."""


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several."""

    options: tuple["Node", ...]
    """The choices."""


@dataclass(frozen=True, slots=True)
class Rep:
    """The same again and again."""

    node: "Node"
    """What is repeated."""
    least: int = 0
    """How often at least."""
    most: int | None = None
    """How often at most; ``None`` for no limit."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A rule by its name."""

    rule: str
    """The name."""


@dataclass(frozen=True, slots=True)
class Free:
    """Any text that does not hold one of some marks."""

    without: tuple[str, ...]
    """The marks."""
    least: int = 0
    """0 or 1: whether it may be empty."""


Node: TypeAlias = Lit | Chars | Seq | Alt | Rep | Ref | Free

EMPTY = Seq(())


def seq(*parts: Node | str) -> Node:
    """One after another; plain text stands for itself."""
    nodes = tuple(Lit(p) if isinstance(p, str) else p for p in parts if p not in ("", EMPTY))
    return nodes[0] if len(nodes) == 1 else Seq(nodes)


def alt(*options: Node) -> Node:
    """One of several."""
    unique = tuple(dict.fromkeys(options))
    return unique[0] if len(unique) == 1 else Alt(unique)


def optional(node: Node) -> Node:
    """Perhaps."""
    return Rep(node, 0, 1)


@lru_cache(maxsize=64)
def automaton(free: Free) -> tuple[list[str], dict[str, list[tuple[Chars, str]]]]:
    """Free text as states and moves: a state is the part of a mark that was just written.

    Returns:
        The states, the starting one (``""``) first, and each state's moves: on which characters to
        which state.  No move completes a mark; every state may be the last.  Not to be changed.
    """
    marks = tuple(mark for mark in free.without if mark)
    known = {mark[:i] for mark in marks for i in range(len(mark))} | {""}
    states = sorted(sorted(known), key=len)
    letters = sorted({ch for mark in marks for ch in mark})
    moves: dict[str, list[tuple[Chars, str]]] = {}
    for state in states:
        targets: dict[str, list[str]] = {}
        refused: list[str] = []
        for ch in letters:
            text = state + ch
            longest = next(text[i:] for i in range(len(text) + 1) if text[i:] in known)
            if any(text.endswith(mark) for mark in marks):
                refused.append(ch)
            elif longest:
                targets.setdefault(longest, []).append(ch)
        special = sorted([*refused, *(ch for group in targets.values() for ch in group)])
        others = Chars(tuple((ch, ch) for ch in special) or (("\0", "\0"),), negated=True)
        moves[state] = [(others, "")]
        moves[state] += [(Chars(tuple((ch, ch) for ch in g)), to) for to, g in targets.items()]
    return states, moves


@dataclass(frozen=True, slots=True)
class Texts:
    """A grammar of texts: rules by name, ``root`` first."""

    rules: dict[str, Node]
    """The rules."""
    specials: frozenset[str] = frozenset()
    """Marks that are single tokens of the vocabulary."""
    unheld: tuple[str, ...] = ()
    """What the tools' schemas ask for and the grammar does not hold, by tool and path."""

    def to_gbnf(self, *, specials: frozenset[str] | None = None) -> str:
        """llama.cpp's GBNF, rule ``root``.

        Args:
            specials: Marks to write as token literals; the family's own where not given.  A mark
            that
                is no single token of the model's vocabulary must not be among them.
        """
        from antiphon.formats._gbnf import to_gbnf

        return to_gbnf(self, self.specials if specials is None else specials)

    def to_lark(self, *, specials: frozenset[str] | None = None) -> str:
        """llguidance's Lark, rule ``start``. See `to_gbnf` for `specials`."""
        from antiphon.formats._lark import to_lark

        return to_lark(self, self.specials if specials is None else specials)

    def to_structural_tag(self) -> JsonObject:
        """XGrammar's structural tag, as vLLM and SGLang take it in ``response_format``."""
        grammar = self.to_gbnf(specials=frozenset())
        return {"type": "structural_tag", "format": {"type": "grammar", "grammar": grammar}}

    def to_regex(self) -> str:
        """A regular expression of the whole message.

        Raises:
            UsageError: The grammar is not regular: free text, or a schema that refers to itself.
        """
        from antiphon.formats._regex import to_regex

        return to_regex(self)


class Grammar(Protocol):
    """A grammar of one assistant message, in the spellings that engines take."""

    @property
    def unheld(self) -> tuple[str, ...]:
        """What the tools' schemas ask for and the grammar does not hold."""
        ...

    def to_gbnf(self, *, specials: frozenset[str] | None = None) -> str:
        """llama.cpp's GBNF, rule ``root``.  Special tokens are token literals."""
        ...

    def to_lark(self, *, specials: frozenset[str] | None = None) -> str:
        """llguidance's Lark, rule ``start``."""
        ...

    def to_structural_tag(self) -> JsonObject:
        """XGrammar's structural tag."""
        ...

    def to_regex(self) -> str:
        """A regular expression, where the grammar is regular."""
        ...


@dataclass(frozen=True, slots=True)
class CallForm:
    """How a family's calls stand in its text."""

    call: Callable[[ToolSpec, "Rules"], Node]
    """One call of one tool."""
    open: Node | str = ""
    """What stands before the first call."""
    between: str = ""
    """What stands between calls."""
    close: str = ""
    """What stands behind the last call."""
    before: str = ""
    """What stands between text and the first call."""
    alone: str = ""
    """What stands before the first call where no text does."""
    forbidden: tuple[str, ...] = ()
    """Marks that free text must not hold."""
    thinking: tuple[str, str] | None = None
    """What stands before and behind reasoning, where the family reasons."""
    unreasoned: str = ""
    """What stands before an answer without reasoning, where the prompt left that open."""
    specials: frozenset[str] = frozenset()
    """Marks that are single tokens of the vocabulary."""
    parallel: bool = True
    """Whether the family can write several calls at all."""
    text_before: bool = True
    """Whether text can stand before a call."""
    lead: str = ""
    """What stands before text, where a family writes something there."""
    tail: str = ""
    """What stands behind text that ends the answer, where that is no mark to stop at."""
    preface: str = ""
    """What stands before text that calls follow, where it is not `lead`."""
    answer: tuple[str, ...] = ()
    """Marks that the family writes before an answer that reasoning led to (ReAct)."""


class Rules:
    """The rules of a grammar while it is made."""

    def __init__(self) -> None:
        self.rules: dict[str, Node] = {}
        self.unheld: list[str] = []

    def add(self, name: str, node: Node) -> Ref:
        """A rule of that name; the same node again is the same rule."""
        unique, n = name, 1
        while unique in self.rules and self.rules[unique] != node:
            n += 1
            unique = f"{name}-{n}"
        self.rules[unique] = node
        return Ref(unique)


def json_form(
    specials: frozenset[str],
    *,
    open: str = "",
    close: str = "",
    between: str = "\n",
    before: str = "\n",
    alone: str = "",
    name: str = "name",
    arguments: str = "arguments",
    around: tuple[str, str] = ("", ""),
    forbidden: tuple[str, ...] = (),
    thinking: tuple[str, str] | None = None,
    parallel: bool = True,
    text_before: bool = True,
) -> CallForm:
    """The form of calls that are JSON objects between marks.

    Args:
        specials: Marks that are single tokens.
        open: What stands before each call.
        close: What stands behind each call.
        between: What stands between calls.
        before: What stands between text and the first call.
        alone: What stands before the first call where no text does.
        name: The key of the name.
        arguments: The key of the arguments.
        around: What stands around all calls: brackets and marks where they are an array.
        forbidden: Marks that text must not hold, besides the opening ones.
        thinking: What stands before and behind reasoning.
        parallel: Whether several calls can be written.
        text_before: Whether text can stand before a call.
    """
    from antiphon.formats._schema_grammar import arguments_node

    def call(spec: ToolSpec, rules: Rules) -> Node:
        head = f'{open}{{"{name}": {dump_json(spec.name)}, "{arguments}": '
        return seq(head, arguments_node(spec, rules), "}" + close)

    first = (around[0] or open).strip()
    turn_marks = tuple(sorted(m for m in specials if m.startswith("<|")))
    return CallForm(
        call,
        open=around[0],
        between=between,
        close=around[1],
        before=before,
        alone=alone,
        forbidden=tuple(dict.fromkeys((first, *forbidden, *turn_marks))),
        thinking=thinking,
        specials=specials,
        parallel=parallel,
        text_before=text_before,
    )


class WithForm(Protocol):
    """A family whose calls have a form."""

    @property
    def name(self) -> str:
        """The family's name."""
        ...

    @property
    def call_form(self) -> CallForm:
        """How its calls stand in its text."""
        ...


def grammar_of(
    format: WithForm,
    tools: Sequence[ToolSpec],
    *,
    choice: str,
    parallel: bool,
    start: str,
    answer: "JsonObject | str | None" = None,
) -> Texts:
    """The grammar of one assistant message. See `Format.grammar`.

    Raises:
        UnknownNameError: `choice` names no tool on offer.
        UsageError: A call is required and there are no tools, or the answer's pattern cannot be
            held.
    """
    form = format.call_form
    offered = list(tools)
    if choice not in ("auto", "none", "required"):
        offered = [spec for spec in tools if spec.name == choice]
        if not offered:
            known = ", ".join(spec.name for spec in tools) or "none"
            raise UnknownNameError(f"no tool named {choice!r} is on offer; tools: {known}")
    if choice == "none":
        offered = []
    elif not offered and choice != "auto":
        raise UsageError(f"tool choice {choice!r} needs tools; pass tools or choose 'auto'")
    rules = Rules()
    marks = form.forbidden + ((form.thinking[0].strip(),) if form.thinking else ())
    text: Node = Free(marks) if answer is None else _answer(answer, rules)
    body: Node = seq(form.lead, text, form.tail)
    calls: Node | None = None
    if offered:
        calls = _calls(form, offered, rules, parallel=parallel and form.parallel)
        alone = seq(form.alone, calls)
        if choice == "auto" and answer is not None:
            body = alt(alone, body)
        elif choice == "auto" and form.lead:
            body = alt(alone, body, seq(form.preface or form.lead, text, form.before, calls))
        elif choice == "auto":
            later = seq(text, optional(seq(form.before, calls))) if form.text_before else text
            body = later if form.text_before and not form.before else alt(alone, later)
        else:
            body = alone
    led_to = alt(*(seq(mark, text) for mark in form.answer)) if form.answer else None
    root = _with_thinking(form, body, start, calls=calls, led_to=led_to, choice=choice)
    marked = calls is not None or form.thinking is not None or answer is None
    specials = form.specials if marked else frozenset[str]()
    return Texts({"root": root} | rules.rules, specials, tuple(rules.unheld))


def _answer(answer: "JsonObject | str", rules: Rules) -> Node:
    """JSON text that fits a schema, or text that matches a pattern, in place of free text."""
    from antiphon.formats._pattern import pattern_node
    from antiphon.formats._schema_grammar import SchemaMaker

    if not isinstance(answer, str):
        return rules.add("answer", SchemaMaker(answer, rules, "answer").node(answer, ""))
    node = pattern_node(f"^(?:{answer})$", quoted=False)
    if node is None:
        raise UsageError(f"no grammar holds the pattern {clip(answer)}; use no look-around")
    return rules.add("answer", _unnested(node, rules))


def _unnested(node: Node, rules: Rules) -> Node:
    """A node whose repeated parts are rules, as engines refuse what is nested deeply."""
    match node:
        case Seq(parts):
            return Seq(tuple(_unnested(part, rules) for part in parts))
        case Alt(options):
            return Alt(tuple(_unnested(option, rules) for option in options))
        case Rep(inner, least, most) if isinstance(inner, Seq | Alt | Rep):
            return Rep(rules.add("part", _unnested(inner, rules)), least, most)
        case _:
            return node


def calls_of(form: CallForm, tools: Sequence[ToolSpec], *, n: int) -> Texts:
    """The grammar of `n` calls and nothing else.

    Args:
        form: How calls stand in the text.
        tools: The tools on offer.
        n: How many calls.
    """
    rules = Rules()
    one = rules.add("call", alt(*(form.call(spec, rules) for spec in tools)))
    more = Rep(seq(form.between, one), n - 1, n - 1)
    return Texts({"root": seq(form.open, one, more, form.close)} | rules.rules, form.specials)


def _calls(form: CallForm, tools: Sequence[ToolSpec], rules: Rules, *, parallel: bool) -> Node:
    one = rules.add("call", alt(*(form.call(spec, rules) for spec in tools)))
    more = Rep(seq(form.between, one)) if parallel else EMPTY
    return rules.add("calls", seq(form.open, one, more, form.close))


def _with_thinking(
    form: CallForm,
    body: Node,
    start: str,
    *,
    calls: Node | None,
    led_to: Node | None,
    choice: str,
) -> Node:
    if form.thinking is None:
        return body
    before, behind = form.thinking
    if led_to is None:
        reasoning = seq(Free((behind.strip(),)), behind, body)
    else:
        goal = led_to if calls is None else calls if choice != "auto" else alt(calls, led_to)
        reasoning = seq(Free(form.forbidden), behind, goal)
    if start == "reasoning":
        return reasoning
    return alt(seq(form.unreasoned, body), seq(before, reasoning))
