"""A ReAct agent: think, act, observe, until the final answer.

The model needs no tool calling of its own: calls are text in the spelling of ReAct, and the format
reads them.  Two tools: a search over a few notes, and a calculator.  The model's text is scripted,
so that it runs anywhere; ``model="ollama/qwen3?format=react_en"`` in its place asks a real one.

    python examples/react_agent.py
"""

from antiphon import Agent, ScriptedModel
from antiphon.agent import RunResult
from antiphon.formats import get_format
from antiphon.tools.builtin import calculator

NOTES = {
    "eiffel tower": "The Eiffel Tower is 330 m high and stands in Paris.",
    "empire state building": "The Empire State Building is 443 m high with its antenna.",
}

REPLIES = [
    'Thought: I need both heights.\nAction: search\nAction Input: {"query": "Eiffel Tower"}\n',
    'Thought: And the other.\nAction: search\nAction Input: {"query": "Empire State Building"}\n',
    'Thought: Now the difference.\nAction: calculator\nAction Input: {"expression": "443 - 330"}\n',
    "Thought: I now know the final answer.\n"
    "Final Answer: The Empire State Building is 113 m higher than the Eiffel Tower.",
]


def search(query: str) -> str:
    """Search the notes.

    Args:
        query: What to look for, for example "Eiffel Tower".
    """
    return NOTES.get(query.strip().lower(), "nothing found; try another name")


def main() -> RunResult:
    """Ask one question and print each call, what it answered, and the final answer."""
    model = ScriptedModel(REPLIES, format=get_format("react_en"))
    agent = Agent(name="researcher", model=model, tools=[search, calculator], max_steps=8)
    result = agent.run_sync("How much higher is the Empire State Building than the Eiffel Tower?")
    for step in result.trajectory.steps:
        for call, answer in zip(step.completion.message.tool_calls, step.results, strict=True):
            print(f"{call.name}({call.arguments}) -> {answer.text}")
    print(result.output)
    return result


if __name__ == "__main__":
    main()
