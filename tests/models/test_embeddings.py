"""Vectors of texts from an OpenAI-compatible server."""

import asyncio
from typing import Any

import pytest

from antiphon.errors import ModelAuthError, ModelResponseError, UsageError
from antiphon.models import EmbeddingModel, RetryPolicy, load_embeddings
from antiphon.tools import Toolbox, tool
from models.loopback import Loopback, Reply, Request, body

SOON = RetryPolicy(first_wait=0.001)


def vectors(*rows: tuple[int, list[float]], **more: Any) -> Reply:
    return body({"data": [{"index": n, "embedding": v} for n, v in rows], **more})


def embed(script: Any, texts: list[str], **options: Any) -> tuple[list[list[float]], list[Request]]:
    async def main() -> tuple[list[list[float]], list[Request]]:
        async with Loopback(script) as server:
            model = EmbeddingModel(f"{server.url}/v1", model="small", **options)
            made = await model(texts)
            await model.close()
            return made, server.requests

    return asyncio.run(main())


def test_vectors_come_in_the_order_of_the_texts() -> None:
    made, requests = embed([vectors((1, [0.0, 1.0]), (0, [1, 0]))], ["a", ""], key="k")

    assert made == [[1, 0], [0.0, 1.0]]
    assert requests[0].path == "/v1/embeddings"
    assert requests[0].headers["authorization"] == "Bearer k"
    assert requests[0].json == {"model": "small", "input": ["a", " "], "encoding_format": "float"}


def test_many_texts_are_asked_for_in_batches() -> None:
    replies = [vectors((0, [1.0]), (1, [2.0])), vectors((0, [3.0]))]

    made, requests = embed(replies, ["a", "b", "c"], batch_size=2, dimensions=1)

    assert made == [[1.0], [2.0], [3.0]]
    assert [r.json["dimensions"] for r in requests] == [1, 1]


def test_a_failing_server_is_asked_again() -> None:
    made, requests = embed([body({}, 503), vectors((0, [1.0]))], ["a"], retries=SOON)

    assert (made, len(requests)) == ([[1.0]], 2)


@pytest.mark.parametrize(
    "answer", [{}, {"data": []}, {"data": [{"embedding": "AAAA"}]}, {"data": [[1.0]]}, []]
)
def test_an_answer_that_is_none_is_an_error(answer: Any) -> None:
    with pytest.raises(ModelResponseError, match=r"texts and answered|where a vector belongs"):
        embed([body(answer)] * 6, ["a"], retries=RetryPolicy(max_tries=1))


def test_a_spec_names_the_endpoint() -> None:
    with pytest.raises(ModelAuthError, match="OPENAI_API_KEY"):
        load_embeddings("openai/text-embedding-3-small", environ={})
    with pytest.raises(UsageError, match="SentenceModel"):
        load_embeddings("local", environ={})
    assert load_embeddings("ollama/nomic-embed-text", environ={})


def test_tools_are_found_by_meaning_through_a_server() -> None:
    def answer(request: Request) -> Reply:
        rows = enumerate(request.json["input"])
        return vectors(*((n, [float("rain" in t or "weather" in t), 0.1]) for n, t in rows))

    async def main() -> list[str]:
        async with Loopback(answer) as server:
            model = load_embeddings(f"{server.url}/v1#small", environ={})
            box = Toolbox([tool(weather), tool(pay)], embed=model)
            found = await box.choose("Will it rain?", 1)
            await model.close()
            return [one.name for one in found]

    assert asyncio.run(main()) == ["weather"]


def weather() -> str:
    """Tells the weather."""
    return "sun"


def pay() -> str:
    """Pays a bill."""
    return "paid"
