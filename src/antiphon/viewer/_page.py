"""Trajectories as one HTML file: self-contained, offline, and inert to what is in them."""

from collections.abc import Iterable

from antiphon.viewer._data import Record, dump_for_script, page_data
from antiphon.viewer._document import render_document


def render_page(records: Iterable[Record], *, title: str = "") -> str:
    """Draw records as one HTML page.

    Args:
        records: What to show; more than one are offered in a list, children after their parent.
        title: What the window is called: a file's name, for example.

    Returns:
        The page: only ASCII in its data, no lone surrogate anywhere, so that it encodes as UTF-8.
    """
    data = page_data(records)
    data["name"] = title
    scripts = ("parts.js", "cards.js", "tokens.js", "page.js")
    return render_document(dump_for_script(data), title=title, scripts=scripts)
