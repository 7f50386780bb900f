"""Code, SQL and web pages: what they may do, and what they may not."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import UsageError
from antiphon.messages import ToolResult
from antiphon.tools import Tool
from antiphon.tools.builtin import (
    http_get,
    python_tool,
    sandbox_promises,
    sqlite_query,
    web_search,
)


def call(tool: Tool[..., Any], **arguments: Any) -> ToolResult:
    return asyncio.run(tool.call(arguments))


# Python


def test_code_answers_what_it_prints_and_its_last_value() -> None:
    assert call(python_tool(), code="print('a')\n6 * 7").text == "a\n42\n"


def test_an_error_in_the_code_is_an_answer_without_our_own_lines() -> None:
    result = call(python_tool(), code="def f():\n    return 1 / 0\nf()")

    assert result.is_error
    assert result.text == ("line 3, in <module>\nline 2, in f\nZeroDivisionError: division by zero")


def test_code_sees_no_environment_and_an_empty_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")

    text = call(python_tool(), code="import os\n(dict(os.environ), os.listdir('.'))").text

    assert "hunter2" not in text
    assert text.endswith(", [])\n")


def test_code_that_runs_too_long_is_stopped_with_all_it_started() -> None:
    spin = "while 1: pass"
    code = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {spin!r}])\n{spin}"

    result = call(python_tool(timeout=1.0), code=code)

    assert result.is_error
    assert "stopped after 1 s" in result.text


def test_code_may_take_only_so_much_memory() -> None:
    result = call(python_tool(memory_mb=200), code="x = bytearray(10**9)")

    assert result.is_error
    assert "MemoryError (at most 200 MB)" in result.text


def test_code_may_print_only_so_much() -> None:
    result = call(python_tool(timeout=20), code="while True: print('x' * 1000)")

    assert result.is_error
    assert "200000 bytes of output" in result.text
    assert len(result.text) < 3000


def test_code_has_no_network() -> None:
    """Without namespaces an audit hook refuses, which determined code can get around."""
    code = "import socket\nsocket.create_connection(('127.0.0.1', %d), 2)"
    with closing(socket_server()) as server:
        result = call(python_tool(), code=code % server.port)

    assert result.is_error
    assert not server.reached


def test_what_holds_here_can_be_asked() -> None:
    assert asyncio.run(sandbox_promises()) <= {"no network", "no process left behind"}


def test_cancelling_leaves_no_process_behind() -> None:
    async def run() -> None:
        task = asyncio.create_task(python_tool().call({"code": "while 1: pass"}))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())  # a process that was not waited for would warn, and warnings are errors


def test_limits_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError):
        python_tool(timeout=0)


# SQLite


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, item TEXT)")
        rows = [(n, f"item {n}") for n in range(500)]
        connection.executemany("INSERT INTO orders VALUES (?, ?)", rows)
        connection.commit()
    return path


def test_the_description_lists_the_tables(database: Path) -> None:
    assert "orders(id, item)" in sqlite_query(database).spec.description


def test_rows_are_read_and_cut(database: Path) -> None:
    value: Any = call(sqlite_query(database, max_rows=2), sql="SELECT * FROM orders").value

    assert value["columns"] == ["id", "item"]
    assert value["rows"] == [[0, "item 0"], [1, "item 1"]]
    assert "first 2 rows" in value["note"]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM orders",
        "DROP TABLE orders",
        "INSERT INTO orders VALUES (1, 'x')",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "ATTACH DATABASE 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = 1",
        "SELECT load_extension('evil')",
        "SELECT 1; DROP TABLE orders",
        "SELECT randomblob(1000000000)",
        "SELECT zeroblob(2000000000)",
        "SELEC",
        "SELECT '" + "x" * 30_000 + "'",
    ],
)
def test_a_database_that_is_only_read_cannot_be_changed_or_left(database: Path, sql: str) -> None:
    before = database.read_bytes()

    result = call(sqlite_query(database), sql=sql)

    assert result.is_error
    assert database.read_bytes() == before
    assert [p.name for p in database.parent.iterdir()] == ["shop.db"]


def test_a_statement_that_never_ends_is_stopped(database: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"

    result = call(sqlite_query(database, timeout=0.2), sql=endless)

    assert result.is_error
    assert "stopped after 0.2 s" in result.text


def test_a_database_may_be_changed_where_that_is_asked_for_but_not_left(database: Path) -> None:
    tool = sqlite_query(database, write=True)

    assert call(tool, sql="DELETE FROM orders WHERE id < 10").value == {"changed_rows": 10}
    assert call(tool, sql="ATTACH DATABASE 'other.db' AS other").is_error


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_text("no database at all, only text", "utf-8")

    with pytest.raises(UsageError, match="no SQLite database"):
        sqlite_query(path)
    with pytest.raises(UsageError, match="no SQLite database"):
        sqlite_query(tmp_path / "missing.db")


# The web


class Server:
    """A web server on this machine."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.reached.append(self.path)
                outer.answer(self)

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                outer.reached.append(self.rfile.read(length).decode())
                outer.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        kind, body = {
            "/page": ("text/html; charset=utf-8", "<title>T</title><p>Caf\u00e9<script>x</script>"),
            "/big": ("text/plain", "x" * 50_000),
            "/image": ("image/png", "\0"),
            "/search": ("application/json", json.dumps({"results": [_HIT], "organic": [_HIT]})),
            "/loop": ("", ""),
            "/away": ("", ""),
        }.get(path, ("text/plain", ""))
        if path in ("/loop", "/away"):
            handler.send_response(302)
            target = "/loop" if path == "/loop" else f"http://127.0.0.1:{self.port}/page"
            handler.send_header("Location", target)
            handler.end_headers()
            return
        handler.send_response(200 if body else 404)
        handler.send_header("Content-Type", kind)
        handler.end_headers()
        handler.wfile.write(body.encode())

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_HIT = {
    "title": "A",
    "url": "http://a",
    "link": "http://a",
    "content": "about a",
    "snippet": "about a",
}


def socket_server() -> Server:
    return Server()


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as server:
        yield server


def test_a_page_is_read_as_text(server: Server) -> None:
    assert call(http_get(private=True), url=server.url("/page")).text == "T\nCaf\u00e9"


def test_a_long_page_is_cut(server: Server) -> None:
    text = call(http_get(private=True, max_bytes=1000), url=server.url("/big")).text

    assert text == "x" * 1000 + "\n[the page is longer; this is its beginning]"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/page",
        "http://localhost:{port}/page",
        "http://[::ffff:127.0.0.1]:{port}/page",
        "http://2130706433:{port}/page",
        "http://0x7f.1:{port}/page",
        "http://0.0.0.0:{port}/page",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://[fd00::1]/",
        "http://[64:ff9b::7f00:1]/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/",
        "http://user:key@example.org/",
        "http://",
        "no address",
        "http://127.0.0.1:99999/",
    ],
)
def test_this_machine_and_private_networks_are_refused(server: Server, url: str) -> None:
    result = call(http_get(), url=url.format(port=server.port))

    assert result.is_error
    assert server.reached == []


def test_only_allowed_hosts_are_fetched_also_behind_a_redirect(server: Server) -> None:
    tool = http_get(private=True, allow=["localhost"])

    assert "is not allowed" in call(tool, url=server.url("/page")).text
    assert "is not allowed" in call(tool, url=server.url("/away", host="localhost")).text
    assert server.reached == ["/away"]
    assert not call(tool, url=server.url("/page", host="localhost")).is_error


@pytest.mark.parametrize(
    ("path", "part"),
    [("/loop", "redirects more than"), ("/image", "is no text"), ("/missing", "status 404")],
)
def test_what_cannot_be_read_is_an_answer(server: Server, path: str, part: str) -> None:
    result = call(http_get(private=True), url=server.url(path))

    assert result.is_error
    assert part in result.text


def test_a_server_that_is_not_there_is_an_answer() -> None:
    with closing(Server()) as server:
        url = server.url("/page")

    assert "cannot be reached" in call(http_get(private=True), url=url).text


def test_an_allowed_host_is_a_host_name() -> None:
    with pytest.raises(UsageError, match="host names"):
        http_get(allow=["https://example.org"])


def test_a_search_without_a_key_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERPER_API_KEY", raising=False)
    monkeypatch.delenv("SEARXNG_URL", raising=False)

    result = call(web_search(), query="x")

    assert result.is_error
    assert "SERPER_API_KEY" in result.text


def test_searxng_is_asked_where_it_is_named(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARXNG_URL", server.url(""))

    result = call(web_search(), query="a b")

    assert result.value == [{"title": "A", "url": "http://a", "text": "about a"}]
    assert server.reached == ["/search?q=a+b&format=json"]


def test_serper_is_asked_with_the_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARXNG_URL", raising=False)
    monkeypatch.setenv("SERPER_API_KEY", "k")

    result = call(web_search(serper_url=server.url("/search")), query="a")

    assert result.value == [{"title": "A", "url": "http://a", "text": "about a"}]
    assert server.reached == ['{"q": "a"}']
