"""The libraries of the extra ``train``, imported when they are first used."""

import importlib
from typing import Any

from antiphon.errors import MissingExtraError


def library(name: str, *, extra: str = "train", what: str = "training") -> Any:
    """A library by its module's name.

    Args:
        name: For example ``torch.nn.functional``.
        extra: The extra that brings it.
        what: What needs it, for the message.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name.partition(".")[0]):
            raise
        raise MissingExtraError(what, extra) from error
