"""A file of rows checked: each row by itself, cheapest checks first, then all rows together.

What was found of a row is kept in a journal, so that an interrupted run goes on and a judge is not
asked twice.  Written are ``kept.jsonl``, ``dropped.jsonl``, ``report.json`` and ``report.html``.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from antiphon.batch import Engine, Report, RowFunction, map_rows, write_split
from antiphon.datasets import iter_rows
from antiphon.errors import DataError
from antiphon.evaluation import held_out
from antiphon.messages import JsonObject, JsonValue, Usage, dump_json
from antiphon.models import ModelSettings, load_model
from antiphon.synthesis import Ledger, SynthConfig, TaskTools, world_tools
from antiphon.tools import Tool, load_tools
from antiphon.verification._contamination import Benchmarks
from antiphon.verification._judge import RUBRIC, Judge
from antiphon.verification._layers import check_sample, is_wrong
from antiphon.verification._near import NearDuplicates
from antiphon.verification._tests import TestFunction, load_tests
from antiphon.verification._verdict import Sample, Verdict, decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Which checks a row goes through; can be sent to another process."""

    synthesis: SynthConfig | None = None
    """The synthesis that made the rows, for making their calls again."""
    tools: tuple[str, ...] = ()
    """Tools of other rows, ``MODULE:NAME``, for the same."""
    world: str = ""
    """``MODULE:FUNCTION`` that makes fresh tools for each row, for tools with a state."""
    tests: tuple[str, ...] = ()
    """Functions of a record, ``MODULE:FUNCTION``."""
    judge: str = ""
    """A model that judges; nobody where empty."""
    votes: int = 1
    """How often it is asked."""
    rubric: str = RUBRIC
    """What it goes by."""
    temperature: float | None = None
    """Its sampling temperature."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[RowFunction]:
        """Load the tools, and open the judge."""
        model = load_model(self.judge) if self.judge else None
        judge = None
        if model is not None:
            settings = ModelSettings(temperature=self.temperature, max_tokens=1024)
            judge = Judge(model, self.rubric, self.votes, settings)
        try:
            yield _Checker(
                self,
                None if self.synthesis is None else _task_tools(self.synthesis),
                [tool for name in self.tools for tool in load_tools(name)],
                load_tests(self.tests),
                judge,
            ).row
        finally:
            if model is not None:
                await model.close()

    def settings(self) -> JsonValue:
        """What decides the verdicts."""
        votes: list[JsonValue] = [self.judge, self.votes, self.rubric, self.temperature]
        names: list[JsonValue] = [*self.tools, self.world, *self.tests]
        return [names, repr(self.synthesis), votes]


def _task_tools(synthesis: SynthConfig) -> TaskTools:
    return TaskTools(synthesis, held_out(synthesis.tasks.hold_out))


@dataclass(frozen=True, slots=True)
class _Checker:
    checks: Checks
    task_tools: TaskTools | None
    tools: list[Tool[..., Any]]
    tests: list[tuple[str, TestFunction]]
    judge: Judge | None

    async def row(self, row: JsonObject) -> JsonObject:
        try:
            sample = Sample.read(row)
        except DataError as error:
            found: list[JsonValue] = [Verdict("format", "unreadable", "fail", str(error)).to_row()]
            return {"verdicts": found}
        verdicts = await check_sample(
            sample, tools=self._tools(sample), tests=self.tests, judge=self.judge
        )
        return {"verdicts": [v.to_row() for v in verdicts]}

    def _tools(self, sample: Sample) -> Mapping[str, Tool[..., Any]]:
        tools = {tool.name: tool for tool in self.tools}
        if self.checks.world:
            seed = sample.task.seed if sample.task else 0
            tools |= {tool.name: tool for tool in world_tools(self.checks.world, seed)}
        if self.task_tools is not None and sample.task is not None:
            tools |= self.task_tools.of(sample.task)
        return tools


@dataclass(slots=True)
class VerifyReport:
    """What became of the rows."""

    out: Path
    """The folder."""
    stage: Report
    """How the checks of single rows went."""
    n_kept: int = 0
    """Rows kept."""
    n_masked: int = 0
    """Messages that got the loss 0, in kept rows."""
    dropped: Counter[str] = field(default_factory=Counter[str])
    """Rows dropped, by the check that failed."""
    reasons: dict[str, list[tuple[str, str]]] = field(
        default_factory=dict[str, list[tuple[str, str]]]
    )
    """For each such check, the first rows: id and reason."""
    checks: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """For each check, how often each outcome."""
    kinds: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """For each kind of task, how many rows were kept and dropped."""
    tools: Counter[str] = field(default_factory=Counter[str])
    """Calls of each tool, in kept rows."""
    turns: Counter[int] = field(default_factory=Counter[int])
    """Kept rows by the number of user messages."""
    usage: Usage = field(default_factory=Usage)
    """What the judge cost."""

    @property
    def n_dropped(self) -> int:
        """Rows dropped."""
        return self.dropped.total()

    def to_row(self) -> JsonObject:
        """The report as JSON."""
        return {
            "complete": self.stage.is_complete,
            "rows": self.stage.n_rows,
            "kept": self.n_kept,
            "dropped": dict[str, JsonValue](self.dropped),
            "masked_messages": self.n_masked,
            "checks": {name: dict[str, JsonValue](c) for name, c in self.checks.items()},
            "kinds": {name: dict[str, JsonValue](c) for name, c in self.kinds.items()},
            "tools": dict[str, JsonValue](self.tools),
            "turns": {str(n): count for n, count in sorted(self.turns.items())},
            "judge_calls": self.usage.n_requests,
        }


async def verify_file(
    path: Path | str,
    out: Path,
    checks: Checks,
    *,
    near: float | None = 0.85,
    against: Benchmarks | None = None,
    keep_all: bool = False,
    engine: Engine | None = None,
    concurrency: int = 32,
    progress: Callable[[Report], None] | None = None,
) -> VerifyReport:
    """Check every row of a file.

    Args:
        path: Rows in any spelling that `antiphon.datasets` reads; trajectories say most.
        out: The folder to write to.
        checks: What each row goes through.
        near: The likeness from which on a row is a near duplicate of an earlier one; ``None`` keeps
            all.
        against: Benchmarks that no row may ask.
        keep_all: Whether rows that are wrong are kept, with the reason in ``outcome``.
        engine: Where rows are checked; in this process by default.
        concurrency: How many rows are checked at once.
        progress: Told how far it is.

    Raises:
        DataError: A file cannot be read or written.
        AntiphonError: A tool, a test or the judge cannot be used.
    """
    rows = (cast("JsonObject", dict(row)) for _, row in iter_rows(path))
    verdicts = out / "verdicts.jsonl"
    stage = await map_rows(
        checks,
        rows,
        verdicts,
        settings=checks.settings(),
        engine=engine,
        concurrency=concurrency,
        progress=progress,
    )
    report = VerifyReport(out, stage)
    if stage.is_complete:
        names = {name: out / f"{name}.jsonl" for name in ("kept", "dropped")}
        pairs = zip(iter_rows(path), iter_rows(verdicts), strict=True)
        duplicates = None if near is None else NearDuplicates(near)
        write_split(names, _Choice(report, duplicates, against, keep_all).rows(pairs))
    return report


Pair = tuple[tuple[int, Mapping[str, Any]], tuple[int, Mapping[str, Any]]]
"""A row and its verdicts, each with its line."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The rows together, in order: what is kept, what is dropped, and why."""

    report: VerifyReport
    duplicates: NearDuplicates | None
    against: Benchmarks | None
    keep_all: bool

    def rows(self, pairs: Iterable[Pair]) -> Iterator[tuple[str, JsonObject]]:
        for number, ((line, row), (_, found)) in enumerate(pairs):
            own = [Verdict.from_row(v) for v in found["verdicts"]]
            _count(self.report, own)
            if own and own[0].check == "unreadable":
                _drop(self.report, own, str(line), "rows", own[0].reason)
                yield "dropped", {"line": line, "reason": own[0].reason}
            else:
                id = str(row.get("id") or number)
                yield self._chosen(Sample.read(cast("JsonObject", dict(row))), id, own)

    def _chosen(self, sample: Sample, id: str, own: list[Verdict]) -> tuple[str, JsonObject]:
        if not is_wrong(own):
            own += _of_the_set(sample, id, self.duplicates, self.against)
        whole, reason = decided(sample, own)
        if reason:
            _drop(self.report, own, id, sample.kind, reason)
            return ("kept" if self.keep_all else "dropped"), whole
        _keep(self.report, sample, own)
        return "kept", whole


def _of_the_set(
    sample: Sample, id: str, duplicates: NearDuplicates | None, against: Benchmarks | None
) -> Iterator[Verdict]:
    messages = sample.conversation.messages
    calls = [call for m in messages for call in m.tool_calls]
    if against is not None:
        why = against.found_in((m.text for m in messages if m.role == "user"), calls)
        if why:
            yield Verdict("set", "contaminated", "fail", why)
            return
    if duplicates is not None:
        skeleton = "\n".join(f"{c.name} {dump_json(c.arguments)}" for c in calls)
        twin = duplicates.add(id, f"{sample.question}\n{skeleton}")
        if twin is not None:
            reason = f"{twin[1]:.0%} of it is in {twin[0]}"
            yield Verdict("set", "near_duplicate", "fail", reason)


def _count(report: VerifyReport, verdicts: Iterable[Verdict]) -> None:
    ledger = Ledger()
    for verdict in verdicts:
        name = f"{verdict.layer}/{verdict.check}"
        report.checks.setdefault(name, Counter())[verdict.outcome] += 1
        ledger.add(verdict.usage)
    report.usage += ledger.total


def _drop(report: VerifyReport, verdicts: list[Verdict], id: str, kind: str, reason: str) -> None:
    wrong = next((v for v in verdicts if v.outcome == "fail" and v.message is None), None)
    name = f"{wrong.layer}/{wrong.check}" if wrong else "no message left"
    report.dropped[name] += 1
    if wrong is not None and wrong.layer == "set":
        report.checks.setdefault(name, Counter())["fail"] += 1
    first = report.reasons.setdefault(name, [])
    if len(first) < 5:
        first.append((id, reason))
    report.kinds.setdefault(kind or "rows", Counter())["dropped"] += 1


def _keep(report: VerifyReport, sample: Sample, verdicts: list[Verdict]) -> None:
    report.n_kept += 1
    wrong = {v.message for v in verdicts if v.outcome == "fail" and v.message is not None}
    report.n_masked += len(wrong)
    report.kinds.setdefault(sample.kind or "rows", Counter())["kept"] += 1
    messages = sample.conversation.messages
    report.tools.update(c.name for m in messages for c in m.tool_calls)
    report.turns[sum(m.role == "user" for m in messages)] += 1
