"""Operations of a web API as tools, against a real FastAPI application on this machine."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import DataError, UsageError
from antiphon.messages import ToolResult
from antiphon.tools import Tool, openapi_tools

fastapi = pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")

_SOURCE = '''
from fastapi import Depends, FastAPI, Header, HTTPException, Query
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field

app = FastAPI(title="Shop")
key = APIKeyHeader(name="X-Key", scheme_name="shopKey")

class Order(BaseModel):
    item: str = Field(description="What is ordered.")
    n: int = 1
    note: str | None = None

@app.get("/items/{item_id}", operation_id="get_item")
def get_item(
    item_id: str, tags: list[str] = Query([]), lang: str = "en", x_trace: str = Header("none")
):
    """Look at one item."""
    return {"id": item_id, "tags": tags, "lang": lang, "trace": x_trace}

@app.post("/orders", operation_id="order")
def order(order: Order):
    """Order something."""
    return {"ordered": order.model_dump()}

@app.put("/orders/{item}", operation_id="replace")
def replace(item: int, order: Order):
    """Replace an order; two parameters are called item."""
    return {"path": item, "body": order.item}

@app.get("/secret", operation_id="secret")
def secret(key: str = Depends(key)):
    """Needs a key."""
    if key != "k1":
        raise HTTPException(403, "wrong key")
    return {"secret": True}

@app.get("/moved", operation_id="moved")
def moved():
    """Fails."""
    raise HTTPException(418, "a teapot")
'''


@pytest.fixture(scope="module")
def api() -> Iterator[tuple[dict[str, Any], str]]:
    scope: dict[str, Any] = {}
    exec(_SOURCE, scope)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(scope["app"], host="127.0.0.1", port=port, log_level="critical", ws="none")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    yield scope["app"].openapi(), f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


Api = tuple[dict[str, Any], str]


async def call(api: Api, name: str, arguments: Any, **options: Any) -> ToolResult:
    async with openapi_tools(api[0], base_url=api[1], **options) as tools:
        return await {t.name: t for t in tools}[name].call(arguments)


def run(api: Api, name: str, arguments: Any, **options: Any) -> ToolResult:
    return asyncio.run(call(api, name, arguments, **options))


async def made(api: Api, **options: Any) -> list[Tool[..., Any]]:
    async with openapi_tools(api[0], base_url=api[1], **options) as tools:
        return tools


def test_each_operation_is_a_tool(api: Api) -> None:
    tools = {t.name: t for t in asyncio.run(made(api, approve_writes=True))}

    assert list(tools) == ["get_item", "order", "replace", "secret", "moved"]
    shown = tools["order"].spec.parameters
    assert list(shown["properties"]) == ["item", "n", "note"]
    assert shown["properties"]["item"]["description"] == "What is ordered."
    assert shown["required"] == ["item"]
    assert tools["get_item"].idempotent
    assert not tools["get_item"].needs_approval({})
    assert tools["order"].needs_approval({"item": "tea"})
    assert not tools["order"].needs_approval({})  # which would be refused: nobody need be asked
    assert "X-Key" not in json.dumps([t.spec.to_openai() for t in tools.values()])


def test_parameters_go_where_the_document_says(api: Api) -> None:
    sent = {"item_id": "a/b?c", "tags": ["x", "y&z"], "lang": "de", "x-trace": "t1"}

    result = run(api, "get_item", sent)

    assert result.value == {"id": "a/b?c", "tags": ["x", "y&z"], "lang": "de", "trace": "t1"} or (
        "404" in result.text
    )


def test_a_body_is_sent_as_json(api: Api) -> None:
    result = run(api, "order", {"item": "tea", "n": "2"})

    assert result.value == {"ordered": {"item": "tea", "n": 2, "note": None}}
    assert result.repairs == ("n: text read as integer",)


def test_a_body_whose_fields_clash_with_the_path_stays_one_parameter(api: Api) -> None:
    result = run(api, "replace", {"item": 7, "body": {"item": "tea"}})

    assert result.value == {"path": 7, "body": "tea"}


def test_wrong_arguments_never_reach_the_server(api: Api) -> None:
    result = run(api, "order", {"n": 2})

    assert result.text.startswith("order rejected its arguments: 'item' is missing.")


@pytest.mark.parametrize("value", ["..", ".", ""])
def test_a_path_parameter_cannot_lead_to_another_operation(api: Api, value: str) -> None:
    assert "cannot be" in run(api, "get_item", {"item_id": value}).text


def test_a_key_comes_from_the_environment(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs a key (shopKey)" in run(api, "secret", {}).text

    monkeypatch.setenv("SHOP_KEY", "k1")
    assert run(api, "secret", {}, auth={"shopKey": "SHOP_KEY"}).value == {"secret": True}

    monkeypatch.setenv("SHOP_KEY", "k2")
    assert "403" in run(api, "secret", {}, auth={"shopKey": "SHOP_KEY"}).text


def test_an_error_of_the_server_is_an_answer(api: Api) -> None:
    result = run(api, "moved", {})

    assert result.is_error
    assert "418" in result.text
    assert "teapot" in result.text


def test_a_server_that_is_not_there_is_an_answer(api: Api) -> None:
    result = run((api[0], "http://127.0.0.1:9"), "moved", {})

    assert "cannot be reached" in result.text


def test_only_some_operations_may_be_kept(api: Api) -> None:
    assert [t.name for t in asyncio.run(made(api, only=["order"]))] == ["order"]
    with pytest.raises(UsageError, match="no operation 'ordr'"):
        asyncio.run(made(api, only=["ordr"]))


def test_a_document_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    path.write_text("openapi: 3.0.0", "utf-8")

    for document in (path, tmp_path / "missing.json", {"swagger": "2.0"}):
        with pytest.raises(DataError):
            asyncio.run(made((document, "http://127.0.0.1:9")))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="base_url"):
        asyncio.run(made(({"openapi": "3.1.0"}, "")))


def test_old_words_of_openapi_become_json_schema() -> None:
    document = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://api.example.org/v1"}],
        "paths": {
            "/nodes": {
                "post": {
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Node"}}
                        },
                    }
                }
            }
        },
        "components": {
            "schemas": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "label": {"type": "string", "nullable": True},
                        "children": {
                            "type": "array",
                            "items": {"$ref": "#/components/schemas/Node"},
                        },
                    },
                }
            }
        },
    }

    async def specs() -> list[Tool[..., Any]]:
        async with openapi_tools(document) as tools:
            return tools

    (tool,) = asyncio.run(specs())

    assert tool.name == "post_nodes"
    label = tool.spec.parameters["properties"]["label"]
    assert label == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert tool.spec.parameters["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
