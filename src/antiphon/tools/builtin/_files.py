"""Files under one root as tools: list, read, search, write, and never anything outside.

Paths are relative to the root.  Each is resolved with its symbolic links before it is opened, and
what it leads to must lie inside; absolute paths and ``..`` that leave the root are refused.  A
program that swaps a directory for a link between the check and the opening is not guarded against:
for that, run in a container.
"""

import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from antiphon.errors import ToolError, UsageError
from antiphon.tools._tool import Tool, tool

MAX_READ_BYTES = 1_000_000
MAX_WRITE_BYTES = 1_000_000
MAX_ENTRIES = 500
MAX_MATCHES = 100
_MAX_LINE_CHARS = 300


def files(root: str | os.PathLike[str], *, write: bool = True) -> list[Tool[..., Any]]:
    """Tools for the files under one directory.

    Args:
        root: The directory; nothing outside it is read or written.
        write: Whether there is a ``write_file`` among them.

    Returns:
        ``list_files``, ``read_file``, ``search_files`` and, with `write`, ``write_file``.

    Raises:
        UsageError: There is no such directory.
    """
    folder = _Folder(root)

    @tool(idempotent=True)
    def list_files(folder_path: str = ".", pattern: str = "*") -> list[str]:
        """List files and folders; folders end in "/".

        Args:
            folder_path: Folder to list.
            pattern: Only names like this, e.g. "*.txt"; "**" lists all folders below.
        """
        return folder.entries(folder_path, pattern)

    @tool(idempotent=True)
    def read_file(path: str, first_line: int = 1, max_lines: int = 500) -> str:
        """Read a text file.

        Args:
            path: File to read.
            first_line: Line to begin with.
            max_lines: How many lines to read at most.
        """
        return folder.read(path, first_line, max_lines)

    @tool(idempotent=True)
    def search_files(text: str, folder_path: str = ".", pattern: str = "*") -> list[str]:
        """Find lines that contain a text; answers "file:line: text".

        Args:
            text: Text to find, in any case.
            folder_path: Folder to search, with all folders below.
            pattern: Only files with names like this, e.g. "*.py".
        """
        return folder.search(text, folder_path, pattern)

    @tool
    def write_file(path: str, content: str, append: bool = False) -> str:
        """Write a text file.

        Args:
            path: File to write; folders are made as needed.
            content: The text.
            append: Add to the end instead of replacing the file.
        """
        return folder.write(path, content, append)

    reading: list[Tool[..., Any]] = [list_files, read_file, search_files]
    return [*reading, write_file] if write else reading


class _Folder:
    """A directory and the rule that nothing leaves it."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise UsageError(f"files needs a directory that exists, got {str(root)!r}")

    def inside(self, path: str) -> Path:
        """The real place of a path, which lies inside the root.

        Raises:
            ToolError: It does not.
        """
        if "\0" in path:
            raise ToolError("a path cannot hold a NUL character")
        try:
            real = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError):
            raise ToolError(f"{path!r} is no path that can be followed") from None
        if real != self.root and self.root not in real.parents:
            raise ToolError(
                f"{path!r} is outside the folder; give a path relative to it, without '..'"
            )
        return real

    def name(self, real: Path) -> str:
        return real.relative_to(self.root).as_posix()

    def entries(self, path: str, pattern: str) -> list[str]:
        start = self._folder(path)
        found: list[str] = []
        entries = self._walk(start) if "**" in pattern else sorted(start.iterdir())
        wanted = pattern.replace("**/", "").replace("**", "*") or "*"
        for entry in entries:
            if fnmatch.fnmatch(entry.name, wanted):
                found.append(self.name(entry) + ("/" if entry.is_dir() else ""))
            if len(found) > MAX_ENTRIES:
                found[-1] = f"... more than {MAX_ENTRIES}; give a folder or a pattern"
                break
        return found

    def read(self, path: str, first_line: int, max_lines: int) -> str:
        if first_line < 1 or max_lines < 1:
            raise ToolError("first_line and max_lines count from 1")
        text = self._text(self._file(path), path)
        lines = text.splitlines(keepends=True)
        if not lines:
            return ""
        if first_line > len(lines):
            raise ToolError(f"{path!r} has {len(lines)} lines, none from {first_line}")
        end = first_line - 1 + max_lines
        shown = "".join(lines[first_line - 1 : end])
        if end < len(lines):
            shown += f"\n[{len(lines) - end} more lines; go on with first_line={end + 1}]"
        return shown

    def search(self, text: str, path: str, pattern: str) -> list[str]:
        if not text:
            raise ToolError("the text to find is empty")
        wanted = re.compile(re.escape(text), re.IGNORECASE)
        found: list[str] = []
        for entry in self._walk(self._folder(path)):
            if not fnmatch.fnmatch(entry.name, pattern) or not _is_regular(entry):
                continue
            if entry.stat().st_size > MAX_READ_BYTES:
                continue
            data = entry.read_bytes()
            if b"\0" in data[:4096]:
                continue
            for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
                if wanted.search(line):
                    found.append(f"{self.name(entry)}:{number}: {line.strip()[:_MAX_LINE_CHARS]}")
                    if len(found) >= MAX_MATCHES:
                        return [*found, f"... stopped at {MAX_MATCHES}; search for more exact text"]
        return found

    def write(self, path: str, content: str, append: bool) -> str:
        data = content.encode("utf-8", "replace")
        if len(data) > MAX_WRITE_BYTES:
            raise ToolError(
                f"the text has {len(data)} bytes; at most {MAX_WRITE_BYTES} are written"
            )
        real = self.inside(path)
        if real == self.root or real.is_dir():
            raise ToolError(f"{path!r} is a folder; give a file in it")
        if real.exists() and not _is_regular(real):
            raise ToolError(f"{path!r} is no regular file")
        try:
            real.parent.mkdir(parents=True, exist_ok=True)
            with real.open("ab" if append else "wb") as file:
                if append and file.tell() + len(data) > MAX_READ_BYTES:
                    raise ToolError(f"{path!r} would grow past {MAX_READ_BYTES} bytes")
                file.write(data)
        except OSError as error:
            raise ToolError(f"{path!r} cannot be written: {error.strerror}") from None
        return f"{'added' if append else 'wrote'} {len(data)} bytes to {self.name(real)}"

    def _folder(self, path: str) -> Path:
        real = self.inside(path)
        if not real.is_dir():
            raise ToolError(f'there is no folder {path!r}; list "." to see what there is')
        return real

    def _file(self, path: str) -> Path:
        real = self.inside(path)
        if real.is_dir():
            raise ToolError(f"{path!r} is a folder; give a file in it")
        if not real.exists():
            near = (
                ", ".join(p.name for p in sorted(real.parent.glob("*"))[:10])
                if real.parent.is_dir()
                else ""
            )
            hint = f"; in its folder are: {near}" if near else ""
            raise ToolError(f"there is no file {path!r}{hint}")
        if not _is_regular(real):
            raise ToolError(f"{path!r} is no regular file")
        return real

    def _text(self, real: Path, path: str) -> str:
        try:
            with real.open("rb") as file:
                data = file.read(MAX_READ_BYTES + 1)
        except OSError as error:
            raise ToolError(f"{path!r} cannot be read: {error.strerror}") from None
        if len(data) > MAX_READ_BYTES:
            size = real.stat().st_size
            raise ToolError(f"{path!r} has {size} bytes; at most {MAX_READ_BYTES} are read")
        if b"\0" in data[:4096]:
            raise ToolError(f"{path!r} is no text file: it has {len(data)} bytes of binary data")
        return data.decode("utf-8", "replace")

    def _walk(self, start: Path) -> Iterator[Path]:
        """Everything below a folder, in order; links are not followed."""
        for parent, folders, names in os.walk(start, followlinks=False):
            folders.sort()
            for name in sorted(folders + names):
                entry = Path(parent, name)
                if not entry.is_symlink():
                    yield entry


def _is_regular(path: Path) -> bool:
    """Whether it is a plain file: a pipe or device would hang or never end."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
