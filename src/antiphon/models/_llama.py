"""llama.cpp in this process: one engine a model file, shared by all who load it.

An Engine takes token ids and gives back sampled tokens; it knows no format and no conversation.  It
is
synchronous: `generate` blocks its thread, so call it from one.  Underneath is xllamacpp's server,
which batches requests, keeps prompt prefixes, and releases the GIL while it computes (not while it
loads).

The server also listens on a loopback port; tokenizing is only offered there.  A random key guards
it.
"""

import atexit
import http.client
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from antiphon.errors import (
    ContextLengthError,
    MissingExtraError,
    ModelError,
    ModelNotFoundError,
    ModelResponseError,
    UsageError,
)
from antiphon.formats import Piece, Rendered
from antiphon.messages import JsonObject, json_bytes
from antiphon.models._sampling import Emit, Sampled
from antiphon.models._wire import token_of

N_SLOTS = 4
_MAX_CACHED_TEXTS = 4096


@dataclass(frozen=True, slots=True)
class EngineKey:
    """What makes two loads the same engine."""

    path: str
    """The GGUF file, resolved."""
    lora: tuple[tuple[str, float], ...] = ()
    """LoRA adapters as GGUF files, resolved, each with its scale."""
    n_ctx: int = 4096
    """Tokens of context that all requests share."""
    n_threads: int = 0
    """Threads to compute with; 0: as many cores as are idle."""


class Engine:
    """A loaded model.  Get one with `acquire`, give it back with `release`."""

    def __init__(self, key: EngineKey) -> None:
        """Load a model; takes as long as that takes.

        Raises:
            MissingExtraError: xllamacpp is not installed.
            ModelNotFoundError: A file is missing.
            ModelError: A file cannot be loaded.
        """
        self.key = key
        self.threads = ThreadPoolExecutor(N_SLOTS, thread_name_prefix="antiphon-llama")
        """Where `generate` is called, at most `N_SLOTS` at once."""
        self._server: Any = _load(key)
        self._port = urlsplit(str(self._server.listening_address)).port or 0
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._texts: dict[tuple[str, bool], tuple[int, ...]] = {}
        self._pieces: dict[int, str] = {}
        self._closed = threading.Event()
        props = self._ask("GET", "/props", None)
        self.chat_template = str(props.get("chat_template") or "")
        """The file's own template, for finding out its family."""
        self.end_text = str(props.get("eos_token") or "")
        """The text of the token that ends everything."""

    @property
    def address(self) -> tuple[str, str]:
        """Where its own server listens on the loopback, and the key that it wants."""
        return f"http://127.0.0.1:{self._port}", _KEY

    def tokenize(self, rendered: Rendered) -> list[int]:
        """The tokens of a rendered conversation.

        Only special pieces become special tokens, and what the model writes begins and ends at a
        token boundary (`Rendered.runs`).  A special piece that the vocabulary does not have is
        plain text.
        """
        ids: list[int] = []
        for run in rendered.runs:
            ids.extend(self._tokens_of("".join(p.text for p in run), special=_is_special(run)))
        return ids

    def is_token(self, text: str) -> bool:
        """Whether a mark is one special token of this vocabulary."""
        return (
            len(self._tokens_of(text, special=True))
            == 1
            != len(self._tokens_of(text, special=False))
        )

    def generate(self, prompt: list[int], options: JsonObject, emit: Emit) -> None:
        """Sample a continuation; blocks until it is over.

        Args:
            prompt: Token ids.
            options: Sampling parameters as llama.cpp names them.
            emit: Takes each event; returns whether to stop.

        Raises:
            ContextLengthError: The prompt is longer than the context.
            ModelError: llama.cpp refused the request.
        """
        errors: list[JsonObject] = []
        request: JsonObject = {"cache_prompt": True} | options
        request |= {"prompt": list[Any](prompt), "stream": True}

        def take(event: JsonObject) -> bool:
            if "error" in event:
                errors.append(event)
                return True
            return self._closed.is_set() or emit(_sampled(event, self._text_of))

        self._server.handle_completions(request, take)
        if errors:
            raise _error(errors[0], self.key)

    def close(self) -> None:
        """Stop what is running, and free the model. Afterwards no thread of ours is left."""
        self._closed.set()
        self.threads.shutdown(wait=True)
        with self._lock:
            self._hang_up()
        self._server = None

    def _tokens_of(self, text: str, *, special: bool) -> tuple[int, ...]:
        cached = self._texts.get((text, special))
        if cached is None:
            body: JsonObject = {"content": text, "add_special": False, "parse_special": special}
            answer = self._ask("POST", "/tokenize", body)
            cached = tuple(cast("list[int]", answer["tokens"]))
            if len(self._texts) >= _MAX_CACHED_TEXTS:
                self._texts.clear()
            self._texts[text, special] = cached
        return cached

    def _text_of(self, id: int) -> str:
        text = self._pieces.get(id)
        if text is None:
            text = str(self._ask("POST", "/detokenize", {"tokens": [id]})["content"])
            self._pieces[id] = text
        return text

    def _ask(self, method: str, path: str, body: "JsonObject | None") -> dict[str, Any]:
        with self._lock:
            try:
                status, text = self._exchange(method, path, body)
            except (http.client.HTTPException, OSError):  # an idle connection was closed
                self._hang_up()
                try:
                    status, text = self._exchange(method, path, body)
                except (http.client.HTTPException, OSError) as error:
                    raise ModelError(f"llama.cpp does not answer {path}: {error}") from error
        if status != 200:
            said = text.decode("utf-8", "replace")[:200]
            raise ModelError(f"llama.cpp refused {path} ({status}): {said}")
        return json.loads(text)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, path: str, body: "JsonObject | None") -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Authorization": f"Bearer {_KEY}", "Content-Type": "application/json"}
        data = None if body is None else json_bytes(body)
        self._connection.request(method, path, data, headers)
        response = self._connection.getresponse()
        return response.status, response.read()


_KEY = secrets.token_hex(16)
_engines: dict[EngineKey, tuple[Engine, int]] = {}
_engines_lock = threading.Lock()


def acquire(key: EngineKey) -> Engine:
    """The engine of a key, loaded if nobody has it yet. Blocks while it loads.

    Raises:
        ModelError: See `Engine`.
    """
    with _engines_lock:
        engine, n_users = _engines.get(key, (None, 0))
        if engine is None:
            _warm(key.path)
            engine = Engine(key)
        _engines[key] = (engine, n_users + 1)
        return engine


def release(engine: Engine) -> None:
    """Give an engine back; the last user's release frees it."""
    with _engines_lock:
        held, n_users = _engines[engine.key]
        assert held is engine
        if n_users > 1:
            _engines[engine.key] = (engine, n_users - 1)
            return
        del _engines[engine.key]
    engine.close()


def n_engines() -> int:
    """How many engines are loaded."""
    return len(_engines)


@atexit.register
def _close_all() -> None:
    """Free what nobody gave back, while Python is still whole."""
    for engine, _ in list(_engines.values()):
        engine.close()
    _engines.clear()


def _warm(path: str) -> None:
    """Read a file through once, so that loading, which holds the GIL, does not wait for the
    disk."""
    try:
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 22):
                pass
    except OSError as error:
        raise ModelNotFoundError(f"cannot read the model file {path}: {error.strerror}") from error


def _load(key: EngineKey) -> Any:
    try:
        import xllamacpp  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
    except ImportError as error:
        raise MissingExtraError(f"the model file {Path(key.path).name}", "local") from error
    library: Any = xllamacpp
    params = library.CommonParams()
    params.model.path = key.path
    params.n_ctx = key.n_ctx
    params.n_parallel = N_SLOTS
    params.kv_unified = True
    params.cache_ram_mib = 256
    params.special = True  # marks that are tokens are part of the text
    params.warmup = False
    params.verbosity = -1
    params.ui = False
    params.n_threads_http = 2
    params.endpoint_slots = False
    params.api_keys = [_KEY]
    n_threads = key.n_threads or idle_cores()
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = n_threads
        cpu.poll = 0
    adapters: list[Any] = []
    for path, scale in key.lora:
        if not Path(path).is_file():
            raise ModelNotFoundError(f"there is no LoRA adapter at {path}")
        adapter = library.CommonAdapterLoraInfo()
        adapter.path, adapter.scale = path, scale
        adapters.append(adapter)
    if adapters:
        params.lora_adapters = adapters
    try:
        return library.Server(params)
    except RuntimeError as error:
        raise ModelError(
            f"llama.cpp cannot load {key.path}"
            + (f" with the adapter {key.lora[0][0]}" if key.lora else "")
            + "; is it a whole GGUF file of an architecture that it knows?"
        ) from error


def idle_cores() -> int:
    """How many cores have nothing to do, at least one: llama.cpp's threads wait for each other, so
    a thread on a busy core slows all down (measured: 2 threads on 2 busy cores, 3 tokens/s; 1
    thread, 35).
    """
    override = os.environ.get("ANTIPHON_THREADS", "")
    if override:
        if not override.isdigit() or int(override) < 1:
            raise UsageError(f"ANTIPHON_THREADS must be a positive number, got {override!r}")
        return int(override)
    affinity = getattr(os, "sched_getaffinity", None)
    n_cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(n_cores, round(n_cores - load), 16))


def _is_special(run: Iterable[Piece]) -> bool:
    return any(piece.special for piece in run)


def _sampled(event: JsonObject, text_of: Callable[[int], str]) -> Sampled:
    data = cast("dict[str, Any]", event)
    choices = cast("list[dict[str, Any]]", data.get("choices") or [])
    if not choices:
        return Sampled("")
    choice = choices[0]
    logprobs = cast("dict[str, Any]", choice.get("logprobs") or {})
    entries = cast("list[dict[str, Any]]", logprobs.get("content") or [])
    usage = cast("dict[str, Any]", data.get("usage") or {})
    details = cast("dict[str, Any]", usage.get("prompt_tokens_details") or {})
    return Sampled(
        choice.get("text") or "",
        tuple(replace(token_of(e), text=_token_text(e, text_of)) for e in entries),
        choice.get("finish_reason") or "",
        details.get("cached_tokens", 0),
    )


def _token_text(entry: dict[str, Any], text_of: Callable[[int], str]) -> str:
    """The token's own text.

    The event's ``token`` holds what was sent with it, which is another text while a stop text may
    be beginning; the likeliest token has its own, and is mostly the one that was sampled.
    """
    for top in entry.get("top_logprobs") or ():
        if top.get("id") == entry["id"]:
            return str(top.get("token", ""))
    return text_of(entry["id"])


def _error(event: JsonObject, key: EngineKey) -> ModelError:
    error = cast("dict[str, Any]", event["error"])
    said = " ".join(str(error.get("message", "no reason given")).split())
    if error.get("type") == "exceed_context_size_error":
        return ContextLengthError(
            f"the conversation has {error.get('n_prompt_tokens')} tokens and the context of "
            f"{Path(key.path).name} {key.n_ctx}; add ?n_ctx=... to the model's spec"
        )
    kind = ModelResponseError if error.get("code") == 500 else ModelError
    return kind(f"llama.cpp refused the request: {said}")
