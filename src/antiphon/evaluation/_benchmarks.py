"""Every benchmark by its name."""

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
