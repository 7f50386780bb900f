"""What completes a conversation.  Start with `_model.py`: one Protocol, one streaming method.

`load_model` (`_load.py`) finds a Model by its spec.  Behind an HTTP API: `_remote.py` streams and
repeats, a dialect (`_chat.py`, `_responses.py`, `_anthropic.py`) knows the JSON, `_http.py` the
wire; `_raw.py` continues text with a Format of ours.  In this process: `_gguf.py`
over llama.cpp (`_llama.py`), with weights from `_weights.py` and `_catalog.py`.  By script or
record: `_scripted.py`, `_replay.py`.  `_embeddings.py` makes vectors of texts.
"""

from antiphon.models._complete import complete
from antiphon.models._embeddings import EmbeddingModel
from antiphon.models._fallback import FallbackModel
from antiphon.models._http import Timeouts
from antiphon.models._load import load_embeddings, load_model
from antiphon.models._model import Model, ModelOutput, ModelSettings, Retry, SampledTokens
from antiphon.models._prices import Price, read_prices
from antiphon.models._replay import ReplayModel
from antiphon.models._retries import RetryPolicy
from antiphon.models._scripted import Answer, AnswerFunction, ScriptedModel, read_script

__all__ = [
    "Answer",
    "AnswerFunction",
    "EmbeddingModel",
    "FallbackModel",
    "Model",
    "ModelOutput",
    "ModelSettings",
    "Price",
    "ReplayModel",
    "Retry",
    "RetryPolicy",
    "SampledTokens",
    "ScriptedModel",
    "Timeouts",
    "complete",
    "load_embeddings",
    "load_model",
    "read_prices",
    "read_script",
]
