"""An agent behind HTTP: its tools run here, its events go out as they happen, people decide.

    POST /v1/agent/runs                    {"input", "session"?, "stream"?}: a run
    GET  /v1/agent/runs                    the newest runs, of one session with ?session=
    GET  /v1/agent/runs/ID                 the record of a run: a Trajectory as JSON
    POST /v1/agent/runs/ID/resume          {"decisions"?, "stream"?}: go on with one that paused
    POST /v1/agent/runs/ID/cancel          stop one
    GET  /v1/agent                         who answers, and with which tools

A streamed run is server-sent events: ``run`` first (its id and session), then every event of the
run under its own type, then ``result``.  A run that needs consent ends as ``pending`` and names the
calls; whoever decides sends `decisions` by call id, to this process or a later one: what a run was
is in the store.  The run of a client that has left is stopped; it can be gone on with, too.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from antiphon.agent import Agent, Decision, Run, RunResult
from antiphon.errors import RunError, UnknownNameError
from antiphon.events import (
    Event,
    RetryEvent,
    RunEnd,
    StepStart,
    TextEvent,
    ThinkingEvent,
    Trajectory,
    event_to_row,
    is_json,
)
from antiphon.messages import (
    Completion,
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCall,
)
from antiphon.models import ModelOutput, ModelSettings, Retry
from antiphon.serve._chat import read_messages
from antiphon.serve._fields import Fields
from antiphon.serve._guard import OWNER
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._wire import event
from antiphon.store import RunInfo, Store

if TYPE_CHECKING:
    from antiphon.models import Model


_NO_ANSWER = "the model behind this server gave no answer"


class Runnable(Protocol):
    """An agent, or a strategy around one."""

    @property
    def name(self) -> str:
        """What clients call it."""
        ...

    @property
    def description(self) -> str:
        """What it is for."""
        ...

    def run(
        self,
        input: Sequence[Message],
        *,
        history: Sequence[Message] = (),
        metadata: Mapping[str, Any] | None = None,
        store: Store | None = None,
        session: str = "",
    ) -> Run:
        """Begin a run."""
        ...

    def resume(
        self,
        trajectory: Trajectory | str,
        decisions: Mapping[str, bool | Decision] | None = None,
        *,
        store: Store | None = None,
    ) -> Run:
        """Go on with a run."""
        ...


class AgentRuns:
    """The runs of one agent, each its owner's alone."""

    def __init__(self, agent: Runnable, store: Store) -> None:
        """Set up.

        Args:
            agent: Who answers.
            store: Where runs are kept.
        """
        self.agent = agent
        self._store = store
        self._live: dict[str, tuple[str, Run]] = {}

    def about(self) -> JsonObject:
        """Who answers."""
        own = getattr(self.agent, "own_tools", ())
        tools: list[JsonValue] = [
            {"name": tool.name, "description": tool.spec.description} for tool in own
        ]
        return {
            "name": self.agent.name,
            "description": self.agent.description,
            "tools": tools,
        }

    def begin(self, fields: Fields, owner: str) -> Run:
        """A new run.

        Raises:
            Refusal: The request cannot be meant as it is written.
            RunError: The session's last run is still going.
        """
        given = fields.get("input")
        messages = (
            (Message.user(given),) if isinstance(given, str) else read_messages(fields, "input")
        )
        if given == "" or not messages or messages[-1].role != "user":
            raise fields.refuse("input", "a text, or messages of which the last is a user's")
        if any(message.role == "system" for message in messages):
            raise bad("the agent has its own instructions; send no system message", "input")
        session = fields.text("session", "") or f"s{secrets.token_hex(8)}"
        if not owner and session.startswith(OWNER):
            raise fields.refuse("session", f"a name that does not begin with {OWNER!r}")
        metadata = {"owner": owner, "session": session}
        return self.agent.run(
            messages, metadata=metadata, store=self._store, session=_kept_as(session, owner)
        )

    async def resume(self, id: str, fields: Fields, owner: str) -> Run:
        """Go on with a run.

        Raises:
            Refusal: There is none, or a decision cannot be read.
            UsageError: The run is finished, or a decision names no waiting call.
            RunError: It is being run.
        """
        await self.record(id, owner)
        holder = fields.object("decisions") or Fields({}, "decisions")
        decisions = {call_id: _decision(holder, call_id) for call_id in holder.row}
        return await asyncio.to_thread(self.agent.resume, id, decisions, store=self._store)

    async def record(self, id: str, owner: str) -> Trajectory:
        """What a run was so far, without what the model's server said of itself.

        Raises:
            Refusal: There is none.
        """
        live_owner, live = self._live.get(id, ("", None))
        if live is not None and live_owner == owner:
            return _told(live.trajectory)
        try:
            found = await asyncio.to_thread(self._store.load, id)
        except UnknownNameError as error:
            raise _no_run(id) from error
        if found.metadata.get("owner", "") != owner:
            raise _no_run(id)
        return _told(found)

    async def runs(self, owner: str, session: str, limit: int) -> list[JsonValue]:
        """The newest runs, newest first."""
        kept_as = _kept_as(session, owner) if session else None
        # Others' runs are among the newest, too; they are passed over.
        most = limit if kept_as is not None or not owner else limit * 20
        infos = await asyncio.to_thread(self._store.runs, session=kept_as, limit=most)
        own = [info for info in infos if _is_of(info, owner)]
        return [self._info_row(info, owner) for info in own[:limit]]

    def _info_row(self, info: RunInfo, owner: str) -> JsonValue:
        status = info.status
        if status == "running" and not info.is_live:
            status = "broken_off"
        return {
            "id": info.id,
            "session": info.session.removeprefix(_kept_as("", owner)),
            "agent": info.agent,
            "question": info.question,
            "created": info.created,
            "updated": info.updated,
            "status": status,
        }

    def cancel(self, id: str, owner: str) -> None:
        """Stop a run that is going.

        Raises:
            Refusal: There is none, or it is not going.
        """
        live_owner, run = self._live.get(id, ("", None))
        if run is None or live_owner != owner:
            raise Refusal(404, f"no run {id[:80]!r} is going here", "run_not_found")
        run.cancel()

    async def follow(self, run: Run, owner: str) -> AsyncGenerator[Event | RunResult, None]:
        """The events of a run, then its result.  Closing this stops the run."""
        self._live[run.id] = (owner, run)
        try:
            async with aclosing(aiter(run)) as events:
                try:
                    async for one in events:
                        yield one
                except RunError:
                    pass  # the result says it, too
            yield await run
        finally:
            del self._live[run.id]


def _kept_as(session: str, owner: str) -> str:
    """A session's name in the store: no key's is another's, whatever it is called."""
    return f"{owner}/{session}" if owner else session


def _is_of(info: RunInfo, owner: str) -> bool:
    if owner:
        return info.session.startswith(f"{owner}/")
    return not info.session.startswith(OWNER)


def _no_run(id: str) -> Refusal:
    return Refusal(404, f"there is no run {id[:80]!r}", "run_not_found")


def _decision(holder: Fields, call_id: str) -> Decision:
    value = holder.get(call_id)
    if isinstance(value, bool):
        return Decision(value)
    fields = holder.object(call_id)
    if fields is None or not isinstance(fields.get("approved"), bool):
        raise holder.refuse(call_id, "true, false, or an object with approved")
    arguments = fields.object("arguments")
    return Decision(
        fields.flag("approved"),
        None if arguments is None else cast("JsonObject", dict(arguments.row)),
        fields.text("reason", ""),
    )


def run_row(run: Run) -> JsonObject:
    """What a stream says first."""
    return {"id": run.id, "session": str(run.trajectory.metadata.get("session", ""))}


def event_bytes(one: Event) -> bytes:
    """An event of a run, as it goes out."""
    return event(event_to_row(one), one.type)


def result_row(run: Run, result: RunResult) -> JsonObject:
    """How a run ended."""
    value = result.value if is_json(result.value) else result.text
    return {
        **run_row(run),
        "stop_reason": result.stop_reason,
        "text": result.text,
        "output": cast("JsonValue", value),
        "error": _NO_ANSWER if result.error else "",
        "pending": [_call_row(call) for call in result.pending],
        "usage": {
            "input_tokens": result.usage.input_tokens,
            "output_tokens": result.usage.output_tokens,
            "cached_tokens": result.usage.cached_tokens,
            "n_requests": result.usage.n_requests,
        },
    }


def _call_row(call: ToolCall) -> JsonValue:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _told(record: Trajectory) -> Trajectory:
    error = _NO_ANSWER if record.error else ""
    return replace(record, error=error, events=tuple(map(told, record.events)))


def told(one: Event) -> Event:
    """An event as a client may see it: what a model's server said stays here."""
    match one:
        case RetryEvent():
            return replace(one, reason="the model call broke")
        case RunEnd(error=error) if error:
            return replace(one, error=_NO_ANSWER)
        case _:
            return one


class AgentModel:
    """An agent as a model, for clients that speak Chat Completions: its tools run here."""

    def __init__(self, agent: Runnable) -> None:
        """Wrap an agent."""
        self._agent = agent

    @property
    def spec(self) -> str:
        """The agent's name."""
        return self._agent.name

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Answer the last message of a conversation.

        Raises:
            Refusal: The conversation brings instructions or tools, or ends with no user's message;
                or the run needs a person's consent, which this API cannot give.
            ModelError: There is no answer.
        """
        messages = conversation.messages
        if conversation.tools or any(m.role == "system" for m in messages):
            raise bad(f"{self.spec} has instructions and tools of its own; send none")
        if not messages or messages[-1].role != "user":
            raise bad("the last message must be a user's", "messages")
        run = self._agent.run(messages[-1:], history=messages[:-1])
        texts: list[str] = []
        async with aclosing(aiter(run)) as events:
            try:
                async for one in events:
                    for output in _outputs(one, texts):
                        yield output
            except RunError:
                pass  # what broke is raised below
        result = await run
        if result.error is not None:
            raise result.error
        if result.stop_reason == "pending":
            raise Refusal(
                409, "the run needs a person's consent; ask at /v1/agent/runs", "consent_needed"
            )
        yield Completion(Message.assistant("".join(texts)), "stop", result.usage, model=self.spec)

    async def close(self) -> None:
        """Nothing is held: each run opens what it needs."""


def _outputs(one: Event, texts: list[str]) -> list[ModelOutput]:
    match one:
        case TextEvent(text=text):
            texts.append(text)
            return [TextDelta(text)]
        case ThinkingEvent(text=text):
            return [ThinkingDelta(text)]
        case StepStart(step=step) if step and texts:
            texts.append("\n\n")
            return [TextDelta("\n\n")]
        case RetryEvent(discard_chars=n, reason=reason) if n:
            texts.clear()
            return [Retry(reason)]
        case _:
            return []


if TYPE_CHECKING:
    _agent: Runnable = Agent()
    _model: Model = AgentModel(Agent())
