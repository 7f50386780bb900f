"""From conversations to tokens, labels and loss weights.

Start with `_encoder.py`; `_policy.py` says which tokens count, `_example.py` what training reads,
and `_load.py` where vocabularies come from.  What is seen and heard begins in `_media.py`; models
that do are in `_senses.py` and `_gemma.py`, and `_asking.py` asks the processor of any other.
Needs the extra ``tokenizers``; knows no family's text, reads no dataset, and runs without a network
unless a vocabulary has to be fetched.
"""

from antiphon.encode._audio import AudioRule, audio_length
from antiphon.encode._encoder import Encoder
from antiphon.encode._example import IGNORE, TrainingExample
from antiphon.encode._fit import TooLong, batch, fit, pack, pack_stream, to_row, unpack
from antiphon.encode._gemma import FillRule, Gemma4Vision
from antiphon.encode._images import image_size
from antiphon.encode._job import EncodeJob, EncodeReport, Pool, encode_file
from antiphon.encode._load import load_tokenizer
from antiphon.encode._media import Expansion, Senses, Vision
from antiphon.encode._pairs import Answer, Answered, encode_answer, judged_row, pair_row
from antiphon.encode._policy import LossPolicy, list_policies
from antiphon.encode._processor import ProcessorVision, load_vision
from antiphon.encode._rows import EncodedRow, JoinedRows
from antiphon.encode._senses import VISIONS, PatchVision
from antiphon.encode._shards import EncodedRows, ShardKind, make_directory
from antiphon.encode._tokenizer import FastTokenizer, Tokenizer
from antiphon.encode._videos import VideoRule

__all__ = [
    "IGNORE",
    "VISIONS",
    "Answer",
    "Answered",
    "AudioRule",
    "EncodeJob",
    "EncodeReport",
    "EncodedRow",
    "EncodedRows",
    "Encoder",
    "Expansion",
    "FastTokenizer",
    "FillRule",
    "Gemma4Vision",
    "JoinedRows",
    "LossPolicy",
    "PatchVision",
    "Pool",
    "ProcessorVision",
    "Senses",
    "ShardKind",
    "Tokenizer",
    "TooLong",
    "TrainingExample",
    "VideoRule",
    "Vision",
    "audio_length",
    "batch",
    "encode_answer",
    "encode_file",
    "fit",
    "image_size",
    "judged_row",
    "list_policies",
    "load_tokenizer",
    "load_vision",
    "make_directory",
    "pack",
    "pack_stream",
    "pair_row",
    "to_row",
    "unpack",
]
