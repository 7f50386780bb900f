"""Rows of several sources are one sequence."""

import numpy as np
import pytest

from antiphon.encode import EncodedRow, JoinedRows


def _row(n: int) -> EncodedRow:
    return EncodedRow(np.arange(n), np.arange(n), np.ones(n), np.arange(n), line=n)


def test_rows_stand_behind_each_other() -> None:
    rows = [_row(n) for n in range(1, 7)]

    joined = JoinedRows([rows[:2], [], rows[2:]])

    assert list(joined) == [joined[i] for i in range(len(rows))] == rows
    assert joined[-1] is rows[-1]
    assert joined[1:3] == rows[1:3]
    assert len(JoinedRows([])) == 0
    with pytest.raises(IndexError, match="row 6 of 6"):
        joined[6]
