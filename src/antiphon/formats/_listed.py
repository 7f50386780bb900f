"""Tools listed in words of ours, for families whose calls are public and whose words are not."""

from collections.abc import Sequence

from antiphon.messages import ToolSpec, dump_json


def listed(tools: Sequence[ToolSpec]) -> str:
    """The tools, a line of JSON each, up to where an example of a call stands."""
    lines = "".join(f"{dump_json(spec.to_openai())}\n" for spec in tools)
    return (
        f"You may call these tools:\n<tools>\n{lines}</tools>\n\n"
        "A call is written like this, and its result follows:\n"
    )
