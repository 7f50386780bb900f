"""What came before in a file of any length, in a bounded part of the memory.

Digests are kept in a set until they are many, and then in a temporary database of SQLite, which
has no name and is gone when it is closed.  Knows nothing of rows.
"""

import sqlite3
import weakref

from antiphon.errors import DataError

_HELD = 1 << 17
_CACHE_KB = 8192


class Seen:
    """The digests so far.

    Args:
        n_held: How many are held in memory before they are put on disk.
    """

    def __init__(self, n_held: int = _HELD) -> None:
        self._n_held = n_held
        self._held: set[bytes] = set()
        self._disk: sqlite3.Connection | None = None

    def add(self, digest: bytes) -> bool:
        """Remember a digest; whether it is a new one.

        Args:
            digest: Of any length.

        Raises:
            DataError: The temporary directory cannot be written.
        """
        if digest in self._held or self._is_on_disk(digest):
            return False
        self._held.add(digest)
        if len(self._held) >= self._n_held:
            self._put_on_disk()
        return True

    def _is_on_disk(self, digest: bytes) -> bool:
        if self._disk is None:
            return False
        found = self._disk.execute("SELECT 1 FROM seen WHERE digest = ?", (digest,))
        return found.fetchone() is not None

    def _put_on_disk(self) -> None:
        try:
            if self._disk is None:
                self._disk = _opened()
                weakref.finalize(self, self._disk.close)
            with self._disk:
                rows = ((digest,) for digest in sorted(self._held))
                self._disk.executemany("INSERT INTO seen VALUES (?)", rows)
        except sqlite3.Error as error:
            raise DataError(
                f"what came before cannot be kept in a temporary file: {error}; set TMPDIR to a "
                "directory with room"
            ) from error
        self._held = set()


def _opened() -> sqlite3.Connection:
    disk = sqlite3.connect("")
    disk.execute("PRAGMA journal_mode = OFF")
    disk.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    disk.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY) WITHOUT ROWID")
    return disk
