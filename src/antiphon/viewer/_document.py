"""One HTML file that needs nothing else: its style, its script, its data, and a policy that allows
these and no others.

Data goes in as JSON in a script element that is no script.  The policy names the one style and the
one script by their hashes; a page that is served may also ask its own server, no other.
"""

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import antiphon


def render_document(
    data: str,
    *,
    title: str,
    scripts: Sequence[str],
    styles: Sequence[str] = ("page.css",),
    asks_its_server: bool = False,
) -> str:
    """Put a page together.

    Args:
        data: JSON text that is inert inside a script element.
        title: What the window is called.
        scripts: Its scripts in order, as files of this room or as text with a line break.
        styles: Its styles, likewise.
        asks_its_server: Whether its script may send requests to where the page came from.

    Returns:
        The page, which encodes as UTF-8.
    """
    style, script = _joined(styles), _joined(scripts)
    parts = {
        "csp": _policy(style, script, asks_its_server),
        "version": antiphon.__version__,
        "title": html.escape(_encodable(title) or "Antiphon"),
        "style": style,
        "data": data,
        "script": script,
    }
    return re.sub("@([a-z]+)@", lambda mark: parts[mark[1]], _part("page.html"))


def _joined(sources: Sequence[str]) -> str:
    return "\n".join(source if "\n" in source else _part(source) for source in sources)


@cache
def _part(name: str) -> str:
    return files("antiphon.viewer").joinpath(name).read_text("utf-8")


def _policy(style: str, script: str, asks_its_server: bool) -> str:
    own = "'self'" if asks_its_server else "'none'"
    return (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        f"img-src data:; media-src data:; connect-src {own}; base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    """A text's hash, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
