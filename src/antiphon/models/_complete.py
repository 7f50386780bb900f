"""A completion by itself, for those who show nothing while it is written."""

from antiphon.errors import ModelResponseError
from antiphon.messages import Completion, Conversation
from antiphon.models._model import Model, ModelSettings


async def complete(
    model: Model, conversation: Conversation, settings: ModelSettings | None = None
) -> Completion:
    """What a model answers to a conversation.

    Args:
        model: The model.
        conversation: What it is shown.
        settings: How it is sampled.

    Raises:
        ModelError: There is no completion.
    """
    async for output in model.stream(conversation, settings):
        if isinstance(output, Completion):
            return output
    raise ModelResponseError(f"model {model.spec!r} ended its stream without a completion")
