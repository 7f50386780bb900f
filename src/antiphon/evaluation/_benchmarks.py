"""Every benchmark by its name."""

from collections.abc import Iterable

from antiphon.evaluation._bfcl_turns import turn_cases
from antiphon.evaluation._cases import Case, load_cases
from antiphon.evaluation._desk import desk_cases
from antiphon.evaluation._run import OwnCase
from antiphon.models import Model


def load_benchmark(name: str, *, user: Model | None = None) -> tuple[Case | OwnCase, ...]:
    """The cases of any benchmark, those that judge for themselves included.

    Args:
        name: As for `load_cases`; or ``desk``, or ``bfcl/multi_turn_...``.
        user: For ``desk``: who plays the people; by script where there is none.

    Raises:
        UnknownNameError: There is no such benchmark.
        UsageError: Its data is not installed.
    """
    if name == "desk":
        return desk_cases(user)
    if name.startswith("bfcl/multi_turn"):
        return turn_cases(name.removeprefix("bfcl/"))
    return load_cases(name)


def held_out(names: Iterable[str]) -> list[str]:
    """The questions of some benchmarks and the texts in their right calls, for who makes data.

    Args:
        names: As for `load_cases`.

    Raises:
        UnknownNameError: There is no such benchmark.
        UsageError: Its data is not installed.
    """
    found: dict[str, None] = {}
    for name in names:
        for case in load_cases(name):
            found[case.question] = None
            values = [v for step in case.steps for c in step for v in c.arguments.values()]
            values += [
                v for call in case.accepts for a in call.values() for vs in a.values() for v in vs
            ]
            found |= {v: None for v in values if isinstance(v, str) and v}
    return list(found)
