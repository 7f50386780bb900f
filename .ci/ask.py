"""Ask the embedded model what the project promises, through the installed command."""

import json
import subprocess
import sys

QUESTIONS = [
    ("What is 17.5% of 2340?", "409.5", ["calculator"]),
    ("What is the weather where Aiko Tanaka lives?", "15", ["get_address", "get_weather"]),
]
"""A question, what its answer must hold, and the tools that must be called, in order."""


def ask(question: str) -> tuple[str, list[str]]:
    """The answer and the names of the called tools, from ``antiphon run --json``."""
    done = subprocess.run(
        ["antiphon", "run", question, "--json"], stdout=subprocess.PIPE, text=True, check=True
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [event["call"]["name"] for event in events if event["type"] == "tool_call"]
    return events[-1]["output"], calls


def main() -> int:
    """Ask every question; 1 when an answer is not as promised."""
    failed = False
    for question, expected, tools in QUESTIONS:
        output, calls = ask(question)
        right = expected in output and calls == tools
        failed |= not right
        print(f"{'ok' if right else 'WRONG'}: {question} -> {output!r}, called {calls}")
        if not right:
            print(f"    expected {expected!r} after calls {tools}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
