"""The page over HTTP: drawn anew, on this machine alone."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from antiphon.errors import DataError, UsageError
from antiphon.viewer import make_server


@contextmanager
def _serving(render: Callable[[], str]) -> Generator[int]:
    with make_server(render) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def _get(port: int, path: str = "/", host: str | None = None) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_every_request_draws_the_page_anew() -> None:
    pages = iter(["first", "second"])
    with _serving(lambda: next(pages)) as port:
        assert [_get(port), _get(port)] == [(200, "first"), (200, "second")]


def test_nothing_but_the_page_is_served() -> None:
    with _serving(lambda: "page") as port:
        assert _get(port, "/../etc/passwd")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "[", ""])
def test_a_request_under_another_name_is_refused(host: str) -> None:
    with _serving(lambda: "page") as port:
        status, text = _get(port, host=host)
        assert status == 403
        assert "page is for this machine" in text


def test_a_file_that_broke_meanwhile_is_one_line() -> None:
    def render() -> str:
        raise DataError("not JSON", path="run.json")

    with _serving(render) as port:
        assert _get(port) == (500, "run.json: not JSON\n")


@pytest.mark.parametrize("port", [99999, -1])
def test_a_port_that_cannot_be_had_is_a_usage_error(port: int) -> None:
    with pytest.raises(UsageError, match="cannot be had"):
        make_server(lambda: "", port)
