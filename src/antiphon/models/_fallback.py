"""A second model for when the first gives no completion."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from antiphon.errors import ModelError, UsageError
from antiphon.messages import Conversation
from antiphon.models._model import Model, ModelOutput, ModelSettings, Retry

_log = logging.getLogger(__name__)


class FallbackModel:
    """Asks its models in order until one completes.

    Each has its own retries first.  When the next one takes over, a `Retry` tells the consumer to
    discard what the one before had shown.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        """Set up the order.

        Args:
            models: At least one, the preferred one first.

        Raises:
            UsageError: There is none.
        """
        if not models:
            raise UsageError("a fallback needs at least one model, got none")
        self._models = tuple(models)

    @property
    def spec(self) -> str:
        """The specs of all models, joined by ``|``."""
        return "|".join(model.spec for model in self._models)

    @property
    def default_max_tokens(self) -> int | None:
        """The preferred model's, where it is held to grammars of ours."""
        return getattr(self._models[0], "default_max_tokens", None)

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Complete a conversation.

        Raises:
            ModelError: The last model's, where none completes.
        """
        for model, following in zip(self._models, [*self._models[1:], None], strict=True):
            try:
                outputs = cast("Any", model.stream(conversation, settings))
                async with aclosing(outputs):
                    async for output in outputs:
                        yield output
                return
            except ModelError as error:
                if following is None:
                    raise
                reason = f"{error}; asking {following.spec} instead"
            _log.warning("%s: %s", model.spec, reason)
            yield Retry(reason)

    async def close(self) -> None:
        """Close all models."""
        for model in self._models:
            await model.close()


if TYPE_CHECKING:
    _model: Model = FallbackModel([])
