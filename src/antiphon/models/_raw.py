"""A server that continues text, with a Format of ours: prompted calls where it knows no tools.

Which server it is, is found out once.  Where it tokenizes for us (llama.cpp, vLLM) the prompt goes
as token ids, cut as in training, so that no text of a user, tool or document becomes a special
token. Where it takes text only, a mark inside such text is broken by a zero-width space, and the
record shows the prompt as it was sent.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from antiphon.errors import ModelConnectionError, ModelError, ModelNotFoundError
from antiphon.formats import Format, Grammar, Piece, Rendered
from antiphon.messages import Conversation, JsonObject, json_bytes
from antiphon.models._dialect import Request
from antiphon.models._formatted import Prompt, marks_of, prompt_of
from antiphon.models._http import Timeouts
from antiphon.models._model import Model, ModelOutput, ModelSettings
from antiphon.models._raw_servers import (
    DEFAULT_MAX_TOKENS,
    ServerKind,
    options,
    path,
    reader,
    root_of,
)
from antiphon.models._remote import Endpoint
from antiphon.models._retries import RetryPolicy

_log = logging.getLogger(__name__)

_OWNERS: dict[str, ServerKind] = {
    "llamacpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "library": "ollama",
}
_BREAK = "\u200b"
_MAX_CACHED_TEXTS = 4096


class RawModel:
    """A model behind a completion API, written to and read with a Format."""

    def __init__(
        self,
        spec: str,
        format: Format,
        *,
        base_url: str,
        model: str,
        key: str | None = None,
        key_name: str = "ANTIPHON_API_KEY",
        kind: ServerKind | None = None,
        retries: RetryPolicy | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Set up a model; nothing is opened until it is asked.

        Args:
            spec: How it was named.
            format: The family that the model speaks.
            base_url: Where the API begins.
            model: The server's name of the model.
            key: The key, if the server wants one.
            key_name: The environment variable the key comes from, for messages.
            kind: Which server it is; found out where it is not given.
            retries: When a request is made again.
            timeouts: How long each wait may last.
        """
        self._spec = spec
        self._format = format
        self._model = model
        self._kind: ServerKind | None = kind
        self._endpoint = Endpoint(
            base_url,
            model=model,
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            key_name=key_name,
            retries=retries,
            timeouts=timeouts,
        )
        self._tokens: dict[tuple[str, bool], tuple[int, ...]] = {}
        self._tokenizes = True

    @property
    def spec(self) -> str:
        """How the model was named."""
        return self._spec

    @property
    def format(self) -> Format:
        """The family that renders and parses."""
        return self._format

    @property
    def default_max_tokens(self) -> int | None:
        """How long an answer may be where a request does not say, in tokens; ``None`` where the
        server is known to take no grammar."""
        return None if self._kind in ("ollama", "openai") else DEFAULT_MAX_TOKENS

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Complete a conversation.

        Raises:
            RenderError: The family cannot express a message.
            ModelError: There is no completion, also not after asking again.
        """
        prompt = prompt_of(self._format, conversation, settings or ModelSettings())
        kind = await self._server_kind()
        request = await self._request(prompt, kind)
        async with aclosing(self._endpoint.ask(request)) as outputs:
            async for output in outputs:
                yield output

    async def count_tokens(self, conversation: Conversation, settings: ModelSettings) -> int:
        """How many tokens a conversation's prompt has.

        Raises:
            RenderError: The family cannot express a message.
            ModelError: The server does not tell, or does not answer.
        """
        prompt = prompt_of(self._format, conversation, settings)
        kind = await self._server_kind()
        marks = {piece.text for piece in prompt.rendered.pieces if piece.special}
        ids = await self._prompt_ids(prompt.rendered, kind, marks)
        if ids is None:
            raise ModelNotFoundError(f"{self._spec} offers no tokenizer that could count")
        return len(ids)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._endpoint.close()

    async def _server_kind(self) -> ServerKind:
        if self._kind is None:
            self._kind = await self._detect()
            _log.debug("%s is served by %s", self._spec, self._kind)
        return self._kind

    async def _detect(self) -> ServerKind:
        try:
            answer: Any = await self._endpoint.json("GET", f"{self._endpoint.base_url}/models")
        except ModelConnectionError:
            raise
        except ModelError:  # a server that does not list its models
            return "openai"
        rows: Any = cast("Any", answer).get("data") if isinstance(answer, Mapping) else None
        listed = cast("list[dict[str, Any]]", rows if isinstance(rows, list) else [])
        own = [row for row in listed if row.get("id") == self._model] or listed
        return _OWNERS.get(str(own[0].get("owned_by", "")) if own else "", "openai")

    async def _request(self, prompt: Prompt, kind: ServerKind) -> Request:
        # A grammar over many tools takes long to build; others are answered meanwhile.
        grammar = await asyncio.to_thread(prompt.grammar) if prompt.is_held else None
        marks = {piece.text for piece in prompt.rendered.pieces if piece.special}
        marks |= set() if grammar is None else marks_of(grammar)
        ids = await self._prompt_ids(prompt.rendered, kind, marks)
        text = _plain(prompt.rendered, marks)
        if ids is None and text != prompt.rendered.text:
            prompt = replace(prompt, rendered=_with_text(prompt.rendered, text))
        body: JsonObject = options(
            prompt,
            kind,
            model=self._model,
            marks=frozenset(marks),
            grammar=None if grammar is None else await self._spelled(grammar, prompt, kind),
        )
        sent: JsonObject = {"prompt": text if ids is None else list[Any](ids)}
        return Request(
            path(kind, self._endpoint.base_url),
            json_bytes(body | sent),
            lambda: reader(kind, prompt, self._model, ids),
            lines=kind == "ollama",
        )

    async def _spelled(self, grammar: Grammar, prompt: Prompt, kind: ServerKind) -> str | None:
        """The grammar as the server takes it; ``None`` where it takes none and none is asked for.

        vLLM's and SGLang's text grammars cannot name special tokens, so they hold only families
        whose marks are plain text.
        """
        marks = marks_of(grammar)
        if kind == "llamacpp":
            single = [mark for mark in sorted(marks) if await self._is_token(mark, kind)]
            return await asyncio.to_thread(grammar.to_gbnf, specials=frozenset(single))
        if kind in ("vllm", "sglang") and not marks:
            return await asyncio.to_thread(grammar.to_gbnf, specials=frozenset())
        if prompt.settings.constrain:
            raise ModelError(
                f"{self._spec} cannot be held to the grammar of {prompt.format.name}: "
                "its server takes none that names special tokens; leave constrain unset"
            )
        return None

    async def _prompt_ids(
        self, rendered: Rendered, kind: ServerKind, marks: set[str]
    ) -> tuple[int, ...] | None:
        if kind not in ("llamacpp", "vllm") or not self._tokenizes:
            return None
        ids: list[int] = []
        try:
            for run in rendered.runs:
                for text, special in _texts_of(run, marks, kind):
                    ids += await self._tokens_of(text, kind, special=special)
        except ModelNotFoundError:  # the server offers no tokenizer
            self._tokenizes = False
            return None
        return tuple(ids)

    async def _is_token(self, mark: str, kind: ServerKind) -> bool:
        return len(await self._tokens_of(mark, kind, special=True)) == 1

    async def _tokens_of(self, text: str, kind: ServerKind, *, special: bool) -> tuple[int, ...]:
        known = self._tokens.get((text, special))
        if known is None:
            body: JsonObject = (
                {"content": text, "add_special": False, "parse_special": special}
                if kind == "llamacpp"
                else {"model": self._model, "prompt": text, "add_special_tokens": False}
            )
            url = f"{root_of(self._endpoint.base_url)}/tokenize"
            answer: Any = await self._endpoint.json("POST", url, json_bytes(body))
            known = tuple(cast("list[int]", answer["tokens"]))
            if len(self._tokens) >= _MAX_CACHED_TEXTS:
                self._tokens.clear()
            self._tokens[text, special] = known
        return known


def _texts_of(run: tuple[Piece, ...], marks: set[str], kind: ServerKind) -> list[tuple[str, bool]]:
    """The texts of one run that are tokenized apart.

    vLLM reads marks wherever they stand, so a mark in plain text is cut behind its first character.
    """
    text = "".join(piece.text for piece in run)
    if run[0].special:
        return [(text, True)]
    if kind == "llamacpp":
        return [(text, False)]
    return [(part, False) for part in _broken(text, marks, "\0").split("\0") if part]


def _broken(text: str, marks: set[str], by: str) -> str:
    for mark in sorted(marks, key=len, reverse=True):
        if len(mark) > 1 and mark in text:
            text = text.replace(mark, mark[0] + by + mark[1:])
    return text


def _plain(rendered: Rendered, marks: set[str]) -> str:
    return "".join(
        piece.text
        if piece.special or piece.author == "written"
        else _broken(piece.text, marks, _BREAK)
        for piece in rendered.pieces
    )


def _with_text(rendered: Rendered, text: str) -> Rendered:
    return Rendered((Piece(text, "frame"),), rendered.start, rendered.changed)


if TYPE_CHECKING:
    from antiphon.formats.smollm2 import FORMAT

    _raw: Model = RawModel("", FORMAT, base_url="", model="")
