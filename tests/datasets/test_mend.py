"""What can be mended without guessing is; everything else stays as it is and is told."""

from typing import Any

import pytest

from antiphon.datasets import Checker, Mender
from antiphon.messages import JsonObject

USER: dict[str, Any] = {"role": "user", "content": "Ferry?"}
SAID: dict[str, Any] = {"role": "assistant", "content": "At 9."}
SYSTEM: dict[str, Any] = {"role": "system", "content": "Be brief."}
EMPTY: dict[str, Any] = {"role": "user", "content": " "}
IMAGE: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "image_url", "image_url": {"url": "a.png"}}],
}


def said(row: Any) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in row["messages"]]


@pytest.mark.parametrize(
    ("messages", "code", "mended"),
    [
        ([USER, EMPTY, SAID], "empty", [("user", "Ferry?"), ("assistant", "At 9.")]),
        (
            [USER, USER, SAID],
            "user_twice",
            [("user", "Ferry?\n\nFerry?"), ("assistant", "At 9.")],
        ),
        (
            [USER, SYSTEM, SAID],
            "system_not_first",
            [("system", "Be brief."), ("user", "Ferry?"), ("assistant", "At 9.")],
        ),
    ],
)
def test_a_fault_that_has_one_mend_is_mended(
    messages: list[JsonObject], code: str, mended: list[tuple[str, str]]
) -> None:
    row = {"messages": messages, "id": 7}
    assert code in {finding.code for finding in Checker().check(row)}
    mender = Mender()

    kept = mender.mend(row)

    assert kept is not None
    assert said(kept) == mended
    assert kept["id"] == 7
    assert mender.done[code] == 1
    assert code not in {finding.code for finding in Checker().check(kept)}


def test_a_row_without_faults_is_the_row_itself() -> None:
    row = {"messages": [SYSTEM, USER, SAID], "tools": "[]", "strange": {"a": [1.0]}}

    assert Mender().mend(row) is row


def test_rows_that_came_before_and_rows_that_cannot_be_read_are_left_out() -> None:
    mender = Mender()

    kept = [
        mender.mend(row)
        for row in (
            {"messages": [USER, SAID]},
            {"messages": [USER, EMPTY, SAID]},
            {"messages": "no list"},
        )
    ]

    assert [row is not None for row in kept] == [True, False, False]
    assert dict(mender.left_out) == {"duplicate": 1, "unreadable": 1}


def test_two_system_messages_and_pictures_stay() -> None:
    two = {"messages": [SYSTEM, USER, SYSTEM, SAID]}
    picture = {"messages": [USER, IMAGE, SAID]}
    mender = Mender()

    assert mender.mend(two) is two
    joined = mender.mend(picture)

    assert joined is not None
    assert [m["role"] for m in joined["messages"]] == ["user", "assistant"]
    assert "a.png" in str(joined["messages"][0])
