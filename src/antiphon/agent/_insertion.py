"""Results put into an answer word for word: ``{{result:CALL_ID}}`` stands for a whole result.

A model need not write down again what a tool returned: a table, a long list, code.  The placeholder
is replaced once, after generation; what is put in is not looked through.  The record keeps the text
that the model wrote, which is what it is trained on.
"""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{result:([^{}\s]+)\}\}")

INSTRUCTIONS = (
    "To show the whole result of a tool in your answer, write {{result:ID}} with the ID that "
    "stands below the result, instead of writing the result down again."
)
"""What a model is told where results may be inserted."""


def insert_results(text: str, results: Mapping[str, str]) -> tuple[str, list[str], list[str]]:
    """An answer with its placeholders replaced.

    Args:
        text: The answer as the model wrote it.
        results: Whole texts by call id.

    Returns:
        The answer, the ids that were put in, and those that there are no results of.

    >>> insert_results("{{result:a}} and {{result:b}}", {"a": "{{result:b}}"})
    ('{{result:b}} and {{result:b}}', ['a'], ['b'])
    """
    found: list[str] = []
    unknown: list[str] = []

    def fill(match: re.Match[str]) -> str:
        known = match[1] in results
        (found if known else unknown).append(match[1])
        return results[match[1]] if known else match[0]

    return _PLACEHOLDER.sub(fill, text), found, unknown


def with_id(text: str, call_id: str) -> str:
    """A result as a model is shown it where results may be inserted."""
    return f"{text}\n[ID {call_id}]"
