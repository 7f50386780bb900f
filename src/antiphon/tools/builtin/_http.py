"""Web pages and web searches as tools, over the standard library's HTTP.

The address that a name stands for is looked up once, checked, and connected to: a name that points
at this machine or at a private network is refused, also behind a redirect, also when it changes its
mind between two look-ups.
"""

import html.parser
import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote_plus, urljoin, urlsplit

from antiphon.errors import ToolError, UsageError
from antiphon.tools._tool import Tool, tool

MAX_REDIRECTS = 5
_AGENT = "antiphon"
_FIELDS = ("title", "url", "text")


@dataclass(frozen=True, slots=True)
class _Rules:
    """What may be fetched."""

    allow: tuple[str, ...] = ()
    private: bool = False
    max_bytes: int = 1_000_000
    timeout: float = 20.0


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    kind: str
    body: bytes
    url: str
    whole: bool


def http_get(
    *,
    allow: Sequence[str] = (),
    private: bool = False,
    max_bytes: int = 1_000_000,
    timeout: float = 20.0,
) -> Tool[..., Any]:
    """A tool that fetches web pages as text.

    Args:
        allow: Host names that may be fetched from, with their subdomains; all public ones by
            default.
        private: Whether addresses of this machine and of private networks may be fetched.
        max_bytes: The most that is read of a page, in bytes.
        timeout: Seconds for the whole of it, redirects included.

    Raises:
        UsageError: A limit is not positive, or an allowed host is no host name.
    """
    if max_bytes < 1 or timeout <= 0:
        raise UsageError(
            f"http_get needs positive limits, got max_bytes={max_bytes} and timeout={timeout}"
        )
    for host in allow:
        if "/" in host or ":" in host or not host:
            raise UsageError(f"http_get allows host names such as 'example.org', got {host!r}")
    rules = _Rules(tuple(h.lower().strip(".") for h in allow), private, max_bytes, timeout)

    @tool(name="http_get", timeout=timeout + 5, idempotent=True)
    def get(url: str) -> str:
        """Fetch a web page as text.

        Args:
            url: Address, beginning with http:// or https://.
        """
        return _page_text(_fetch(url, rules))

    return get


def web_search(
    *,
    serper_url: str = "https://google.serper.dev/search",
    max_results: int = 5,
    timeout: float = 20.0,
) -> Tool[..., Any]:
    """A tool that searches the web, with Serper or a SearXNG server.

    ``SEARXNG_URL`` in the environment names a SearXNG server; otherwise ``SERPER_API_KEY`` holds a
    key for Serper.  They are read at each call; without either the model is told so.

    Args:
        serper_url: Where Serper, or a server that speaks as it does, answers.
        max_results: How many results the model reads.
        timeout: Seconds to wait.
    """
    rules = _Rules(private=True, timeout=timeout)  # the operator chose the server

    @tool(name="web_search", timeout=timeout + 5, idempotent=True)
    def search(query: str) -> list[dict[str, str]]:
        """Search the web.

        Args:
            query: What to look for.
        """
        found = (
            _searxng(query, rules)
            if os.environ.get("SEARXNG_URL")
            else _serper(query, serper_url, rules)
        )
        if not found:
            raise ToolError(f"nothing was found for {query!r}; try other words")
        return found[:max_results]

    return search


def _searxng(query: str, rules: _Rules) -> list[dict[str, str]]:
    base = os.environ["SEARXNG_URL"].rstrip("/")
    data = _json(_fetch(f"{base}/search?q={quote_plus(query)}&format=json", rules))
    return _results(data.get("results"), "url", "content")


def _serper(query: str, url: str, rules: _Rules) -> list[dict[str, str]]:
    key = os.environ.get("SERPER_API_KEY")
    if not key:
        raise ToolError(
            "web search is not set up: there is no SERPER_API_KEY and no SEARXNG_URL in the "
            "environment; answer without it, or say that it is missing"
        )
    headers = {"X-API-KEY": key, "Content-Type": "application/json"}
    body = json.dumps({"q": query}).encode()
    data = _json(_fetch(url, rules, headers=headers, body=body))
    return _results(data.get("organic"), "link", "snippet")


def _json(response: _Response) -> dict[str, Any]:
    if response.status in (401, 403):
        raise ToolError(f"the search server refused the key (status {response.status})")
    if response.status != 200:
        raise ToolError(f"the search server answered with status {response.status}")
    try:
        data: Any = json.loads(response.body)
    except ValueError:
        raise ToolError("the search server answered with something that is no JSON") from None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _results(rows: Any, url: str, text: str) -> list[dict[str, str]]:
    if not isinstance(rows, list):
        return []
    hits = [cast("dict[str, Any]", r) for r in cast("list[Any]", rows) if isinstance(r, dict)]
    return [
        {
            name: str(hit.get(key) or "")
            for name, key in zip(_FIELDS, ("title", url, text), strict=True)
        }
        for hit in hits
    ]


def _fetch(
    url: str,
    rules: _Rules,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> _Response:
    deadline = time.monotonic() + rules.timeout
    for _ in range(MAX_REDIRECTS + 1):
        answer = _once(url, rules, headers or {}, body, deadline)
        if isinstance(answer, _Response):
            return answer
        url = answer
        if body is not None:
            raise ToolError("the server redirects what was sent to it; it is not followed")
    raise ToolError(f"{url!r} redirects more than {MAX_REDIRECTS} times")


def _once(
    url: str, rules: _Rules, headers: Mapping[str, str], body: bytes | None, deadline: float
) -> _Response | str:
    """One request: the response, or where it redirects to."""
    scheme, host, port, path = _parts(url, rules)
    address = _address(host, port, rules)
    left = deadline - time.monotonic()
    if left <= 0:
        raise ToolError(f"{host} did not answer within {rules.timeout:g} s")
    try:
        connection = _connect(scheme, host, port, address, left)
        try:
            connection.request(
                "GET" if body is None else "POST",
                path,
                body,
                {"User-Agent": _AGENT, "Accept-Encoding": "identity", **headers},
            )
            response = connection.getresponse()
            location = response.headers.get("Location")
            if response.status in (301, 302, 303, 307, 308) and location:
                return urljoin(url, location)
            data, whole = _read(response, connection, rules, deadline)
        finally:
            connection.close()
    except TimeoutError:
        raise ToolError(f"{host} did not answer within {rules.timeout:g} s") from None
    except ssl.SSLError as error:
        raise ToolError(f"{host} has no valid certificate ({error.reason})") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ToolError(f"{host} cannot be reached: {reason}") from None
    kind = response.headers.get("Content-Type", "")
    return _Response(response.status, kind, data, url, whole)


def _read(
    response: http.client.HTTPResponse,
    connection: http.client.HTTPConnection,
    rules: _Rules,
    deadline: float,
) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    size = 0
    while size <= rules.max_bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left)
        part = response.read1(65536)
        if not part:
            return b"".join(parts), True
        parts.append(part)
        size += len(part)
    return b"".join(parts)[: rules.max_bytes], False


def _parts(url: str, rules: _Rules) -> tuple[str, str, int, str]:
    try:
        split = urlsplit(url.strip())
        port = split.port
    except ValueError:
        raise ToolError(f"{url!r} is no address") from None
    host = (split.hostname or "").lower().rstrip(".")
    if split.scheme not in ("http", "https") or not host:
        raise ToolError(f"{url[:200]!r} is no web address; begin with https://")
    if split.username or split.password:
        raise ToolError("addresses with a user name or password are not fetched")
    if rules.allow and not any(host == a or host.endswith(f".{a}") for a in rules.allow):
        raise ToolError(f"{host} is not allowed; allowed are {', '.join(rules.allow)}")
    path = f"{split.path or '/'}{'?' + split.query if split.query else ''}"
    path = re.sub(r"[^\x21-\x7e]", lambda m: quote_plus(m.group(0)), path)
    return split.scheme, host, port or (443 if split.scheme == "https" else 80), path


def _address(host: str, port: int, rules: _Rules) -> str:
    """The address to connect to: every one that the name stands for must be allowed."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError(f"there is no host named {host!r}") from None
    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    if not rules.private:
        for address in addresses:
            if not _is_public(address):
                raise ToolError(
                    f"{host} is an address of this machine or a private network; refused"
                )
    return addresses[0]


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(str(inner))
    return ip.is_global and not ip.is_multicast


def _connect(
    scheme: str, host: str, port: int, address: str, seconds: float
) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    connection.sock = socket.create_connection((address, port), timeout=seconds)
    if scheme == "https":
        context = ssl.create_default_context()
        connection.sock = context.wrap_socket(connection.sock, server_hostname=host)
    return connection


def _page_text(response: _Response) -> str:
    if response.status >= 400:
        raise ToolError(f"{response.url} answered with status {response.status}")
    kind, _, rest = response.kind.partition(";")
    kind = kind.strip().lower()
    textual = not kind or kind.startswith("text/") or kind.endswith(("json", "xml", "javascript"))
    if not textual or b"\0" in response.body[:2048]:
        raise ToolError(f"{response.url} is no text ({kind or 'unknown kind'})")
    charset = re.search(r"charset=[\"']?([\w-]+)", rest)
    try:
        text = response.body.decode(charset.group(1) if charset else "utf-8", "replace")
    except LookupError:
        text = response.body.decode("utf-8", "replace")
    if kind in ("text/html", "application/xhtml+xml"):
        text = html_text(text)
    return text if response.whole else f"{text}\n[the page is longer; this is its beginning]"


_BLOCKS = frozenset(
    [
        *("p", "div", "br", "li", "tr", "table", "ul", "ol", "pre", "section", "article"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "header", "footer", "title"),
    ]
)
_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg"})


class _Text(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self.hidden.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self.hidden and tag == self.hidden[-1]:
            self.hidden.pop()
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def html_text(page: str) -> str:
    """What a reader sees of an HTML page: its text, a line a block.

    >>> html_text("<h1>Hi</h1><script>x()</script><p>a <b>b</b></p>")
    'Hi\\na b'
    """
    reader = _Text()
    reader.feed(page)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)
