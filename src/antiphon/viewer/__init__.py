"""A Trajectory as one HTML file.

Start with `_page.py`.  The viewer draws a record, never a live run, and knows no format and no
tokenizer: the weights and authors of tokens come in as an `Encoding` that the caller prepared.
"""

from antiphon.viewer._data import Record
from antiphon.viewer._encoding import Encoding, Span
from antiphon.viewer._page import render_page
from antiphon.viewer._serve import make_server

__all__ = ["Encoding", "Record", "Span", "make_server", "render_page"]
