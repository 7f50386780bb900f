"""A file is checked as a whole: what is kept, what is dropped and why, on disk and on a page."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main
from antiphon.datasets import read_row
from antiphon.models import read_script
from antiphon.verification import Benchmarks, Checks, VerifyReport, page, verify_file

Row = dict[str, Any]


def row(question: str, answer: str = "Yes.", **more: Any) -> Row:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"messages": messages} | more


QUESTIONS = ("Is the ferry to Holm running?", "Do cats like milk?", "May I open the window?")


def write(path: Path, rows: list[Row] | None = None) -> Path:
    lines = [json.dumps(r) for r in rows or [row(q) for q in QUESTIONS]]
    path.write_text("\n".join(lines) + "\n")
    return path


def verified(path: Path, checks: Checks | None = None, **more: Any) -> VerifyReport:
    return asyncio.run(verify_file(path, path.parent / "out", checks or Checks(), **more))


def rows_of(report: VerifyReport, name: str) -> list[Row]:
    return [json.loads(x) for x in (report.out / name).read_text("utf-8").splitlines()]


def test_right_rows_are_kept_in_order_with_their_verdicts(tmp_path: Path):
    report = verified(write(tmp_path / "rows.jsonl"))

    kept = rows_of(report, "kept.jsonl")
    assert [r["messages"][0]["content"] for r in kept] == list(QUESTIONS)
    assert {r["outcome"]["status"] for r in kept} == {"kept"}
    assert rows_of(report, "dropped.jsonl") == []


def test_a_repeated_row_and_an_asked_one_are_dropped_with_their_reasons(tmp_path: Path):
    against = Benchmarks()
    against.add("bench 7", QUESTIONS[2])
    path = write(tmp_path / "rows.jsonl", [row(q) for q in (*QUESTIONS, QUESTIONS[0])])

    report = verified(path, against=against)

    reasons = [r["outcome"]["reason"] for r in rows_of(report, "dropped.jsonl")]
    assert reasons == [
        "set/contaminated: asks what bench 7 asks",
        "set/near_duplicate: 100% of it is in 0",
    ]
    assert report.n_kept == 2


def test_all_rows_are_kept_where_that_is_wanted_with_the_reason(tmp_path: Path):
    path = write(tmp_path / "rows.jsonl", [row(QUESTIONS[0]), row(QUESTIONS[0])])

    report = verified(path, keep_all=True)

    assert [r["outcome"]["status"] for r in rows_of(report, "kept.jsonl")] == ["kept", "dropped"]


def test_a_row_that_cannot_be_read_is_dropped_and_the_others_are_checked(tmp_path: Path):
    path = write(tmp_path / "rows.jsonl", [{"messages": 3}, row(QUESTIONS[0])])

    report = verified(path)

    assert report.dropped == {"format/unreadable": 1}
    assert rows_of(report, "dropped.jsonl")[0]["line"] == 1
    assert report.n_kept == 1


def judge(tmp_path: Path, *answers: str) -> Checks:
    (tmp_path / "judge.json").write_text(json.dumps(answers))
    assert len(read_script(tmp_path / "judge.json")) == len(answers)
    return Checks(judge=f"script/{tmp_path / 'judge.json'}")


def test_a_judge_is_not_asked_again_for_a_row_that_it_has_judged(tmp_path: Path):
    good = json.dumps({"verdict": "good", "quote": "Yes."})
    path = write(tmp_path / "rows.jsonl")
    checks = judge(tmp_path, good, good, good)

    first = verified(path, checks, concurrency=1)
    again = verified(path, checks, concurrency=1)

    assert (first.usage.n_requests, first.n_kept) == (3, 3)
    assert (again.stage.n_kept, again.stage.n_done, again.n_kept) == (3, 0, 3)


def test_a_judge_that_breaks_off_loses_nothing(tmp_path: Path):
    good = json.dumps({"verdict": "good", "quote": "Yes."})
    path = write(tmp_path / "rows.jsonl")

    broken = verified(path, judge(tmp_path, good), concurrency=1)

    assert not broken.stage.is_complete
    assert "the script has 1 answers" in broken.stage.failures[0].reason
    assert not (broken.out / "kept.jsonl").exists()
    assert verified(path, judge(tmp_path, good, good)).stage.n_kept == 1


def test_a_wrong_message_of_a_trajectory_has_no_loss_when_it_is_read_for_training(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    config = tmp_path / "c.toml"
    config.write_text('out = "."\n[[toolset]]\ncatalogs = ["demo"]\n[tasks]\ncount = 4\n')
    assert main(["synth", str(config)]) == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for one in rows:
        last = len(one["messages"]) - 1
        one["messages"][last]["loss"] = 0.0
    write(path, rows)

    report = verified(path, Checks(tests=("verification.test_verify:passes",)), near=None)

    for one in rows_of(report, "kept.jsonl"):
        assert read_row(one).messages[-1].loss == 0.0


def passes(record: Any) -> None:
    """A test that is named on the command line."""
    assert record.conversation.messages


def test_the_page_shows_what_was_dropped_and_no_markup_of_a_row(tmp_path: Path):
    path = write(tmp_path / "rows.jsonl", [row("<script>a</script>" * 3)] * 2)

    report = verified(path)
    report.reasons["set/near_duplicate"] = [("<b>0</b>", "<i>twin</i>")]

    shown = page(report)
    assert "set/near_duplicate" in shown
    assert "<i>twin" not in shown
    assert "&lt;i&gt;twin" in shown


def test_the_command_writes_everything_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write(tmp_path / "rows.jsonl")

    code = main(["verify", str(path), "--out", str(tmp_path / "v"), "--against", "demo"])

    assert code == 0
    assert "kept 3 of 3" in capsys.readouterr().out
    names = {p.name for p in (tmp_path / "v").iterdir()}
    assert {"kept.jsonl", "dropped.jsonl", "report.html", "report.json"} <= names
