"""The page over HTTP, for one person on this machine: drawn anew on every request."""

from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from antiphon.errors import AntiphonError, UsageError


def make_server(render: Callable[[], str], port: int = 0) -> ThreadingHTTPServer:
    """A server of one page on the loopback address; the caller runs and closes it.

    Requests that name another host are refused, so that no web page can read the record by
    pointing a name of its own at this machine.

    Args:
        render: Makes the page; called for every request.
        port: Where to listen; 0 takes a free port, told by ``server_address``.

    Raises:
        UsageError: The port cannot be had.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers.get("Host", "").partition(":")[0].lower()
            if host not in ("127.0.0.1", "localhost"):
                self._answer(403, "text/plain", "this page is for this machine alone\n")
            elif self.path != "/":
                self._answer(404, "text/plain", "the page is at /\n")
            else:
                self._page()

        def _page(self) -> None:
            try:
                page = render()
            except AntiphonError as error:
                self._answer(500, "text/plain", f"{error}\n")
            else:
                self._answer(200, "text/html", page)

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode("utf-8", "backslashreplace")
            with suppress(ConnectionError):  # the browser may leave before it has read
                self.send_response(status)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the command prints where the page is, and no more."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {port} cannot be had: {error}; choose another, or 0") from error
