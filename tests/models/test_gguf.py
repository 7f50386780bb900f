"""A real model file in this process: tokens recorded, prefix kept, cancelled, shared, silent.

The file is the embedded model's; get it with ``antiphon models fetch``, or name its directory in
``ANTIPHON_MODEL_DIR``.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.errors import ContextLengthError, ModelError
from antiphon.formats import Format, get_format
from antiphon.messages import Completion, Conversation, Message, TextDelta, ToolSpec
from antiphon.models import ModelOutput, ModelSettings
from antiphon.models._catalog import CARDS, DEFAULT
from antiphon.models._gguf import GgufModel
from antiphon.models._llama import Engine, EngineKey, acquire, n_engines, release
from antiphon.models._raw import RawModel
from antiphon.models._weights import find

pytestmark = pytest.mark.slow

SMOLLM2 = get_format("smollm2", compact=True)
WEATHER = ToolSpec(
    "get_weather",
    "Current weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ASKED = Conversation((Message.user("What is the weather in Lima?"),), (WEATHER,))
PLAIN = Conversation((Message.user("Say hi."),))
GREEDY = ModelSettings(temperature=0.0, max_tokens=8)
FORCED = ModelSettings(
    temperature=0.0, max_tokens=40, tool_choice="required", parallel_tool_calls=False
)


@pytest.fixture(scope="module")
def file() -> Path:
    path = find(CARDS[DEFAULT])
    if path is None:
        pytest.skip("the embedded model is not here; get it with: antiphon models fetch")
    return path.resolve()


@pytest.fixture(scope="module")
def key(file: Path) -> EngineKey:
    return EngineKey(str(file), n_ctx=1024)


@pytest.fixture(scope="module")
def engine(key: EngineKey) -> Iterator[Engine]:
    """Kept loaded for the whole module, so that each test shares it."""
    held = acquire(key)
    yield held
    release(held)


async def complete(
    model: GgufModel | RawModel, conversation: Conversation, settings: ModelSettings = GREEDY
) -> list[ModelOutput]:
    return [output async for output in model.stream(conversation, settings)]


def run(
    key: EngineKey,
    conversation: Conversation,
    settings: ModelSettings = GREEDY,
    format: Format = SMOLLM2,
) -> Completion:
    async def go() -> list[ModelOutput]:
        model = GgufModel("m", key, format)
        outputs = await complete(model, conversation, settings)
        await model.close()
        return outputs

    last = asyncio.run(go())[-1]
    assert isinstance(last, Completion)
    return last


def test_what_was_sampled_is_recorded_as_it_was(key: EngineKey, engine: Engine) -> None:
    completion = run(key, PLAIN, ModelSettings(temperature=0.0, max_tokens=200))

    assert completion.tokens is not None
    assert completion.prompt_ids is not None
    assert completion.stop_reason == "stop"
    assert "".join(t.text for t in completion.tokens) == f"{completion.text}<|im_end|>"
    assert all(t.logprob is not None and t.logprob <= 0 for t in completion.tokens)
    assert completion.usage.input_tokens == len(completion.prompt_ids)
    assert completion.usage.output_tokens == len(completion.tokens)
    assert completion.message.text == completion.text
    assert completion.prompt == SMOLLM2.render(PLAIN, generate=True).text
    assert completion.format == "smollm2(compact=True)"


def test_a_quoted_end_mark_is_not_the_end_token(key: EngineKey, engine: Engine) -> None:
    end = engine.tokenize(SMOLLM2.render(PLAIN))[-2]
    quoted = Conversation((Message.user("What does <|im_end|> mean?"),))

    completion = run(key, quoted)

    rendered = SMOLLM2.render(quoted, generate=True)
    n_special = sum(piece.text == "<|im_end|>" and piece.special for piece in rendered.pieces)
    assert completion.prompt_ids is not None
    assert completion.prompt_ids.count(end) == n_special


def test_the_prefix_is_not_computed_again_in_the_next_step(key: EngineKey, engine: Engine) -> None:
    first = run(key, ASKED, ModelSettings(temperature=0.0, max_tokens=8, constrain=False))
    longer = ASKED.append(first.message, Message.user("And in Cusco?"))

    second = run(key, longer)

    assert second.usage.cached_tokens >= first.usage.input_tokens - 1
    assert second.usage.input_tokens > second.usage.cached_tokens


def test_a_required_call_is_a_valid_call_of_the_tool(key: EngineKey, engine: Engine) -> None:
    completion = run(key, ASKED, FORCED)

    assert completion.stop_reason == "tool_calls"
    assert [call.name for call in completion.message.tool_calls] == ["get_weather"]
    assert list(completion.message.tool_calls[0].arguments) == ["city"]


def test_a_family_whose_marks_this_vocabulary_lacks_can_be_prompted(
    key: EngineKey, engine: Engine
) -> None:
    """Qwen's <tool_call> is one token there and five here; the grammar must follow the
    vocabulary."""
    completion = run(key, ASKED, FORCED, get_format("qwen2_5"))

    assert completion.tokens is not None
    assert "".join(t.text for t in completion.tokens) == f"{completion.text}<|im_end|>"
    assert [call.name for call in completion.message.tool_calls] == ["get_weather"]


def test_a_cut_call_is_invalid(key: EngineKey, engine: Engine) -> None:
    completion = run(
        key, ASKED, ModelSettings(temperature=0.0, max_tokens=12, tool_choice="required")
    )

    assert completion.stop_reason == "length"
    assert completion.message.tool_calls == ()


def test_stop_texts_end_the_answer_and_stay_out_of_it(key: EngineKey, engine: Engine) -> None:
    whole = run(key, PLAIN).text or ""
    stop = whole[6:10]

    completion = run(key, PLAIN, ModelSettings(temperature=0.0, max_tokens=8, stop=(stop,)))

    assert completion.text == whole[: whole.index(stop)]
    assert completion.stop_reason == "stop"


def test_closing_the_stream_stops_the_sampling(key: EngineKey, engine: Engine) -> None:
    async def go() -> tuple[TextDelta, int]:
        model = GgufModel("m", key, SMOLLM2)
        endless = ModelSettings(max_tokens=900, extra={"ignore_eos": True})
        outputs = model.stream(PLAIN, endless)
        first = await anext(aiter(outputs))
        assert isinstance(first, TextDelta)
        await outputs.aclose()  # type: ignore[attr-defined]
        # All slots must be free again: as many as there are answer at once.
        await asyncio.gather(*(complete(model, PLAIN) for _ in range(4)))
        n = engine.threads._work_queue.qsize()  # pyright: ignore[reportPrivateUsage]
        await model.close()
        return first, n

    first, n_waiting = asyncio.run(asyncio.wait_for(go(), 60))
    assert first.text
    assert n_waiting == 0


def test_the_event_loop_runs_while_a_model_computes(key: EngineKey, engine: Engine) -> None:
    async def go() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        model = GgufModel("m", key, SMOLLM2)
        ticking = asyncio.create_task(tick())
        outputs = await complete(
            model, PLAIN, ModelSettings(max_tokens=16, extra={"ignore_eos": True})
        )
        ticking.cancel()
        await model.close()
        assert isinstance(outputs[-1], Completion)
        return ticks

    assert asyncio.run(go()) >= 16


def test_a_conversation_longer_than_the_context_is_told(key: EngineKey, engine: Engine) -> None:
    with pytest.raises(ContextLengthError, match=r"the context of SmolLM2.* 1024; add \?n_ctx"):
        run(key, Conversation((Message.user("word " * 2000),)))


def n_system_threads() -> int:
    """Native threads of this process; 0 where the system does not tell."""
    tasks = Path("/proc/self/task")
    return len(os.listdir(tasks)) if tasks.is_dir() else 0


def comes_down_to(n_threads: int) -> bool:
    """Whether no more native threads are left; they end a moment after they were told to."""
    deadline = time.monotonic() + 10
    while n_system_threads() > n_threads and time.monotonic() < deadline:
        time.sleep(0.02)
    return n_system_threads() <= n_threads


def test_several_models_of_one_file_share_one_engine_and_closing_leaves_nothing(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key = EngineKey(str(file), n_ctx=256)
    n_before, threads_before = n_engines(), set(threading.enumerate())
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]

    async def go() -> int:
        models = [GgufModel("m", key, SMOLLM2) for _ in range(3)]
        await asyncio.gather(*(complete(model, PLAIN) for model in models))
        n = n_engines()
        for model in models:
            await model.close()
            await model.close()
        return n

    assert asyncio.run(go()) == n_before + 1
    n_tasks = n_system_threads()
    assert asyncio.run(go()) == n_before + 1
    assert comes_down_to(n_tasks)
    assert n_engines() == n_before
    ours = {t for t in threading.enumerate() if t.name.startswith("antiphon-llama")}
    assert ours <= threads_before
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_no_model_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)

    with pytest.raises(
        ModelError, match=r"cannot load .*broken\.gguf; is it a whole GGUF"
    ) as caught:
        run(EngineKey(str(path)), PLAIN)

    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_missing_adapter_is_one_line(file: Path) -> None:
    with pytest.raises(ModelError, match=r"no LoRA adapter at /none\.gguf"):
        run(EngineKey(str(file), lora=(("/none.gguf", 1.0),)), PLAIN)


def test_a_llama_cpp_server_gives_the_same_completion_over_http(
    key: EngineKey, engine: Engine
) -> None:
    """The engine's own listener is a real llama.cpp server."""
    url, server_key = engine.address

    async def go() -> Completion:
        model = RawModel("m", SMOLLM2, base_url=f"{url}/v1", model="m", key=server_key)
        outputs = await complete(model, ASKED, GREEDY)
        await model.close()
        assert isinstance(outputs[-1], Completion)
        return outputs[-1]

    here, there = run(key, ASKED), asyncio.run(go())

    assert (there.text, there.prompt, there.prompt_ids) == (here.text, here.prompt, here.prompt_ids)
    assert there.message.without_ids() == here.message.without_ids()
    assert there.tokens is not None
    assert here.tokens is not None
    assert [t.token_id for t in there.tokens] == [t.token_id for t in here.tokens]
