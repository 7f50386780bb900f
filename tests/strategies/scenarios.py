"""Scenarios as data: a scripted model for each role, simulated tools, and what must come of it.

A case is one JSON object: the request and settings, tools with their behaviour, the replies of each
role with what their prompts must hold, and the outcome.  All of it runs on a clock that jumps, so
that times are exact.  `play` runs a case; `Played` is what came of it.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from antiphon.agent import Agent, Hooks, Retrieve, RunResult
from antiphon.errors import ModelError
from antiphon.events import Trajectory
from antiphon.memory import Compaction, Observations, summarise_with
from antiphon.messages import (
    Completion,
    Conversation,
    InvalidToolCall,
    JsonObject,
    Message,
    TextDelta,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
    dump_json,
)
from antiphon.models import Model, ModelOutput, ModelSettings
from antiphon.strategies import (
    Evaluator,
    Opinion,
    Plan,
    PlanAndExecute,
    ReAct,
    Reflexion,
    Strategy,
    exact,
    judge,
    run_in_virtual_time,
    unit_tests,
)
from antiphon.tools import RunContext, Tool, ToolError, ToolIndex

Json = dict[str, Any]
CASES = Path(__file__).with_name("cases") / "scenarios.jsonl"


def load_cases() -> list[Json]:
    """Every case of the file."""
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]


def n_tokens(text: str) -> int:
    """Characters through four, rounded up: the measure of the cases."""
    return -(-len(text) // 4)


def shown_text(conversation: Conversation) -> str:
    """All that a prompt says."""
    parts: list[str] = []
    for message in conversation.messages:
        parts.append(message.text)
        parts += [f"{call.name}({dump_json(call.arguments)})" for call in message.tool_calls]
        parts += [call.raw for call in message.invalid_tool_calls]
    return "\n".join(part for part in parts if part)


@dataclass
class Played:
    """What came of a case."""

    result: RunResult | None = None
    wall: float = 0.0
    calls: list[Json] = field(default_factory=list[Json])
    model_calls: Counter[str] = field(default_factory=Counter[str])
    most_at_once: int = 0
    complaints: list[str] = field(default_factory=list[str])
    last_prompt: Conversation = field(default_factory=Conversation)
    _at_once: int = 0

    def begin(self, call: Json) -> None:
        """A tool began."""
        self.calls.append(call)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)

    def end(self, call: Json, *, ok: bool) -> None:
        """A tool ended."""
        self._at_once -= 1
        call |= {"ok": ok, "end": asyncio.get_running_loop().time()}

    @property
    def error(self) -> str:
        """What kind of error ended the run."""
        return "" if self.result is None else type(self.result.error).__name__

    @property
    def trajectory(self) -> Trajectory:
        """The record of the run."""
        assert self.result is not None
        return self.result.trajectory


class RoleModel:
    """The model of one role: its replies in order, each after a look at its prompt."""

    def __init__(self, role: str, replies: Sequence[Json], played: Played) -> None:
        self.spec = role
        self._replies = [reply for reply in replies if reply["role"] == role]
        self._played = played

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Say the next reply."""
        n = self._played.model_calls[self.spec]
        self._played.model_calls[self.spec] += 1
        if n >= len(self._replies):
            raise ModelError(f"the {self.spec} has {len(self._replies)} replies")
        given = self._replies[n]
        self._played.complaints += complaints(given, conversation, f"{self.spec} {n}")
        if self.spec == "actor":
            self._played.last_prompt = conversation
        reply = given["reply"]
        if "raise" in reply:
            raise ModelError(reply["raise"])
        if "stream" in reply:
            text = ""
            for piece in reply["stream"]:
                loop = asyncio.get_running_loop()
                await asyncio.sleep(max(0.0, piece["t"] - loop.time()))
                text += piece["text"]
                yield TextDelta(piece["text"])
            message = Message.assistant(text)
        else:
            message = said(reply)
            if message.text:
                yield TextDelta(message.text)
        yield Completion(
            message, "tool_calls" if message.tool_calls else "stop", Usage(n_requests=1), self.spec
        )

    async def close(self) -> None:
        """Nothing is held."""


def said(reply: Json) -> Message:
    """A reply in the form in which a model would give it to us."""
    if "plan" in reply:
        tasks = [
            {
                {"args": "arguments", "deps": "depends_on", "task": "prompt"}.get(k, k): v
                for k, v in s.items()
            }
            for s in reply["plan"]["steps"]
        ]
        return Message.assistant(dump_json({"tasks": cast("Any", tasks)}))
    if "replan" in reply:
        return Message.assistant(tool_calls=[ToolCall("replan", {"feedback": reply["replan"]})])
    if "score" in reply:
        return Message.assistant(
            dump_json({k: reply[k] for k in ("score", "feedback") if k in reply})
        )
    text = reply.get("plan_text") or reply.get("final") or reply.get("content") or ""
    calls: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for call in reply.get("tool_calls", ()):
        arguments = call.get("args", {})
        if isinstance(arguments, str):
            reason = "its arguments are not valid JSON"
            invalid.append(InvalidToolCall(arguments, reason, call["name"], call["id"]))
        else:
            calls.append(ToolCall(call["name"], arguments, call["id"]))
    return Message.assistant(text, tool_calls=calls, invalid_tool_calls=invalid)


def complaints(given: Json, conversation: Conversation, where: str) -> list[str]:
    """What a prompt lacks or has too much of."""
    text = shown_text(conversation)
    names = [spec.name for spec in conversation.tools]
    found = [f"{where}: no {w!r}" for w in given.get("prompt_must_contain", ()) if w not in text]
    found += [f"{where}: has {w!r}" for w in given.get("prompt_must_not_contain", ()) if w in text]
    found += [
        f"{where}: no tool {w}" for w in given.get("tools_must_include", ()) if w not in names
    ]
    found += [f"{where}: tool {w}" for w in given.get("tools_must_exclude", ()) if w in names]
    if len(names) > given.get("max_tools", len(names)):
        found.append(f"{where}: {len(names)} tools")
    if n_tokens(text) > given.get("max_prompt_tokens", n_tokens(text)):
        found.append(f"{where}: {n_tokens(text)} tokens")
    return found


# Tools

_CALL_ID: ContextVar[str] = ContextVar("call_id", default="")


def remember_call(context: RunContext[Any], call: ToolCall) -> None:
    """A hook by which simulated tools know which task they are called for."""
    _CALL_ID.set(call.id)


def make_tools(given: Sequence[Json], played: Played) -> list[Tool[..., Any]]:
    """The tools of a case."""
    tools: list[Tool[..., Any]] = []
    for one in given:
        if "generate" in one:
            tools += generated(one["generate"])
        else:
            tools.append(make_tool(one, played))
    return tools


def generated(how: Json) -> list[Tool[..., Any]]:
    """Many tools with names made of verbs and nouns."""
    return many_tools(how["count"], tuple(how["verbs"]), tuple(how["nouns"]))


@cache
def many_tools(count: int, verbs: tuple[str, ...], nouns: tuple[str, ...]) -> list[Tool[..., Any]]:
    """Tools that are there to be passed over: no case calls one."""
    names = (
        f"svc{i:04d}_{verbs[i % len(verbs)]}_{nouns[(i // len(verbs)) % len(nouns)]}"
        for i in range(count)
    )
    return [make_tool({"name": name}, Played()) for name in names]


def make_tool(one: Json, played: Played) -> Tool[..., Any]:
    """A tool that behaves as a case says."""
    params: Json = one.get("params", {})
    properties: JsonObject = {name: {} for name in params}
    schema: JsonObject = {"type": "object", "properties": properties}
    required = [name for name, about in params.items() if about.get("required")]
    if required:
        schema["required"] = cast("Any", required)
    behaviour = one.get("behaviour", {"kind": "const", "value": "ok"})
    n_made = 0

    async def act(arguments: dict[str, Any]) -> Any:
        nonlocal n_made
        own = behaviour
        if own["kind"] == "sequence":
            own = own["results"][min(n_made, len(own["results"]) - 1)]
        n_made += 1
        parts = _CALL_ID.get().split(":")
        start = asyncio.get_running_loop().time()
        call: Json = {"tool": one["name"], "args": arguments, "start": start}
        call["step"] = parts[1] if parts[0] == "task" else ""
        played.begin(call)
        ok = False
        try:
            await asyncio.sleep(own.get("duration", 0))
            value = behaved(own, arguments)
            ok = True
            return value
        finally:
            played.end(call, ok=ok)

    return Tool.from_spec(
        ToolSpec(one["name"], one.get("description", one["name"].replace("_", " ")), schema),
        act,
        timeout=None,
        serial=one.get("serial", False),
        max_chars=10_000_000,
    )


def behaved(how: Json, arguments: Json) -> Any:
    """What a call gives."""
    match how["kind"]:
        case "const":
            return how["value"]
        case "echo":
            return f"R({','.join(str(v) for v in arguments.values())})"
        case "fail":
            raise ToolError(how["error"])
        case "bulk":
            before = [how["line"]] * how["lines_before"]
            after = [how["line"]] * how["lines_after"]
            return "\n".join([*before, how["needle"], *after, how["tail"]])
        case kind:
            raise AssertionError(f"unknown behaviour {kind}")


# Runs


def play(case: Json) -> Played:
    """Run a case."""
    played = Played()
    given = case["given"]
    models = {
        role: RoleModel(role, given.get("model", ()), played)
        for role in ("planner", "joiner", "executor", "actor", "reflector", "judge", "summariser")
    }

    async def main() -> None:
        runner, input = made(case, played, cast("dict[str, Model]", models))
        played.result = await runner.run(input)
        played.wall = asyncio.get_running_loop().time()

    run_in_virtual_time(main())
    return played


def made(case: Json, played: Played, models: dict[str, Model]) -> tuple[Agent | Strategy, Any]:
    """Who answers a case, and what is asked."""
    given: Json = case["given"]
    config: Json = given.get("config", {})
    tools = make_tools(given.get("tools", ()), played)
    hooks = [Hooks(before_tool=remember_call)]
    if case["strategy"] in ("plan_execute", "rewoo", "llm_compiler"):
        agent = Agent(name="executor", model=models["executor"], tools=tools, hooks=hooks)
        return planned(case["strategy"], agent, given, config, models), given["task"]
    if case["strategy"] == "reflexion":
        agent = Agent(name="actor", model=models["actor"], tools=tools, hooks=hooks)
        names = {"max_trials": "max_attempts"}
        options: Json = {names.get(key, key): value for key, value in config.items()}
        options |= {"reflector": models["reflector"], "reset": lambda: None}
        return Reflexion(agent, evaluator(given["evaluator"], models), **options), given["task"]
    agent = Agent(
        name="actor",
        model=models["actor"],
        tools=tools,
        hooks=hooks,
        select=selected(config, given, tools),
        observations=observed(config, models),
        insert_results=config.get("direct_insertion", False),
        max_steps=config.get("max_steps", 20),
    )
    if case["strategy"] == "memory":
        how = Compaction(
            config["trigger_tokens"],
            keep_steps=config["keep_last_turns"],
            summarise=summarise_with(models["summariser"]),
        )
        return replace(agent, compaction=how), history(given["history"])
    return ReAct(agent, on_limit=config.get("on_limit", "stop")), given["task"]


def selected(config: Json, given: Json, tools: Sequence[Tool[..., Any]]) -> Retrieve | None:
    """How a case has its tools chosen, with the requests that it has recorded."""
    how = config.get("tool_retrieval")
    if how is None:
        return None
    index = ToolIndex(tools)
    index.learn_requests({t["name"]: t["examples"] for t in given["tools"] if "examples" in t})
    return Retrieve(how.get("k", 8), always=how.get("always_on", ()), index=index)


def observed(config: Json, models: dict[str, Model]) -> Observations | None:
    """How much a case shows of results."""
    how = config.get("compress")
    if how is None:
        return None
    return Observations(how["budget_tokens"], mode=how["mode"], summariser=models["summariser"])


def history(rows: Sequence[Json]) -> list[Message]:
    """What was said before."""
    messages: list[Message] = []
    for row in rows:
        calls = tuple(ToolCall("look", {}, call["id"]) for call in row.get("tool_calls", ()))
        messages.append(
            Message(
                row["role"],
                (TextPart(row["content"]),),
                tool_calls=calls,
                tool_call_id=row.get("tool_call_id", ""),
                metadata={"pinned": True} if row.get("pinned") else {},
            )
        )
    return messages


def evaluator(given: Json, models: dict[str, Model]) -> Evaluator:
    """A case's evaluator."""
    match given["kind"]:
        case "exact":
            return exact(given["gold"])
        case "judge":
            return judge(models["judge"], threshold=given.get("threshold", 0.5))
        case "unit_tests":
            return unit_tests(given["tests"])
        case kind:
            raise AssertionError(f"unknown evaluator {kind}")


def planned(
    strategy: str, agent: Agent, given: Json, config: Json, models: dict[str, Model]
) -> PlanAndExecute:
    """A planning strategy with a case's settings."""
    names = {"step_timeout": "task_timeout", "max_plan_steps": "max_tasks", "stream": "streaming"}
    options: Json = {str(names.get(key, key)): value for key, value in config.items()}
    options |= {"planner": models["planner"], "joiner": models["joiner"]}
    options.setdefault("max_plan_repairs", 0)
    human: list[Json] = list(given.get("human", ()))

    def review(plan: Plan) -> Opinion:
        act: Json = human.pop(0) if human else {"action": "approve"}
        match act["action"]:
            case "edit":
                return Plan.from_row(act["plan"])
            case "reject":
                return str(act.get("comment", "no"))
            case "abort":
                return False
            case _:
                return True

    if human:
        options["review"] = review
    make = {"rewoo": PlanAndExecute.rewoo, "llm_compiler": PlanAndExecute.compiler}
    return make.get(strategy, PlanAndExecute)(agent, **options)
