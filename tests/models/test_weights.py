"""Model files are found, fetched whole or not at all, resumed, checked, and fetched once by two.

The hub is a real HTTP server on the loopback, addressed as ``HF_ENDPOINT``.
"""

import asyncio
import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.errors import ModelError, ModelNotFoundError
from antiphon.models._catalog import CARDS, DEFAULT, Card, Source
from antiphon.models._weights import (
    HUB,
    Progress,
    cache_dir,
    ensure,
    fetch,
    find,
    models_dir,
    verify,
)
from models.loopback import Loopback, Reply, Request

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def card_of(*sources: Source, size: int = len(CONTENT)) -> Card:
    return Card("tiny", "tiny.gguf", size, sources, "smollm2")


def hub(sha256: str = SHA256) -> Source:
    return Source("hub", f"{HUB}/org/name/resolve/main/tiny.gguf", sha256)


def whole(etag: str = '"v1"') -> Reply:
    return Reply(
        [CONTENT[:5000], CONTENT[5000:]],
        kind="application/octet-stream",
        headers={"ETag": etag},
        length=len(CONTENT),
    )


def cut(etag: str = '"v1"') -> Reply:
    return Reply(
        [CONTENT[:5000]],
        kind="application/octet-stream",
        headers={"ETag": etag},
        length=len(CONTENT),
        end="cut",
    )


def rest(request: Request) -> Reply:
    start = int(request.headers["range"].removeprefix("bytes=").removesuffix("-"))
    return Reply([CONTENT[start:]], status=206, length=len(CONTENT) - start)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ANTIPHON_MODEL_DIR", raising=False)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def fetch_from(
    script: list[Reply], card: Card, monkeypatch: pytest.MonkeyPatch, n_times: int = 1
) -> tuple[Path, Loopback, list[Progress]]:
    seen: list[Progress] = []

    async def go() -> tuple[Path, Loopback]:
        async with Loopback(script) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            paths = await asyncio.gather(*(fetch(card, seen.append) for _ in range(n_times)))
            return paths[0], server

    path, server = asyncio.run(go())
    return path, server, seen


def test_a_file_is_fetched_checked_and_named_and_progress_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, server, seen = fetch_from([whole()], card_of(hub()), monkeypatch)

    assert path == models_dir() / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert server.requests[0].path == "/org/name/resolve/main/tiny.gguf"
    assert (seen[-1].done_bytes, seen[-1].total_bytes) == (len(CONTENT), len(CONTENT))
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "tiny.gguf",
        "tiny.gguf.lock",
        "tiny.gguf.sha256.json",
    ]


def test_a_file_with_the_wrong_checksum_is_refused_and_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ModelNotFoundError, match=r"has the checksum .* instead of 000"):
        fetch_from([whole()], card_of(hub("0" * 64)), monkeypatch)

    assert [p.name for p in models_dir().iterdir()] == ["tiny.gguf.lock"]


def test_a_cut_download_goes_on_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([cut(), None])

    async def go() -> tuple[Path, Loopback]:
        async with Loopback(lambda request: next(answers) or rest(request)) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            return await fetch(card_of(hub()), lambda _: None), server

    path, server = asyncio.run(go())

    assert path.read_bytes() == CONTENT
    assert server.requests[1].headers["range"] == "bytes=5000-"
    assert server.requests[1].headers["if-range"] == '"v1"'


def test_a_download_that_was_cut_in_an_earlier_process_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy = Reply(status=503, length=0)
    with pytest.raises(ModelNotFoundError, match="answers 503"):
        fetch_from([cut(), busy], card_of(hub()), monkeypatch)

    async def go() -> Path:
        async with Loopback(rest) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            return await fetch(card_of(hub()), lambda _: None)

    assert asyncio.run(go()).read_bytes() == CONTENT


def test_a_file_that_changed_since_is_fetched_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, server, _ = fetch_from([cut('"old"'), whole('"new"')], card_of(hub()), monkeypatch)

    assert path.read_bytes() == CONTENT
    assert server.requests[1].headers["if-range"] == '"old"'


def test_redirects_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = Reply(status=302, headers={"Location": "/elsewhere"}, length=0)

    path, server, _ = fetch_from([moved, whole()], card_of(hub()), monkeypatch)

    assert path.read_bytes() == CONTENT
    assert server.requests[1].path == "/elsewhere"


def test_two_that_fetch_at_once_fetch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path, server, seen = fetch_from([whole()], card_of(hub()), monkeypatch, n_times=2)

    assert path.read_bytes() == CONTENT
    assert len(server.requests) == 1
    assert any("waiting for another process" in p.message for p in seen)


def wheel_index(folder: Path, content: bytes = CONTENT) -> None:
    """A directory that pip takes as its only index, with one wheel of the model."""
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", content)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


def test_where_the_hub_is_dead_the_wheel_is_taken_and_one_line_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel_index(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    seen: list[Progress] = []

    path = asyncio.run(
        fetch(card_of(hub(), Source("wheel", "tiny-model==1.0", SHA256)), seen.append)
    )

    assert path.read_bytes() == CONTENT
    assert "cannot connect to http://127.0.0.1:9" in seen[0].message
    assert "tiny-model==1.0" in seen[1].message
    assert not list(path.parent.glob("wheel-*"))
    assert not list(path.parent.glob("*.part"))


def test_when_no_source_has_it_one_line_says_why_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    card = card_of(hub(), Source("wheel", "tiny-model==1.0", SHA256))

    with pytest.raises(ModelNotFoundError) as caught:
        asyncio.run(fetch(card, lambda _: None))

    said = str(caught.value)
    assert "\n" not in said
    assert "cannot connect to http://127.0.0.1:9" in said
    assert "pip cannot download tiny-model==1.0" in said
    assert "antiphon models fetch tiny" in said


def test_a_file_that_is_already_there_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_MODEL_DIR", str(tmp_path))
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)

    assert asyncio.run(ensure(card_of(hub()))) == tmp_path / "tiny.gguf"
    assert verify(card_of(hub())) == (tmp_path / "tiny.gguf", SHA256)


def test_a_truncated_file_is_refused_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_MODEL_DIR", str(tmp_path))
    (tmp_path / "tiny.gguf").write_bytes(CONTENT[:-1])

    with pytest.raises(ModelError, match="10239 bytes instead of 10240; delete it"):
        asyncio.run(ensure(card_of(hub())))


def test_a_checksum_that_is_not_pinned_is_recorded_and_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = card_of(hub(""))
    path, _, _ = fetch_from([whole()], card, monkeypatch)
    assert verify(card) == (path, SHA256)

    path.write_bytes(b"changed")

    with pytest.raises(ModelError, match=r"instead of .*it was removed"):
        verify(card)
    assert find(card) is None


def test_the_cache_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTIPHON_CACHE")
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    expected = "Library/Caches/antiphon" if sys.platform == "darwin" else ".cache/antiphon"
    assert cache_dir() == Path("/home/ada") / expected


def test_the_embedded_model_is_pinned_at_every_source() -> None:
    sources = CARDS[DEFAULT].sources

    assert [source.kind for source in sources] == ["hub", "wheel"]
    assert all(len(source.sha256) == 64 for source in sources)


def test_list_and_show_tell_what_is_here_and_how_to_get_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["models", "list"]) == 0
    listing = capsys.readouterr().out.splitlines()
    assert main(["models", "show"]) == 0
    card = capsys.readouterr().out

    assert listing[0].startswith("local ")
    assert "not here" in listing[0]
    assert "for trying out and for tests, not for work" in card
    assert "get it with: antiphon models fetch smollm2-135m" in card


def test_models_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "--json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["spec"] == "local"
    assert all(row["here"] is False for row in rows)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "nothing"], 2, "no local model named 'nothing'"),
        (["verify", "local"], 1, "get it with: antiphon models fetch smollm2-135m"),
        ([], 2, "VERB"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", *arguments]) == code

    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
