"""A model behind an HTTP API, whatever its dialect: streaming, and what to do when it breaks.

The answer is streamed where it is not wanted whole; `_arrival.py` reads it.  Where it breaks off
nothing of it is an answer: a `Retry` tells the consumer to discard what it was shown, and the
request is made again.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antiphon.errors import (
    ModelConnectionError,
    ModelError,
    ModelResponseError,
    RateLimitError,
)
from antiphon.messages import Completion, Conversation
from antiphon.models._arrival import Arrival
from antiphon.models._chat import ChatDialect
from antiphon.models._dialect import Dialect, Request
from antiphon.models._http import HttpClient, Response, Timeouts
from antiphon.models._model import Model, ModelOutput, ModelSettings, Retry
from antiphon.models._refusals import ServerFailedError, error_of_response
from antiphon.models._retries import RetryPolicy, gate_of

_log = logging.getLogger(__name__)


class Endpoint:
    """One address of an HTTP API: asks, streams the answer, and asks again when it broke."""

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        headers: Mapping[str, str],
        key_name: str = "ANTIPHON_API_KEY",
        retries: RetryPolicy | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Set up an address; nothing is opened until it is asked.

        Args:
            base_url: Where the API begins, e.g. ``http://localhost:8000/v1``.
            model: The server's name of the model, for messages.
            headers: What goes with every request: the key.
            key_name: The environment variable the key comes from, for messages.
            retries: When a request is made again.
            timeouts: How long each wait may last.
        """
        self.base_url = base_url.rstrip("/")
        self.model = model
        self._headers = {"Content-Type": "application/json", **headers}
        self._key_name = key_name
        self._retries = retries or RetryPolicy()
        self._client = HttpClient(timeouts)
        self._gate = gate_of(self.base_url, model, json.dumps(self._headers, sort_keys=True))
        self._reached = False

    async def ask(self, request: Request) -> AsyncGenerator[ModelOutput, None]:
        """The answer to a request: deltas, a `Retry` where it begins anew, and the Completion.

        Raises:
            ModelError: There is no answer, also not after asking again.
        """
        url = request.path if "://" in request.path else self.base_url + request.path
        n_tries = 0
        while True:
            await self._gate.wait()
            try:
                began, first = time.perf_counter(), None
                async with await self._asked(
                    "POST", url, request.body, silent=request.whole
                ) as response:
                    arrival = Arrival(request, response.content_type, url=url, model=self.model)
                    async for chunk in response:
                        for delta in arrival.feed(chunk):
                            first = first or time.perf_counter() - began
                            yield delta
                for output in arrival.finish():
                    took = time.perf_counter() - began
                    if isinstance(output, Completion):
                        output = replace(output, time_to_first_token=first, duration=took)
                    else:
                        first = first or took
                    yield output
                return
            except ModelError as error:
                n_tries += 1
                again = self._again(error, n_tries)
            yield again
            await asyncio.sleep(again.wait)

    def _again(self, error: ModelError, n_tries: int) -> Retry:
        """When to ask again after an error.

        Raises:
            ModelError: The error, where asking again would not help.
        """
        wait = self._retries.wait(error, n_tries)
        if wait is None or self._never_reached(error):
            raise _tried(error, n_tries) from error
        if isinstance(error, RateLimitError):
            self._gate.close_for(wait)
        _log.debug("%s: asking again in %.2f s: %s", self.base_url, wait, error)
        return Retry(str(error), wait)

    async def post(self, path: str, body: bytes) -> Any:
        """The JSON that a request is answered with, asked for again as `ask` does.

        Args:
            path: Below the base URL.
            body: JSON.

        Raises:
            ModelError: There is no answer, also not after asking again.
        """
        n_tries = 0
        while True:
            await self._gate.wait()
            try:
                return await self.json("POST", self.base_url + path, body)
            except ModelError as error:
                n_tries += 1
                again = self._again(error, n_tries)
            await asyncio.sleep(again.wait)

    async def json(self, method: str, url: str, body: bytes | None = None) -> Any:
        """The JSON that a small request is answered with.

        Raises:
            ModelError: The server refuses, or answers something else.
        """
        async with await self._asked(method, url, body) as response:
            text = await response.read(1 << 26)
        try:
            return json.loads(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise ModelResponseError(f"{url} answered something that is not JSON") from error

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._client.close()

    def _never_reached(self, error: ModelError) -> bool:
        """Whether the endpoint was dead from the start: then the address is wrong, not the day."""
        return (
            isinstance(error, ModelConnectionError)
            and not isinstance(error, ServerFailedError)
            and not self._reached
        )

    async def _asked(
        self, method: str, url: str, body: bytes | None, *, silent: bool = False
    ) -> Response:
        """The answer to one request, once its head has come.

        Raises:
            ModelError: There is none, or it is a refusal.
        """
        response = await self._client.request(
            method, url, headers=self._headers, body=body, silent=silent
        )
        self._reached = True
        if response.status != 200:
            async with response:
                raise await self._refused(response, url)
        return response

    async def _refused(self, response: Response, url: str) -> ModelError:
        return error_of_response(
            response.status,
            response.headers,
            await response.read(),
            url=url,
            model=self.model,
            key_name=self._key_name,
            now=time.time(),
        )


def _tried(error: ModelError, n_tries: int) -> ModelError:
    if n_tries > 1:
        error.args = (f"{error.args[0]}, after {n_tries} tries",)
    return error


class RemoteModel:
    """A model that is asked in the JSON of one dialect."""

    def __init__(
        self,
        spec: str,
        dialect: Dialect,
        *,
        base_url: str,
        model: str,
        key: str | None = None,
        key_name: str = "ANTIPHON_API_KEY",
        retries: RetryPolicy | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Set up a model; nothing is opened until it is asked.

        Args:
            spec: How it was named.
            dialect: The JSON that the server speaks.
            base_url: Where the API begins, e.g. ``http://localhost:8000/v1``.
            model: The server's name of the model, for messages.
            key: The key, if the server wants one.
            key_name: The environment variable the key comes from, for messages.
            retries: When a request is made again.
            timeouts: How long each wait may last.
        """
        self._spec = spec
        self._dialect = dialect
        self.key = key
        self._endpoint = Endpoint(
            base_url,
            model=model,
            headers=dialect.headers(key),
            key_name=key_name,
            retries=retries,
            timeouts=timeouts,
        )

    @property
    def spec(self) -> str:
        """How the model was named."""
        return self._spec

    def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Complete a conversation.

        Raises:
            ModelError: There is no completion, also not after asking again.
        """
        settings = settings or ModelSettings()
        if settings.response_schema is None or settings.constrain:
            return self._outputs(conversation, settings)
        return self._held_where_it_can_be(conversation, settings)

    def _outputs(
        self, conversation: Conversation, settings: ModelSettings
    ) -> AsyncGenerator[ModelOutput, None]:
        return self._endpoint.ask(self._dialect.request(conversation, settings))

    async def _held_where_it_can_be(
        self, conversation: Conversation, settings: ModelSettings
    ) -> AsyncGenerator[ModelOutput, None]:
        """A server that refuses the schema of an answer is asked again without it."""
        try:
            async with aclosing(self._outputs(conversation, settings)) as outputs:
                async for output in outputs:
                    yield output
            return
        except ModelError as error:  # of a schema: before anything was written
            if not _refuses_schema(error):
                raise
            _log.warning("%s: answers are not held to a schema: %s", self._spec, error)
        free = replace(settings, response_schema=None)
        async with aclosing(self._outputs(conversation, free)) as outputs:
            async for output in outputs:
                yield output

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._endpoint.close()


_SCHEMA_WORDS = ("response_format", "json_schema", "output_config", "output_format", "text.format")


def _refuses_schema(error: ModelError) -> bool:
    """Whether a server refused a request because it cannot hold an answer to its schema."""
    refused = type(error) is ModelError and "refused the request" in str(error)
    return refused and any(word in str(error) for word in _SCHEMA_WORDS)


if TYPE_CHECKING:
    _model: Model = RemoteModel("", ChatDialect(""), base_url="", model="")
