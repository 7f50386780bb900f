"""ReAct in English, inside any family's turns; the text that ms-swift calls ``react_en``.

    <|im_start|>assistant
    Thought: I should look at the weather.
    Action: get_weather
    Action Input: {"city": "Lima"}
    Observation:{"celsius": 19}
    Thought: I now know the final answer
    Final Answer: It is 19 degrees.<|im_end|>

The tools stand in the system turn, behind the system's own text.  Reasoning is a thought; an answer
without reasoning is written as it is.  Where a message has reasoning, text and calls, the text
joins the thought and the message is listed in `Rendered.changed`.

Differs from upstream: arguments are JSON (``arguments="python"`` writes upstream's Python
literals), the system's own text is kept, and text before an action stands on a line of its own.
Source: ms-swift 4.6 ``agent_template/react.py`` (react_en); the seed sample
``parallel_aqi/react_en``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from antiphon.formats import _react as react
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec


def prompt(tools: Sequence[ToolSpec]) -> str:
    """How to use the tools."""
    listing = "\n\n".join(
        f"{spec.name}: Call this tool to interact with the {spec.name} API. What is the "
        f"{spec.name} API useful for? {spec.description} Parameters: "
        f"{react.parameters_json(spec)} Format the arguments as a JSON object."
        for spec in tools
    )
    return (
        "Answer the following questions as best you can. You have access to the following "
        f"tools:\n\n{listing}\n\nUse the following format:\n\n"
        "Question: the input question you must answer\n"
        "Thought: you should always think about what to do\n"
        f"Action: the action to take, should be one of [{react.names_of(tools)}]\n"
        "Action Input: the input to the action\n"
        "Observation: the result of the action\n"
        "... (this Thought/Action/Action Input/Observation can be repeated zero or more times)\n"
        "Thought: I now know the final answer\n"
        "Final Answer: the final answer to the original input question\n\nBegin!\n"
    )


@dataclass(frozen=True, slots=True)
class ReactEn(Family):
    """ReAct in English."""

    frame: str = "chatml"
    """The family whose turns are used."""
    arguments: react.Arguments = "json"
    """How arguments are written."""
    stop: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Texts that end a model's turn."""

    name = "react_en"
    aliases = {"react": {}}

    def __post_init__(self) -> None:
        end = react.turns_of(self.frame).end
        object.__setattr__(self, "stop", ("\n" + react.OBSERVATION, end))

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return react.SYNTAX[self.arguments]

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return react.call_form(react.turns_of(self.frame).specials)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        turns = react.turns_of(self.frame)
        return react.render(
            Writer(self.name, turns.specials),
            conversation,
            turns=turns,
            prompt=prompt(conversation.tools) if conversation.tools else "",
            arguments=self.arguments,
            generate=generate,
        )


FORMAT = ReactEn()
