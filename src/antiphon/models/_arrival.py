"""What the bytes of one answer say, as they arrive, whatever its dialect.

An answer is a stream of events (server-sent, or one JSON object a line), or one JSON body.  Nothing
here opens a connection or waits; a stream that ends before the server said that the answer is over
is broken, and nothing of it is an answer.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from antiphon.errors import ModelConnectionError, ModelError, ModelResponseError, clip
from antiphon.messages import Completion, Delta
from antiphon.models._dialect import Request
from antiphon.models._model import SampledTokens
from antiphon.models._refusals import error_of_event
from antiphon.models._sse import LineDecoder, SseDecoder

_MAX_BODY_BYTES = 1 << 30


class Arrival:
    """Reads one answer out of its bytes."""

    def __init__(self, request: Request, content_type: str, *, url: str, model: str) -> None:
        """Set up.

        Args:
            request: What is answered.
            content_type: The media type of the answer.
            url: Where it comes from, for messages.
            model: The server's name of the model, for messages.

        Raises:
            ModelError: It cannot be an answer.
        """
        if content_type == "text/html":
            raise ModelError(
                f"{url} answers with a web page, not a completion; is the address right?"
            )
        self._reader = request.reader()
        self._url = url
        self._model = model
        is_whole = content_type == "application/json" and not request.lines
        self._body: bytearray | None = bytearray() if is_whole else None
        self._decoder = LineDecoder() if request.lines else SseDecoder()
        self._is_done = False

    def feed(self, chunk: bytes) -> Iterator[Delta | SampledTokens]:
        """What a piece of the body adds.

        Raises:
            ModelError: It is nothing of an answer, or says that there is none.
        """
        if self._body is None:
            yield from self._events(self._decoder.feed(chunk))
            return
        self._body += chunk
        if len(self._body) > _MAX_BODY_BYTES:
            raise ModelResponseError(f"{self._url} answered more than {_MAX_BODY_BYTES:,} bytes")

    def finish(self) -> Iterator[Delta | SampledTokens | Completion]:
        """What was held back, and the answer.

        Raises:
            ModelError: What came is no answer, or not all of one.
        """
        if self._body is not None:
            yield from self._reader.whole(self._answered(self._body))
        else:
            yield from self._events(self._decoder.finish())
            if not (self._is_done or self._reader.complete):
                raise ModelConnectionError(
                    f"the stream from {self._url} ended before the answer was over"
                )
        rest, completion = self._reader.finish()
        yield from rest
        yield completion

    def _events(self, texts: list[str]) -> Iterator[Delta | SampledTokens]:
        for text in texts:
            if text == "[DONE]":
                self._is_done = True
            elif text and not self._is_done:
                yield from self._reader.event(self._streamed(text))

    def _streamed(self, text: str) -> Mapping[str, Any]:
        try:
            data: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelResponseError(
                f"{self._url} streamed an event that is not JSON: {clip(text)}"
            ) from error
        if not isinstance(data, dict):
            raise ModelResponseError(f"{self._url} streamed {clip(text)} where an object belongs")
        return self._well(cast("dict[str, Any]", data))

    def _answered(self, body: bytearray) -> Mapping[str, Any]:
        try:
            data: Any = json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise ModelResponseError(f"{self._url} answered with broken JSON") from error
        if not isinstance(data, dict):
            raise ModelResponseError(f"{self._url} answered {clip(data)} where an object belongs")
        return self._well(cast("dict[str, Any]", data))

    def _well(self, data: "dict[str, Any]") -> Mapping[str, Any]:
        """An object that is none of an error."""
        if data.get("error"):
            raise error_of_event(data["error"], url=self._url, model=self._model)
        return data
