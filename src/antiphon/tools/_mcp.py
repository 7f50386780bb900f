"""Tools of Model Context Protocol servers, and our tools as such a server.

Both ends stand on the official ``mcp`` package (extra ``mcp``), over stdio or streamable HTTP.
What a server says of its tools is not trusted: schemas are bounded, names made valid, and its hints
about side effects change nothing here.
"""

import os
import shlex
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from antiphon.errors import MissingExtraError, RunError, UsageError, clip
from antiphon.messages import ImagePart, ToolCall, ToolResult, ToolSpec
from antiphon.tools._names import valid_name
from antiphon.tools._result import json_text, jsonable
from antiphon.tools._tool import Approval, Tool, unknown_tool_result

if TYPE_CHECKING:
    from mcp import Client
    from mcp.server.lowlevel import Server

Values = dict[str, Any]
_MAX_PAGES = 100


@asynccontextmanager
async def mcp_tools(
    server: "str | Sequence[str] | Server[Any]",
    *,
    prefix: str = "",
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    approval: Approval = False,
) -> AsyncGenerator[list[Tool[..., Any]]]:
    """The tools of an MCP server, for as long as the ``async with`` block lasts.

    Args:
        server: A command (``"uvx mcp-server-git"`` or a list of words) that is started and spoken
            to over stdio, the URL of a streamable HTTP endpoint, or a server object in this
            process.
        prefix: Put in front of every name, so that tools of two servers do not clash.
        env: Further environment variables of the command; it gets few of ours.
        headers: Further headers for a URL, such as ``Authorization``.
        timeout: Seconds to connect, and for one call.
        approval: Whether a person must agree to calls; see `Tool`.

    Yields:
        The tools, in the server's order.

    Raises:
        MissingExtraError: The ``mcp`` package is not installed.
        UsageError: The command is empty.
        RunError: The server does not start, or does not speak the protocol.

    >>> async def list_names() -> list[str]:
    ...     async with mcp_tools("uvx mcp-server-time", prefix="time_") as tools:
    ...         return [tool.name for tool in tools]
    """
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(
                await _client(server, stack, env, headers, timeout)
            )
            specs = await _specs(client)
        except (UsageError, MissingExtraError):
            raise
        except Exception as error:
            raise RunError(
                f"the MCP server {clip(_label(server))} cannot be used: {_reason(error)}"
            ) from error
        yield [
            Tool.from_spec(
                ToolSpec(
                    name=valid_name(prefix + spec.name),
                    description=spec.description,
                    parameters=spec.parameters,
                    returns=spec.returns,
                ),
                _caller(client, spec.name, timeout),
                timeout=timeout + 5.0,
                approval=approval,
            )
            for spec in specs
        ]


async def _client(
    server: "str | Sequence[str] | Server[Any]",
    stack: AsyncExitStack,
    env: Mapping[str, str] | None,
    headers: Mapping[str, str] | None,
    timeout: float,
) -> "Client":
    try:
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamable_http_client
    except ImportError as error:
        raise MissingExtraError("tools of MCP servers", "mcp") from error

    if isinstance(server, str) and server.startswith(("http://", "https://")):
        if headers is None:
            return Client(server, read_timeout_seconds=timeout)
        import httpx2

        web = await stack.enter_async_context(
            httpx2.AsyncClient(headers=dict(headers), timeout=timeout)
        )
        transport = streamable_http_client(server, http_client=web)
        return Client(transport, read_timeout_seconds=timeout)
    if not isinstance(server, str | list | tuple):
        return Client(cast("Server[Any]", server), read_timeout_seconds=timeout)
    words = shlex.split(server) if isinstance(server, str) else [str(word) for word in server]
    if not words:
        raise UsageError("an MCP server needs a command or a URL, got nothing")
    log = stack.enter_context(Path(os.devnull).open("w"))  # noqa: SIM115  # the stack closes it
    parameters = StdioServerParameters(
        command=words[0], args=words[1:], env=dict(env) if env is not None else None
    )
    return Client(stdio_client(parameters, errlog=log), read_timeout_seconds=timeout)


async def _specs(client: "Client") -> list[ToolSpec]:
    specs: list[ToolSpec] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        rows = [tool.model_dump(by_alias=True, exclude_none=True) for tool in page.tools]
        specs.extend(ToolSpec.from_mcp(row) for row in rows)
        cursor = page.next_cursor
        if cursor is None:
            break
    return specs


def _caller(client: "Client", name: str, timeout: float) -> Any:
    async def call(arguments: Values) -> ToolResult:
        result = await client.call_tool(name, arguments, read_timeout_seconds=timeout)
        blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
        texts = [text for block in blocks if (text := _block_text(block))]
        value = result.structured_content
        return ToolResult(
            call_id="",
            name=name,
            text="\n".join(texts) or ("" if value is None else json_text(value)),
            is_error=bool(result.is_error),
            value=value,
            images=tuple(_image(b) for b in blocks if b["type"] == "image"),
        )

    return call


def _block_text(block: Values) -> str:
    kind = block["type"]
    if kind == "text":
        return str(block["text"])
    if kind == "resource":
        resource: Values = block["resource"]
        return str(resource.get("text") or f"binary data at {resource.get('uri', '?')}")
    if kind == "resource_link":
        return f"{block.get('name', '')} {block.get('uri', '')}".strip()
    return "" if kind == "image" else f"({kind})"


def _image(block: Values) -> ImagePart:
    return ImagePart(f"data:{block.get('mimeType', 'image/png')};base64,{block['data']}")


def _label(server: object) -> str:
    if isinstance(server, str):
        return server
    if isinstance(server, list | tuple):
        return shlex.join(str(word) for word in cast("Sequence[object]", server))
    return type(server).__name__


def _reason(error: BaseException) -> str:
    """The first cause inside exception groups, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__


def mcp_server(tools: Iterable[Tool[..., Any]], *, name: str = "antiphon") -> "Server[Any]":
    """An MCP server that offers tools; `serve_mcp` runs it over stdio.

    Args:
        tools: What it offers.
        name: What it calls itself.

    Raises:
        MissingExtraError: The ``mcp`` package is not installed.
    """
    try:
        import mcp_types as types
        from mcp.server.lowlevel import Server
    except ImportError as error:
        raise MissingExtraError("serving tools over MCP", "mcp") from error

    offered = {tool.name: tool for tool in tools}

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        rows = [_row(tool.spec) for tool in offered.values()]
        return types.ListToolsResult(tools=[types.Tool.model_validate(row) for row in rows])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = offered.get(params.name)
        if tool is None:
            call = ToolCall(params.name, params.arguments or {})
            return types.CallToolResult.model_validate(
                _answer(unknown_tool_result(call, offered.values()), None)
            )
        result = await tool.call(params.arguments or {})
        return types.CallToolResult.model_validate(_answer(result, tool.spec.returns))

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def _row(spec: ToolSpec) -> Values:
    row = spec.to_mcp()
    if row.get("outputSchema", {}).get("type") != "object":
        row.pop("outputSchema", None)  # protocols before 2026-07-28 know objects only
    return row


def _answer(result: ToolResult, returns: Values | None) -> Values:
    content: list[Values] = [{"type": "text", "text": result.text}] if result.text else []
    for image in result.images:
        head, _, data = image.source.partition(";base64,")
        if data and head.startswith("data:"):
            content.append({"type": "image", "data": data, "mimeType": head.removeprefix("data:")})
        else:
            content.append({"type": "text", "text": image.source})
    answer: Values = {"content": content, "isError": result.is_error}
    if returns is not None and returns.get("type") == "object" and not result.is_error:
        answer["structuredContent"] = jsonable(result.value)
    return answer


async def serve_mcp(tools: Iterable[Tool[..., Any]], *, name: str = "antiphon") -> None:
    """Offer tools over stdio until the other side closes it.

    Args:
        tools: What is offered.
        name: What the server calls itself.

    Raises:
        MissingExtraError: The ``mcp`` package is not installed.
    """
    server = mcp_server(tools, name=name)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
