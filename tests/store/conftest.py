"""A real PostgreSQL server for the tests, where one is installed; it listens on a socket alone.

``ANTIPHON_POSTGRES`` names one that runs already, by a URL that ends in ``/postgres?host=FOLDER``.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from antiphon.store import open_store
from store.places import AnyStore, Reopen


def programs() -> Path | None:
    """The folder of the server's programs; Debian keeps them out of the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


def server_user() -> dict[str, Any]:
    """Who runs the server: it refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgres_url() -> Generator[str]:
    """Where a server of this test run answers, or the one that the environment names."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: antiphon[postgres]")
    known = os.environ.get("ANTIPHON_POSTGRES", "")
    if known:
        yield known
        return
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    own = server_user()
    root = Path(tempfile.mkdtemp(prefix="antiphon-pg-"))
    data = root / "data"
    if own:
        os.chown(root, own["user"], own["group"])
    subprocess.run(
        [folder / "initdb", "-D", data, "-U", "antiphon", "-A", "trust", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=root,
        **own,
    )
    log = (root / "log").open("wb")
    options = ("listen_addresses=", f"unix_socket_directories={root}", "fsync=off")
    server = subprocess.Popen(
        [folder / "postgres", "-D", data, *(word for o in options for word in ("-c", o))],
        stdout=log,
        stderr=log,
        cwd=root,
        **own,
    )
    try:
        yield answering(server, root)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        log.close()
        shutil.rmtree(root)


def answering(server: "subprocess.Popen[Any]", root: Path) -> str:
    """The server's URL, once it answers."""
    import psycopg

    url = f"postgresql://antiphon@/postgres?host={root}"
    for _ in range(500):
        assert server.poll() is None, (root / "log").read_text()
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            time.sleep(0.02)  # there is nothing to wait on before the server listens
        else:
            return url
    raise TimeoutError((root / "log").read_text())


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store is, for `open_store`."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    import psycopg
    from psycopg import sql

    url: str = request.getfixturevalue("postgres_url")
    name = f"t{time.time_ns()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return url.replace("/postgres?", f"/{name}?")


@pytest.fixture
def reopen(place: str) -> Generator[Reopen]:
    """Opens one store as often as it is called."""
    opened: list[AnyStore] = []

    def reopen() -> AnyStore:
        opened.append(open_store(place))
        return opened[-1]

    yield reopen
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Reopen) -> AnyStore:
    """An empty store."""
    return reopen()
