"""A connection as aiohttp holds it, with our manners for what is no request.

aiohttp answers bytes that are no HTTP by itself, before any handler: with its name and version, and
with a traceback in the log that quotes them.  Here they are answered and counted like everything
else, and nothing of them is written down.
"""

import sys
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

Answering = Callable[[web.BaseRequest, int, BaseException | None], web.StreamResponse]


class Connection(RequestHandler):
    """One connection."""

    __slots__ = ("_answering",)

    def __init__(self, server: web.Server, *, answering: Answering, **options: Any) -> None:
        """Set up a connection.

        Args:
            server: Whose it is.
            answering: Answers what could not be read, or failed outside of any handler, by its
                status and what went wrong.
            options: As aiohttp's own.
        """
        super().__init__(server, **options)
        self._answering = answering

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what could not be answered otherwise; the connection ends with it.

        Raises:
            ConnectionError: An answer has begun already.
        """
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun")
        return self._answering(request, status, exc)

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Write down a fault; a body that cannot be decoded is none of ours, and was refused."""
        if not isinstance(sys.exc_info()[1], web.RequestPayloadError):
            super().log_exception(*args, **kwargs)
