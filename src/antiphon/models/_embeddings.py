"""Texts as vectors, made by any server with OpenAI's ``/embeddings``.

An `EmbeddingModel` is what `antiphon.retrieval` calls an `Embed`: a function of texts.  It shares
waiting and repeating with the models that complete conversations.

Source: OpenAI API reference, ``POST /v1/embeddings``; vLLM, llama.cpp, Ollama and TEI speak it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.errors import ModelResponseError, clip
from antiphon.messages import json_bytes
from antiphon.models._http import Timeouts
from antiphon.models._remote import Endpoint
from antiphon.models._retries import RetryPolicy


class EmbeddingModel:
    """Makes vectors of texts; `load_embeddings` finds one by its spec."""

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        key: str | None = None,
        key_name: str = "ANTIPHON_API_KEY",
        batch_size: int = 128,
        dimensions: int | None = None,
        retries: RetryPolicy | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Set up a model; nothing is opened until it is asked.

        Args:
            base_url: Where the API begins, e.g. ``http://localhost:8000/v1``.
            model: The server's name of the model.
            key: The key, if the server wants one.
            key_name: The environment variable the key comes from, for messages.
            batch_size: How many texts one request holds.
            dimensions: How many numbers a vector shall have, where the model can be asked that.
            retries: When a request is made again.
            timeouts: How long each wait may last.
        """
        self._model = model
        self._batch_size = batch_size
        self._dimensions = dimensions
        self._endpoint = Endpoint(
            base_url,
            model=model,
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            key_name=key_name,
            retries=retries,
            timeouts=timeouts,
        )

    async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text, in their order.

        Raises:
            ModelError: The server refuses, or answers something else, also when asked again.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self._batch_size):
            vectors += await self._batch(texts[start : start + self._batch_size])
        return vectors

    async def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        asked: dict[str, Any] = {
            "model": self._model,
            "input": [text or " " for text in texts],  # servers refuse an empty one
            "encoding_format": "float",
        }
        if self._dimensions is not None:
            asked["dimensions"] = self._dimensions
        answer: Any = await self._endpoint.post("/embeddings", json_bytes(asked))
        rows = _field(answer, "data")
        if not isinstance(rows, list) or len(cast("list[Any]", rows)) != len(texts):
            raise ModelResponseError(
                f"{self._model!r} was given {len(texts)} texts and answered {clip(answer)}"
            )
        return [_vector(row) for row in sorted(cast("list[Any]", rows), key=_index)]

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._endpoint.close()


def _field(value: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def _index(row: Any) -> int:
    index = _field(row, "index")
    return index if isinstance(index, int) else 0


def _vector(row: Any) -> list[float]:
    vector = _field(row, "embedding")
    if not isinstance(vector, list) or not all(
        isinstance(x, int | float) for x in cast("list[Any]", vector)
    ):
        raise ModelResponseError(f"the server sent {clip(row)} where a vector belongs")
    return cast("list[float]", vector)
