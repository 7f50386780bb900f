"""What prefix reuse saves on the local model: time to first token and tokens computed, by step.

A conversation of dependent tool calls grows by a call and its result each step.  The same steps are
asked twice: with the prompt's prefix kept from the step before, and with every prompt computed
anew. Answers are cut after one token, since only the prompt's cost is compared.

    python bench/prefix_reuse.py [--model local] [--steps N]
"""

import argparse
import asyncio
import json
from dataclasses import dataclass

from antiphon.messages import Completion, Conversation, Message, ToolCall, ToolSpec
from antiphon.models import Model, ModelSettings, load_model

TOOLS = tuple(
    ToolSpec(
        name,
        description,
        {"type": "object", "properties": {k: {"type": "string"} for k in keys}, "required": keys},
    )
    for name, description, keys in (
        ("calculator", "Evaluate an arithmetic expression.", ["expression"]),
        ("get_address", "Street, city and country where a person lives.", ["name"]),
        ("get_weather", "Current weather in a city.", ["city"]),
        ("convert_currency", "Convert an amount of money.", ["amount", "source", "target"]),
    )
)
CITIES = ("Lima", "Oslo", "Nairobi", "Quito", "Hanoi", "Porto", "Perth", "Tunis")


@dataclass(frozen=True)
class Measure:
    """One step."""

    n_prompt: int
    """Tokens of the prompt."""
    n_computed: int
    """Of these, the tokens that had to be computed."""
    first_token: float
    """Seconds until the first token, as the model measured it."""


def conversation_at(step: int) -> Conversation:
    """The conversation as it stands when a step is asked."""
    messages = [Message.user("Compare the weather in the cities that I name, one by one.")]
    for n in range(step):
        call = ToolCall("get_weather", {"city": CITIES[n % len(CITIES)]}, id=f"c{n}")
        result = json.dumps({"temperature": 20 + n, "conditions": "scattered clouds", "wind": n})
        messages += [
            Message.assistant(tool_calls=[call]),
            Message.tool(result, call_id=call.id, name=call.name),
        ]
    return Conversation(tuple(messages), TOOLS)


async def measure(model: Model, step: int, *, reuse: bool) -> Measure:
    """Ask one step."""
    settings = ModelSettings(
        temperature=0.0, max_tokens=1, constrain=False, extra={"cache_prompt": reuse}
    )
    completion: Completion | None = None
    async for output in model.stream(conversation_at(step), settings):
        if isinstance(output, Completion):
            completion = output
    assert completion is not None
    assert completion.duration is not None
    usage = completion.usage
    return Measure(
        usage.input_tokens, usage.input_tokens - usage.cached_tokens, completion.duration
    )


async def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="local")
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    model = load_model(args.model)
    try:
        await measure(model, 0, reuse=False)  # loads the model and tokenizes
        kept = [await measure(model, step, reuse=True) for step in range(args.steps)]
        anew = [await measure(model, step, reuse=False) for step in range(args.steps)]
    finally:
        await model.close()
    print("| step | prompt tokens | computed: kept | anew | seconds: kept | anew |")
    print("|--:|--:|--:|--:|--:|--:|")
    for step, (a, b) in enumerate(zip(kept, anew, strict=True)):
        print(
            f"| {step} | {a.n_prompt} | {a.n_computed} | {b.n_computed} "
            f"| {a.first_token:.2f} | {b.first_token:.2f} |"
        )
    total = [sum(m.n_computed for m in rows) for rows in (kept, anew)]
    print(f"\ntokens computed in all: {total[0]} with the prefix kept, {total[1]} anew")


if __name__ == "__main__":
    asyncio.run(main())
