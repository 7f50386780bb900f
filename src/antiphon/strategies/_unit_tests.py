"""Unit tests of a candidate program, each in a process of its own.

What runs is the candidate and one test, then a line that nobody can know beforehand: only a process
that prints it has come to the end.  A candidate that exits, loops, forks or defines what another
one lacks changes nothing for the others.
"""

import asyncio
import os
import secrets
from collections.abc import Sequence

from antiphon.tools.builtin import python_tool


async def run_tests(
    code: str, tests: Sequence[str], *, timeout: float, memory_mb: int
) -> list[str]:
    """Why each test failed; empty for those that passed.

    Args:
        code: The candidate.
        tests: Programs that raise where it is wrong.
        timeout: Seconds that one may take.
        memory_mb: The most memory that one may take, in megabytes.
    """
    python = python_tool(timeout=timeout, memory_mb=memory_mb)
    room = asyncio.Semaphore(max(1, os.cpu_count() or 1))

    async def run(test: str) -> str:
        mark = f"passed {secrets.token_hex(16)}"
        async with room:
            result = await python.call({"code": f"{code}\n\n{test}\n\nprint({mark!r})\n"})
        if result.is_error:
            return result.text
        text = result.text if result.full_text is None else result.full_text
        return "" if text.rstrip().endswith(mark) else "the program ended before the test did"

    return list(await asyncio.gather(*(run(test) for test in tests)))
