"""A whole file to shards: in batches, in several processes, and again after it was killed.

The source is cut into chunks of rows; a chunk becomes one shard, written whole or not at all, with
the digest of its source and of the settings.  A run that begins again keeps every shard that is of
the same source and settings, so that the shards are the same bytes however often it was killed.

How rows are read is passed in: this room knows no dataset.  The work is done in this process, in
several, or by a `Pool` such as `antiphon.batch.RayPool`, which sends the shards back.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from antiphon.encode._encoder import Encoder
from antiphon.encode._example import TrainingExample
from antiphon.encode._fit import TooLong, fit, pack, to_row
from antiphon.encode._gemma import Gemma4Vision
from antiphon.encode._load import load_tokenizer
from antiphon.encode._policy import LossPolicy
from antiphon.encode._processor import ProcessorVision
from antiphon.encode._senses import PatchVision
from antiphon.encode._shards import (
    EncodedRow,
    ShardBuilder,
    ShardKind,
    make_directory,
    read_note,
    write_index,
    write_whole,
)
from antiphon.errors import AntiphonError, DataError
from antiphon.formats import Format, describe
from antiphon.messages import Conversation

Line = tuple[int, bytes]
"""The number of a source line, and the row's JSON."""

CHUNK_ROWS = 2048
CHUNK_BYTES = 32 << 20
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class EncodeJob:
    """How a file is encoded; can be sent to another process."""

    tokenizer: str
    """What `load_tokenizer` takes."""
    format: Format
    """The model's format."""
    read: Callable[[bytes], list[Conversation]]
    """Reads a row's JSON; a function of a module, since it is sent by name."""
    loss: LossPolicy = field(default_factory=LossPolicy)
    """Which tokens count."""
    max_tokens: int | None = None
    """The longest example; no limit by default."""
    too_long: TooLong = "split"
    """What becomes of longer ones."""
    pack: bool = False
    """Whether rows of one shard are packed up to `max_tokens`."""
    strict: bool = False
    """Whether the first broken row ends the run."""
    source: str = ""
    """The name of the source, for messages."""
    vision: PatchVision | Gemma4Vision | ProcessorVision | None = None
    """How many tokens an image is, where rows show some."""
    shards: ShardKind = "safetensors"
    """The kind of files that are written."""

    def describe(self) -> dict[str, Any]:
        """The settings that decide the tokens, as JSON."""
        return {
            "tokenizer": self.tokenizer,
            "format": describe(self.format),
            "loss": self.loss.name,
            "loss_policy": repr(self.loss),
            "max_tokens": self.max_tokens,
            "too_long": self.too_long,
            "pack": self.pack,
            **({} if self.vision is None else {"vision": repr(self.vision.within(Path()))}),
            **({} if self.shards == "safetensors" else {"shards": self.shards}),
        }


@dataclass(slots=True)
class EncodeReport:
    """What became of the rows."""

    n_source: int = 0
    """Rows of the source."""
    n_broken: int = 0
    """Rows that could not be read, rendered or encoded."""
    n_untrained: int = 0
    """Examples without a token that counts, left out."""
    n_too_long: int = 0
    """Rows of which nothing fits `max_tokens`, left out."""
    n_examples: int = 0
    """Examples written."""
    n_rows: int = 0
    """Rows written; fewer than examples where they are packed."""
    n_tokens: int = 0
    """Tokens written."""
    n_trained: int = 0
    """Tokens that count."""
    n_masked_runs: int = 0
    """Stretches of tokens that do not count."""
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """The first broken rows: line and reason."""

    def add(self, other: EncodeReport) -> None:
        """Count another part of the same run."""
        for item in fields(self):
            if item.name != "problems":
                setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
        self.problems += other.problems[: max(0, _SHOWN - len(self.problems))]


def encode_lines(
    encoder: Encoder, job: EncodeJob, lines: Sequence[Line]
) -> tuple[ShardBuilder, EncodeReport]:
    """The rows of one chunk, encoded.

    Args:
        encoder: For the job's tokenizer, format and loss.
        job: The settings.
        lines: The rows.
    """
    report = EncodeReport(n_source=len(lines))
    rows: list[EncodedRow] = []
    for line, examples in _encoded(encoder, job, lines, report):
        for example in examples:
            if not example.n_trained:
                report.n_untrained += 1
                continue
            report.n_examples += 1
            report.n_trained += example.n_trained
            report.n_masked_runs += len(example.masked_runs())
            report.n_tokens += len(example)
            rows.append(to_row(example, line))
    if job.pack and job.max_tokens:
        rows = pack(rows, job.max_tokens)
    builder = ShardBuilder()
    for row in rows:
        builder.add(row)
    report.n_rows = len(rows)
    return builder, report


def _encoded(
    encoder: Encoder, job: EncodeJob, lines: Sequence[Line], report: EncodeReport
) -> Iterator[tuple[int, list[TrainingExample]]]:
    def broken(line: int, error: AntiphonError) -> None:
        if job.strict:
            raise DataError(str(error), path=job.source or None, line=line) from error
        report.n_broken += 1
        if len(report.problems) < _SHOWN:
            report.problems.append((line, str(error)))

    conversations: list[tuple[int, Conversation]] = []
    for line, data in lines:
        try:
            conversations += [(line, conversation) for conversation in job.read(data)]
        except DataError as error:
            broken(line, error)
    results = encoder.try_many(conversation for _, conversation in conversations)
    for (line, conversation), examples in zip(conversations, results, strict=True):
        if isinstance(examples, AntiphonError):
            broken(line, examples)
        elif job.max_tokens is None or all(len(e) <= job.max_tokens for e in examples):
            yield line, examples
        else:
            fitting = fit(
                encoder.encode_all,
                conversation,
                max_tokens=job.max_tokens,
                too_long=job.too_long,
            )
            report.n_too_long += not fitting
            yield line, fitting


def chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Rows in chunks of at most `CHUNK_ROWS` rows and about `CHUNK_BYTES` bytes."""
    chunk: list[Line] = []
    n_bytes = 0
    for line in lines:
        chunk.append(line)
        n_bytes += len(line[1])
        if len(chunk) == CHUNK_ROWS or n_bytes >= CHUNK_BYTES:
            yield chunk
            chunk, n_bytes = [], 0
    if chunk:
        yield chunk


class Pool(Protocol):
    """Where shards are encoded, when not in this process."""

    @property
    def n_workers(self) -> int:
        """How many shards are encoded at once."""
        ...

    def submit(self, function: Callable[[Any], Any], argument: Any, /) -> Future[Any]:
        """Have a function of a module called elsewhere."""
        ...


def encode_file(
    job: EncodeJob,
    lines: Iterable[Line],
    out: Path | None,
    *,
    processes: int = 1,
    pool: Pool | None = None,
    progress: Callable[[EncodeReport], None] | None = None,
) -> EncodeReport:
    """Encode rows into the shards and the index of a directory.

    Args:
        job: The settings.
        lines: The rows.
        out: The directory; shards of the same source and settings are kept.  Without one, rows are
            encoded and counted, and nothing is written.
        processes: How many processes encode.
        pool: Encodes instead of processes of this machine, `antiphon.batch.RayPool` for example;
            the shards are sent back and written here.
        progress: Takes the report so far after each shard.

    Raises:
        DataError: The directory holds shards of other settings, or cannot be written.
        AntiphonError: The tokenizer cannot be loaded.
    """
    if out is not None:
        make_directory(out)
        for left in out.glob(".rows-*.*"):  # of a run that was killed while it wrote
            left.unlink(missing_ok=True)
    report = EncodeReport()
    shards: list[dict[str, Any]] = []
    names = (f"rows-{k:05d}.{job.shards}" for k in count())
    tasks = (
        _Task(job, chunk, out, name, _note(out, name), sends=pool is not None)
        for chunk, name in zip(chunks(lines), names, strict=False)
    )
    for done in _run(tasks, processes, pool):
        if done.data is not None and out is not None:
            write_whole(out / done.name, done.data)
        report.add(done.report)
        n = done.report
        shards.append({"file": done.name, "rows": n.n_rows, "tokens": n.n_tokens})
        if progress is not None:
            progress(report)
    if out is None:
        return report
    numbers = {k: v for k, v in asdict(report).items() if k != "problems"}
    write_index(out, {"antiphon": 1, "job": job.describe(), "report": numbers, "shards": shards})
    return report


@dataclass(frozen=True, slots=True)
class _Task:
    """One shard."""

    job: EncodeJob
    lines: list[Line]
    out: Path | None
    name: str
    note: dict[str, str]
    """What the shard that is there says of itself; empty where there is none."""
    sends: bool
    """Whether the shard is sent back, not written where it is encoded."""


@dataclass(frozen=True, slots=True)
class _Done:
    """What became of one shard."""

    name: str
    report: EncodeReport
    data: bytes | None = None
    """Its content, where it is sent."""


def _note(out: Path | None, name: str) -> dict[str, str]:
    return read_note(out / name) if out is not None and (out / name).exists() else {}


def _run(tasks: Iterator[_Task], processes: int, pool: Pool | None) -> Iterator[_Done]:
    if pool is None and processes <= 1:
        yield from map(_shard, tasks)
        return
    if pool is not None:
        yield from _in_order(tasks, pool.submit, 2 * pool.n_workers)
        return
    context = multiprocessing.get_context("spawn")  # the engine has threads, which a fork loses
    with ProcessPoolExecutor(processes, context) as own:
        yield from _in_order(tasks, lambda f, task: own.submit(f, task), 2 * processes)


def _in_order(
    tasks: Iterator[_Task],
    submit: Callable[[Callable[[_Task], _Done], _Task], Future[_Done]],
    n_ahead: int,
) -> Iterator[_Done]:
    waiting: deque[Future[_Done]] = deque()
    try:
        for task in tasks:
            waiting.append(submit(_shard, task))
            if len(waiting) > n_ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BaseException:
        for future in waiting:
            future.cancel()
        raise


_encoders: dict[str, Encoder] = {}


def _encoder_for(job: EncodeJob) -> Encoder:
    """The encoder of a job, made once in a process."""
    key = _digest([job.describe(), str(job.vision and job.vision.root)])
    if key not in _encoders:
        _encoders.clear()
        tokenizer = load_tokenizer(job.tokenizer)
        _encoders[key] = Encoder(tokenizer, job.format, loss=job.loss, vision=job.vision)
    return _encoders[key]


def _shard(task: _Task) -> _Done:
    """Encode one shard, and write or send it unless it is there already."""
    if task.out is None:
        return _Done(task.name, encode_lines(_encoder_for(task.job), task.job, task.lines)[1])
    note = {"job": _digest(task.job.describe()), "source": _digest_of(task.lines)}
    if task.note and task.note.get("job") != note["job"]:
        raise DataError(
            "was encoded with other settings; choose another directory or remove this one",
            path=task.out / task.name,
        )
    if task.note.get("source") == note["source"]:
        return _Done(task.name, _report_from_note(task.note))
    builder, report = encode_lines(_encoder_for(task.job), task.job, task.lines)
    data = builder.to_bytes(task.job.shards, note | {"report": json.dumps(asdict(report))})
    if task.sends:
        return _Done(task.name, report, data)
    write_whole(task.out / task.name, data)
    return _Done(task.name, report)


def _report_from_note(note: dict[str, str]) -> EncodeReport:
    report = EncodeReport(**json.loads(note["report"]))
    return replace(report, problems=[(line, text) for line, text in report.problems])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _digest_of(lines: Sequence[Line]) -> str:
    digest = hashlib.sha256()
    for number, data in lines:
        digest.update(b"%d:%d:" % (number, len(data)))
        digest.update(data)
    return digest.hexdigest()
