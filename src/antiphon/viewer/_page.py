"""One HTML file that shows trajectories: self-contained, offline, and inert to what is in them.

The page's parts lie beside this module.  Data goes in as JSON in a script element that is no
script; the page's script draws it through ``textContent`` alone, and the page's policy allows that
one script and that one style, by their hashes, and nothing else: no request leaves the page.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import antiphon
from antiphon.viewer._data import Record, dump_for_script, page_data


def render_page(records: Iterable[Record], *, title: str = "") -> str:
    """Draw records as one HTML page.

    Args:
        records: What to show; more than one are offered in a list, children after their parent.
        title: What the window is called: a file's name, for example.

    Returns:
        The page: only ASCII in its data, no lone surrogate anywhere, so that it encodes as UTF-8.
    """
    style, script = _part("page.css"), _part("page.js")
    data = page_data(records)
    data["name"] = title
    parts = {
        "csp": _policy(style, script),
        "version": antiphon.__version__,
        "title": html.escape(_encodable(title) or "Antiphon"),
        "style": style,
        "data": dump_for_script(data),
        "script": script,
    }
    return re.sub("@([a-z]+)@", lambda mark: parts[mark[1]], _part("page.html"))


@cache
def _part(name: str) -> str:
    return files("antiphon.viewer").joinpath(name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    """A text's hash, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
