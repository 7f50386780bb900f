"""Which family a tokenizer directory belongs to, told by its chat template.

A family names texts that its template must hold (`signs`); the family with the most of them, all
found, is the one.  The directory's own word for the model (``name_or_path``) is asked first.
"""

import json
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, UnknownNameError, clip
from antiphon.formats._names import family, find_by_model, list_formats
from antiphon.formats._types import Format


def detect_format(directory: str | Path) -> Format:
    """The Format of a tokenizer directory.

    Args:
        directory: Holds ``tokenizer_config.json`` or ``chat_template.jinja``.

    Raises:
        DataError: There is no chat template.
        UnknownNameError: The template is none of a known family.
    """
    path = Path(directory)
    config = _config(path)
    template = _template(path, config)
    named = find_by_model(str(config.get("name_or_path") or path.name))
    fitting: list[tuple[int, str]] = []
    for name in list_formats():
        signs = cast("tuple[str, ...]", getattr(family(name), "signs", ()))
        if signs and all(sign in template for sign in signs):
            fitting.append((sum(map(len, signs)), name))
    if named is not None and (not fitting or any(name == named.name for _, name in fitting)):
        return named
    if not fitting:
        raise UnknownNameError(
            f"the chat template in {clip(str(directory))} is none of a known family; "
            f"name one: {', '.join(list_formats())}"
        )
    return family(max(fitting)[1])


def _config(path: Path) -> dict[str, Any]:
    file = path / "tokenizer_config.json"
    if not file.is_file():
        return {}
    try:
        value: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"not JSON: {error}", path=file) from error
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _template(path: Path, config: dict[str, Any]) -> str:
    file = path / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template: Any = config.get("chat_template")
    if isinstance(template, str):
        return template
    if isinstance(template, list):
        named = {t.get("name"): t.get("template") for t in cast("list[dict[str, Any]]", template)}
        found = named.get("tool_use") or named.get("default")
        if isinstance(found, str):
            return found
    raise DataError("no chat_template.jinja, and no chat_template in its config", path=path)
