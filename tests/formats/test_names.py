"""Formats are found by name, by the names of others, and by model id."""

import re
from typing import Any

import pytest

from antiphon.errors import UnknownNameError, UsageError
from antiphon.formats import describe, get_format, list_formats
from antiphon.formats._react import React


def test_every_family_has_its_modules_name() -> None:
    for name in list_formats():
        assert get_format(name).name == name


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("qwen3", "qwen3"),
        ("Qwen/Qwen3-8B", "qwen3"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3(edition='instruct')"),
        ("qwen3-thinking", "qwen3(edition='thinking')"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2_5"),
        ("llama3_json", "llama3_1"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3_1"),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2"),
        ("ibm-granite/granite-3.3-8b-instruct", "granite3"),
        ("ibm-granite/granite-3.1-8b-instruct", "granite3(version='3.1')"),
        ("Salesforce/Llama-xLAM-2-8b-fc-r", "xlam"),
        ("Salesforce/xLAM-2-3b-fc-r", "xlam(frame='qwen')"),
        ("phi4_mini_json", "phi4_mini"),
        ("ai-sage/GigaChat3-10B-A1.8B", "gigachat3(version='3')"),
        ("llama4_json", "llama4"),
        ("functionary_3_1", "functionary_v3_1"),
        ("functionary_3_2", "functionary_v3_2"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3(edition='instruct')"),
        ("Qwen/Qwen3-VL-8B-Thinking", "qwen3(edition='thinking', vision=True)"),
        (
            "Qwen/Qwen2.5-VL-7B-Instruct",
            "hermes(default_system='You are a helpful assistant.', vision=True)",
        ),
        ("mistralai/Mistral-Large-Instruct-2407", "mistral(version='nemo')"),
        ("mistralai/Mistral-Large-Instruct-2411", "mistral(version='v7')"),
        ("mistralai/Magistral-Small-2509", "mistral_v13(version='v13')"),
        ("mistralai/Mistral-Small-24B-Instruct-2501", "mistral(version='v7_tekken')"),
        ("CohereLabs/c4ai-command-a-03-2025", "command_a"),
        ("CohereLabs/command-a-reasoning-08-2025", "command_a(thinking=True)"),
        ("ServiceNow-AI/Apriel-1.5-15b-Thinker", "apriel_1_5"),
        ("google/functiongemma-270m-it", "functiongemma"),
        ("baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie4_5"),
        ("XiaomiMiMo/MiMo-V2-Flash", "mimo"),
        ("dots-studio/dots3-note-prev", "dots"),
        ("meituan-longcat/LongCat-Flash-Chat", "longcat"),
        ("meituan-longcat/LongCat-Flash-Thinking", "longcat(thinking=True)"),
        ("stepfun-ai/step3", "step3"),
        ("pfnet/plamo-3-nict-8b-base", "plamo3"),
    ],
)
def test_a_name_finds_its_family_and_variant(name: str, means: str) -> None:
    assert describe(get_format(name)) == means


def test_a_variant_is_a_field() -> None:
    assert describe(get_format("smollm2", compact=True)) == "smollm2(compact=True)"


def test_an_unknown_name_says_what_is_near() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'qwen3'"):
        get_format("qwen-3x")


def test_an_unknown_variant_says_what_there_is() -> None:
    with pytest.raises(UsageError, match="no variant 'thinkin'; it has: thinking, edition"):
        get_format("qwen3", thinkin=True)


@pytest.mark.parametrize(
    ("name", "variants", "message"),
    [
        ("minimax_m3", {"thinking": False}, "minimax_m3: thinking may be 'adaptive', 'enabled', "),
        ("glm5_2", {"effort": "bogus"}, "glm5: effort may be 'low', 'high', 'max', got 'bogus'"),
        ("glm5_2", {"effort": 3}, "effort may be 'low', 'high', 'max', got 3"),
        ("qwen3", {"thinking": "maybe"}, "qwen3: thinking may be true or false, got 'maybe'"),
        ("command_a", {"thinking": 1}, "thinking may be true or false, nothing, got 1"),
        ("seed_oss", {"budget": True}, "seed_oss: budget may be a whole number, got True"),
        ("hermes", {"default_system": 3}, "hermes: default_system may be a text, got 3"),
    ],
)
def test_a_variant_takes_only_the_values_of_its_field(
    name: str, variants: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        get_format(name, **variants)


def test_a_version_may_be_given_as_a_number() -> None:
    assert get_format("glm5", version=5.2) == get_format("glm5", version="5.2")
    assert get_format("command_a", thinking=None) == get_format("command_a")


def test_every_family_with_a_template_of_its_own_has_signs_to_know_it_by() -> None:
    """Prompted formats stand inside any family's turns and have none."""
    prompted = {"plain"} | {n for n in list_formats() if isinstance(get_format(n), React)}
    signs = {n: getattr(get_format(n), "signs", ()) for n in list_formats() if n not in prompted}

    assert [name for name, texts in signs.items() if not texts] == []
    assert len(set(signs.values())) == len(signs)
