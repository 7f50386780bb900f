"""The Berkeley leaderboard's multi-turn categories, on its own executable classes.

The classes are imported from an installed ``bfcl-eval`` (``pip install --no-deps bfcl-eval``; one
of them needs ``mpmath``), nothing else of it is.  After each turn the state of every class and what
was answered so far are compared with those of the right calls, as in `multi_turn_checker` of
bfcl-eval 2026.3.23: the states are equal, and every right answer of the turn was given in this turn
or before.
"""

import ast
import copy
import importlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from antiphon.errors import ToolError, UnknownNameError, UsageError
from antiphon.evaluation._bfcl import data_folder, read_lines, spec_of
from antiphon.evaluation._cases import Outcome
from antiphon.evaluation._run import Mode
from antiphon.evaluation._worlds import Talk, state_error
from antiphon.messages import ToolCall
from antiphon.tools import Tool

TURN_CATEGORIES = (
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
_CODE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_CLASSES = {
    "GorillaFileSystem": ("gorilla_file_system", "gorilla_file_system"),
    "MathAPI": ("math_api", "math_api"),
    "MessageAPI": ("message_api", "message_api"),
    "TwitterAPI": ("posting_api", "posting_api"),
    "TicketAPI": ("ticket_api", "ticket_api"),
    "TradingBot": ("trading_bot", "trading_bot"),
    "TravelAPI": ("travel_booking", "travel_booking"),
    "VehicleControlAPI": ("vehicle_control", "vehicle_control"),
}
"""Class -> its module, and the file of its functions' documents."""
_MORE_TOOLS = "There are more tools now. Please go on."


@dataclass(frozen=True, slots=True)
class TurnCase:
    """A conversation of several turns over executable classes."""

    id: str
    """The case's name."""
    kind: str
    """Its category."""
    turns: tuple[str, ...]
    """What the user says."""
    truth: tuple[tuple[ToolCall, ...], ...]
    """The right calls of each turn."""
    classes: tuple[str, ...]
    """The classes that are involved."""
    initial: Mapping[str, Any]
    """Their first states."""
    functions: tuple[Mapping[str, Any], ...]
    """The documents of the classes' functions. What is not offered answers all the same, as in the
    leaderboard: some of its right calls are of functions that are held back."""
    held_back: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])
    """Functions that are offered only from a turn on."""
    excluded: frozenset[str] = frozenset()
    """Functions that are never offered."""

    def world(self) -> "BerkeleyWorld":
        """The classes in their first states.

        Raises:
            UsageError: A class cannot be imported.
        """
        return BerkeleyWorld(self)

    async def judged(self, mode: Mode) -> Outcome:
        """Talk through the turns, and compare after each.

        Raises:
            ModelError: The model cannot be asked.
            UsageError: A class cannot be imported.
        """
        talk, mine, right = Talk(mode), self.world(), self.world()
        for number, text in enumerate(self.turns):
            later = {n for turn, names in self.held_back.items() if turn > number for n in names}
            n_before = len(mine.said)
            error = await talk.turn(text, mine.tools(), hidden=later | self.excluded)
            wanted = [right.execute(call) for call in self.truth[number]]
            if wanted and not error:
                error = self._error(mine, right, wanted, n_called=len(mine.said) - n_before)
            if error:
                return talk.outcome(self.id, self.kind, turn=number, error=error)
        return talk.outcome(self.id, self.kind)

    @staticmethod
    def _error(
        mine: "BerkeleyWorld", right: "BerkeleyWorld", wanted: Sequence[str], *, n_called: int
    ) -> str:
        if not n_called:
            return "no_call"
        missing = Counter(wanted) - Counter(mine.said)
        return state_error(mine.state(), right.state()) or ("missing_call" if missing else "")


class BerkeleyWorld:
    """The classes of one case, and what they have answered."""

    def __init__(self, case: TurnCase) -> None:
        self._functions = case.functions
        self._instances = {
            name: _instance(name, case.initial.get(name, {}), "long_context" in case.kind)
            for name in case.classes
        }
        self.said: list[str] = []
        """What every call so far answered."""

    def tools(self) -> list[Tool[..., Any]]:
        """The functions as tools."""
        return [self._tool(function) for function in self._functions]

    def _tool(self, function: Mapping[str, Any]) -> Tool[..., Any]:
        def call(arguments: dict[str, Any]) -> str:
            text = self.execute(ToolCall(str(function["name"]), arguments))
            if text.startswith("Error during execution"):
                raise ToolError(text)
            return text

        # The classes are given what the model wrote, whatever their documents say of its types:
        # what they cannot take is for them to say, and some right calls are of another type.
        shown = spec_of(function)
        tool = Tool.from_spec(replace(shown, parameters={"type": "object"}), call, threaded=False)
        tool.spec = shown
        return tool

    def state(self) -> dict[str, dict[str, Any]]:
        """The public attributes of every class."""
        return {
            name: {k: v for k, v in one.__dict__.items() if not k.startswith("_")}
            for name, one in self._instances.items()
        }

    def execute(self, call: ToolCall) -> str:
        """Make a call; what it answers as text."""
        owner = next((i for i in self._instances.values() if hasattr(i, call.name)), None)
        try:
            result: Any = getattr(owner, call.name)(**call.arguments)
        except Exception as error:  # the class is the benchmark's: what it raises is its answer
            result = f"Error during execution: {error}"
        text: str = result if isinstance(result, str) else _text(result)
        self.said.append(text)
        return text


def _text(result: Any) -> str:
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except TypeError:
            return str(cast("dict[str, Any]", result))
    return str(result)


def _class(name: str) -> Any:
    module = f"{_CODE}.{_CLASSES[name][0]}"
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        lacks = getattr(error, "name", "") or module
        raise UsageError(
            f"{name} of the Berkeley leaderboard cannot be imported: {lacks} is missing; "
            f"install it with: pip install {lacks}"
        ) from error


def _instance(name: str, initial: Any, is_long: bool) -> Any:
    made = _class(name)()
    if name != "MathAPI":  # it has no state
        made._load_scenario(copy.deepcopy(initial), long_context=is_long)
    return made


def turn_cases(category: str, *, folder: Path | str | None = None) -> tuple[TurnCase, ...]:
    """The cases of a multi-turn category.

    Args:
        category: ``multi_turn_base``, ``multi_turn_miss_func``, ``multi_turn_miss_param`` or
            ``multi_turn_long_context``.
        folder: See `data_folder`.

    Raises:
        UnknownNameError: There is no such category.
        UsageError: The data is not installed.
        DataError: A file is damaged.
    """
    if category not in TURN_CATEGORIES:
        known = ", ".join(TURN_CATEGORIES)
        raise UnknownNameError(f"no multi-turn category bfcl/{category}; known: {known}")
    source = data_folder(folder)
    answers = {
        row["id"]: row["ground_truth"]
        for row in read_lines(source / "possible_answer" / f"BFCL_v4_{category}.json")
    }
    documents = {
        name: list(read_lines(source / "multi_turn_func_doc" / f"{file}.json"))
        for name, (_, file) in _CLASSES.items()
    }
    rows = read_lines(source / f"BFCL_v4_{category}.json")
    return tuple(_case(row, answers[row["id"]], category, documents) for row in rows)


def _case(
    row: Mapping[str, Any],
    truth: Sequence[Sequence[str]],
    category: str,
    documents: Mapping[str, Sequence[Mapping[str, Any]]],
) -> TurnCase:
    functions = [f for name in row["involved_classes"] for f in documents[name]]
    known = {str(f["name"]): f for f in functions}
    return TurnCase(
        id=row["id"],
        kind=category,
        turns=tuple(
            "\n".join(m["content"] for m in turn) if turn else _MORE_TOOLS
            for turn in row["question"]
        ),
        truth=tuple(tuple(_read(text, known) for text in turn) for turn in truth),
        classes=tuple(row["involved_classes"]),
        initial=row["initial_config"],
        functions=tuple(functions),
        held_back={int(turn): names for turn, names in row.get("missed_function", {}).items()},
        excluded=frozenset(row.get("excluded_function", ())),
    )


def _read(text: str, known: Mapping[str, Mapping[str, Any]]) -> ToolCall:
    """A right call from its text, ``cd(folder='x')``; arguments by place get their names."""
    call = ast.parse(text.strip(), mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise UsageError(f"{text!r} is no call")
    properties = cast("Mapping[str, Any]", known[call.func.id]["parameters"]["properties"])
    places = zip(properties, call.args, strict=False)
    arguments = {name: ast.literal_eval(value) for name, value in places}
    arguments |= {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    return ToolCall(call.func.id, arguments)
