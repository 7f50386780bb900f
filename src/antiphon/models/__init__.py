"""What completes a conversation.  Start with `_model.py`: one Protocol, one streaming method."""

from antiphon.models._model import Model, ModelOutput, ModelSettings, Retry
from antiphon.models._replay import ReplayModel
from antiphon.models._scripted import Answer, AnswerFunction, ScriptedModel, read_script

__all__ = [
    "Answer",
    "AnswerFunction",
    "Model",
    "ModelOutput",
    "ModelSettings",
    "ReplayModel",
    "Retry",
    "ScriptedModel",
    "read_script",
]
