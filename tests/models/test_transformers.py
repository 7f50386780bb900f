"""A tiny random model through transformers: its tokens are recorded, stopped, reused, cancelled."""

import asyncio
import threading
from typing import Any

import pytest

from antiphon.formats import get_format
from antiphon.messages import Completion, Conversation, Message
from antiphon.models import ModelOutput, ModelSettings
from antiphon.models._stops import StopScanner
from antiphon.models._transformers import TransformersModel

QWEN = get_format("qwen2_5")
ASKED = Conversation((Message.user("Say <|im_end|> hello."),))


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_stop_text_is_found_however_the_text_is_cut(size: int) -> None:
    text = "Observe: Obs Observation: never"
    scanner = StopScanner(["Observation:", "<end>"])

    shown = "".join(scanner.feed(text[i : i + size]) for i in range(0, len(text), size))

    assert shown + scanner.finish() == "Observe: Obs "
    assert scanner.stopped


@pytest.fixture(scope="module")
def tiny() -> tuple[Any, Any]:
    """A byte-level tokenizer with Qwen's marks, and a random Llama of two layers."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    tokenizers: Any = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {char: n for n, char in enumerate(alphabet)}
    engine = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine,
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id,
    )
    return transformers.LlamaForCausalLM(config).eval(), tokenizer


def model_of(tiny: tuple[Any, Any]) -> TransformersModel:
    return TransformersModel("hf/tiny", "tiny", QWEN, load=lambda _: tiny)


def run(
    tiny: tuple[Any, Any], *conversations: Conversation, settings: ModelSettings
) -> list[Completion]:
    async def go() -> list[Completion]:
        model = model_of(tiny)
        answers: list[Completion] = []
        for conversation in conversations:
            outputs: list[ModelOutput] = [o async for o in model.stream(conversation, settings)]
            assert isinstance(outputs[-1], Completion)
            answers.append(outputs[-1])
        await model.close()
        return answers

    return asyncio.run(go())


@pytest.mark.slow
def test_what_was_sampled_is_recorded_and_quoted_marks_are_text(tiny: tuple[Any, Any]) -> None:
    (completion,) = run(tiny, ASKED, settings=ModelSettings(temperature=0.0, max_tokens=20))

    _, tokenizer = tiny
    end = tokenizer.eos_token_id
    assert completion.tokens is not None
    assert completion.prompt_ids is not None
    rendered = QWEN.render(ASKED, generate=True)
    n_ends = sum(p.text == "<|im_end|>" and p.special for p in rendered.pieces)
    assert completion.prompt_ids.count(end) == n_ends
    assert tokenizer.decode(list(completion.prompt_ids)) == rendered.text
    ids = [t.token_id for t in completion.tokens if t.token_id != end]
    assert completion.text == tokenizer.decode(ids)
    assert all(t.logprob is not None and t.logprob < 0 for t in completion.tokens)
    assert completion.usage.output_tokens == len(completion.tokens)


@pytest.mark.slow
def test_the_prefix_of_the_request_before_is_kept_and_changes_nothing(
    tiny: tuple[Any, Any],
) -> None:
    settings = ModelSettings(temperature=0.0, max_tokens=12)
    longer = Conversation((*ASKED.messages, Message.assistant("Hello."), Message.user("Again.")))

    warm = run(tiny, ASKED, longer, settings=settings)[1]
    (cold,) = run(tiny, longer, settings=settings)

    assert warm.usage.cached_tokens > 50
    assert cold.usage.cached_tokens == 0
    assert warm.tokens is not None
    assert cold.tokens is not None
    assert [t.token_id for t in warm.tokens] == [t.token_id for t in cold.tokens]


@pytest.mark.slow
def test_a_seed_repeats_and_the_limit_is_kept(tiny: tuple[Any, Any]) -> None:
    settings = ModelSettings(temperature=1.0, top_p=0.9, seed=3, max_tokens=10)

    first, second = run(tiny, ASKED, ASKED, settings=settings)

    assert first.text == second.text
    assert first.stop_reason in ("length", "stop")
    assert first.usage.output_tokens <= 10


@pytest.mark.slow
def test_closing_the_stream_stops_the_thread(tiny: tuple[Any, Any]) -> None:
    async def go() -> None:
        model = model_of(tiny)
        outputs = model.stream(ASKED, ModelSettings(temperature=1.0, seed=1, max_tokens=100))
        await anext(aiter(outputs))
        await outputs.aclose()  # type: ignore[attr-defined]
        await model.close()

    asyncio.run(asyncio.wait_for(go(), 30))

    assert not [t for t in threading.enumerate() if t.name.startswith("antiphon-transformers")]
