"""`antiphon formats`, as a user types it."""

import json
from pathlib import Path

import pytest

from antiphon.cli import main


def test_list_names_every_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "list", "--json"]) == 0

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"qwen3", "hermes", "smollm2", "react_en"} <= {row["name"] for row in rows}


def test_list_says_what_each_family_can_express(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "list", "--json"]) == 0
    can = {row["name"]: row["can"] for row in map(json.loads, capsys.readouterr().out.splitlines())}

    assert [can["gpt_oss"][what] for what in ("several calls", "reasoning")] == [False, True]
    assert [can["hermes"][what] for what in ("several calls", "images")] == [True, False]
    assert [can["qwen2_5"][what] for what in ("system", "reasoning")] == [True, False]
    assert can["gemma4"]["images"]

    assert main(["formats", "list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("  ")[-1] == "models; variants"
    assert len(rows) == len(can)


def test_show_prints_the_literal_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "show", "qwen3", "--set", "thinking=false"]) == 0

    text = capsys.readouterr().out
    assert (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lima"}}\n</tool_call>' in text
    )


def test_render_writes_the_rows_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n', encoding="utf-8")

    assert main(["formats", "render", str(file), "--format", "smollm2", "--generate"]) == 0

    expected = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert capsys.readouterr().out == expected


def test_parse_prints_the_message_and_fails_for_a_broken_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "text.txt"
    file.write_text('Look.\n<tool_call>\n{"name": }\n</tool_call>', encoding="utf-8")

    assert main(["formats", "parse", str(file), "--format", "hermes"]) == 1

    row = json.loads(capsys.readouterr().out)
    assert row["content"] == "Look."
    assert row["invalid_tool_calls"][0]["raw"].startswith("<tool_call>")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["parse", "nowhere.txt", "--format", "hermes"], "nowhere.txt: cannot be read"),
        (["show", "qwen9"], "no format named 'qwen9'"),
        (["show", "qwen3", "--set", "thinking"], "a variant is KEY=VALUE"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["formats", *arguments]) in (1, 2)

    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_detect_knows_a_family_by_its_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = "{{ '<|start_header_id|>' }} Environment: ipython"
    (tmp_path / "chat_template.jinja").write_text(template, encoding="utf-8")

    assert main(["formats", "detect", str(tmp_path)]) == 0

    assert capsys.readouterr().out == "llama3_1\n"
