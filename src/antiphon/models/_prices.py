"""What a run costs in money, from prices that the user gives.

Prices change and differ by contract, so none are shipped: a JSON file names them, model by model.

    {"gpt-5": {"input": 1.25, "cached": 0.125, "output": 10.0}}

Amounts are for a million tokens, in whatever currency the file means.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, clip
from antiphon.messages import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost."""

    input: float
    """Tokens of prompts that were computed."""
    output: float
    """Tokens that the model wrote."""
    cached: float | None = None
    """Tokens of prompts that were kept from before; as `input` where not given."""

    def of(self, usage: Usage) -> float:
        """What a completion, or a run, cost.

        >>> Price(input=1.0, output=10.0, cached=0.1).of(Usage(1_000_000, 100_000, 400_000))
        1.64
        """
        kept = self.input if self.cached is None else self.cached
        computed = max(usage.input_tokens - usage.cached_tokens, 0)
        micro = computed * self.input + usage.cached_tokens * kept
        return (micro + usage.output_tokens * self.output) / 1_000_000


def read_prices(path: Path | str) -> dict[str, Price]:
    """Read a price table.

    Args:
        path: A JSON file as in this module's docstring.

    Raises:
        DataError: It cannot be read, or an entry is no price.
    """
    try:
        table: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read the prices: {error.strerror}", path=path) from error
    except ValueError as error:
        raise DataError(f"the prices are not JSON: {error}", path=path) from error
    if not isinstance(table, Mapping):
        raise DataError(f"prices must be an object of models, got {clip(table)}", path=path)
    rows = cast("Mapping[str, Any]", table)
    return {name: _price(name, row, path) for name, row in rows.items()}


def _price(name: str, row: object, path: Path | str) -> Price:
    fields = cast("Mapping[str, Any]", row if isinstance(row, Mapping) else {})
    amounts = {key: fields.get(key) for key in ("input", "output", "cached")}
    wrong = [k for k, v in amounts.items() if not _is_amount(v, optional=k == "cached")]
    if wrong or set(fields) - set(amounts):
        raise DataError(
            f"the price of {clip(name)} needs input and output, and may have cached, as numbers "
            f"of at least 0; got {clip(cast('object', row))}",
            path=path,
        )
    return Price(fields["input"], fields["output"], fields.get("cached"))


def _is_amount(value: Any, *, optional: bool) -> bool:
    if value is None:
        return optional
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
