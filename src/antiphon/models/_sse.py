"""Server-sent events out of bytes in any chunks (WHATWG HTML, §9.2.6), and JSON lines.

Bytes that are not UTF-8 become U+FFFD; comments and unknown fields are passed over.  What the data
means is for the dialect to say.
"""


class LineDecoder:
    """Cuts bytes into lines; ends with LF, CR LF or CR."""

    def __init__(self) -> None:
        self._parts: list[bytes] = [b""]  # of the line that is not over

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that this chunk completes."""
        is_held = self._parts[-1].endswith(b"\r")
        self._parts.append(chunk)
        if b"\n" not in chunk and b"\r" not in chunk and not is_held:
            return []
        data = b"".join(self._parts)
        if b"\r" in data:
            held = data.endswith(b"\r")  # its LF may come with the next chunk
            body = data[:-1] if held else data
            data = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + (b"\r" if held else b"")
        lines = data.split(b"\n")
        self._parts = [lines.pop()]
        return [line.decode("utf-8", "replace") for line in lines]

    def finish(self) -> list[str]:
        """What stands after the last line end."""
        rest, self._parts = b"".join(self._parts).rstrip(b"\r"), [b""]
        return [rest.decode("utf-8", "replace")] if rest else []


class SseDecoder:
    """Gives the data of each event, whole."""

    def __init__(self) -> None:
        self._lines = LineDecoder()
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """The data of the events that this chunk completes."""
        return self._take(self._lines.feed(chunk))

    def finish(self) -> list[str]:
        """The data of a last event whose blank line never came."""
        events = self._take([*self._lines.finish(), ""])
        return events

    def _take(self, lines: list[str]) -> list[str]:
        events: list[str] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append("\n".join(self._data))
                    self._data = []
            elif line.startswith("data:"):
                self._data.append(line[6:] if line.startswith("data: ") else line[5:])
        return events
