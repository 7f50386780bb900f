"""Spans and metrics of runs, as OpenTelemetry's own SDK collects them."""

import threading
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the SDK is not installed")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from antiphon.agent import Agent, Telemetry
from antiphon.errors import ModelConnectionError
from antiphon.messages import Completion, Message, ToolCall, Usage
from antiphon.models import ModelSettings, ScriptedModel
from antiphon.tools import tool

SEEN: list[Any] = []


@tool
def look(place: str) -> str:
    """Looks somewhere."""
    SEEN.append((threading.current_thread(), trace.get_current_span().get_span_context()))
    if place == "nowhere":
        raise LookupError("nothing here")
    return "a kettle"


@dataclass
class Collected:
    """Where a test's spans and metrics go."""

    spans: InMemorySpanExporter
    metrics: InMemoryMetricReader
    telemetry: Telemetry

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans.get_finished_spans() if span.name == name]
        return found

    def points(self, name: str) -> list[Any]:
        data: Any = self.metrics.get_metrics_data()
        return [
            point
            for scope in data.resource_metrics[0].scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


def collected(*, content: bool = False) -> Collected:
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider(metric_readers=[reader])
    made = Telemetry(tracer_provider=tracers, meter_provider=meters, content=content)
    return Collected(spans, reader, made)


def script(place: str) -> list[Any]:
    call = Message.assistant(tool_calls=[ToolCall("look", {"place": place}, "c1")])
    return [
        Completion(call, "tool_calls", Usage(11, 7, 3, 1), "small-2026"),
        Completion(Message.assistant("Found it."), "stop", Usage(20, 5, 0, 1), "small-2026"),
    ]


def agent(to: Collected, answers: Any, **options: Any) -> Agent:
    model = ScriptedModel(answers, spec="openai/small")
    given: dict[str, Any] = {"name": "finder", "tools": [look]} | options
    return Agent(model=model, telemetry=to.telemetry, **given)


def test_a_run_its_model_calls_and_its_tools_are_spans_below_it() -> None:
    to = collected()

    agent(to, script("kitchen"), settings=ModelSettings(temperature=0.5)).run_sync("go")

    run, call = to.span("invoke_agent finder"), to.span("execute_tool look")
    chats = [span for span in to.spans.get_finished_spans() if span.name == "chat small"]
    assert run.parent is None
    assert run.context is not None
    for span in (*chats, call):
        assert span.parent is not None
        assert span.parent.span_id == run.context.span_id
    assert [span.kind for span in chats] == [SpanKind.CLIENT] * 2
    first: Any = chats[0].attributes
    assert {key: first[key] for key in first if key.startswith("gen_ai")} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "small-2026",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 3,
    }
    told: Any = call.attributes
    assert (told["gen_ai.tool.name"], told["gen_ai.tool.call.id"]) == ("look", "c1")
    assert told["gen_ai.tool.description"] == "Looks somewhere."


def test_what_a_tool_traces_stands_below_its_call_also_in_a_thread() -> None:
    to = collected()
    SEEN.clear()

    agent(to, script("kitchen")).run_sync("go")

    ((thread, context),) = SEEN
    own = to.span("execute_tool look").context
    assert own is not None
    assert thread is not threading.main_thread()
    assert context.span_id == own.span_id


def test_what_was_said_is_recorded_only_where_that_is_asked_for() -> None:
    plain, whole = collected(), collected(content=True)

    agent(plain, script("kitchen")).run_sync("a secret")
    agent(whole, script("kitchen")).run_sync("a secret")

    def recorded(to: Collected) -> str:
        return "".join(str(dict(s.attributes or {})) for s in to.spans.get_finished_spans())

    assert "secret" not in recorded(plain)
    assert "kettle" not in recorded(plain)
    for text in ("a secret", "kettle", "kitchen", "Found it."):
        assert text in recorded(whole)


def test_what_went_wrong_is_an_error_with_a_kind() -> None:
    to = collected()

    agent(to, script("nowhere")).run_sync("go")
    agent(to, [ModelConnectionError("gone")], name="lost").run_sync("go")

    call, run = to.span("execute_tool look"), to.span("invoke_agent lost")
    assert call.status.status_code is StatusCode.ERROR
    assert (call.attributes or {})["error.type"] == "tool_error"
    assert (run.attributes or {})["error.type"] == "run_error"
    broken = [s for s in to.spans.get_finished_spans() if s.name == "chat small"][-1]
    assert (broken.attributes or {})["error.type"] == "ModelConnectionError"


def test_durations_and_tokens_are_measured() -> None:
    to = collected()

    agent(to, script("kitchen")).run_sync("go")

    durations = {
        point.attributes["gen_ai.operation.name"]: point.count
        for point in to.points("gen_ai.client.operation.duration")
    }
    assert durations == {"invoke_agent": 1, "chat": 2, "execute_tool": 1}
    tokens = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in to.points("gen_ai.client.token.usage")
    }
    assert tokens == {"input": 31, "output": 12}


def test_a_run_inside_a_call_tells_below_that_call() -> None:
    to = collected()
    inner = Agent(name="inner", model=ScriptedModel(["Yes."]))
    asks = Message.assistant(tool_calls=[ToolCall("inner", {"question": "?"}, "c1")])

    agent(to, [asks, "ok"], tools=[inner.as_tool()]).run_sync("go")

    call = to.span("execute_tool inner").context
    parent = to.span("invoke_agent inner").parent
    assert call is not None
    assert parent is not None
    assert parent.span_id == call.span_id


def test_a_run_without_telemetry_tells_nobody() -> None:
    to = collected()

    Agent(model=ScriptedModel(["Hi."])).run_sync("go")

    assert to.spans.get_finished_spans() == ()
