"""Files become shards that are whole, the same however often a run was killed, and readable."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.batch import RayPool
from antiphon.datasets import read_line
from antiphon.encode import (
    EncodedRows,
    EncodeJob,
    Encoder,
    FastTokenizer,
    ShardKind,
    encode_file,
)
from antiphon.encode import _job as job_module
from antiphon.errors import DataError
from antiphon.formats import get_format
from antiphon.messages import Conversation, conversation_from_row

SMOLLM2 = get_format("smollm2")
LINES = [
    (
        i + 1,
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": f"q{i}"},
                    {"role": "assistant", "content": "a" * (i % 9)},
                ]
            }
        ).encode(),
    )
    for i in range(25)
]


def read(data: bytes) -> list[Conversation]:
    return [conversation_from_row(json.loads(data))]


@pytest.fixture
def job(tiny: FastTokenizer, monkeypatch: pytest.MonkeyPatch) -> EncodeJob:
    """Shards of ten rows, so that a few rows make several."""
    monkeypatch.setattr(job_module, "CHUNK_ROWS", 10)
    return EncodeJob(tiny.source, SMOLLM2, read)


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def tokens(directory: Path) -> list[int]:
    return sorted(i for row in EncodedRows(directory) for i in row.input_ids.tolist())


def test_what_is_written_is_what_the_encoder_gives(
    job: EncodeJob, tiny: FastTokenizer, tmp_path: Path
) -> None:
    report = encode_file(job, LINES, tmp_path / "out")

    rows = EncodedRows(tmp_path / "out")
    encoder = Encoder(tiny, SMOLLM2)
    assert len(rows) == report.n_rows == 25
    for row, (line, data) in zip(rows, LINES, strict=True):
        example = encoder.encode(read(data)[0])
        assert row.line == line
        assert row.input_ids.tolist() == example.token_ids.tolist()
        assert row.labels.tolist() == example.labels.tolist()
        assert row.loss_weights.tolist() == example.loss_weights.tolist()
    assert rows[-1].line == rows[24].line == 25
    assert [row.line for row in rows[8:12]] == [9, 10, 11, 12]
    with pytest.raises(IndexError):
        rows[25]


def test_a_killed_run_that_begins_again_gives_the_same_bytes(
    job: EncodeJob, tmp_path: Path
) -> None:
    def killed() -> Iterator[tuple[int, bytes]]:
        yield from LINES[:15]
        raise KeyboardInterrupt

    encode_file(job, LINES, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        encode_file(job, killed(), tmp_path / "again")
    (tmp_path / "again" / "rows-00001.safetensors").unlink(missing_ok=True)
    written = (tmp_path / "again" / "rows-00000.safetensors").stat().st_mtime_ns

    report = encode_file(job, LINES, tmp_path / "again")

    assert content(tmp_path / "again") == content(tmp_path / "whole")
    assert report.n_rows == 25
    assert (tmp_path / "again" / "rows-00000.safetensors").stat().st_mtime_ns == written


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_shards_are_parquet_and_arrow_too(kind: ShardKind, job: EncodeJob, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    job = replace(job, max_tokens=200, pack=True)
    encode_file(job, LINES, tmp_path / "plain")
    other = replace(job, shards=kind)
    report = encode_file(other, LINES, tmp_path / kind)
    whole = content(tmp_path / kind)
    (tmp_path / kind / f"rows-00001.{kind}").unlink()
    kept = (tmp_path / kind / f"rows-00000.{kind}").stat().st_mtime_ns

    again = encode_file(other, LINES, tmp_path / kind)

    assert again == report
    assert content(tmp_path / kind) == whole
    assert (tmp_path / kind / f"rows-00000.{kind}").stat().st_mtime_ns == kept
    for ours, row in zip(
        EncodedRows(tmp_path / kind), EncodedRows(tmp_path / "plain"), strict=True
    ):
        assert ours.line == row.line
        for column in ("input_ids", "labels", "loss_weights", "position_ids"):
            assert getattr(ours, column).tolist() == getattr(row, column).tolist()
    (tmp_path / kind / f"rows-00000.{kind}").write_bytes(whole[f"rows-00000.{kind}"][:-30])
    with pytest.raises(DataError, match="not a shard, or damaged"):
        EncodedRows(tmp_path / kind)


def test_a_pool_sends_the_shards_back(job: EncodeJob, tmp_path: Path) -> None:
    class Threads:
        n_workers = 2

        def __init__(self, executor: ThreadPoolExecutor) -> None:
            self._executor = executor

        def submit(self, function: Callable[[Any], Any], argument: Any, /) -> Future[Any]:
            return self._executor.submit(function, argument)

    encode_file(job, LINES, tmp_path / "here")
    with ThreadPoolExecutor(1) as executor:
        report = encode_file(job, LINES, tmp_path / "there", pool=Threads(executor))

    assert report.n_rows == 25
    assert content(tmp_path / "there") == content(tmp_path / "here")


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_gives_the_same_bytes(tmp_path: Path) -> None:
    """In two processes, at any moment, while it reads, encodes, packs or writes."""
    rows = tmp_path / "rows.jsonl"
    with rows.open("wb") as file:
        for i in range(16_000):
            said = f"question {i * 7919 % 10_007} " * (i % 7 + 1)
            row = {
                "messages": [
                    {"role": "user", "content": said},
                    {"role": "assistant", "content": "yes"},
                ]
            }
            file.write(json.dumps(row).encode() + b"\n")

    def start(out: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "antiphon", "encode", str(rows), "--tokenizer", "qwen2_5"]
        command += ["--format", "qwen2_5", "--processes", "2", "--pack", "256"]
        return subprocess.Popen([*command, "--out", str(tmp_path / out)], stdout=subprocess.DEVNULL)

    began = time.monotonic()
    assert start("whole").wait() == 0
    took = time.monotonic() - began
    rng = random.Random(1)
    for _ in range(12):
        running = start("again")
        with suppress(subprocess.TimeoutExpired):
            running.wait(rng.uniform(0.1, took))
        running.kill()
        running.wait()
    assert start("again").wait() == 0

    assert content(tmp_path / "again") == content(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_two_nodes_of_a_ray_cluster_give_the_same_bytes(
    job: EncodeJob, tiny_json: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray: Any = pytest.importorskip("ray")
    utils: Any = pytest.importorskip("ray.cluster_utils")
    paths = ["src", "tests/encode", os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(Path(p).absolute()) for p in paths if p))
    (tmp_path / "tokenizer.json").write_text(tiny_json, encoding="utf-8")
    job = replace(job, tokenizer=str(tmp_path), read=read_line)
    encode_file(job, LINES, tmp_path / "here")
    cluster = utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000}
    )
    cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        with RayPool() as pool:
            assert pool.n_workers == 2
            encode_file(job, LINES, tmp_path / "there", pool=pool)
    finally:
        ray.shutdown()
        cluster.shutdown()

    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_a_changed_source_is_encoded_again(job: EncodeJob, tmp_path: Path) -> None:
    encode_file(job, LINES, tmp_path / "out")
    changed = [(line, data.replace(b"q3", b"Q3")) for line, data in LINES]

    encode_file(job, changed, tmp_path / "out")

    fresh = encode_file(job, changed, tmp_path / "fresh")
    assert content(tmp_path / "out") == content(tmp_path / "fresh")
    assert fresh.n_rows == 25


def test_shards_of_other_settings_are_not_mixed(job: EncodeJob, tmp_path: Path) -> None:
    encode_file(job, LINES, tmp_path)
    other = EncodeJob(job.tokenizer, get_format("hermes"), read)

    with pytest.raises(DataError, match="encoded with other settings"):
        encode_file(other, LINES, tmp_path)


def test_packed_shards_hold_the_same_tokens(job: EncodeJob, tmp_path: Path) -> None:
    packed = EncodeJob(job.tokenizer, SMOLLM2, read, max_tokens=200, pack=True)

    report = encode_file(packed, LINES, tmp_path / "packed")
    plain = encode_file(job, LINES, tmp_path / "plain")

    assert report.n_rows < plain.n_rows
    assert tokens(tmp_path / "packed") == tokens(tmp_path / "plain")


def test_a_broken_row_is_told_once_and_the_rest_goes_on(job: EncodeJob, tmp_path: Path) -> None:
    broken = (7, json.dumps({"messages": [{"role": "assistant", "content": "a\ud800"}]}).encode())
    unread = (8, b'{"messages": 3}')

    report = encode_file(job, [*LINES[:12], broken, unread], tmp_path)

    assert (report.n_source, report.n_broken, report.n_rows) == (14, 2, 12)
    assert [line for line, _ in report.problems] == [8, 7]
    assert "lone surrogate" in report.problems[1][1]


def test_a_strict_run_stops_at_the_first_broken_row(job: EncodeJob, tmp_path: Path) -> None:
    strict = EncodeJob(job.tokenizer, SMOLLM2, read, strict=True, source="rows.jsonl")

    with pytest.raises(DataError, match=r"rows\.jsonl:4: a row needs a list of messages"):
        encode_file(strict, [(4, b'{"messages": 3}')], tmp_path)


def test_a_row_with_nothing_to_train_is_left_out_and_counted(
    job: EncodeJob, tmp_path: Path
) -> None:
    """PrimeIntellect-ai/prime-rl#978: such rows give a loss that is no number."""
    row = {"messages": [{"role": "user", "content": "a"}]}

    report = encode_file(job, [(1, json.dumps(row).encode())], tmp_path)

    assert (report.n_untrained, report.n_rows) == (1, 0)
    assert len(EncodedRows(tmp_path)) == 0


def test_two_processes_write_the_same_bytes_as_one(job: EncodeJob, tmp_path: Path) -> None:
    from antiphon.datasets import read_line  # a worker finds a function by its module's name

    one = EncodeJob(job.tokenizer, SMOLLM2, read_line)

    encode_file(one, LINES, tmp_path / "one")
    encode_file(one, LINES, tmp_path / "two", processes=2)

    assert content(tmp_path / "one") == content(tmp_path / "two")


@pytest.mark.parametrize("data", [b"", b"\x10\0\0\0\0\0\0\0{", b"\xff" * 64])
def test_a_damaged_shard_is_a_data_error(data: bytes, job: EncodeJob, tmp_path: Path) -> None:
    encode_file(job, LINES, tmp_path)
    (tmp_path / "rows-00000.safetensors").write_bytes(data)

    with pytest.raises(DataError, match="damaged"):
        EncodedRows(tmp_path)


def test_a_cut_off_shard_is_a_data_error(job: EncodeJob, tmp_path: Path) -> None:
    encode_file(job, LINES, tmp_path)
    path = tmp_path / "rows-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-8])

    with pytest.raises(DataError, match=r"rows-00002\.safetensors: the shard is cut off"):
        EncodedRows(tmp_path)


def test_a_directory_without_an_index_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no encoded rows"):
        EncodedRows(tmp_path)


def test_a_directory_that_cannot_be_made_is_a_data_error(job: EncodeJob, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DataError, match="cannot be made"):
        encode_file(job, LINES, tmp_path / "file" / "out")
