"""`antiphon view`: files in, one page out, and one line for what is no record."""

import json
from pathlib import Path

import pytest

from antiphon.cli import main
from sample_runs import rich_run
from viewer.test_rows import data_of

Capture = pytest.CaptureFixture[str]

ROW = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    rich_run().save(path)
    return path


def test_the_page_is_written_beside_the_run_and_its_path_printed(
    run_file: Path, capsys: Capture
) -> None:
    assert main(["view", str(run_file)]) == 0

    page = run_file.with_suffix(".html")
    assert capsys.readouterr().out == f"{page}\n"
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_the_page_goes_where_it_is_told_or_to_stdout(run_file: Path, capsys: Capture) -> None:
    target = run_file.with_name("other.html")
    assert main(["view", str(run_file), "--html", str(target)]) == 0
    capsys.readouterr()

    assert main(["view", str(run_file), "--html", "-"]) == 0

    assert capsys.readouterr().out == target.read_text("utf-8")


def test_the_first_rows_of_a_dataset_are_shown(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([json.dumps(ROW)] * 9) + "\n{broken", "utf-8")

    assert main(["view", str(path), "--rows", "3", "--html", "-"]) == 0

    page = capsys.readouterr().out
    assert '"name":"line 3"' in page
    assert '"name":"line 4"' not in page


def test_rows_in_other_spellings_are_read(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.jsonl"
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]
    path.write_text(json.dumps({"conversations": turns}), "utf-8")

    assert main(["view", str(path), "--html", "-"]) == 0

    assert '"text":"hello"' in capsys.readouterr().out


def test_a_json_list_of_rows_is_a_dataset(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([ROW, ROW]), "utf-8")

    assert main(["view", str(path), "--html", "-"]) == 0

    assert '"name":"line 1"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("run.json", "", 1),
        ("run.json", "{", 1),
        ("run.json", "[]", 1),
        ("run.json", "[1]", 1),
        ("run.json", "[{]", 1),
        ("run.json", '{"messages": 1}', 1),
        ("run.json", '{"antiphon": 99, "messages": []}', 1),
        ("run.json", "[" * 100_000, 1),
        ("rows.jsonl", "", 1),
        ("rows.jsonl", json.dumps(ROW) + "\n7\n", 1),
        ("rows.jsonl", json.dumps(ROW) + "\n{\n", 1),
        ("rows.jsonl", '{"messages": [{"role": "user", "content": 3}]}', 1),
    ],
)
def test_a_file_that_is_no_record_is_one_line(
    name: str, text: str, code: int, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")

    assert main(["view", str(path)]) == code

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"antiphon: {path}:")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xff\xfe\x00")

    assert main(["view", str(path)]) == 1
    assert "not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["no-such.json"], 1, "no-such.json: cannot be read"),
        (["."], 1, "cannot be read"),
        ([], 2, "required: FILE"),
        (["{run}", "--rows", "0"], 2, "--rows must be 1 or more"),
        (["{run}", "--html", "{run}"], 2, "would overwrite"),
        (["{run}", "--html", "/no/such/folder/x.html"], 1, "cannot be written"),
        (["{run}", "--serve", "--port", "99999"], 2, "port 99999 cannot be had"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], code: int, words: str, run_file: Path, capsys: Capture
) -> None:
    filled = [argument.replace("{run}", str(run_file)) for argument in arguments]

    assert main(["view", *filled]) == code

    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


def test_a_dataset_is_browsed_with_its_broken_rows(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    good = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}
    lines = [json.dumps(good), "{half", json.dumps({"messages": 5}), json.dumps(good)]
    source.write_text("\n".join(lines), "utf-8")

    assert main(["view", str(source), "--browse"]) == 0

    about, rows = data_of((tmp_path / "rows.html").read_text("utf-8"))
    assert [counts[0] for counts in about["counts"]] == [2, 0, 0, 2]
    assert "not JSON" in rows[1]["error"]
    assert rows[2]["problems"]
    assert "the same conversation" in rows[3]["problems"][0]


def test_tokens_are_printed_one_a_line_with_id_weight_and_author(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW), "utf-8")
    words = ["view", str(path), "--tokens", "--format", "qwen2_5", "--tokenizer", "qwen2_5"]

    assert main(words) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("tokens, 2 count")
    rows = [line.split(maxsplit=4) for line in lines[1:] if line]
    assert [row[0] for row in rows] == [str(i) for i in range(len(rows))]
    written = [row[2:] for row in rows if row[3] == "written"]
    assert written == [["1", "written", "'hello'"], ["1", "written", "'<|im_end|>'"]]
    assert main(["view", str(path), "--tokens"]) == 2
    assert "give one with --format" in capsys.readouterr().err
