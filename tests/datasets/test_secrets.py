"""Keys and passwords are masked wherever a conversation has them; other words are left alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, ScriptedModel, tool
from antiphon.cli import main
from antiphon.datasets import mask_secrets, read_row_all, write_row
from antiphon.formats import get_format
from antiphon.messages import (
    Conversation,
    InvalidToolCall,
    JsonObject,
    Message,
    ToolCall,
    ToolSpec,
    dump_json,
)

# Put together here, so that nobody's scanner takes them for real ones.
FORMS = {
    "aws key": "AKIA" + "QW3RTY8UI0PASDFG",
    "github token": "ghp_" + "a1B2c3D4" * 5,
    "gitlab token": "glpat-" + "x9Y8z7" * 4,
    "slack token": "xoxb-" + "123456789012-abcdefGHIJ",
    "google key": "AIza" + "Sy0123456789abcdefghijklmnopqrstuvw",
    "api key": "sk-" + "proj-Ab12Cd34Ef56Gh78Ij90Kl12",
    "hugging face token": "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNm123456",
    "stripe key": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "npm token": "npm_" + "a1b2c3d4e5f6" * 3,
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----",
    "authorization": "Bearer " + "mF_9.B5f-4.1JqM4lkQw2",
}


@pytest.mark.parametrize(("kind", "secret"), FORMS.items())
def test_a_key_is_known_by_its_own_form(kind: str, secret: str) -> None:
    conversation = Conversation((Message.user(f"It is {secret}, and so on."),))

    masked, found = mask_secrets(conversation)

    bare = secret.removeprefix("Bearer ")
    assert bare not in masked.messages[0].text
    assert masked.messages[0].text.startswith("It is ")
    assert masked.messages[0].text.endswith(f"[{kind} 1], and so on.")
    assert found == {kind: 1}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("OPENAI_API_KEY=zzzz9999yyyy", "zzzz9999yyyy"),
        ('{"password": "correct horse"}', "correct horse"),
        ("client_secret: 'a b c d'", "a b c d"),
        ("postgresql://ada:s3cr3t!@db.example:5432/shop", "s3cr3t!"),
        ("apiKey => `k-77-long-one`", "k-77-long-one"),
        ("curl -H 'Authorization: Basic YWRhOmxvdmVsYWNlMTIz'", "YWRhOmxvdmVsYWNlMTIz"),
    ],
)
def test_a_secret_is_known_by_what_stands_before_it(text: str, secret: str) -> None:
    masked, found = mask_secrets(Conversation((Message.user(text),)))

    assert masked.messages[0].text.replace(text.partition(secret)[0], "", 1).startswith("[")
    assert secret not in masked.messages[0].text
    assert sum(found.values()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The tokenizer: qwen2_5, max_tokens=20000, temperature: 0.7",
        "Set password=<your password> or API_KEY=${API_KEY}.",
        "password: str = Field(...), token = os.environ['TOKEN_1234']",
        'The field "password": "string" is required; "token": null.',
        "The secret: work hard. Basic responsibilities and bearer authentication-in-general.",
        "See https://user@example.org:8080/path and risk-free-rate-of-return-2024-analysis.",
        '{"next_token": "CAUQAA1234567", "nextPageToken": "CAUQAA1234567"}',
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
)
def test_words_that_are_no_secrets_stay(text: str) -> None:
    conversation = Conversation((Message.user(text),))

    assert mask_secrets(conversation) == (conversation, {})


def test_one_secret_has_one_mark_everywhere_and_its_tokens_go() -> None:
    password, key = "hunter2!", FORMS["github token"]
    login = ToolCall(
        "login", {"user": "ada", "password": password, "next": [key]}, "c1", f'"{password}"'
    )
    conversation = Conversation(
        (
            Message.system(f"The key is {key}."),
            Message.user("Log me in."),
            Message(
                "assistant",
                Message.assistant("", reasoning=f"They gave {password}.").parts,
                tool_calls=(login,),
                invalid_tool_calls=(InvalidToolCall(f'{{"key": "{key}', "cut", "login", "c2"),),
                metadata={"token_ids": [1, 2, 3], "stop_reason": "length"},
            ),
            Message("tool", Message.user(f"Welcome, {password}").parts, tool_call_id="c1"),
            Message("assistant", Message.user("Done.").parts, metadata={"token_ids": [4]}),
        ),
        (ToolSpec("login", "Logs in."),),
        {"source": f"log of {key}"},
    )

    masked, found = mask_secrets(conversation)

    system, _, asked, told, done = masked.messages
    assert system.text == "The key is [github token 1]."
    assert asked.reasoning == "They gave [password 1]."
    [call], [invalid] = asked.tool_calls, asked.invalid_tool_calls
    assert call.arguments == {
        "user": "ada",
        "password": "[password 1]",
        "next": ["[github token 1]"],
    }
    assert (call.raw, invalid.raw) == ('"[password 1]"', '{"key": "[github token 1]')
    assert asked.metadata == {"stop_reason": "length"}
    assert told.text == "Welcome, [password 1]"
    assert done.metadata == {"token_ids": [4]}
    assert masked.metadata == {"source": "log of [github token 1]"}
    assert found == {"password": 1, "github token": 1}
    assert mask_secrets(masked) == (masked, {})


@tool
def read_config(name: str) -> str:
    """Reads a configuration."""
    return f"{name}: GITHUB_TOKEN={FORMS['github token']}"


def recorded() -> JsonObject:
    """A run with an unreadable call, two calls at once, a handoff, and a key in a result."""
    bad = Message.assistant(
        "Let me.",
        invalid_tool_calls=[InvalidToolCall('{"name": "a', "not JSON", "read_config", "x1")],
    )
    both = [ToolCall("read_config", {"name": n}, f"c{n}") for n in ("a", "b")]
    over = Message.assistant(tool_calls=[ToolCall("transfer_to_expert", {}, "c3")])
    expert = Agent(
        name="expert",
        instructions="You know.",
        model=ScriptedModel(["It is set."]),
        tools=[read_config],
    )
    script = [bad, Message.assistant("Both:", tool_calls=both), over]
    first = Agent(
        name="first",
        instructions="Route.",
        model=ScriptedModel(script),
        tools=[read_config],
        handoffs=[expert],
    )
    return first.run_sync("Is the token set?").trajectory.to_row()


@pytest.mark.parametrize("to", ["openai", "antiphon", "ms-swift", "sharegpt"])
def test_a_run_is_exported_without_its_secrets(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SWE-bench/SWE-smith#58."""
    runs, out = tmp_path / "runs.jsonl", tmp_path / "rows.jsonl"
    runs.write_text(dump_json(recorded()) + "\n", "utf-8")

    assert main(["data", "convert", str(runs), str(out), "--to", to]) == 0

    assert FORMS["github token"] not in out.read_text("utf-8")
    assert "[github token 1]" in out.read_text("utf-8")
    assert "secrets masked: 2 of kind github token" in capsys.readouterr().out
    assert main(["data", "convert", str(runs), str(out), "--to", to, "--secrets", "keep"]) == 0
    assert FORMS["github token"] in out.read_text("utf-8")
    assert main(["data", "convert", str(runs), str(out), "--to", to, "--secrets", "drop"]) == 0
    assert out.read_text("utf-8") == ""


def test_a_row_for_others_marks_the_unreadable_turn_and_answers_every_call() -> None:
    """SWE-bench/SWE-smith#58: no loss on it, and a chat template that joins calls and results."""
    rows: list[dict[str, Any]] = [
        write_row(conversation, "openai")[0] for conversation in read_row_all(recorded())
    ]

    for row in rows:
        calls = [call["id"] for m in row["messages"] for call in m.get("tool_calls", ())]
        results = [m["tool_call_id"] for m in row["messages"] if m["role"] == "tool"]
        assert calls[: len(results)] == results
        assert row["tools"]
        assert row["messages"][0]["role"] == "system"
        bad = row["messages"][2]
        assert bad["weight"] == 0
        [call] = bad["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"invalid_arguments": '{"name": "a'}
    assert [m.get("weight") for m in rows[0]["messages"] if m["role"] == "assistant"] == [
        0,
        None,
        None,
    ]
    [again] = read_row_all(rows[0])
    assert "invalid_arguments" in get_format("qwen2_5").render(again).text
