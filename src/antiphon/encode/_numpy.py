"""numpy, imported when first used: the room's names are there without it."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from antiphon.errors import MissingExtraError


class _Numpy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(importlib.import_module("numpy"), name)
        except ModuleNotFoundError as error:
            raise MissingExtraError("encoding to tokens", "tokenizers") from error
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import numpy as np
else:
    np = _Numpy("numpy")

__all__ = ["np"]
