"""Files that stand under their name only when all of them is written."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Generator[Path]:
    """Where to write a file, which takes its place when the context ends well.

    A link stays, and what it leads to is written.  A device or a pipe cannot be replaced: it is
    written to as it is.

    Args:
        path: The file, there or not.

    Yields:
        A path beside it; `path` itself where it is no file.

    Raises:
        OSError: The file cannot take its place.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        yield path
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
