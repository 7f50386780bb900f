"""An agent behind AG-UI, the protocol by which pages talk with agents (CopilotKit and others).

    POST /v1/agent/ag-ui      a RunAgentInput; the answer is a stream of its events

A page sends the whole conversation with each request: the last message is asked, the rest is its
history.  A call that needs consent ends the run with an interrupt, which the page answers in
`resume`: its payload is true, false, or ``{"approved", "arguments", "reason"}``.  The tools are the
agent's own; a page's are refused.

Source: AG-UI 1.0; ``ag-ui-protocol`` reads what comes and writes what goes.  Needs the ``ag-ui``
extra; without it there is no such path.
"""

from collections.abc import Iterator
from contextlib import aclosing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from antiphon.agent import Run, RunResult
from antiphon.errors import AntiphonError
from antiphon.events import (
    CallDeltaEvent,
    CallEvent,
    Event,
    ResultEvent,
    RunEnd,
    RunStart,
    StepEnd,
    StepStart,
    TextEvent,
    ThinkingEvent,
    event_to_row,
)
from antiphon.messages import dump_json
from antiphon.serve._agents import AgentRuns, result_row, told
from antiphon.serve._app import VISIT, App
from antiphon.serve._fields import Fields
from antiphon.serve._refusal import Refusal, bad

if TYPE_CHECKING:
    from aiohttp import web

_CONSENT = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "arguments": {"type": "object"},
        "reason": {"type": "string"},
    },
    "required": ["approved"],
}
_SILENT = (RunStart, RunEnd, StepStart, StepEnd, CallDeltaEvent)


def speaks_ag_ui() -> bool:
    """Whether the protocol's package is installed."""
    return find_spec("ag_ui") is not None


class AgUi:
    """The path of an agent for AG-UI."""

    def __init__(self, app: App, runs: AgentRuns) -> None:
        """Set up.

        Args:
            app: Whose slots, limits and metrics hold here, too.
            runs: The agent's runs.
        """
        self._app = app
        self._runs = runs

    async def run(self, request: "web.Request") -> "web.StreamResponse":
        """Answer a RunAgentInput with the events of a run."""
        asked = _read(await self._app.guard.body(request))
        visit = VISIT.get()
        async with self._app.slots:
            run = await self._begun(asked, visit.owner)
            visit.facts |= {"agent": self._runs.agent.name, "run": run.id, "stream": True}
            events = AgUiEvents(asked.thread_id, asked.run_id, run)
            async with (
                aclosing(self._runs.follow(run, visit.owner)) as outputs,
                self._app.sent(request) as sent,
            ):
                try:
                    async with self._app.in_time():
                        async for one in outputs:
                            await sent.write(events.take(one))
                            if isinstance(one, RunResult):
                                self._app.count_usage(one.usage)
                except (AntiphonError, Refusal) as error:
                    if not sent.is_open:
                        raise
                    refusal = error if isinstance(error, Refusal) else self._app.told(error)
                    await sent.write(events.failed(refusal.message))
                return await sent.close()

    async def _begun(self, asked: Any, owner: str) -> Run:
        if not asked.resume:
            rows = [row for message in asked.messages for row in _rows(message)]
            return self._runs.begin(Fields({"input": rows}), owner)
        decisions: dict[str, Any] = {}
        ids: set[str] = set()
        for entry in asked.resume:
            id, _, call_id = str(entry.interrupt_id).partition("/")
            ids.add(id)
            answered = entry.status == "resolved"
            decisions[call_id] = entry.payload if answered else {"approved": False}
        if len(ids) > 1:
            raise bad("the interrupts of one request must be of one run", "resume")
        return await self._runs.resume(ids.pop(), Fields({"decisions": decisions}), owner)


def _read(row: dict[str, Any]) -> Any:
    """A RunAgentInput.

    Raises:
        Refusal: It is none, or it brings tools.
    """
    from ag_ui.core import RunAgentInput  # pyright: ignore[reportMissingImports]
    from pydantic import ValidationError

    try:
        asked: Any = cast("Any", RunAgentInput).model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise bad(f"{place}: {first['msg']}", place) from error
    if asked.tools:
        raise bad("the agent has tools of its own; send none", "tools")
    return asked


def _rows(message: Any) -> Iterator[dict[str, Any]]:
    """A message of AG-UI in the spelling of Chat Completions; what a page alone needs is none."""
    row: dict[str, Any] = message.model_dump(exclude_none=True, by_alias=False)
    if row["role"] in ("reasoning", "activity"):
        return
    content = row.get("content")
    if isinstance(content, list):
        row["content"] = [_part(part) for part in cast("list[dict[str, Any]]", content)]
    yield row


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of a message; of a kind that is not served it stays, and is refused by name."""
    if part.get("type") != "image":
        return part
    source: dict[str, Any] = part["source"]
    url = str(source.get("value", ""))
    if source["type"] == "data":
        url = f"data:{source.get('mime_type', 'image/png')};base64,{url}"
    return {"type": "image_url", "image_url": {"url": url}}


class AgUiEvents:
    """Writes the events of one run in AG-UI's words: one message is open at a time."""

    def __init__(self, thread_id: str, run_id: str, run: Run) -> None:
        """Set up.

        Args:
            thread_id: The page's name of the conversation.
            run_id: The page's name of the run.
            run: The run.
        """
        from ag_ui import core  # pyright: ignore[reportMissingImports]
        from ag_ui.encoder import EventEncoder  # pyright: ignore[reportMissingImports]

        self._core = cast("Any", core)
        self._encode = cast("Any", EventEncoder)().encode
        self._names = {"thread_id": thread_id, "run_id": run_id}
        self._run = run
        self._is_begun = False
        self._open = ""
        self._n_messages = 0

    def take(self, one: Event | RunResult) -> bytes:
        """What is sent for an event, and at last for the result."""
        if self._is_begun:
            return self._told(one)
        self._is_begun = True
        version: str = self._core.PROTOCOL_VERSION
        begin = self._event("RunStarted", **self._names, protocol_version=version)
        return begin + self._told(one)

    def _told(self, one: Event | RunResult) -> bytes:
        match one:
            case RunResult():
                return self._close() + self._end(one)
            case TextEvent(text=text):
                return self._in("TextMessage") + self._more(text)
            case ThinkingEvent(text=text):
                return self._in("ReasoningMessage") + self._more(text)
            case CallEvent(call=call):
                id, arguments = call.id, dump_json(call.arguments)
                return (
                    self._close()
                    + self._event("ToolCallStart", tool_call_id=id, tool_call_name=call.name)
                    + self._event("ToolCallArgs", tool_call_id=id, delta=arguments)
                    + self._event("ToolCallEnd", tool_call_id=id)
                )
            case ResultEvent(result=result):
                return self._close() + self._event(
                    "ToolCallResult",
                    message_id=self._next_id(),
                    tool_call_id=result.call_id,
                    content=result.text,
                )
            case _ if isinstance(one, _SILENT):
                return self._close() if isinstance(one, StepEnd) else b""
            case _:
                return self._event("Custom", name=one.type, value=event_to_row(told(one)))

    def failed(self, message: str) -> bytes:
        """What is sent where the run breaks off."""
        return self._close() + self._event("RunError", message=message)

    def _end(self, result: RunResult) -> bytes:
        row = cast("dict[str, Any]", result_row(self._run, result))
        if row["error"]:
            return self._event("RunError", message=row["error"])
        usage = {
            "input_tokens": result.usage.input_tokens,
            "output_tokens": result.usage.output_tokens,
            "cached_input_tokens": result.usage.cached_tokens,
        }
        outcome: dict[str, Any] = {"type": "success"}
        if result.stop_reason == "cancelled":
            outcome = {"type": "cancelled"}
        if row["pending"]:
            interrupts = [self._interrupt(call["id"], call["name"]) for call in row["pending"]]
            outcome = {"type": "interrupt", "interrupts": interrupts}
        return self._event(
            "RunFinished", **self._names, result=row["output"], outcome=outcome, usage=[usage]
        )

    def _interrupt(self, call_id: str, name: str) -> dict[str, Any]:
        return {
            "id": f"{self._run.id}/{call_id}",
            "reason": "tool_approval",
            "message": f"{name} needs consent",
            "tool_call_id": call_id,
            "response_schema": _CONSENT,
        }

    def _in(self, kind: str) -> bytes:
        if self._open == kind:
            return b""
        out, self._open, id = self._close(), kind, self._next_id()
        if kind == "ReasoningMessage":
            out += self._event("ReasoningStart", message_id=id)
            return out + self._event("ReasoningMessageStart", message_id=id, role="reasoning")
        return out + self._event("TextMessageStart", message_id=id, role="assistant")

    def _more(self, text: str) -> bytes:
        return self._event(f"{self._open}Content", message_id=self._id, delta=text) if text else b""

    def _close(self) -> bytes:
        kind, self._open = self._open, ""
        if not kind:
            return b""
        out = self._event(f"{kind}End", message_id=self._id)
        if kind == "ReasoningMessage":
            out += self._event("ReasoningEnd", message_id=self._id)
        return out

    @property
    def _id(self) -> str:
        return f"{self._run.id}-{self._n_messages}"

    def _next_id(self) -> str:
        self._n_messages += 1
        return self._id

    def _event(self, kind: str, **fields: Any) -> bytes:
        made: str = self._encode(getattr(self._core, f"{kind}Event")(**fields))
        return made.encode("utf-8", "replace")
