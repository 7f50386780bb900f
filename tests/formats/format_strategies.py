"""Hypothesis strategies of texts, calls and conversations for the tests of formats."""

from dataclasses import replace

from hypothesis import strategies as st

from antiphon.messages import Conversation, JsonValue, Message, ToolCall, ToolSpec

MARKS = [
    "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>",
    "<|im_start|>assistant\n", "<|im_end|>", "<|eot_id|>", "<|python_tag|>", "Action:",
    "Action Input:", "\nObservation:",
    "Thought:", "Final Answer:", '{"name": "find", "arguments": {}}', "```json\n",
    "<function=find>", "<parameter=q>", "</parameter>", "</function>", "[TOOL_CALLS]",
    "<｜tool▁sep｜>", "<arg_key>", "<arg_value>", "</arg_value>", "<|channel|>analysis<|message|>",
    "<|tool_call>", '<invoke name="find">', "</invoke>", '<|"|>', "✿FUNCTION✿: ",
]  # fmt: skip

plain = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
"""Texts of any characters."""
tricky = st.lists(
    st.sampled_from([*MARKS, "<", "\n", " ", "a", "{", "}", '"', "\\", "日本", "🤖", "'", ", "]),
    max_size=6,
).map("".join)
"""Texts that look like markup."""
words = st.lists(
    st.sampled_from(
        ["Look", " it", "\n", "up.", " ", "日本", "<", "a<b", "🤖", '"', "\\n", "{", "'"]
    ),
    min_size=1,
    max_size=6,
).map("".join)
"""Texts that people write."""
texts = plain | tricky | words
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)

FIND = ToolSpec(
    "find",
    "Find things.",
    {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "deep": {"type": "boolean"},
            "where": {"type": "object"},
            "tags": {"type": "array"},
            "none": {"type": "null"},
        },
        "required": ["q"],
    },
)
PING = ToolSpec("ping", "Answer at once.", {"type": "object", "properties": {}})
TOOLS = (FIND, PING)

find_calls = st.builds(
    ToolCall,
    name=st.just("find"),
    arguments=st.fixed_dictionaries(
        {"q": texts},
        optional={
            "n": st.integers(),
            "x": st.floats(allow_nan=False, allow_infinity=False),
            "deep": st.booleans(),
            "where": st.dictionaries(texts, json_values, max_size=2),
            "tags": st.lists(json_values, max_size=3),
            "none": st.none(),
        },
    ),
)
calls = find_calls | st.just(ToolCall("ping", {}))


@st.composite
def _answers(draw: st.DrawFn) -> Message:
    text, reasoning = draw(st.just("") | texts), draw(st.just("") | texts)
    return Message.assistant(
        text, reasoning=reasoning, tool_calls=draw(st.lists(calls, max_size=3))
    )


answers = _answers()
"""Assistant messages; not every family can express each of them."""


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Turns of hostile text, calls and results."""
    messages = [Message.system(draw(texts))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 2))):
        messages.append(Message.user(draw(texts)))
        drawn = draw(st.lists(calls, max_size=2))
        made = [replace(c, id=f"call{i:05}") for i, c in enumerate(drawn)]
        if made:
            messages.append(Message.assistant(draw(words | st.just("")), tool_calls=made))
            messages += [Message.tool(draw(texts), call_id=c.id, name=c.name) for c in made]
        messages.append(Message.assistant(draw(words)))
    return Conversation(tuple(messages), TOOLS)
