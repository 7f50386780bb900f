"""Every operation of an OpenAPI 3 document as a tool.

Parameters and the fields of a JSON body become the tool's parameters; where two share a name, the
body stays one parameter, ``body``.  Keys for the API come from the environment when a call is made
and are never shown to the model.  The document is data: only local references are followed, and
only the server that the operator chose is called.
"""

import json
import os
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from antiphon.errors import DataError, ToolError, UsageError, clip
from antiphon.messages import ToolSpec
from antiphon.messages._json_schema import Schema, as_schema, check_depth
from antiphon.tools._names import valid_name
from antiphon.tools._schema import map_children, tidy
from antiphon.tools._tool import Approval, Tool

if TYPE_CHECKING:
    from aiohttp import ClientSession

Values = dict[str, Any]
_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
_READING = frozenset({"get", "head", "options"})
_OWN_HEADERS = frozenset({"accept", "authorization", "content-type", "cookie", "host"})
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation, ready to be called."""

    method: str
    path: str
    spec: ToolSpec
    places: Mapping[str, str]
    """Parameter to where it goes: path, query, header, cookie, (a) field (of the body), or body."""
    security: tuple[Mapping[str, Any], ...] = ()
    """Alternatives, each naming the schemes it needs."""
    exploded: frozenset[str] = field(default_factory=frozenset[str])
    """Query parameters whose lists are repeated rather than joined with commas."""


@asynccontextmanager
async def openapi_tools(
    document: Mapping[str, Any] | str | os.PathLike[str],
    *,
    base_url: str | None = None,
    auth: Mapping[str, str] | None = None,
    only: Iterable[str] = (),
    approve_writes: bool = False,
    timeout: float = 30.0,
) -> AsyncGenerator[list[Tool[..., Any]]]:
    """Tools for the operations of an API, for as long as the ``async with`` block lasts.

    Args:
        document: An OpenAPI 3.0 or 3.1 document, or the path of one in JSON.
        base_url: Where the API answers; the document's first server by default.
        auth: Security scheme to the name of an environment variable that holds its key.
        only: Names of tools to keep; all by default.
        approve_writes: Whether a person must agree to every call that is no GET.
        timeout: Seconds for one call.

    Yields:
        The tools, in the document's order.

    Raises:
        DataError: The document cannot be read.
        UsageError: There is no base URL, or no operation of a name in `only`.
    """
    import aiohttp

    content = _read(document)
    base = _base(content, base_url)
    operations = list(_operations(content))
    wanted = set(only)
    unknown = wanted - {o.spec.name for o in operations}
    if unknown:
        names = ", ".join(o.spec.name for o in operations[:20])
        raise UsageError(f"the API has no operation {sorted(unknown)[0]!r}; it has {names}")
    caller = _Caller(base, _schemes(content), dict(auth or {}))
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session:
        yield [
            Tool.from_spec(
                operation.spec,
                caller.bound(session, operation),
                timeout=timeout + 5.0,
                idempotent=operation.method in _READING,
                approval=_approval(operation, approve_writes),
            )
            for operation in operations
            if not wanted or operation.spec.name in wanted
        ]


def _approval(operation: _Operation, approve_writes: bool) -> Approval:
    return approve_writes and operation.method not in _READING


def _read(document: Mapping[str, Any] | str | os.PathLike[str]) -> Values:
    content: Any = document
    path: Path | None = None
    if not isinstance(document, Mapping):
        path = Path(document)
        try:
            content = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", path=path) from error
        except ValueError as error:
            raise DataError(f"is no JSON ({error}); convert YAML first", path=path) from error
    known: Values = dict(cast("Mapping[str, Any]", content)) if _is_mapping(content) else {}
    version = known.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        raise DataError(f"is no OpenAPI 3 document: openapi is {clip(version)}", path=path)
    return known


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _base(content: Values, base_url: str | None) -> str:
    if base_url is None:
        servers: list[Any] = content.get("servers") or [{}]
        base_url = str(as_schema(servers[0]).get("url") or "")
    if not base_url.startswith(("http://", "https://")):
        raise UsageError(
            f"an API needs the URL where it answers, got {base_url!r}; give base_url='https://...'"
        )
    return base_url.rstrip("/") + "/"


def _schemes(content: Values) -> Values:
    return as_schema(as_schema(content.get("components")).get("securitySchemes"))


def _operations(content: Values) -> Iterator[_Operation]:
    taken: set[str] = set()
    for path, item in as_schema(content.get("paths")).items():
        shared: list[Any] = as_schema(item).get("parameters") or []
        for method in _METHODS:
            operation = as_schema(as_schema(item).get(method))
            if operation and not operation.get("deprecated"):
                made = _operation(content, path, method, operation, shared, taken)
                taken.add(made.spec.name)
                yield made


def _operation(
    content: Values, path: str, method: str, operation: Values, shared: list[Any], taken: set[str]
) -> _Operation:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    places: dict[str, str] = {}
    exploded: set[str] = set()
    rows: list[Any] = [*shared, *(operation.get("parameters") or [])]
    for row in rows:
        parameter = _deref(row, content)
        name, place = str(parameter.get("name", "")), str(parameter.get("in", ""))
        if place not in ("path", "query", "header", "cookie") or not name:
            continue
        if place == "header" and name.lower() in _OWN_HEADERS:
            continue
        schema = dict(as_schema(parameter.get("schema")))
        if parameter.get("description"):
            schema["description"] = parameter["description"]
        properties[name], places[name] = schema, place
        if parameter.get("required") and name not in required:
            required.append(name)
        if place == "query" and parameter.get("explode", True):
            exploded.add(name)
    _add_body(content, operation, properties, required, places)
    name = _tool_name(operation, method, path, taken)
    root: Schema = {"type": "object", "properties": properties}
    if required:
        root["required"] = required
    return _Operation(
        method=method,
        path=path,
        spec=ToolSpec(name, _description(operation, method, path), _local(root, content, name)),
        places=places,
        security=tuple(operation.get("security", content.get("security")) or ()),
        exploded=frozenset(exploded),
    )


def _add_body(
    content: Values,
    operation: Values,
    properties: dict[str, Schema],
    required: list[str],
    places: dict[str, str],
) -> None:
    body = _deref(operation.get("requestBody"), content)
    kinds = as_schema(body.get("content"))
    kind = next((k for k in kinds if k.partition(";")[0].strip().endswith("json")), None)
    if kind is None:
        return
    schema = as_schema(as_schema(kinds[kind]).get("schema"))
    fields = _deref(schema, content)
    inside = as_schema(fields.get("properties"))
    flat = fields.get("type") == "object" and inside and not inside.keys() & properties.keys()
    if flat and not as_schema(fields.get("additionalProperties")):
        properties |= inside
        places |= dict.fromkeys(inside, "field")
        if body.get("required"):
            required.extend(fields.get("required") or [])
        return
    name = "body" if "body" not in properties else "request_body"
    properties[name], places[name] = schema, "body"
    if body.get("required"):
        required.append(name)


def _tool_name(operation: Values, method: str, path: str, taken: set[str]) -> str:
    name = operation.get("operationId")
    if not isinstance(name, str) or not name:
        name = f"{method}_{re.sub(r'[^a-zA-Z0-9]+', '_', path).strip('_') or 'root'}"
    name = valid_name(name)
    return name if name not in taken else valid_name(f"{name}_{method}_{path}")


def _description(operation: Values, method: str, path: str) -> str:
    texts = [str(operation.get(key) or "").strip() for key in ("summary", "description")]
    texts = [t for t in dict.fromkeys(texts) if t]
    return "\n".join(texts) or f"{method.upper()} {path}"


def _deref(row: Any, content: Values) -> Values:
    """What a local reference in the document stands for."""
    found = as_schema(row)
    for _ in range(20):
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        here: Any = content
        for part in reference.removeprefix("#/").split("/"):
            here = as_schema(here).get(part.replace("~1", "/").replace("~0", "~"))
        found = as_schema(here)
    return {}


def _local(root: Schema, content: Values, name: str) -> Schema:
    """A schema of its own: references lead to its ``$defs``, 3.0's ``nullable`` to null."""
    check_depth(root, name)
    known = as_schema(as_schema(content.get("components")).get("schemas"))
    definitions: Schema = {}

    def change(node: Any) -> Any:
        schema = as_schema(node)
        if not schema:
            return node
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = reference.rpartition("/")[2]
            if target not in definitions:
                definitions[target] = {}
                check_depth(known.get(target), name)
                definitions[target] = change(as_schema(known.get(target)))
            rest = {k: v for k, v in schema.items() if k != "$ref"}
            return {"$ref": f"#/$defs/{target}", **rest}
        out = map_children(schema, change)
        for extra in ("discriminator", "xml", "externalDocs", "example", "readOnly", "writeOnly"):
            out.pop(extra, None)
        if out.pop("nullable", False):
            text = {k: out.pop(k) for k in ("description", "default") if k in out}
            out = {"anyOf": [out, {"type": "null"}], **text}
        return out

    made = cast("Schema", change(root))
    if definitions:
        made["$defs"] = definitions
    return tidy(made)


@dataclass(frozen=True, slots=True)
class _Caller:
    """Calls one API."""

    base: str
    schemes: Values
    auth: Mapping[str, str]

    def bound(self, session: "ClientSession", operation: _Operation) -> Any:
        async def call(arguments: Values) -> Any:
            return await self.call(session, operation, arguments)

        return call

    async def call(self, session: "ClientSession", operation: _Operation, arguments: Values) -> Any:
        import aiohttp
        from yarl import URL

        parts = _Parts()
        for name, value in arguments.items():
            parts.add(operation, name, value)
        self._authorize(operation, parts)
        path = re.sub(
            r"\{([^}]+)\}", lambda m: parts.path.get(m.group(1), ""), operation.path.lstrip("/")
        )
        url = URL(self.base + path, encoded=True).extend_query(parts.query)
        try:
            async with session.request(
                operation.method.upper(),
                url,
                headers=parts.headers,
                cookies=parts.cookies,
                json=parts.body,
                allow_redirects=False,
            ) as response:
                data = await response.content.read(_MAX_BYTES)
                kind, status = response.content_type, response.status
        except TimeoutError:
            raise ToolError(f"{operation.spec.name}: the server did not answer in time") from None
        except aiohttp.ClientError as error:
            raise ToolError(
                f"{operation.spec.name}: the server cannot be reached ({type(error).__name__})"
            ) from None
        return _answer(operation, status, kind, data)

    def _authorize(self, operation: _Operation, parts: "_Parts") -> None:
        """Add the first set of keys that are all there; none where the operation needs none."""
        missing = ""
        for alternative in operation.security:
            keys = {scheme: os.environ.get(self.auth.get(scheme, "")) for scheme in alternative}
            absent = [scheme for scheme, key in keys.items() if not key]
            if not absent:
                for scheme, key in keys.items():
                    parts.authorize(as_schema(self.schemes.get(scheme)), key or "")
                return
            missing = missing or absent[0]
        if missing:
            variable = self.auth.get(missing)
            where = f"the variable {variable} is not set" if variable else "no variable is named"
            raise ToolError(
                f"{operation.spec.name} needs a key ({missing}), and {where}; "
                "say that it is not set up"
            )


class _Parts:
    """The parts of one request."""

    def __init__(self) -> None:
        self.path: dict[str, str] = {}
        self.query: list[tuple[str, str]] = []
        self.headers: dict[str, str] = {}
        self.cookies: dict[str, str] = {}
        self.body: Any = None

    def add(self, operation: _Operation, name: str, value: Any) -> None:
        place = operation.places.get(name)
        if place == "body":
            self.body = value
        elif place == "field":
            self.body = {**(self.body or {}), name: value}
        elif place == "query" and isinstance(value, list) and name in operation.exploded:
            self.query.extend((name, _text(item)) for item in cast("list[Any]", value))
        elif place == "query":
            self.query.append((name, _text(value)))
        elif place == "path":
            text = _text(value)
            if text in ("", ".", ".."):
                raise ToolError(f"{operation.spec.name}: {name!r} cannot be {text!r}; give a value")
            self.path[name] = quote(text, safe="")
        elif place == "header":
            self.headers[name] = re.sub(r"[\r\n\0]", " ", _text(value))
        elif place == "cookie":
            self.cookies[name] = quote(_text(value))

    def authorize(self, scheme: Values, key: str) -> None:
        kind, place = scheme.get("type"), scheme.get("in")
        if kind == "apiKey" and place == "query":
            self.query.append((str(scheme.get("name")), key))
        elif kind == "apiKey" and place == "cookie":
            self.cookies[str(scheme.get("name"))] = key
        elif kind == "apiKey":
            self.headers[str(scheme.get("name"))] = key
        elif scheme.get("scheme") == "basic":
            self.headers["Authorization"] = f"Basic {key}"
        else:
            self.headers["Authorization"] = f"Bearer {key}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join(_text(item) for item in cast("list[Any]", value))
    return json.dumps(value, ensure_ascii=False)


def _answer(operation: _Operation, status: int, kind: str, data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    if status >= 300:
        detail = " ".join(text.split())[:500]
        raise ToolError(f"{operation.spec.name}: the server answered {status}: {detail}")
    if kind.endswith("json") and data:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text or None
