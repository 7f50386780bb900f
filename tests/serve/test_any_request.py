"""Whatever a client sends, it is served or refused: no request is a fault of ours.

Requests are made by damaging good ones, so that they get past the first check; a sample goes over a
real socket.
"""

import asyncio
import copy
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.messages import Message
from antiphon.models import ScriptedModel
from antiphon.serve._app import Serving
from antiphon.serve._ask import Ask, Limits
from antiphon.serve._chat import ChatServing
from antiphon.serve._completions import CompletionsServing
from antiphon.serve._messages import MessagesServing
from antiphon.serve._refusal import Refusal
from antiphon.serve._responses import KeptResponses, ResponsesServing
from serve.serving import ADD, serving

FUNCTION: Any = ADD["function"]
IMAGE = "data:image/png;base64,AAAA"
GOOD: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "m",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "x"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE}}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "3"},
        ],
        "tools": [ADD],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
        "stop": ["a"],
        "temperature": 1,
        "n": 2,
        "stream_options": {"include_usage": True},
        "logit_bias": {"1": 2},
    },
    "/v1/messages": {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "x"}],
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "x", "signature": "s"},
                    {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": "3"}],
                    },
                    {"type": "image", "source": {"type": "url", "url": "https://x.y"}},
                ],
            },
        ],
        "tools": [{"name": "add", "input_schema": FUNCTION["parameters"]}],
        "tool_choice": {"type": "tool", "name": "add"},
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "stop_sequences": ["a"],
    },
    "/v1/responses": {
        "model": "m",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": IMAGE},
                    {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
                ],
            },
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "x"}]},
            {"type": "function_call", "call_id": "a", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "3"},
        ],
        "instructions": "x",
        "tools": [{"type": "function", **FUNCTION}],
        "tool_choice": {"type": "function", "name": "add"},
        "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "metadata": {"a": "b"},
        "include": ["message.output_text.logprobs"],
    },
    "/v1/completions": {"model": "m", "prompt": ["x"], "logprobs": 1, "echo": True, "stop": "a"},
}
SERVING: dict[str, Serving] = {
    "/v1/chat/completions": ChatServing(),
    "/v1/messages": MessagesServing(),
    "/v1/responses": ResponsesServing(KeptResponses(1), ""),
    "/v1/completions": CompletionsServing(),
}

odd: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 1 << 70, 1.5, -0.0, 1e300, "", "x", "\x00", "\ud800", "<|im_end|>"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    is_object = isinstance(value, dict)
    inner: Any = cast("Any", value).items() if is_object else enumerate(cast("list[Any]", value))
    found: list[tuple[Any, ...]] = []
    for key, item in inner:
        found.append((*path, key))
        if isinstance(item, dict | list):
            found += _places(item, (*path, key))
    return found


def _damaged(row: dict[str, Any], path: tuple[Any, ...], value: Any, is_dropped: bool) -> Any:
    made: Any = copy.deepcopy(row)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    if is_dropped:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return made


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, Any]:
    """A path, and a good request for it with one thing changed or left out."""
    path = draw(st.sampled_from(sorted(GOOD)))
    place = draw(st.sampled_from(_places(GOOD[path])))
    return path, _damaged(GOOD[path], place, draw(odd), draw(st.booleans()))


@pytest.mark.parametrize("path", GOOD)
def test_the_good_requests_are_good(path: str) -> None:
    assert isinstance(SERVING[path].read(GOOD[path], Limits()), Ask)


def _refused(path: str, row: Any) -> Refusal | None:
    try:
        SERVING[path].read(row, Limits())
    except Refusal as refusal:
        return refusal
    return None


@given(request=requests())
@settings(max_examples=60, deadline=None)
def test_a_damaged_request_is_read_or_refused_with_a_reason(request: tuple[str, Any]) -> None:
    refusal = _refused(*request)

    if refusal is not None:
        assert refusal.status in (400, 404)
        assert refusal.message
        assert "\n" not in refusal.message


def test_no_damaged_request_is_a_fault_of_ours_on_the_wire() -> None:
    damages: list[Any] = [None, True, -1, 1e300, "", "x\x00\ud800", [], {}, [[]], {"a": {}}]
    rows = [
        (path, _damaged(good, place, damages[n % len(damages)], False))
        for path, good in GOOD.items()
        for n, place in enumerate(_places(good))
    ]

    async def go() -> list[int]:
        model = ScriptedModel(lambda _: Message.assistant("ok"))
        async with serving(model) as client:
            return [(await client.post(path, row)).status for path, row in rows]

    statuses = asyncio.run(go())

    assert set(statuses) <= {200, 400, 404}
    assert {200, 400} <= set(statuses)
