"""Spans and metrics of runs for OpenTelemetry, in the words of its GenAI conventions.

Off unless an agent is given a `Telemetry`.  A run is ``invoke_agent``, a model call ``chat``, a
tool's call ``execute_tool``; each is the current span while it lasts, so that what a tool or the
HTTP client traces stands below it.  What was said is recorded only where that is asked for.

Source: OpenTelemetry semantic conventions, "Semantic conventions for generative AI systems":
gen-ai-agent-spans, gen-ai-spans, gen-ai-metrics (status: development).  Needs the ``otel`` extra.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any

from antiphon.errors import MissingExtraError
from antiphon.messages import (
    Completion,
    Conversation,
    JsonValue,
    ToolCall,
    ToolResult,
    ToolSpec,
    dump_json,
)
from antiphon.models import ModelSettings

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_NAME = "antiphon"
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (
    1,
    4,
    16,
    64,
    256,
    1024,
    4096,
    16384,
    65536,
    262144,
    1048576,
    4194304,
    16777216,
    67108864,
)


class Span:
    """One span on its way; what is told it after its start becomes attributes."""

    def __init__(self, span: Any, telemetry: "Telemetry", attributes: dict[str, Any]) -> None:
        self._span = span
        self._telemetry = telemetry
        self._asked = attributes
        self._began = perf_counter()
        self._first: float | None = None

    def first_piece(self) -> None:
        """The reply begins to arrive."""
        if self._first is None:
            self._first = perf_counter() - self._began

    def completed(self, completion: Completion) -> None:
        """A model's reply is whole."""
        usage = completion.usage
        self._set(
            {
                "gen_ai.response.model": completion.model or None,
                "gen_ai.response.finish_reasons": [completion.stop_reason],
                "gen_ai.usage.input_tokens": usage.input_tokens or None,
                "gen_ai.usage.output_tokens": usage.output_tokens or None,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
            }
        )
        if self._telemetry.content:
            said = dump_json([{"role": "assistant", "content": completion.message.text}])
            self._set({"gen_ai.output.messages": said})
        named = {"gen_ai.response.model": completion.model} if completion.model else {}
        for kind, n in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if n:
                attributes = self._asked | named | {"gen_ai.token.type": kind}
                self._telemetry.tokens.record(n, attributes)

    def answered(self, result: ToolResult) -> None:
        """A tool's answer is there."""
        if result.is_error:
            self.failed("tool_error", result.text if self._telemetry.content else "")
        elif self._telemetry.content:
            self._set({"gen_ai.tool.call.result": result.text})

    def ended(self, stop_reason: str, error: str) -> None:
        """The run is over."""
        self._set({"antiphon.stop_reason": stop_reason})
        if stop_reason == "error":
            self.failed("run_error", error)

    def failed(self, kind: str, text: str = "") -> None:
        """It did not go well; `kind` is a word of few."""
        from opentelemetry.trace import StatusCode

        self._asked = self._asked | {"error.type": kind}
        self._span.set_attribute("error.type", kind)
        self._span.set_status(StatusCode.ERROR, text or None)

    def _set(self, attributes: dict[str, Any]) -> None:
        self._span.set_attributes({k: v for k, v in attributes.items() if v is not None})

    def measure(self, *, streamed: bool) -> None:
        """Record how long it took."""
        self._telemetry.duration.record(perf_counter() - self._began, self._asked)
        if streamed and self._first is not None:
            self._telemetry.first.record(self._first, self._asked)


class Telemetry:
    """Where spans and metrics go, and what is in them."""

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
        content: bool = False,
    ) -> None:
        """Set up.

        Args:
            tracer_provider: Makes spans; the process's own by default.
            meter_provider: Makes metrics; the process's own by default.
            content: Whether what was said, arguments and results are recorded.

        Raises:
            MissingExtraError: OpenTelemetry is not installed.
        """
        try:
            from opentelemetry import metrics, trace
        except ImportError as error:
            raise MissingExtraError("telemetry", "otel") from error
        self.content = content
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        self.duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="How long an operation took",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            unit="s",
            description="How long until a reply began to arrive",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="How many tokens were read and written",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    @contextmanager
    def run(self, agent: str, run_id: str, session: str) -> Generator[Span]:
        """The span of a run."""
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
        }
        more: dict[str, Any] = {"antiphon.run.id": run_id}
        if session:
            more["gen_ai.conversation.id"] = session
        with self._span(f"invoke_agent {agent}", attributes, more) as span:
            yield span

    @contextmanager
    def chat(
        self, spec: str, settings: ModelSettings, conversation: Conversation
    ) -> Generator[Span]:
        """The span of a model call."""
        provider, model = _named(spec)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        more: dict[str, Any] = {
            "gen_ai.request.temperature": settings.temperature,
            "gen_ai.request.top_p": settings.top_p,
            "gen_ai.request.max_tokens": settings.max_tokens,
            "gen_ai.request.seed": settings.seed,
            "gen_ai.request.stop_sequences": list(settings.stop) or None,
        }
        if self.content:
            rows: list[JsonValue] = [
                {"role": m.role, "content": m.text} for m in conversation.messages
            ]
            more["gen_ai.input.messages"] = dump_json(rows)
        with self._span(f"chat {model}", attributes, more, client=True) as span:
            yield span

    @contextmanager
    def call(self, call: ToolCall, spec: ToolSpec | None) -> Generator[Span]:
        """The span of a tool call."""
        name = call.name if spec is not None else "unknown"  # a model's invention is no good label
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
        }
        more: dict[str, Any] = {
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.description": None if spec is None else spec.description or None,
            "gen_ai.tool.call.arguments": dump_json(call.arguments) if self.content else None,
        }
        with self._span(f"execute_tool {name}", attributes, more) as span:
            yield span

    @contextmanager
    def _span(
        self,
        name: str,
        attributes: dict[str, Any],
        more: dict[str, Any],
        *,
        client: bool = False,
    ) -> Generator[Span]:
        from opentelemetry.trace import SpanKind

        given = attributes | {k: v for k, v in more.items() if v is not None}
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=given, record_exception=False, set_status_on_exception=False
        ) as started:
            span = Span(started, self, attributes)
            try:
                yield span
            except BaseException as error:
                span.failed(type(error).__name__)
                raise
            finally:
                span.measure(streamed=client)


ACTIVE: ContextVar[Telemetry | None] = ContextVar("antiphon_telemetry", default=None)
"""Where the run that is going on tells of itself; runs inside it tell there, too."""


def run_span(agent: str, run_id: str, session: str) -> AbstractContextManager[Span | None]:
    """The span of a run, where there is telemetry."""
    active = ACTIVE.get()
    return nullcontext() if active is None else active.run(agent, run_id, session)


def chat_span(
    spec: str, settings: ModelSettings, conversation: Conversation
) -> AbstractContextManager[Span | None]:
    """The span of a model call, where there is telemetry."""
    active = ACTIVE.get()
    return nullcontext() if active is None else active.chat(spec, settings, conversation)


def call_span(call: ToolCall, spec: ToolSpec | None) -> AbstractContextManager[Span | None]:
    """The span of a tool call, where there is telemetry."""
    active = ACTIVE.get()
    return nullcontext() if active is None else active.call(call, spec)


def _named(spec: str) -> tuple[str, str]:
    """The provider and the model that a spec names.

    >>> _named("openai/gpt-5"), _named("http://host:8000/v1#qwen3?format=react_en"), _named("local")
    (('openai', 'gpt-5'), ('openai_compatible', 'qwen3'), ('local', 'local'))
    """
    bare = spec.partition("?")[0]
    if bare.startswith(("http://", "https://")):
        return "openai_compatible", bare.partition("#")[2]
    kind, slash, name = bare.partition("/")
    return kind, name if slash else kind
