"""Spans and metrics of requests for OpenTelemetry, in the words of its HTTP and GenAI conventions.

Off unless a server is told.  The span of a request goes on with the caller's trace, and is the
current one while it lasts: what an agent with a `Telemetry` of its own tells stands below it.
Nothing of what was said is in it.

Source: OpenTelemetry semantic conventions, "HTTP server" and "gen-ai-spans".  Needs the ``otel``
extra.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from antiphon.errors import MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    Ended = Callable[[int, Mapping[str, Any]], None]

_NAME = "antiphon.serve"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 60, 300)
_FACTS = {
    "id": "antiphon.request.id",
    "model": "gen_ai.request.model",
    "read": "gen_ai.usage.input_tokens",
    "written": "gen_ai.usage.output_tokens",
    "agent": "gen_ai.agent.name",
    "run": "antiphon.run.id",
    "stream": "antiphon.stream",
}


class ServerTelemetry:
    """Where spans and metrics of requests go."""

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
    ) -> None:
        """Set up.

        Args:
            tracer_provider: Makes spans; the process's own by default.
            meter_provider: Makes metrics; the process's own by default.

        Raises:
            MissingExtraError: OpenTelemetry is not installed.
        """
        try:
            from opentelemetry import metrics, trace
        except ImportError as error:
            raise MissingExtraError("telemetry", "otel") from error
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        self._duration = meter.create_histogram(
            "http.server.request.duration",
            unit="s",
            description="How long requests took",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )

    @contextmanager
    def request(self, method: str, route: str, headers: Mapping[str, str]) -> "Generator[Ended]":
        """The span of a request.

        Args:
            method: Its method.
            route: The pattern of its path.
            headers: Its headers: a caller's trace may be in them.

        Returns:
            What is told the status and the facts of the access log when it is over.
        """
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        began = perf_counter()
        asked = {"http.request.method": method, "http.route": route}
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=extract(headers),
            kind=SpanKind.SERVER,
            attributes=asked,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            def ended(status: int, facts: Mapping[str, Any]) -> None:
                told = {_FACTS[name]: value for name, value in facts.items() if name in _FACTS}
                if "stop" in facts:
                    told["gen_ai.response.finish_reasons"] = [facts["stop"]]
                span.set_attributes({**told, "http.response.status_code": status})
                labels = {**asked, "http.response.status_code": status}
                if status >= 500:
                    labels["error.type"] = str(status)
                    span.set_attribute("error.type", str(status))
                    span.set_status(StatusCode.ERROR)
                self._duration.record(perf_counter() - began, labels)

            yield ended
