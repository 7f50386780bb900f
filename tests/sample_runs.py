"""Runs to draw: a rich one, and one in which every text is hostile."""

import math
import struct
from base64 import b64encode

from antiphon.events import (
    CallEvent,
    Event,
    HandoffEvent,
    InvalidCallEvent,
    ResultEvent,
    RetryEvent,
    RunEnd,
    RunStart,
    Step,
    StepEnd,
    StepStart,
    TextEvent,
    ThinkingEvent,
    Trajectory,
)
from antiphon.messages import (
    AudioPart,
    Completion,
    Conversation,
    ImagePart,
    InvalidToolCall,
    Message,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    VideoPart,
)
from antiphon.viewer import Encoding, Record, Span

WEATHER = ToolSpec(
    "get_weather",
    "Current weather in a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "City name, e.g. Lima."}},
        "required": ["city"],
    },
)
ADDRESS = ToolSpec(
    "find_person",
    "Where a person of the address book lives.",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)

PROMPT = """<|im_start|>system
You look things up with tools.

find_person(name: string): Where a person of the address book lives.
get_weather(city: string): Current weather in a city. city: City name, e.g. Lima.
<|im_end|>
<|im_start|>user
What is the weather where Ada and Bo live, and which of the two is warmer?<|im_end|>
<|im_start|>assistant
"""


def _result(call: ToolCall, text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(call.id, call.name, text, is_error)


def _tokens(texts: list[str]) -> tuple[TokenLogprob, ...]:
    chances = [0.99, 0.93, 0.41, 0.88, 0.999, 0.67]
    return tuple(
        TokenLogprob(1000 + 7 * i, math.log(chances[i % len(chances)]), text)
        for i, text in enumerate(texts)
    )


def rich_run() -> Trajectory:
    """Parallel calls, an error, an unreadable call, a retry, a handoff, reasoning, tokens."""
    ada = ToolCall("find_person", {"name": "Ada"}, id="c0", raw='{"name": "find_person", ...}')
    bo = ToolCall("find_person", {"name": "Bo"}, id="c1", repairs=("trailing comma",))
    lima = ToolCall("get_weather", {"city": "Lima", "id": 12345678901234567890}, id="c2")
    oslo = ToolCall("get_weather", {"city": "Osló"}, id="c3")
    oslo_again = ToolCall("get_weather", {"city": "Oslo"}, id="c4")
    found = (
        _result(ada, '{"name": "Ada", "city": "Lima", "score": 1.50e3}'),
        _result(bo, '{"name": "Bo", "city": "Oslo"}'),
    )
    weather = (
        _result(lima, '{"city": "Lima", "temperature": 19.5, "sky": "haze", "wind": [3, 4.0]}'),
        _result(
            oslo,
            "get_weather knows no city 'Osló'. Known: Lima, Oslo. Call it again with one of them.",
            is_error=True,
        ),
    )
    first = Message.assistant(
        "I will look both up.",
        reasoning="Two people, two cities. The lookups do not depend on each other.",
        tool_calls=[ada, bo],
    )
    second = Message.assistant(tool_calls=[lima, oslo])
    third = Message.assistant(
        tool_calls=[oslo_again],
        invalid_tool_calls=[
            InvalidToolCall('{"name": "get_weather", "argum', "the JSON ends early", "get_weather")
        ],
    )
    last = Message.assistant(
        "Ada lives in Lima: 19.5 °C and haze. Bo lives in Oslo: -3 °C and snow.\n\n"
        "Lima is warmer, by 22.5 degrees."
    )
    snow = _result(oslo_again, '{"city": "Oslo", "temperature": -3, "sky": "snow"}')
    messages = (
        Message.system("You look things up with tools."),
        Message.user("What is the weather where Ada and Bo live, and which of the two is warmer?"),
        first,
        *(Message.from_result(r) for r in found),
        second,
        *(Message.from_result(r) for r in weather),
        third,
        Message.from_result(snow),
        last,
    )
    after = PROMPT + '<tool_call>[{"name": "find_person"}]</tool_call><|im_end|>\n'
    written = ["<tool_call>", '[{"', "name", '": "', "find", "_person", '"}]', "</tool_call>"]
    steps = (
        Step(
            "clerk",
            1,
            Completion(
                first,
                "tool_calls",
                Usage(148, 41, 0, 1),
                model="local",
                format="qwen2_5",
                prompt=PROMPT,
                text="".join(written),
                prompt_ids=tuple(range(148)),
                tokens=_tokens(written),
                sampling={"temperature": 0.0, "seed": 7},
                time_to_first_token=0.42,
                duration=1.31,
            ),
            found,
            system="You look things up with tools.",
            started=0.01,
            ended=1.92,
        ),
        Step(
            "clerk",
            4,
            Completion(
                second,
                "tool_calls",
                Usage(236, 38, 148, 1),
                model="local",
                format="qwen2_5",
                prompt=after,
                text="\n".join(written),
                time_to_first_token=0.21,
                duration=0.94,
            ),
            weather,
            started=1.93,
            ended=3.9,
        ),
        Step(
            "forecaster",
            7,
            Completion(
                third,
                "tool_calls",
                Usage(301, 52, 236, 1),
                model="local",
                time_to_first_token=0.3,
                duration=0.8,
            ),
            (snow,),
            started=3.95,
            ended=5.1,
        ),
        Step(
            "forecaster",
            9,
            Completion(
                last,
                "stop",
                Usage(352, 44, 301, 1),
                model="local",
                time_to_first_token=0.18,
                duration=0.95,
            ),
            started=5.12,
            ended=6.1,
        ),
    )
    events: tuple[Event, ...] = (
        RunStart("clerk", "local", messages[1].text),
        StepStart(0, "clerk", 0.01),
        ThinkingEvent(0, "Two people, ", 0.43),
        ThinkingEvent(0, "two cities.", 0.5),
        TextEvent(0, "I will look both up.", 0.7),
        CallEvent(0, ada, 1.32),
        CallEvent(0, bo, 1.33),
        ResultEvent(0, found[0], 0.31, 1.64),
        ResultEvent(0, found[1], 0.58, 1.92),
        StepEnd(0, "tool_calls", Usage(148, 41, 0, 1), 1.92),
        StepStart(1, "clerk", 1.93),
        CallEvent(1, lima, 2.87),
        CallEvent(1, oslo, 2.87),
        ResultEvent(1, weather[0], 0.95, 3.83),
        ResultEvent(1, weather[1], 0.02, 3.84),
        HandoffEvent(1, "clerk", "forecaster", 3.9),
        StepEnd(1, "tool_calls", Usage(236, 38, 148, 1), 3.9),
        StepStart(2, "forecaster", 3.95),
        RetryEvent(2, "the connection broke", 0.1, 12, 4.0),
        InvalidCallEvent(2, third.invalid_tool_calls[0], 4.7),
        CallEvent(2, oslo_again, 4.75),
        ResultEvent(2, snow, 0.3, 5.05),
        StepEnd(2, "tool_calls", Usage(301, 52, 236, 1), 5.1),
        StepStart(3, "forecaster", 5.12),
        TextEvent(3, last.text, 5.3),
        StepEnd(3, "stop", Usage(352, 44, 301, 1), 6.1),
        RunEnd("answer", last.text, Usage(1037, 175, 685, 4), time=6.11),
    )
    return Trajectory(
        Conversation(messages, (ADDRESS, WEATHER), metadata={"source": "demonstration"}),
        steps,
        events,
        "answer",
        last.text,
        Usage(1037, 175, 685, 4),
        agents=({"name": "clerk", "model": "local", "tools": ["find_person", "get_weather"]},),
        id="run-1",
        started_at="2026-11-30T10:12:13.456+00:00",
    )


def rich_encoding() -> Encoding:
    """Tokens of four weights and three authors."""
    spans = [Span("<|im_start|>", 0, "frame", 1, True), Span("user\n", 0, "frame", 2)]
    words = ["What", "is", "the", "weather", "where", "Ada", "and", "Bo", "live?"]
    spans += [Span(word + " ", 0, "given", 100 + i) for i, word in enumerate(words)]
    spans += [Span("<|im_end|>", 0, "frame", 3, True), Span("\n", 0, "frame", 4)]
    spans += [Span("<|im_start|>", 0, "frame", 1, True), Span("assistant\n", 0, "frame", 5)]
    spans += [
        Span(t, 1.0, "written", 200 + i) for i, t in enumerate(["Thought", ":", " look", "."])
    ]
    spans += [Span(t, 2.0, "written", 300 + i) for i, t in enumerate(["\nAction", ":", " find"])]
    spans += [Span(" it", 0.5, "written", 400), Span("<|im_end|>", 1.0, "written", 3, True)]
    return Encoding(tuple(spans), format="qwen2_5", policy="react", tokenizer="qwen2_5")


HOSTILE = [
    "</script><script>window.broken = 1</script>",
    '<img src=x onerror="window.broken = 2">',
    "<!-- <script> -->",
    "line\u2028separator\u2029and \x00 nul",
    "lone \ud800 surrogate",
    "@script@ @data@ ${window.broken = 3} {{7*7}}",
    "javascript:window.broken=4",
    "\u202egnirts desrever\u202c",
    "]]></style><style>*{display:none}</style>",
]
"""Texts that would do harm if any of them were markup, script or template."""


_FORMAT = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
_WAVE = b"WAVE" + _FORMAT + struct.pack("<4sI", b"data", 8) + bytes(8)
_RIFF = struct.pack("<4sI", b"RIFF", len(_WAVE)) + _WAVE
_SOUND = "data:audio/wav;base64," + b64encode(_RIFF).decode()


def hostile_run() -> Trajectory:
    """Every text that a user, a tool or a model can write holds every hostile text."""
    text = "\n".join(HOSTILE)
    call = ToolCall(text, {text: [text, math.nan, 10**30]}, id=text, raw=text, repairs=(text,))
    result = ToolResult(text, text, text, images=(ImagePart(text),), full_text=text + text)
    answer = Message.assistant(
        text,
        reasoning=text,
        tool_calls=[call],
        invalid_tool_calls=[InvalidToolCall(text, text, text, text + "2")],
    )
    images = (
        ImagePart("https://example.invalid/pixel.png"),
        ImagePart("javascript:window.broken=5"),
        AudioPart("javascript:window.broken=7"),
        VideoPart(("https://example.invalid/frame.png", "data:text/html,<p>")),
        AudioPart(_SOUND),
        ImagePart("data:text/html,<script>window.broken=6</script>"),
        ImagePart(
            "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='parent.broken=7'/>"
        ),
    )
    messages = (
        Message.system(text),
        Message.user([TextPart(text), *images]),
        answer,
        Message.from_result(result),
        Message.tool(text, call_id=text + "2", name=text, is_error=True),
        Message.tool(text, call_id="nobody asked"),
    )
    completion = Completion(
        answer,
        "tool_calls",
        model=text,
        format=text,
        prompt=text,
        text=text,
        prompt_ids=(1,),
        tokens=tuple(TokenLogprob(i, -math.inf, t) for i, t in enumerate([*HOSTILE, ""])),
        sampling={text: text},
        time_to_first_token=math.nan,
        duration=math.inf,
    )
    spec = ToolSpec(text, text, {"type": "object", "description": text})
    return Trajectory(
        Conversation(messages, (spec,), metadata={text: text}),
        (Step(text, 1, completion, (result,), system=text, started=math.nan, ended=math.inf),),
        (
            RunStart(text, text, text),
            TextEvent(0, text),
            CallEvent(0, call, 0.1),
            ResultEvent(0, result, 0.2, 0.3),
            RetryEvent(0, text),
            RunEnd("error", text, error=text),
        ),
        "error",
        text,
        agents=({"name": text},),
        error=text,
        started_at=text,
        metadata={"x": text},
    )


def hostile_record() -> Record:
    """The hostile run with hostile tokens and a hostile name."""
    spans = tuple(Span(text, 1.0, "written", i) for i, text in enumerate(HOSTILE))
    text = "".join(HOSTILE)
    return Record(hostile_run(), text, (Encoding(spans, text, text, text),))
