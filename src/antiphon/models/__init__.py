"""What completes a conversation.  Start with `_model.py`: one Protocol, one streaming method."""

from antiphon.models._model import Model, ModelOutput, ModelSettings, Retry

__all__ = ["Model", "ModelOutput", "ModelSettings", "Retry"]
