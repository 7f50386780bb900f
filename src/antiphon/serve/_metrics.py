"""What a server counts, in the text that Prometheus reads.

Source: Prometheus, "Exposition formats", text format 0.0.4.  No label holds anything that a client
wrote: routes are the server's own patterns.
"""

from bisect import bisect_left
from collections import defaultdict

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters and histograms of one server."""

    def __init__(self) -> None:
        self.in_flight = 0
        """Requests that are being worked on."""
        self.waiting = 0
        """Requests that wait for their turn."""
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._tokens: dict[str, int] = defaultdict(int)
        self._ends: dict[str, int] = defaultdict(int)
        self._times: dict[str, Histogram] = defaultdict(Histogram)
        self._first: dict[str, Histogram] = defaultdict(Histogram)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request is over."""
        self._requests[method, route, status] += 1
        self._times[route].add(seconds)

    def first(self, route: str, seconds: float) -> None:
        """The first piece of an answer went out."""
        self._first[route].add(seconds)

    def tokens(self, *, read: int, cached: int, written: int) -> None:
        """What a completion cost."""
        self._tokens["read"] += read
        self._tokens["cached"] += cached
        self._tokens["written"] += written

    def broke(self, how: str) -> None:
        """An answer did not come to its end: ``client_gone``, ``upstream``, ``timeout``."""
        self._ends[how] += 1

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        lines = [
            *_head("requests_total", "counter", "Requests that are over."),
            *(
                f'antiphon_requests_total{{method="{m}",route="{r}",status="{s}"}} {n}'
                for (m, r, s), n in sorted(self._requests.items())
            ),
            *_head("requests_in_flight", "gauge", "Requests being worked on."),
            f"antiphon_requests_in_flight {self.in_flight}",
            *_head("requests_waiting", "gauge", "Requests waiting for their turn."),
            f"antiphon_requests_waiting {self.waiting}",
            *_head("tokens_total", "counter", "Tokens read, reused and written."),
            *(f'antiphon_tokens_total{{kind="{k}"}} {n}' for k, n in sorted(self._tokens.items())),
            *_head("answers_broken_total", "counter", "Answers that did not come to their end."),
            *(f'antiphon_answers_broken_total{{how="{k}"}} {n}' for k, n in self._ends.items()),
            *_head("request_seconds", "histogram", "How long requests took."),
            *(line for r, h in sorted(self._times.items()) for line in h.lines("request", r)),
            *_head("first_piece_seconds", "histogram", "How long answers took to begin."),
            *(line for r, h in sorted(self._first.items()) for line in h.lines("first_piece", r)),
        ]
        return "\n".join(lines) + "\n"


class Histogram:
    """Durations in buckets."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(_BOUNDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, route: str) -> list[str]:
        """The histogram as Prometheus reads it."""
        head, total = f"antiphon_{name}_seconds", 0
        out: list[str] = []
        for bound, n in zip((*_BOUNDS, "+Inf"), self._counts, strict=True):
            total += n
            out.append(f'{head}_bucket{{route="{route}",le="{bound}"}} {total}')
        out.append(f'{head}_sum{{route="{route}"}} {self._sum:.6f}')
        out.append(f'{head}_count{{route="{route}"}} {total}')
        return out


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP antiphon_{name} {text}", f"# TYPE antiphon_{name} {kind}"]
