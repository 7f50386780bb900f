"""Conversations of our own, made systematically: every shape with and without a system message.

They are what families are compared on with their published templates, beside the shared cases.  A
shape is what happens between the first question and the last message.
"""

from collections.abc import Sequence

from antiphon.messages import Conversation, JsonObject, Message, ToolCall, ToolSpec

SYSTEM = 'Answer shortly; say "I do not know" rather than guess.\nToday is a Monday.'


def _spec(name: str, description: str, properties: JsonObject, *required: str) -> ToolSpec:
    parameters: JsonObject = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = list(required)
    function = {"name": name, "description": description, "parameters": parameters}
    return ToolSpec.from_openai({"type": "function", "function": function})


_TEXT: JsonObject = {"type": "string", "description": "A text."}
FERRY = _spec(
    "ferry_times",
    "When ferries leave a harbour.",
    {
        "harbour": {"type": "string", "description": 'The harbour, for example "Brest".'},
        "day": {"type": "string", "enum": ["today", "tomorrow"], "description": "Which day."},
        "limit": {"type": "integer", "description": "The most that are listed."},
    },
    "harbour",
)
BOOK = _spec(
    "book_seat",
    "Réserver une place — 预订座位.",
    {
        "passenger": {
            "type": "object",
            "properties": {"name": _TEXT, "age": {"type": "integer"}},
            "required": ["name"],
            "description": "Who travels.",
        },
        "crossings": {"type": "array", "items": {"type": "string"}, "description": "Which."},
        "price": {"type": "number", "description": "The highest price."},
        "return": {"type": "boolean", "description": "Whether to come back."},
    },
    "passenger",
)
NOTE = _spec("write_note", "Keep a note.", {"body": _TEXT}, "body")
CLOCK = _spec("clock", "The time now.", {})
ONE, SEVERAL = (FERRY,), (FERRY, BOOK, NOTE, CLOCK)


class _Talk:
    """Builds the messages of one conversation; calls are numbered."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._calls: list[ToolCall] = []
        self._n = 0

    def user(self, text: str) -> "_Talk":
        self.messages.append(Message.user(text))
        return self

    def says(self, text: str, reasoning: str = "") -> "_Talk":
        self.messages.append(Message.assistant(text, reasoning=reasoning))
        return self

    def calls(self, *calls: tuple[str, JsonObject], text: str = "", reasoning: str = "") -> "_Talk":
        self._calls = [
            ToolCall(name, arguments, f"call{self._n + i:05}")
            for i, (name, arguments) in enumerate(calls)
        ]
        self._n += len(calls)
        self.messages.append(Message.assistant(text, reasoning=reasoning, tool_calls=self._calls))
        return self

    def results(self, *texts: str, is_error: bool = False) -> "_Talk":
        for call, text in zip(self._calls, texts, strict=True):
            result = Message.tool(text, call_id=call.id, name=call.name, is_error=is_error)
            self.messages.append(result)
        return self


def _ask() -> _Talk:
    return _Talk().user("When does the next ferry leave Brest?")


_BREST: tuple[str, JsonObject] = ("ferry_times", {"harbour": "Brest"})
_NANTES: tuple[str, JsonObject] = ("ferry_times", {"harbour": "Nantes", "limit": 2})
_TIMES = '{"harbour": "Brest", "times": ["09:10", "17:45"]}'


def _note(body: str) -> _Talk:
    call: tuple[str, JsonObject] = ("write_note", {"body": body})
    return _ask().calls(call).results('{"ok": true}').says("It is noted.")


def _shapes() -> dict[str, tuple[_Talk, Sequence[ToolSpec]]]:
    nested: JsonObject = {
        "passenger": {"name": "Zoë", "age": 41, "tags": [{"a": [1, [2]]}, {}]},
        "crossings": ["Brest", "Ouessant"],
        "price": 12.5,
        "return": True,
    }
    odd: JsonObject = {"passenger": {}, "crossings": [], "price": -0.25, "return": False}
    return {
        "answer": (_ask().says("At 9."), ONE),
        "answer_without_tools": (_ask().says("I do not know."), ()),
        "two_answers": (_ask().says("At 9.").user("And then?").says("At 17:45."), ()),
        "question": (_ask(), ONE),
        "question_of_several_tools": (_ask(), SEVERAL),
        "one_call": (_ask().calls(_BREST).results(_TIMES).says("At 9:10."), ONE),
        "one_of_several_tools": (_ask().calls(_BREST).results(_TIMES).says("At 9:10."), SEVERAL),
        "open_call": (_ask().calls(_BREST), ONE),
        "open_result": (_ask().calls(_BREST).results(_TIMES), ONE),
        "parallel_calls": (
            _ask().calls(_BREST, _NANTES).results(_TIMES, "none").says("At 9:10; none."),
            SEVERAL,
        ),
        "three_parallel_calls": (
            _ask()
            .calls(_BREST, ("clock", {}), _NANTES)
            .results(_TIMES, "08:00", "[]")
            .says("In an hour."),
            SEVERAL,
        ),
        "dependent_calls": (
            _ask()
            .calls(_BREST)
            .results(_TIMES)
            .calls(("book_seat", {"passenger": {"name": "Ana"}}))
            .results('{"seat": 12}')
            .says("Seat 12 at 9:10."),
            SEVERAL,
        ),
        "text_and_call": (
            _ask().calls(_BREST, text="Let me look.").results(_TIMES).says("At 9:10."),
            ONE,
        ),
        "text_and_parallel_calls": (
            _ask().calls(_BREST, _NANTES, text="Both:\nat once.").results("a", "b").says("Done."),
            ONE,
        ),
        "reasoning": (_ask().says("At 9.", "They asked for the time.\nIt is 9."), ONE),
        "reasoning_and_call": (
            _ask()
            .calls(_BREST, reasoning="I must look it up.")
            .results(_TIMES)
            .says("At 9:10.", "The first one is at 9:10."),
            ONE,
        ),
        "reasoning_text_and_call": (
            _ask()
            .calls(_BREST, text="Looking.", reasoning="I must look it up.")
            .results(_TIMES)
            .says("At 9:10."),
            ONE,
        ),
        "reasoning_in_every_step": (
            _ask()
            .calls(_BREST, reasoning="First Brest.")
            .results(_TIMES)
            .calls(_NANTES, reasoning="Then Nantes.")
            .results("none")
            .says("Only Brest.", "Nothing from Nantes."),
            SEVERAL,
        ),
        "reasoning_in_an_earlier_turn": (
            _ask()
            .calls(_BREST, reasoning="I must look it up.")
            .results(_TIMES)
            .says("At 9:10.", "The first one.")
            .user("And from Nantes?")
            .calls(_NANTES, reasoning="Again.")
            .results("none")
            .says("None."),
            SEVERAL,
        ),
        "empty_answer": (_ask().calls(_BREST).results(_TIMES).says(""), ONE),
        "empty_question": (_Talk().user("").says("What do you mean?"), ()),
        "empty_result": (_ask().calls(_BREST).results("").says("Nothing."), ONE),
        "no_arguments": (
            _Talk().user("The time?").calls(("clock", {})).results("08:00").says("8."),
            SEVERAL,
        ),
        "nested_arguments": (
            _ask().calls(("book_seat", nested)).results('{"seat": 3}').says("Seat 3."),
            SEVERAL,
        ),
        "empty_and_odd_arguments": (
            _ask().calls(("book_seat", odd)).results("{}").says("Booked."),
            SEVERAL,
        ),
        "unicode": (
            _Talk()
            .user("Fähre nach Köln? 去上海的船？🚢")
            .calls(("ferry_times", {"harbour": "上海 🚢"}))
            .results('{"时间": "早上九点"}')
            .says("早上九点。🚢"),
            SEVERAL,
        ),
        "quotes": (_note("She said \"no\" and 'yes', then \\n."), SEVERAL),
        "lines": (_note("First.\n\n  Second.\n\tThird.\n"), SEVERAL),
        "markup": (_note("<b>bold</b> & a < b; {x: [1]} </p>"), SEVERAL),
        "spaces_around": (_ask().says("  At 9. \n"), ONE),
        "lines_in_an_answer": (_ask().says("# Times\n\n- 9:10\n- 17:45\n\nThat is all."), ONE),
        "error_result": (
            _ask().calls(_BREST).results("harbour not found", is_error=True).says("Not there."),
            ONE,
        ),
        "error_and_again": (
            _ask()
            .calls(("ferry_times", {"harbour": "Brset"}))
            .results("harbour not found: 'Brset'", is_error=True)
            .calls(_BREST, text="A typing error.")
            .results(_TIMES)
            .says("At 9:10."),
            ONE,
        ),
        "quotes_in_a_result": (
            _ask().calls(_BREST).results('"9:10"\nsaid \'he\' \\ {"a": 1}').says("At 9:10."),
            ONE,
        ),
        "user_behind_a_result": (
            _ask().calls(_BREST).results(_TIMES).user("Stop, I walk.").says("Good."),
            ONE,
        ),
        "user_behind_an_open_result": (
            _ask().calls(_BREST).results(_TIMES).user("Well?"),
            ONE,
        ),
        "several_turns": (
            _ask()
            .calls(_BREST)
            .results(_TIMES)
            .says("At 9:10.")
            .user("Write it down.")
            .calls(("write_note", {"body": "9:10"}))
            .results("ok")
            .says("Written.")
            .user("Thanks.")
            .says("You are welcome."),
            SEVERAL,
        ),
    }  # fmt: skip


def own_conversations() -> dict[str, Conversation]:
    """Every shape by its name, and again with a system message in front."""
    found: dict[str, Conversation] = {}
    for name, (talk, tools) in _shapes().items():
        messages = tuple(talk.messages)
        found[name] = Conversation(messages, tuple(tools))
        found[f"{name}/system"] = Conversation((Message.system(SYSTEM), *messages), tuple(tools))
    return found
