"""Rank texts for a query: tools, documents, memories.

Start with `_lexical.py` (`LexicalIndex`: BM25F in memory); `_blended.py` ranks short texts better,
if slower; `_postings.py` keeps the words of both, updated in place, and `_text.py` cuts texts
into terms; `_fusion.py` ranks by meaning and joins rankings; `_sentences.py` makes vectors in this
process.  This room knows no tool and no server: it sees keys and texts.
"""

from antiphon.retrieval._blended import BlendedIndex
from antiphon.retrieval._fusion import Embed, VectorIndex, fuse
from antiphon.retrieval._lexical import Hit, LexicalIndex
from antiphon.retrieval._sentences import SentenceModel
from antiphon.retrieval._text import terms

__all__ = [
    "BlendedIndex",
    "Embed",
    "Hit",
    "LexicalIndex",
    "SentenceModel",
    "VectorIndex",
    "fuse",
    "terms",
]
