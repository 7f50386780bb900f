"""How a server is set up: defaults, a TOML file, the environment, and the command line over it.

Only what is here can be set; an unknown name is an error, not a setting that nobody reads.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, UsageError, clip

PREFIX = "ANTIPHON_SERVE_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How a server is set up."""

    host: str = "127.0.0.1"
    """Where to listen.  Anything but the loopback needs `keys`."""
    port: int = 8321
    """The port; 0 takes a free one."""
    keys: tuple[str, ...] = ()
    """Keys of which a client must have one; without any, only this machine is served."""
    cors: tuple[str, ...] = ()
    """Origins whose web pages may ask, such as ``https://chat.example.com``."""
    aliases: tuple[str, ...] = ()
    """Further names of the first model; ``*`` lets it answer for any name."""
    max_body_bytes: int = 16 << 20
    """The largest body of a request."""
    max_tools: int = 1024
    """The most tools of a request."""
    max_concurrent: int = 2048
    """How many requests are worked on at once."""
    max_waiting: int = 256
    """How many more may wait for one of those to end; others are sent away with 429."""
    wait_seconds: float = 30.0
    """How long one may wait."""
    request_seconds: float = 1800.0
    """How long one request may take."""
    head_seconds: float = 15.0
    """How long a client may take for the head of its first request."""
    body_seconds: float = 60.0
    """How long it may take for a body."""
    send_seconds: float = 60.0
    """How long it may read nothing of what it is sent before it is hung up on (Linux)."""
    ping_seconds: float = 15.0
    """After how long a silence a stream says that it is alive."""
    drain_seconds: float = 60.0
    """On the way down: how long answers that have begun may take to end."""
    max_responses: int = 512
    """How many answers of the Responses API are kept for `previous_response_id`."""

    telemetry: bool = False
    """Whether OpenTelemetry is told of requests, through the providers of the process."""

    def __post_init__(self) -> None:
        """Check what does not go together.

        Raises:
            UsageError: A value cannot be used.
        """
        if not 0 <= self.port < 1 << 16:
            raise UsageError(f"port must be a number below 65536, got {self.port}")
        for name in ("max_body_bytes", "max_tools", "max_concurrent"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}")
        if any(len(key) < 8 for key in self.keys):
            raise UsageError(
                "a key must have at least 8 characters; make one: openssl rand -hex 24"
            )
        if "*" in self.cors:
            raise UsageError("cors names origins one by one, got '*'; any page could then ask")
        if not self.keys and not is_loopback(self.host):
            raise UsageError(
                f"listening on {self.host!r} opens this server to the network; "
                f"set a key first ({PREFIX}KEYS, or --key-file), or listen on 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_settings(
    path: Path | str | None, environ: Mapping[str, str], given: Mapping[str, Any]
) -> ServeSettings:
    """Settings out of a file, the environment, and what was given by hand, each over the last.

    Args:
        path: A TOML file with the fields of `ServeSettings`; none for no file.
        environ: ``ANTIPHON_SERVE_PORT=...`` and so on; lists are separated by commas.
        given: Fields that were given by hand; ``None`` is not given.

    Raises:
        DataError: The file cannot be read.
        UsageError: A name is unknown, or a value cannot be used.
    """
    values = {} if path is None else _from_file(Path(path))
    for name in _TYPES:
        text = environ.get(PREFIX + name.upper())
        if text:
            values[name] = _from_text(name, text)
    values |= {name: value for name, value in given.items() if value is not None}
    return replace(ServeSettings(), **values)


_TYPES: dict[str, Any] = {field.name: field.type for field in fields(ServeSettings)}


_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_WANTED = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _from_file(path: Path) -> dict[str, Any]:
    try:
        read = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"cannot be read as settings: {error}", path=path) from error
    values: dict[str, Any] = {}
    for name, value in read.items():
        if name not in _TYPES:
            raise UsageError(f"{path}: no setting {name!r}; known: {', '.join(_TYPES)}")
        values[name] = _checked(name, value)
    return values


def _from_text(name: str, text: str) -> Any:
    kind = _TYPES[name]
    try:
        if kind is int or kind is float:
            return kind(text)
    except ValueError as error:
        raise UsageError(f"{PREFIX}{name.upper()} must be a number, got {clip(text)}") from error
    if kind is str:
        return text
    if kind is bool:
        if text.lower() not in _FLAGS:
            raise UsageError(f"{PREFIX}{name.upper()} must be true or false, got {clip(text)}")
        return _FLAGS[text.lower()]
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _checked(name: str, value: Any) -> Any:
    kind = _TYPES[name]
    if kind is float and type(value) is int:
        return float(value)
    if kind in (bool, int, float, str):
        if type(value) is kind:
            return value
    elif isinstance(value, list):
        items = cast("list[object]", value)
        if all(isinstance(item, str) for item in items):
            return tuple(items)
    wanted = _WANTED.get(kind, "a list of texts")
    raise UsageError(f"setting {name!r} must be {wanted}, got {clip(cast('object', value))}")
