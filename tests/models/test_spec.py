"""A spec means what it says, and a wrong one is told in one line with what to write instead."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import (
    AntiphonError,
    DataError,
    ModelAuthError,
    ModelNotFoundError,
    UnknownNameError,
    UsageError,
)
from antiphon.models import ScriptedModel, load_model
from antiphon.models._load import family_of_file, ollama_url
from antiphon.models._remote import RemoteModel
from antiphon.models._spec import parse_spec


@pytest.mark.parametrize(
    ("text", "kind", "name", "base_url", "format", "options"),
    [
        ("local", "local", "", "", "", {}),
        ("local/qwen3-1.7b", "local", "qwen3-1.7b", "", "", {}),
        ("local?format=react_en", "local", "", "", "react_en", {}),
        ("openai/gpt-5", "openai", "gpt-5", "", "", {}),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b", "", "", {}),
        ("http://h:80/v1#org/name", "http", "org/name", "http://h:80/v1", "", {}),
        (
            "https://h/v1?api-version=2#n?format=qwen3&thinking=false&x=1.5",
            "http",
            "n",
            "https://h/v1?api-version=2",
            "qwen3",
            {"thinking": False, "x": 1.5},
        ),
        ("gguf//models/a b.gguf?n_ctx=512", "gguf", "/models/a b.gguf", "", "", {"n_ctx": 512}),
        ("script/what?.json", "script", "what?.json", "", "", {}),
    ],
)
def test_a_spec_is_taken_apart(
    text: str, kind: str, name: str, base_url: str, format: str, options: dict[str, Any]
) -> None:
    spec = parse_spec(text)

    assert (spec.kind, spec.name, spec.base_url, spec.format, spec.options) == (
        kind,
        name,
        base_url,
        format,
        options,
    )


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("gpt-5", UnknownNameError, "no model spec 'gpt-5'; the forms are local"),
        ("", UnknownNameError, "no model spec ''"),
        ("openai/", UsageError, "does not name a model; write openai/<name>"),
        ("local/", UsageError, "does not name a model"),
        ("local/nothing", UnknownNameError, "known: local, qwen2.5-0.5b"),
        ("http://host/v1", UsageError, r"write http://host/v1#<name>"),
        ("http://#x", UsageError, "no host"),
        ("local?format=quen3", UnknownNameError, "Did you mean 'qwen3'"),
        ("local?fruit=1", UsageError, "no variant 'fruit'"),
        ("local?format=qwen3&&", UsageError, "key=value"),
        ("local?n_ctx=big", UsageError, "n_ctx must be a number"),
        ("gguf/none.gguf?format=qwen3", ModelNotFoundError, "no model file 'none.gguf'"),
        ("script/none.json", DataError, "cannot read the script"),
        ("openai/gpt-5", ModelAuthError, "set OPENAI_API_KEY"),
    ],
)
def test_a_wrong_spec_is_one_clear_line(text: str, kind: type[AntiphonError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        load_model(text, environ={})

    assert "\n" not in str(caught.value)


def test_a_gguf_file_of_unknown_family_asks_for_its_format(tmp_path: Path) -> None:
    path = tmp_path / "strange.gguf"
    path.write_bytes(b"GGUF")

    with pytest.raises(UsageError, match=r"strange.gguf\?format=qwen3"):
        load_model(f"gguf/{path}", environ={})


@pytest.mark.parametrize(
    ("file", "family"),
    [
        ("Qwen3-1.7B-Q8_0.gguf", "qwen3"),
        ("qwen2.5-1.5b-instruct-q4_k_m.gguf", "qwen2_5"),
        ("Meta-Llama-3.1-8B-Instruct-IQ4_XS.gguf", "llama3_1"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2"),
        ("mystery.gguf", ""),
    ],
)
def test_the_family_of_a_file_is_read_from_its_published_name(file: str, family: str) -> None:
    assert family_of_file(Path(file)) == family


def test_a_model_is_given_back_as_it_is() -> None:
    model = ScriptedModel(["one"])

    assert load_model(model) is model


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("box:99", "http://box:99"),
        ("https://box", "https://box:443"),
        ("http://box:1/ollama/", "http://box:1/ollama"),
    ],
)
def test_ollama_host_may_be_written_as_ollama_takes_it(host: str, url: str) -> None:
    assert ollama_url(host) == url


@pytest.mark.parametrize(
    ("spec", "environ", "key"),
    [
        ("openai/m", {"OPENAI_API_KEY": "sk"}, "sk"),
        ("openai/m", {"OPENAI_BASE_URL": "http://h/v1"}, None),
        ("http://h/v1#m", {"OPENAI_API_KEY": "sk"}, None),
        ("http://h/v1#m", {"OPENAI_API_KEY": "sk", "OPENAI_BASE_URL": "http://h/v1/"}, "sk"),
        ("http://h/v1#m", {"ANTIPHON_API_KEY": "k"}, "k"),
        ("ollama/m", {"OPENAI_API_KEY": "sk"}, None),
    ],
)
def test_a_key_goes_only_to_the_address_it_was_set_for(
    spec: str, environ: dict[str, str], key: str | None
) -> None:
    model = load_model(spec, environ=environ)

    assert isinstance(model, RemoteModel)
    assert model.key == key
