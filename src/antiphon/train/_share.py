"""Rows that begin alike, computed together: what they share stands once, and each goes on from it.

Rows of one group have the same tools in their prompt, which is most of their text.  A shared row
holds that text once and behind it what each of them says next, a tree written flat.  Its positions
say what belongs together: a token follows the last one before it whose position is one less, so
that a position that falls back begins another branch, and one that falls back to 0 another example.
Attention is told by a mask of each token's path; loss and gradient are those of the rows apart.
"""

from collections.abc import Sequence
from typing import Any

from antiphon.encode import IGNORE, EncodedRow
from antiphon.encode._numpy import np
from antiphon.errors import UsageError

LEAST = 32
"""The fewest tokens that are worth sharing."""


def share(rows: Sequence[EncodedRow], max_tokens: int) -> list[EncodedRow]:
    """Join consecutive rows that begin alike.

    What is shared ends before the first token that any of them is trained on.

    Args:
        rows: Rows of one example each, those that begin alike behind each other.
        max_tokens: The longest joined row; a longer row stays alone.

    Raises:
        UsageError: A row is packed already.
    """
    joined: list[EncodedRow] = []
    members: list[EncodedRow] = []
    n_shared = 0
    for row in rows:
        if int(np.count_nonzero(np.asarray(row.position_ids) == 0)) != 1:
            raise UsageError("rows that are packed cannot share; encode them without --pack")
        n = _n_common(members[0], row) if members else 0
        n = min(n, n_shared) if len(members) > 1 else n
        fits = n + sum(len(one) - n for one in (*members, row)) <= max_tokens
        # A row of another group shares a header with this one; that is less than this one shares.
        if n >= LEAST and fits and (len(members) < 2 or 2 * n >= n_shared):
            members.append(row)
            n_shared = n
            continue
        joined += _tree(members, n_shared)
        members, n_shared = [row], 0
    return [*joined, *_tree(members, n_shared)]


def _n_common(one: EncodedRow, other: EncodedRow) -> int:
    """How many tokens two rows share, at least one untrained token before the rest of each."""
    n = min(_n_given(one), _n_given(other), len(one) - 1, len(other) - 1)
    differ = np.flatnonzero(np.asarray(one.input_ids[:n]) != np.asarray(other.input_ids[:n]))
    return int(differ[0]) if len(differ) else max(n, 0)


def _n_given(row: EncodedRow) -> int:
    """Tokens before the last one that stands in front of what is trained."""
    trained = np.flatnonzero(np.asarray(row.labels) != IGNORE)
    return int(trained[0]) - 1 if len(trained) else len(row)


def _tree(members: Sequence[EncodedRow], n: int) -> list[EncodedRow]:
    if len(members) < 2:
        return list(members)

    def flat(name: str) -> Any:
        arrays = [getattr(row, name) for row in members]
        return np.concatenate([arrays[0][:n], *(array[n:] for array in arrays)])

    names = ("input_ids", "labels", "loss_weights", "position_ids")
    ids, labels, weights, positions = (flat(name) for name in names)
    return [EncodedRow(ids, labels, weights, positions, members[0].line)]


def is_shared(row: EncodedRow) -> bool:
    """Whether a row has branches."""
    positions = np.asarray(row.position_ids)
    return bool((np.diff(positions) != 1)[positions[1:] != 0].any())


def branches(row: EncodedRow) -> list[EncodedRow]:
    """The examples of a row with branches, each from its first token."""
    path = np.zeros(len(row), dtype=np.int64)
    ends = [*np.flatnonzero(np.diff(np.asarray(row.position_ids)) != 1).tolist(), len(row) - 1]
    found: list[EncodedRow] = []
    for i, position in enumerate(np.asarray(row.position_ids).tolist()):
        path[position] = i
        if i in ends:
            places = path[: position + 1]
            found.append(
                EncodedRow(
                    row.input_ids[places],
                    row.labels[places],
                    row.loss_weights[places],
                    row.position_ids[places],
                    row.line,
                )
            )
    return found


def paths(position_ids: Any) -> Any:
    """Which tokens each token sees: those of its path, itself included; shape ``(T, T)``."""
    seen = np.zeros((len(position_ids), len(position_ids)), dtype=bool)
    path = np.zeros(len(position_ids), dtype=np.int64)
    for i, position in enumerate(np.asarray(position_ids).tolist()):
        path[position] = i
        seen[i, path[: position + 1]] = True
    return seen
