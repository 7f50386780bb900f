"""OpenTelemetry is told of requests: their spans go on with the caller's trace."""

import asyncio
from typing import Any

import aiohttp
import pytest

from antiphon.agent import Agent, Telemetry
from antiphon.messages import Completion, Message, Usage
from antiphon.models import ScriptedModel
from antiphon.serve import Served, Server, ServerTelemetry, ServeSettings
from serve.serving import ASK, Client

sdk: Any = pytest.importorskip("opentelemetry.sdk.trace")
export: Any = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
processors: Any = pytest.importorskip("opentelemetry.sdk.trace.export")
metrics: Any = pytest.importorskip("opentelemetry.sdk.metrics")
readers: Any = pytest.importorskip("opentelemetry.sdk.metrics.export")

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


class Told:
    """What a server told."""

    def __init__(self) -> None:
        self.spans = export.InMemorySpanExporter()
        self.tracers = sdk.TracerProvider()
        self.tracers.add_span_processor(processors.SimpleSpanProcessor(self.spans))
        self.reader = readers.InMemoryMetricReader()
        self.meters = metrics.MeterProvider(metric_readers=[self.reader])

    def telemetry(self) -> ServerTelemetry:
        return ServerTelemetry(tracer_provider=self.tracers, meter_provider=self.meters)

    def by_name(self) -> dict[str, Any]:
        return {span.name: span for span in self.spans.get_finished_spans()}


def ask(server: Server, path: str, row: dict[str, Any]) -> None:
    async def go() -> None:
        async with server.listening(), aiohttp.ClientSession() as session:
            await Client(session, server.url).post(path, row, headers=CALLER)

    asyncio.run(go())


def test_a_request_is_a_span_of_the_callers_trace_with_numbers_and_no_words() -> None:
    told = Told()
    completion = Completion(Message.assistant("the answer"), "stop", Usage(7, 2))
    served = Served("m", ScriptedModel([completion]))
    settings = ServeSettings(port=0)

    ask(
        Server([served], settings=settings, telemetry=told.telemetry()),
        "/v1/chat/completions",
        ASK | {"stream": True},
    )

    span = told.by_name()["POST /v1/chat/completions"]
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["gen_ai.usage.output_tokens"] == 2
    assert span.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert "answer" not in str(dict(span.attributes))
    (metric,) = told.reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    assert metric.name == "http.server.request.duration"
    assert metric.data.data_points[0].count == 1


def test_what_a_run_tells_stands_below_the_request() -> None:
    told = Told()
    telemetry = Telemetry(tracer_provider=told.tracers, meter_provider=told.meters)
    agent = Agent(name="clerk", model=ScriptedModel(["Done."]), telemetry=telemetry)
    settings = ServeSettings(port=0)

    ask(
        Server(agent=agent, settings=settings, telemetry=told.telemetry()),
        "/v1/agent/runs",
        {"input": "Book a table"},
    )

    spans = told.by_name()
    request, run = spans["POST /v1/agent/runs"], spans["invoke_agent clerk"]
    assert run.context.trace_id == request.context.trace_id
    assert run.parent.span_id == request.context.span_id


def test_a_fault_is_an_error_of_the_span() -> None:
    def fail(conversation: Any) -> str:
        raise ZeroDivisionError

    told = Told()
    served = Served("m", ScriptedModel(fail))
    settings = ServeSettings(port=0)

    ask(
        Server([served], settings=settings, telemetry=told.telemetry()),
        "/v1/chat/completions",
        ASK,
    )

    span = told.by_name()["POST /v1/chat/completions"]
    assert (span.status.is_ok, span.attributes["error.type"]) == (False, "500")
