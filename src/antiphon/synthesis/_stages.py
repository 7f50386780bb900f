"""The stages of a synthesis, each a map over rows: tasks are written, then done.

Everything lies in one folder: ``tasks.jsonl``, ``runs.jsonl``, their journals, and ``report.json``.
The same command goes on after a kill; a changed config works again on what it changes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from antiphon.batch import Engine, Report, map_rows, write_text
from antiphon.events import dump_row
from antiphon.messages import JsonObject, JsonValue
from antiphon.models import read_prices
from antiphon.synthesis._config import SynthConfig, describe
from antiphon.synthesis._ledger import Ledger
from antiphon.synthesis._work import RunTasks, WriteTasks


@dataclass(slots=True)
class SynthReport:
    """How a synthesis went."""

    out: Path
    """The folder."""
    stages: dict[str, Report] = field(default_factory=dict[str, Report])
    """Each stage that was begun."""
    ledger: Ledger = field(default_factory=Ledger)
    """What was spent."""
    dropped: Counter[str] = field(default_factory=Counter[str])
    """Tasks that could not be written, by reason."""

    @property
    def is_complete(self) -> bool:
        """Whether both stages are."""
        return len(self.stages) == 2 and all(s.is_complete for s in self.stages.values())

    def to_row(self) -> JsonObject:
        """The report as JSON."""
        total = self.ledger.total
        return {
            "complete": self.is_complete,
            "stages": {
                name: {
                    "rows": stage.n_rows,
                    "out": stage.n_out,
                    "earlier": stage.n_kept,
                    "failed": len(stage.failures),
                    "stopped": stage.stopped,
                }
                for name, stage in self.stages.items()
            },
            "kinds": dict[str, JsonValue](self.ledger.kinds),
            "dropped": dict[str, JsonValue](self.dropped),
            "calls": total.n_requests,
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
            "cost": self.ledger.cost,
        }


async def synthesize(
    config: SynthConfig,
    *,
    engine: Engine | None = None,
    held_out: Sequence[str] = (),
    progress: Callable[[str, Report, Ledger], None] | None = None,
) -> SynthReport:
    """Write tasks, do them, and keep everything.

    Args:
        config: What to make.
        engine: Where rows are worked on; in this process by default.
        held_out: Values and questions that no task may have.
        progress: Told the stage, how far it is and what was spent, after each row.

    Raises:
        AntiphonError: A file or a model cannot be used, or what was done cannot be written.
    """
    out = config.path(config.out)
    prices = read_prices(config.path(config.limits.prices)) if config.limits.prices else {}
    report = SynthReport(out, ledger=Ledger(config.limits, prices))
    inputs: JsonValue = [_digest_of_files(config), *sorted(held_out)]
    indexes: Iterator[JsonObject] = ({"index": index} for index in range(config.tasks.count))
    stages: list[tuple[str, Any, Any, JsonValue]] = [
        ("tasks", WriteTasks(config, tuple(held_out)), lambda: indexes, _task_settings(config)),
        ("runs", RunTasks(config, tuple(held_out)), lambda: _tasks(out), _run_settings(config)),
    ]
    for name, work, rows, settings in stages:
        stage = await map_rows(
            work,
            rows(),
            out / f"{name}.jsonl",
            settings=[settings, inputs],
            engine=engine,
            concurrency=config.limits.concurrency,
            max_failures=config.limits.max_failures,
            stop=report.ledger.reason,
            progress=_teller(progress, name, report),
            done=lambda row: _count(report, row),
        )
        report.stages[name] = stage
        if not stage.is_complete:
            break
    _save(report)
    return report


def _teller(
    progress: Callable[[str, Report, Ledger], None] | None, name: str, report: SynthReport
) -> Callable[[Report], None] | None:
    if progress is None:
        return None
    return lambda stage: progress(name, stage, report.ledger)


def _tasks(out: Path) -> Iterator[JsonObject]:
    with (out / "tasks.jsonl").open("rb") as file:
        for line in file:
            row: JsonObject = json.loads(line)
            if "dropped" not in row:
                yield row


def _count(report: SynthReport, row: JsonObject) -> None:
    ledger = report.ledger
    if "messages" in row:
        metadata = cast("dict[str, Any]", row["metadata"])
        ledger.add(metadata["usage"])
        ledger.kinds[f"{metadata['kind']}: {row['stop_reason']}"] += 1
    else:
        ledger.add(cast("dict[str, Any]", row["usage"]))
        if "dropped" in row:
            report.dropped[str(row["dropped"])] += 1


def _save(report: SynthReport) -> None:
    write_text(report.out / "report.json", dump_row(report.to_row(), indent=1) + "\n")


# ---- what decides a stage's result ------------------------------------------------------------


def _task_settings(config: SynthConfig) -> JsonValue:
    tasks = describe(config.tasks)
    del tasks["count"]
    models = config.models
    writer: list[JsonValue] = [config.writer, models.writer_temperature, models.max_tokens]
    return [config.seed, describe(config.toolset), tasks, writer, *config.agent.instructions]


def _run_settings(config: SynthConfig) -> JsonValue:
    agent = describe(config.agent)
    del agent["instructions"]  # in the task
    return [describe(config.models), agent, config.tasks.max_turns, describe(config.toolset)]


def _digest_of_files(config: SynthConfig) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for one in config.toolset:
        for name in (*one.catalogs, *one.specs):
            path = config.path(name)
            beside = (path.with_name(f"slots_{path.name}"), path.with_name("linked.json"))
            for place in (path, *beside):
                if place.is_file():
                    digest.update(place.read_bytes())
    return digest.hexdigest()
