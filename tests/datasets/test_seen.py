"""What came before, held in memory and on disk."""

import hashlib

from antiphon.datasets import Checker, Seen


def digests(n: int) -> list[bytes]:
    return [hashlib.blake2b(str(i).encode(), digest_size=16).digest() for i in range(n)]


def test_a_digest_is_new_once_wherever_it_is_held() -> None:
    seen = Seen(n_held=7)

    assert all(seen.add(digest) for digest in digests(100))
    assert not any(seen.add(digest) for digest in digests(100))


def test_no_more_is_held_in_memory_than_was_said() -> None:
    seen = Seen(n_held=7)

    for digest in digests(100):
        seen.add(digest)
        assert len(seen._held) < 7  # pyright: ignore[reportPrivateUsage]


def test_a_duplicate_is_found_long_after_it_came_first() -> None:
    checker = Checker(seen=Seen(n_held=3))
    rows = [
        {"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": "!"}]}
        for i in [*range(20), 0]
    ]

    found = [finding for line, row in enumerate(rows, 1) for finding in checker.check(row, line)]

    assert [(finding.line, finding.code) for finding in found] == [(21, "duplicate")]
