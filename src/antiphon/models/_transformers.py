"""A model in this process through transformers: our Format writes the prompt, its weights go on.

The prompt's pieces are tokenized as in training (`Rendered.runs`), sampled ids and their log
probabilities are recorded, and text is read from the ids as they come.  Sampling runs in a thread,
one request at a time, can be stopped at each token, and keeps the prefix of the request before.
Needs the ``hf`` extra.
"""

import asyncio
import importlib
import inspect
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from antiphon.errors import ContextLengthError, MissingExtraError, ModelNotFoundError, clip
from antiphon.formats import Format, Rendered
from antiphon.messages import Conversation, TokenLogprob
from antiphon.models._formatted import FormatReader, Prompt, prompt_of
from antiphon.models._model import Model, ModelOutput, ModelSettings
from antiphon.models._sampling import Emit, Sampled, outputs_of
from antiphon.models._stops import StopScanner

DEFAULT_MAX_TOKENS = 1024
_UNFINISHED = "\ufffd"  # what an incomplete character is decoded to


class TransformersModel:
    """A directory or hub id that transformers loads."""

    def __init__(
        self,
        spec: str,
        name: str,
        format: Format,
        *,
        load: Callable[[str], tuple[Any, Any]] | None = None,
    ) -> None:
        """Set up a model; it is loaded when it is first asked.

        Args:
            spec: How it was named.
            name: A directory or a hub id.
            format: The family that the model speaks.
            load: Gives model and tokenizer instead of transformers' Auto classes.
        """
        self._spec = spec
        self._name = name
        self._format = format
        self._load = load or _from_pretrained
        self._engine: _Engine | None = None
        self._lock = threading.Lock()

    @property
    def spec(self) -> str:
        """How the model was named."""
        return self._spec

    @property
    def format(self) -> Format:
        """The family that renders and parses."""
        return self._format

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Complete a conversation.  Closing the iterator, or cancelling, stops the sampling.

        Raises:
            RenderError: The family cannot express a message.
            ModelError: There is no completion.
            MissingExtraError: transformers or torch is not installed.
        """
        prompt = prompt_of(self._format, conversation, settings or ModelSettings())
        started = perf_counter()
        engine = await asyncio.to_thread(self._loaded)
        reader = FormatReader(prompt, self._name)
        prompt_ids = engine.tokenize(prompt.rendered)

        def sample(emit: Emit) -> None:
            for event in engine.sample(prompt_ids, prompt):
                if emit(event):
                    return

        sampling = outputs_of(engine.threads, sample, reader, prompt_ids, started)
        async with aclosing(sampling) as outputs:
            async for output in outputs:
                yield output

    async def count_tokens(self, conversation: Conversation, settings: ModelSettings) -> int:
        """How many tokens a conversation's prompt has.

        Raises:
            RenderError: The family cannot express a message.
            ModelNotFoundError: The model cannot be loaded.
        """
        prompt = prompt_of(self._format, conversation, settings)
        engine = await asyncio.to_thread(self._loaded)
        return len(await asyncio.to_thread(engine.tokenize, prompt.rendered))

    async def close(self) -> None:
        """Free the model; the thread ends."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.threads.shutdown)

    def _loaded(self) -> "_Engine":
        with self._lock:
            if self._engine is None:
                self._engine = _Engine(*self._load(self._name))
            return self._engine


def _from_pretrained(name: str) -> tuple[Any, Any]:
    library = _module("transformers")
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(name)
        model = library.AutoModelForCausalLM.from_pretrained(name, dtype="auto")
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())[:160]
        what = "directory" if Path(name).exists() else "directory or reachable hub model"
        raise ModelNotFoundError(
            f"no {what} {clip(name)} that transformers loads: {said}"
        ) from error
    return model.eval(), tokenizer


def _module(name: str) -> Any:
    """An optional dependency, untyped: it need not be there when types are checked."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError("a model through transformers", "hf") from error


class _Engine:
    """Model and tokenizer, and the thread that uses them."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.threads = ThreadPoolExecutor(1, thread_name_prefix="antiphon-transformers")
        self._model = model
        self._tokenizer = tokenizer
        self._marks = cast("dict[str, int]", tokenizer.get_added_vocab())
        self._engine = _without_marks(tokenizer)
        self._ends = _end_ids(model, tokenizer)
        self._max_positions: int = getattr(model.config, "max_position_embeddings", 0) or 0
        parameters = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self._cache: Any = None
        self._cached_ids: list[int] = []

    def tokenize(self, rendered: Rendered) -> list[int]:
        """The tokens of a rendered conversation; only special pieces become special tokens."""
        ids: list[int] = []
        for run in rendered.runs:
            text = "".join(piece.text for piece in run)
            if run[0].special and text in self._marks:
                ids.append(self._marks[text])
            else:
                ids.extend(self._engine.encode(text, add_special_tokens=False).ids)
        return ids

    def sample(self, prompt_ids: list[int], prompt: Prompt) -> Iterator[Sampled]:
        """Sample until an end or a limit, a token at a time."""
        torch = _module("torch")
        settings = prompt.settings
        limit = settings.max_tokens or DEFAULT_MAX_TOKENS
        if self._max_positions and len(prompt_ids) >= self._max_positions:
            raise ContextLengthError(
                f"the conversation has {len(prompt_ids)} tokens and the model's context "
                f"{self._max_positions}"
            )
        if self._max_positions:
            limit = min(limit, self._max_positions - len(prompt_ids))
        choose = _chooser(settings, self._model.generation_config)
        ends = self._ends | {self._marks[s] for s in prompt.stop if s in self._marks}
        text = _TextOf(self._tokenizer)
        scanner = StopScanner(prompt.stop)
        n_cached = self._reuse(prompt_ids)
        waiting = prompt_ids[n_cached:]
        with torch.inference_mode():
            for n in range(limit):
                id, logprobs = choose(self._next_logits(waiting))
                token = self._token(id, logprobs, settings.logprobs or 0)
                if id in ends:
                    yield Sampled(scanner.finish() or "", (token,), "stop", n_cached)
                    return
                shown = scanner.feed(text.add(id))
                finish = "stop" if scanner.stopped else "length" if n + 1 == limit else ""
                if finish == "length":
                    shown += scanner.feed(text.finish()) + scanner.finish()
                yield Sampled(shown, (token,), finish, n_cached)
                if finish:
                    return
                waiting = [id]

    def _token(self, id: int, logprobs: Any, n_top: int) -> TokenLogprob:
        top: list[TokenLogprob] = []
        if n_top:
            values, ids = logprobs.topk(min(n_top, len(logprobs)))
            for value, other in zip(values.tolist(), ids.tolist(), strict=True):
                top.append(TokenLogprob(other, value, self._tokenizer.decode([other])))
        text = self._tokenizer.decode([id])
        return TokenLogprob(id, float(logprobs[id]), text, tuple(top))

    def _next_logits(self, ids: list[int]) -> Any:
        torch = _module("torch")
        device = self._model.device
        out = self._model(
            input_ids=torch.tensor([ids], device=device),
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: self._cache},  # it grows in place
        )
        self._cached_ids.extend(ids)
        return out.logits[0, -1].float()

    def _reuse(self, prompt_ids: list[int]) -> int:
        """Keep the part of the cache that this prompt begins with; returns its length."""
        n = 0
        for ours, theirs in zip(self._cached_ids, prompt_ids[:-1], strict=False):
            if ours != theirs:
                break
            n += 1
        layered = getattr(self._model.config, "sliding_window", None) or getattr(
            self._model.config, "layer_types", None
        )
        if self._cache is None or n == 0 or (layered and not _all_full(self._model.config)):
            self._cache = _module("transformers").DynamicCache(config=self._model.config)
            self._cached_ids = []
            return 0
        if n < len(self._cached_ids):
            self._cache.crop(n - len(self._cached_ids))  # negative: how many to take off
        self._cached_ids = self._cached_ids[:n]
        return n


def _all_full(config: Any) -> bool:
    kinds: list[str] = getattr(config, "layer_types", None) or []
    return bool(kinds) and all(kind == "full_attention" for kind in kinds)


def _without_marks(tokenizer: Any) -> Any:
    """The tokenizer's engine without its added tokens, so that no text becomes one."""
    tokenizers = _module("tokenizers")
    definition: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    definition["added_tokens"] = []
    definition["post_processor"] = None
    return tokenizers.Tokenizer.from_str(json.dumps(definition))


def _end_ids(model: Any, tokenizer: Any) -> set[int]:
    ends: set[int] = set()
    for value in (model.generation_config.eos_token_id, tokenizer.eos_token_id):
        if isinstance(value, int):
            ends.add(value)
        elif isinstance(value, list):
            ends.update(cast("list[int]", value))
    return ends


def _chooser(settings: ModelSettings, defaults: Any) -> Callable[[Any], tuple[int, Any]]:
    """What picks the next token, greedy at temperature 0, else sampled; and tells the log
    probabilities of all."""
    torch = _module("torch")
    temperature = settings.temperature
    if temperature is None:
        temperature = (defaults.temperature or 1.0) if defaults.do_sample else 0.0
    top_p = settings.top_p if settings.top_p is not None else (defaults.top_p or 1.0)
    generator = None
    if settings.seed is not None:
        generator = torch.Generator().manual_seed(settings.seed)

    def choose(logits: Any) -> tuple[int, Any]:
        if temperature == 0.0:
            return int(logits.argmax()), torch.log_softmax(logits, -1)
        logprobs = torch.log_softmax(logits / temperature, -1).cpu()
        values, order = logprobs.exp().sort(descending=True)
        kept = values.cumsum(-1) - values < top_p  # the first always stays
        place = int(torch.multinomial(values * kept, 1, generator=generator))
        return int(order[place]), logprobs

    return choose


class _TextOf:
    """Text out of token ids, character by whole character; cost is linear."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []  # a short tail: enough context for the next token's spaces
        self._n_read = 0

    def add(self, id: int) -> str:
        self._ids.append(id)
        before = self._decode(self._ids[: self._n_read])
        now = self._decode(self._ids)
        if now.endswith(_UNFINISHED) or len(now) <= len(before):
            return ""
        self._ids, self._n_read = self._ids[self._n_read :], len(self._ids) - self._n_read
        return now[len(before) :]

    def finish(self) -> str:
        return self._decode(self._ids)[len(self._decode(self._ids[: self._n_read])) :]

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False) if ids else ""


if TYPE_CHECKING:
    from antiphon.formats.smollm2 import FORMAT

    _model: Model = TransformersModel("", "", FORMAT)
