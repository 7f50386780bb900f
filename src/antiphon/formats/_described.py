"""A Format from the words by which a record names it; see `describe`."""

import ast
import re
from typing import Any

from antiphon.errors import UsageError, clip
from antiphon.formats._names import get_format
from antiphon.formats._types import Format


def read_format(text: str) -> Format:
    """A Format from its description in a record, such as ``qwen3(thinking=False)``.

    Raises:
        UsageError: There is no such format or variant.
    """
    match = re.fullmatch(r"([^()]+)\((.*)\)", text)
    return get_format(match[1], **_variants(match[2], text)) if match else get_format(text)


def _variants(words: str, text: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"variants({words})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError(words)
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"no format {clip(text)}; write it as name(variant=value), all by name"
        ) from error
