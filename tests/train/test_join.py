"""Rows of several sources are one sequence."""

import pytest

from antiphon.encode import EncodedRow
from antiphon.train import JoinedRows


def test_rows_stand_behind_each_other(rows: list[EncodedRow]) -> None:
    joined = JoinedRows([rows[:2], [], rows[2:]])

    assert list(joined) == [joined[i] for i in range(len(rows))] == rows
    assert joined[-1] is rows[-1]
    assert joined[1:3] == rows[1:3]
    assert len(JoinedRows([])) == 0
    with pytest.raises(IndexError, match="row 6 of 6"):
        joined[6]
