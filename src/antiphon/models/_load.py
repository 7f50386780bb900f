"""A Model from its spec.  Nothing is opened or loaded before the model is asked."""

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from antiphon.errors import ModelAuthError, ModelNotFoundError, UsageError, clip
from antiphon.formats import Format
from antiphon.messages import JsonObject, JsonValue
from antiphon.models._catalog import Card, card_named
from antiphon.models._model import Model, ModelSettings
from antiphon.models._spec import ModelSpec, parse_spec

if TYPE_CHECKING:
    from antiphon.models._dialect import Dialect
    from antiphon.models._embeddings import EmbeddingModel

_log = logging.getLogger(__name__)

_QUANTISATION = re.compile(r"[-._](i?q\d\w*|bf16|fp?16|fp?32|mxfp4\w*)$")

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com/v1"
OLLAMA_URL = "http://127.0.0.1:11434"


def load_model(spec: str | Model, *, environ: Mapping[str, str] | None = None) -> Model:
    """A model from its spec.

    Args:
        spec: ``local``, ``openai/<name>``, ...; see `antiphon.models._spec`.  A Model is given
        back.
        environ: Where keys and addresses are read from; the process's environment by default.

    Returns:
        A model that opens nothing until it is asked.

    Raises:
        UsageError: The spec has no known form, or its format is unknown.
        ModelAuthError: The model needs a key and there is none.
        ModelNotFoundError: The spec names a file that is not there.
        DataError: A script cannot be read.
    """
    if not isinstance(spec, str):
        return spec
    parsed = parse_spec(spec)
    return _LOADERS[parsed.kind](parsed, os.environ if environ is None else environ)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    base_url: str
    key: str | None
    key_name: str
    max_tokens_field: str = "max_tokens"


def load_embeddings(spec: str, *, environ: Mapping[str, str] | None = None) -> "EmbeddingModel":
    """An embedding model behind an OpenAI-compatible endpoint, from its spec.

    Args:
        spec: ``openai/<name>``, ``ollama/<name>`` or ``http://host:port/v1#<name>``.
        environ: Where keys and addresses are read from; the process's environment by default.

    Raises:
        UsageError: The spec names no such endpoint.
        ModelAuthError: The model needs a key and there is none.
    """
    from antiphon.models._embeddings import EmbeddingModel

    parsed = parse_spec(spec)
    find = _ENDPOINTS.get(parsed.kind)
    if find is None or parsed.format or parsed.options:
        raise UsageError(
            f"no embeddings by the spec {clip(spec)}; the forms are openai/<name>, ollama/<name>, "
            "http://host:port/v1#<name>; in this process: antiphon.retrieval.SentenceModel"
        )
    endpoint = find(parsed, os.environ if environ is None else environ)
    return EmbeddingModel(
        endpoint.base_url, model=parsed.name, key=endpoint.key, key_name=endpoint.key_name
    )


def _openai(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    return _remote(spec, _openai_endpoint(spec, environ))


def _openai_endpoint(spec: ModelSpec, environ: Mapping[str, str]) -> _Endpoint:
    base_url = environ.get("OPENAI_BASE_URL") or OPENAI_URL
    key = environ.get("OPENAI_API_KEY") or None
    if key is None and base_url == OPENAI_URL:
        raise ModelAuthError(f"{spec.text} needs a key; set OPENAI_API_KEY")
    ours = base_url == OPENAI_URL
    field = "max_completion_tokens" if ours else "max_tokens"
    return _Endpoint(base_url, key, "OPENAI_API_KEY", field)


def _anthropic(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    base_url = environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL
    key = environ.get("ANTHROPIC_API_KEY") or None
    if key is None and base_url == ANTHROPIC_URL:
        raise ModelAuthError(f"{spec.text} needs a key; set ANTHROPIC_API_KEY")
    if not base_url.rstrip("/").endswith("/v1"):
        base_url = f"{base_url.rstrip('/')}/v1"  # others write it without
    spec = replace(spec, options={"api": "anthropic"} | spec.options)
    return _remote(spec, _Endpoint(base_url, key, "ANTHROPIC_API_KEY"))


def _ollama(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    return _remote(spec, _ollama_endpoint(spec, environ))


def _ollama_endpoint(spec: ModelSpec, environ: Mapping[str, str]) -> _Endpoint:
    base_url = ollama_url(environ.get("OLLAMA_HOST", ""))
    key = environ.get("OLLAMA_API_KEY") or None
    return _Endpoint(f"{base_url}/v1", key, "OLLAMA_API_KEY")


def ollama_url(host: str) -> str:
    """The address that ``OLLAMA_HOST`` means; it may lack scheme and port, and 0.0.0.0 is here.

    >>> ollama_url("0.0.0.0")
    'http://127.0.0.1:11434'
    """
    if not host:
        return OLLAMA_URL
    parts = urlsplit(host if "://" in host else f"http://{host}")
    name = "127.0.0.1" if parts.hostname in (None, "0.0.0.0", "::") else parts.hostname
    default = 443 if parts.scheme == "https" else 11434
    return f"{parts.scheme}://{name}:{parts.port or default}{parts.path.rstrip('/')}"


def _http(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    return _remote(spec, _http_endpoint(spec, environ))


def _http_endpoint(spec: ModelSpec, environ: Mapping[str, str]) -> _Endpoint:
    key_name = "ANTIPHON_API_KEY"
    if spec.base_url.rstrip("/") == (environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/"):
        key_name = "OPENAI_API_KEY"  # a key goes to the address that it was set for, and no other
    return _Endpoint(spec.base_url, environ.get(key_name) or None, key_name)


_ENDPOINTS: dict[str, Callable[[ModelSpec, Mapping[str, str]], _Endpoint]] = {
    "openai": _openai_endpoint,
    "ollama": _ollama_endpoint,
    "http": _http_endpoint,
}


def _remote(spec: ModelSpec, endpoint: _Endpoint) -> Model:
    from antiphon.models._remote import RemoteModel

    if spec.format:
        return _completing(spec, endpoint)
    return RemoteModel(
        spec.text,
        _dialect(spec, endpoint),
        base_url=endpoint.base_url,
        model=spec.name,
        key=endpoint.key,
        key_name=endpoint.key_name,
    )


def _dialect(spec: ModelSpec, endpoint: _Endpoint) -> "Dialect":
    from antiphon.models._anthropic import AnthropicDialect
    from antiphon.models._chat import ChatDialect
    from antiphon.models._responses import ResponsesDialect

    options = dict(spec.options)
    api = options.pop("api", "chat")
    if options:
        raise UsageError(
            f"{clip(spec.text)} uses the server's own tool calling, so "
            f"{', '.join(options)} means nothing; options belong to a format=..."
        )
    match api:
        case "chat":
            return ChatDialect(spec.name, max_tokens_field=endpoint.max_tokens_field)
        case "responses":
            return ResponsesDialect(spec.name)
        case "anthropic":
            return AnthropicDialect(spec.name)
        case _:
            raise UsageError(f"no API named {clip(api)}; known: chat, responses, anthropic")


def _completing(spec: ModelSpec, endpoint: _Endpoint) -> Model:
    from antiphon.models._raw import RawModel

    return RawModel(
        spec.text,
        _format_of(spec.format, spec.options),
        base_url=endpoint.base_url,
        model=spec.name,
        key=endpoint.key,
        key_name=endpoint.key_name,
        kind="ollama" if spec.kind == "ollama" else None,
    )


def _local(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    from antiphon.models._gguf import GgufModel
    from antiphon.models._llama import EngineKey
    from antiphon.models._weights import adapter_path, ensure

    card = card_named(spec.name)
    engine, variants = _engine_options(spec)

    async def key() -> EngineKey:
        adapter = adapter_path(card)
        if adapter is None and card.adapter:
            _log.warning("%s is not in this package; %s runs without it", card.adapter, spec.text)
        lora = () if adapter is None else ((str(adapter), 1.0),)
        path = str((await ensure(card)).resolve())
        return EngineKey(path, lora, engine.n_ctx or card.n_ctx, engine.n_threads)

    defaults = ModelSettings(temperature=0.0 if card.greedy else None, max_tokens=card.max_tokens)
    return GgufModel(spec.text, key, _card_format(card, spec, variants), defaults=defaults)


def _card_format(card: Card, spec: ModelSpec, variants: JsonObject) -> Format:
    if spec.format:
        return _format_of(spec.format, variants)
    return _format_of(card.format, dict[str, JsonValue](card.variants) | variants)


def _gguf(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    from antiphon.models._gguf import GgufModel
    from antiphon.models._llama import EngineKey

    path = Path(spec.name).expanduser()
    if not path.is_file():
        raise ModelNotFoundError(f"there is no model file {clip(str(path))}")
    engine, variants = _engine_options(spec)
    lora = tuple((str(Path(p).expanduser().resolve()), 1.0) for p in engine.lora)
    made = EngineKey(str(path.resolve()), lora, engine.n_ctx or 8192, engine.n_threads)
    name = spec.format or family_of_file(path)
    if not name:
        mark = "&" if spec.options else "?"
        raise UsageError(
            f"the family of {clip(path.name)} is not known; add it: {spec.text}{mark}format=qwen3"
        )
    return GgufModel(spec.text, made, _format_of(name, variants))


def family_of_file(path: Path) -> str:
    """The family that a GGUF file's name speaks of, as publishers name them; empty where none does.

    >>> family_of_file(Path("Qwen3-1.7B-Q8_0.gguf"))
    'qwen3'
    """
    from antiphon.formats import get_format, list_formats

    stem = _QUANTISATION.sub("", path.name.lower().removesuffix(".gguf"))
    best: tuple[int, str] = (0, "")
    for name in list_formats():
        patterns: tuple[str, ...] = getattr(get_format(name), "models", ())
        for pattern in patterns:
            base = pattern.rsplit("/", 1)[-1].lower()
            if fnmatchcase(stem, base):
                best = max(best, (len(base.replace("*", "")), name))
    return best[1]


@dataclass(frozen=True, slots=True)
class _EngineOptions:
    n_ctx: int = 0
    n_threads: int = 0
    lora: tuple[str, ...] = ()


def _engine_options(spec: ModelSpec) -> tuple[_EngineOptions, JsonObject]:
    """What of a spec's options is llama.cpp's; the rest is the format's."""
    variants = dict(spec.options)
    numbers = {name: variants.pop(name, 0) for name in ("n_ctx", "n_threads")}
    for name, value in numbers.items():
        if not isinstance(value, int) or value < 0:
            raise UsageError(f"{name} must be a number of at least 1, got {value!r}")
    lora = variants.pop("lora", None)
    files = () if lora is None else tuple(str(lora).split(","))
    return _EngineOptions(
        int(str(numbers["n_ctx"])), int(str(numbers["n_threads"])), files
    ), variants


def _hf(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    from antiphon.models._transformers import TransformersModel

    return TransformersModel(
        spec.text, spec.name, _format_of(spec.format or spec.name, spec.options)
    )


def _script(spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    from antiphon.models._scripted import ScriptedModel, read_script

    format = _format_of(spec.format, spec.options) if spec.format else None
    return ScriptedModel(read_script(spec.name), format=format, spec=spec.text)


def _format_of(name: str, variants: JsonObject) -> Format:
    from antiphon.formats import get_format

    return get_format(name, **variants)


_LOADERS: dict[str, Callable[[ModelSpec, Mapping[str, str]], Model]] = {
    "local": _local,
    "openai": _openai,
    "anthropic": _anthropic,
    "ollama": _ollama,
    "http": _http,
    "hf": _hf,
    "gguf": _gguf,
    "script": _script,
}
