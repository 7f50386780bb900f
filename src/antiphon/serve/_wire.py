"""Server-sent events as bytes."""

from antiphon.messages import JsonValue, json_bytes


def event(value: JsonValue, name: str = "") -> bytes:
    """One server-sent event.

    >>> event({"a": 1}, "delta")
    b'event: delta\\ndata: {"a":1}\\n\\n'
    """
    head = b"event: %b\n" % name.encode() if name else b""
    return head + b"data: " + json_bytes(value) + b"\n\n"
