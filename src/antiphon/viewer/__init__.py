"""A Trajectory, the rows of a dataset, or figures of what was counted: each as one HTML file.

Start with `_page.py`; `_document.py` is how a page holds all that it needs.  The viewer draws a
record, never a live run, and knows no format and no tokenizer: the weights and authors of tokens
come in as an `Encoding` that the caller prepared.  `_rows.py` is the browser of a dataset, and
`_report.py` draws curves, bars and tables.
"""

from antiphon.viewer._data import Record
from antiphon.viewer._document import render_document
from antiphon.viewer._encoding import Encoding, Span
from antiphon.viewer._page import render_page
from antiphon.viewer._report import Bars, Cell, Curve, Curves, Figure, Report, Table, render_report
from antiphon.viewer._rows import DatasetRow, render_rows
from antiphon.viewer._serve import make_server

__all__ = [
    "Bars",
    "Cell",
    "Curve",
    "Curves",
    "DatasetRow",
    "Encoding",
    "Figure",
    "Record",
    "Report",
    "Span",
    "Table",
    "make_server",
    "render_document",
    "render_page",
    "render_report",
    "render_rows",
]
