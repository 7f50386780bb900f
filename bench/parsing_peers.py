"""The streaming tool parsers of vLLM and SGLang, fed with the deltas that ours are fed with.

Both are used unchanged, from packages that are only unpacked (their parsers need no GPU, but ask
for many of the packages' dependencies)::

    pip download --no-deps vllm sglang
    unzip -q 'vllm-*.whl' -d peers -x '*.so'; unzip -q 'sglang-*.whl' -d peers -x '*.so'
    pip install torch transformers openai partial-json-parser msgspec fastapi xgrammar ...
    PYTHONPATH=src:peers python bench/parsing.py --peers vllm,sglang

A delta is one token, a family's mark one token of its own: `Vocabulary` stands for a tokenizer and
says what the parsers ask one.  vLLM's Mistral parser also asks for the tokenizer's version, which
is answered here.  Where a parser comes to another result, or to none within the time it is given,
that is said beside its time.
"""

import importlib
import importlib.util
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any, cast

from antiphon.messages import ToolCall, ToolSpec

CHECKED_EVERY = 64  # deltas: how often the clock is looked at


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer's parser of one of our families."""

    package: str
    """``vllm`` or ``sglang``."""
    parser: str
    """Its name there."""
    engine: bool = False
    """Whether it runs on vLLM's declarative engine."""

    @property
    def label(self) -> str:
        """How it is shown."""
        return f"{self.package} {self.parser}" + (" (engine)" if self.engine else "")


PEERS: dict[str, tuple[Peer, ...]] = {
    "hermes": (Peer("vllm", "hermes"), Peer("sglang", "qwen25")),
    "llama3_2": (Peer("vllm", "llama3_json"), Peer("sglang", "llama3")),
    "qwen3_coder": (Peer("vllm", "qwen3_coder", engine=True), Peer("sglang", "qwen3_coder")),
    "glm4_7": (Peer("vllm", "glm47", engine=True), Peer("sglang", "glm47")),
    "kimi_k2_instruct": (Peer("vllm", "kimi_k2", engine=True), Peer("sglang", "kimi_k2")),
    "minimax_m2_direct": (Peer("vllm", "minimax_m2", engine=True), Peer("sglang", "minimax-m2")),
    "deepseek_v4_direct": (Peer("vllm", "deepseek_v4", engine=True), Peer("sglang", "deepseekv4")),
    "deepseek_v3_1": (Peer("vllm", "deepseek_v31"), Peer("sglang", "deepseekv31")),
    "gemma4": (Peer("vllm", "gemma4", engine=True), Peer("sglang", "gemma4")),
}
"""The peers' parsers by the variant of ours that writes the text."""

_SPECIAL = ("kimi_k2", "deepseek_v31", "deepseek_v4", "gemma4")  # families whose marks are special


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of feeding one call."""

    seconds: float
    """CPU seconds of the parser alone."""
    n_chars: int
    """How much of the text was fed, where the time ran out; else all of it."""
    is_right: bool
    """Whether the call that was read is the one that was written."""


def installed(package: str) -> bool:
    """Whether a peer's package is there."""
    return importlib.util.find_spec(package) is not None


def read(
    peer: Peer, pieces: Sequence[str], made: ToolCall, tools: Sequence[ToolSpec], cap: float
) -> Outcome:
    """Feed a peer's parser.

    Args:
        peer: The parser.
        pieces: The deltas.
        made: The call that they say.
        tools: The tools on offer.
        cap: CPU seconds after which to stop.
    """
    logging.disable(logging.CRITICAL)
    marks = {piece for piece in pieces if len(piece) > 4}
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        steps = (_vllm if peer.package == "vllm" else _sglang)(peer, pieces, marks, tools)
        calls: dict[int, list[str]] = {}
        n_chars = 0
        next(steps)  # made ready
        began = time.process_time()
        for n, told in enumerate(steps):
            n_chars += len(pieces[n]) if n < len(pieces) else 0
            for index, name, arguments in told:
                call = calls.setdefault(index, ["", ""])
                call[0] += name or ""
                call[1] += arguments or ""
            if n % CHECKED_EVERY == 0 and time.process_time() - began > cap:
                return Outcome(time.process_time() - began, n_chars, False)
    seconds = time.process_time() - began
    return Outcome(seconds, n_chars, _says(list(calls.values()), made))


def _says(calls: list[list[str]], made: ToolCall) -> bool:
    if len(calls) != 1 or calls[0][0] != made.name:
        return False
    try:
        return json.loads(calls[0][1]) == made.arguments
    except ValueError:
        return False


_Told = list[tuple[int, str | None, str | None]]


def _vllm(
    peer: Peer, pieces: Iterable[str], marks: set[str], tools: Sequence[ToolSpec]
) -> Iterator[_Told]:
    """Nothing, then what vLLM's parser tells after each delta."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    manager = importlib.import_module("vllm.parser").ParserManager
    protocol = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
    vocabulary = Vocabulary(marks, special=peer.parser in _SPECIAL)
    request = protocol.ChatCompletionRequest(
        messages=[{"role": "user", "content": "Go."}],
        model="any",
        tools=[spec.to_openai() for spec in tools],
        tool_choice="auto",
        chat_template_kwargs={"enable_thinking": False, "thinking": False},
    )
    options = {"enable_thinking": False, "thinking": False}
    kind = manager.get_parser(peer.parser, None, enable_auto_tools=True)
    parser = kind(vocabulary, request.tools, chat_template_kwargs=options)
    request = parser.adjust_request(request) or request
    feed: Callable[..., Any] = parser.parse_delta
    prompt = [vocabulary.id_of("Go.")]
    yield []
    for piece in pieces:
        ids = [vocabulary.id_of(piece)]
        yield _told(feed(piece, ids, request, prompt_token_ids=prompt, finished=False))
    yield _told(feed("", [2], request, prompt_token_ids=prompt, finished=True))


def _told(delta: Any) -> _Told:
    told: _Told = []
    calls: list[Any] = (delta.tool_calls if delta is not None else None) or []
    for call in calls:
        function: Any = call.function
        if isinstance(function, dict):
            fields = cast("dict[str, Any]", function)
            told.append((call.index, fields.get("name"), fields.get("arguments")))
        elif function is not None:
            told.append((call.index, function.name, function.arguments))
    return told


def _sglang(
    peer: Peer, pieces: Iterable[str], marks: set[str], tools: Sequence[ToolSpec]
) -> Iterator[_Told]:
    """Nothing, then what SGLang's detector tells after each delta."""
    module = importlib.import_module("sglang.srt.function_call.function_call_parser")
    protocol = importlib.import_module("sglang.srt.entrypoints.openai.protocol")
    parser = module.FunctionCallParser(
        [protocol.Tool(**spec.to_openai()) for spec in tools], peer.parser
    )
    yield []
    for piece in pieces:
        _, calls = parser.parse_stream_chunk(piece)
        yield [(call.tool_index, call.name, call.parameters) for call in calls]
    _, calls = parser.parse_stream_end()
    told: _Told = [(call.tool_index, call.name, call.parameters) for call in calls]
    yield told + _unsent(parser.detector)


def _unsent(detector: Any) -> _Told:
    """What SGLang's server sends at the end of what its detector has read and not told."""
    read, sent = detector.prev_tool_call_arr, detector.streamed_args_for_tool
    if not read or len(read) > len(sent):
        return []
    last = len(read) - 1
    arguments = read[last].get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return [(last, None, text.removeprefix(sent[last]))] if text.startswith(sent[last]) else []


class Vocabulary:
    """What the parsers ask of a tokenizer; every delta is one token."""

    chat_template = eos_token = bos_token = None
    eos_token_id = 2

    def __init__(self, marks: Iterable[str], *, special: bool) -> None:
        """A vocabulary of marks, and whether they are special tokens."""
        texts = [*sorted(marks), *map(chr, range(32, 127)), "\n"]
        self._ids = {text: 10 + n for n, text in enumerate(texts)}
        self._texts = {n: text for text, n in self._ids.items()}
        self.vocab = dict(self._ids)
        self.init_kwargs: dict[str, Any] = {}
        self.all_special_tokens = sorted(marks) if special else []
        self.all_special_ids = [self._ids[mark] for mark in self.all_special_tokens]

    def id_of(self, text: str) -> int:
        """The id of a delta."""
        if text not in self._ids:
            self._ids[text] = n = 1000 + len(self._ids)
            self._texts[n] = text
        return self._ids[text]

    def get_vocab(self) -> dict[str, int]:
        """See transformers."""
        return dict(self.vocab)

    def encode(self, text: str, **_: Any) -> list[int]:
        """See transformers."""
        return [self.id_of(token) for token in self.tokenize(text)]

    def decode(self, ids: int | Sequence[int], **_: Any) -> str:
        """See transformers."""
        listed = [ids] if isinstance(ids, int) else ids
        return "".join(self._texts.get(n, "") for n in listed)

    def tokenize(self, text: str, **_: Any) -> list[str]:
        """See transformers."""
        return [text] if text in self.vocab else list(text)

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> int | list[int]:
        """See transformers."""
        return self.id_of(tokens) if isinstance(tokens, str) else list(map(self.id_of, tokens))

    def convert_ids_to_tokens(self, n: int, **_: Any) -> str | None:
        """See transformers."""
        return self._texts.get(n)

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """See transformers."""
        return "".join(tokens)
