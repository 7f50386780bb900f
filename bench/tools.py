"""How fast tools are described and called, and how many described parameters are found.

    python bench/tools.py [calls] [schemas] [docstrings]

Rates are per CPU-second of this process, which a busy machine changes little.  Peers are measured
in the same run where they are installed; none is needed.
"""

import asyncio
import importlib
import inspect
import json
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

from antiphon.tools import parse_docstring, tool

TEXT = '{"query": "hello world", "limit": 5, "threshold": 0.5, "exact": true}'
N_CALLS = 50_000


def search(query: str, limit: int, threshold: float, exact: bool) -> str:
    """Search the index.

    Args:
        query: What to look for.
        limit: How many hits.
        threshold: The least score.
        exact: Exact matches only.
    """
    return "ok"


async def search_async(query: str, limit: int, threshold: float, exact: bool) -> str:
    """Search the index."""
    return "ok"


async def per_second(call: Callable[[], Awaitable[object]], n_calls: int) -> int:
    """Calls per CPU-second, in the best of five parts: what else the machine does only adds."""
    await call()
    rate = 0.0
    for _ in range(5):
        started = time.process_time()
        for _ in range(n_calls // 5):
            await call()
        rate = max(rate, n_calls // 5 / (time.process_time() - started))
    return int(rate)


Row = tuple[str, str, Callable[[], Awaitable[object]], int]
"""What is measured, the kind of function, a call, and how often it is called."""


async def calls() -> None:
    """Validated calls of a function with four arguments, from JSON text."""
    arguments: dict[str, Any] = json.loads(TEXT)
    here = tool(search, threaded=False, timeout=None)
    beside = tool(search)
    waiting = tool(search_async, timeout=None)
    timed = tool(search_async)
    print("validated calls per CPU-second")
    ours: list[Row] = [
        ("plain, no thread, JSON text", "plain", lambda: here.call(TEXT), N_CALLS),
        ("plain, no thread, object", "", lambda: here.call(arguments), N_CALLS),
        ("plain, in a thread", "in a thread", lambda: beside.call(TEXT), N_CALLS // 20),
        ("async, no timeout", "async", lambda: waiting.call(TEXT), N_CALLS),
        ("async, with timeout", "", lambda: timed.call(TEXT), N_CALLS // 10),
    ]
    best: dict[str, tuple[int, int]] = {}
    for mine, rows in ((True, ours), (False, list(peers()))):
        for name, kind, call, n_calls in rows:
            rate = await per_second(call, n_calls)
            print(f"  {'antiphon, ' * mine + name:<55}{rate:>10,}")
            us, them = best.get(kind, (0, 0))
            best[kind] = (max(us, rate), them) if mine else (us, max(them, rate))
    most = max(them for _, them in best.values())
    for kind, (us, them) in best.items():
        if us and them:
            print(f"  {kind}: {us / them:.1f} times the best peer's")
    if most:
        print(f"  plain: {best['plain'][0] / most:.1f} times the most of any peer, of any kind")


def peers() -> Iterator[Row]:
    """Peers that check arguments against the signature, those of our survey that are installed.

    Each is called as its own runtime calls it: pydantic-ai's makes a context for each call out of
    the run's, and runs a plain function in a thread; anthropic's runner calls it where it stands.
    """
    try:
        pydantic_ai: Any = importlib.import_module("pydantic_ai")
        test: Any = importlib.import_module("pydantic_ai.models.test")
        usage: Any = importlib.import_module("pydantic_ai.usage")
    except ImportError:
        print("  (pydantic-ai is not installed and not compared)", file=sys.stderr)
    else:
        run = pydantic_ai.RunContext(deps=None, model=test.TestModel(), usage=usage.RunUsage())

        def called(function: Callable[..., Any]) -> Callable[[], Awaitable[object]]:
            schema = pydantic_ai.Tool(function).function_schema

            async def call() -> object:
                context = replace(run, tool_name="search", tool_call_id="c1", retry=0)
                return await schema.call(schema.validator.validate_json(TEXT), context)

            return call

        yield "pydantic-ai, async function", "async", called(search_async), N_CALLS
        yield "pydantic-ai, plain function", "in a thread", called(search), N_CALLS // 20
    try:
        anthropic: Any = importlib.import_module("anthropic")
    except ImportError:
        print("  (anthropic is not installed and not compared)", file=sys.stderr)
    else:
        checked = anthropic.beta_tool(search)

        async def call() -> object:
            return checked.call(json.loads(TEXT))

        yield "anthropic, plain function", "plain", call, N_CALLS


def fresh_function() -> Callable[..., str]:
    """A function that nothing has seen before."""

    def find(query: str, limit: int = 10, threshold: float = 0.5, exact: bool = False) -> str:
        """Search the index.

        Args:
            query: What to look for.
            limit: How many hits.
            threshold: The least score.
            exact: Exact matches only.
        """
        return ""

    return find


def schemas() -> None:
    """Schemas of fresh functions with four scalar parameters."""
    rate = 0
    for _ in range(40):  # short parts: the best one is that in which the machine did nothing else
        functions = [fresh_function() for _ in range(100)]
        started = time.process_time()
        for function in functions:
            json.dumps(tool(function).spec.to_openai())
        rate = max(rate, int(len(functions) / (time.process_time() - started)))
    print(f"schemas per CPU-second{'':<35}{rate:>10,}")


PACKAGES = ("stdlib", "numpy", "pydantic", "aiohttp", "huggingface_hub", "hypothesis", "jinja2")
_SKIPPED = {"antigravity", "this", "idlelib", "test", "lib2to3", "turtledemo", "__main__"}


def docstrings() -> None:
    """Described parameters that are found, in the docstrings of real packages.

    A parameter counts as described where a line of the docstring begins with its name in one of the
    ways that the styles have, in a docstring that describes parameters at all.
    """
    print("described parameters found")
    for package in PACKAGES:
        n_described = n_found = n_functions = 0
        started = time.process_time()
        for function in functions_of(package):
            described = described_parameters(function)
            if described:
                n_functions += 1
                found = parse_docstring(inspect.getdoc(function)).parameters
                n_described += len(described)
                n_found += len(described & found.keys())
        if n_described:
            share = 100 * n_found / n_described
            seconds = time.process_time() - started
            print(f"  {package:<20}{n_found:>6} of {n_described:>6} = {share:5.1f} %", end="")
            print(f"   {n_functions} functions, {seconds:.1f} s")


_HEADERS = "args|arguments|parameters|params|keyword arguments|keyword args|other parameters"
_SECTION = re.compile(
    rf"^\s*(?:{_HEADERS})\s*:?\s*$|^\s*[:@](?:param|arg|keyword)\b", re.IGNORECASE | re.MULTILINE
)


def described_parameters(function: Callable[..., Any]) -> set[str]:
    """Names of parameters that the docstring describes, by a rule that shares nothing with ours."""
    text = inspect.getdoc(function) or ""
    section = _SECTION.search(text)
    if section is None:
        return set()
    try:
        names = set(inspect.signature(function).parameters) - {"self", "cls"}
    except (ValueError, TypeError):
        return set()
    rest = text[section.start() :]
    return {name for name in names if _describes(rest, name)}


def _describes(text: str, name: str) -> bool:
    star = rf"[`*\\]*{re.escape(name)}[`*]*"
    google = rf"^[ \t]*(?:[-*] )?{star}[ \t]*(?:\([^\n]*\))?[ \t]*:[ \t]+\S"
    google_below = rf"^([ \t]*){star}[ \t]*(?:\([^\n]*\))?[ \t]*:[ \t]*\n\1[ \t]+\S"
    numpy = rf"^([ \t]*){star}[ \t]*(?: :[^\n]*)?\n\1[ \t]+\S"
    field = rf"^[ \t]*[:@](?:param|arg|keyword)[^:\n]*\b{re.escape(name)}[ \t]*:[ \t]*\S"
    underlined = re.match(r"[^\n]*\n\s*---", text.lstrip()) is not None
    styles = (numpy, field) if underlined else (google, google_below, field)
    return any(re.search(p, text, re.MULTILINE) for p in styles)


def functions_of(package: str) -> Iterator[Callable[..., Any]]:
    """Every function and method that a package defines."""
    seen: set[int] = set()
    for module in modules_of(package):
        values = list(vars(module).values())
        for value in [
            *values,
            *(m for v in values if inspect.isclass(v) for m in vars(v).values()),
        ]:
            plain = inspect.unwrap(getattr(value, "__func__", value))
            if inspect.isfunction(plain) and id(plain) not in seen and plain.__doc__:
                seen.add(id(plain))
                if (plain.__module__ or "").startswith(module.__name__.partition(".")[0]):
                    yield plain


def modules_of(package: str) -> Iterator[ModuleType]:
    """The modules of a package that import; of the standard library its top ones."""
    if package == "stdlib":
        names = sorted(n for n in sys.stdlib_module_names if not n.startswith("_"))
        names = [n for n in names if n not in _SKIPPED]
    else:
        try:
            top = importlib.import_module(package)
        except ImportError:
            return
        found = pkgutil.walk_packages(top.__path__, f"{package}.", onerror=lambda _: None)
        names = [package, *(m.name for m in found if ".tests" not in m.name and "._" not in m.name)]
    for name in names:
        try:
            yield importlib.import_module(name)
        except BaseException:  # a module that needs what is not here
            continue


def main() -> None:
    """Run what was asked for; everything by default."""
    warnings.simplefilter("ignore")
    wanted = set(sys.argv[1:]) or {"calls", "schemas", "docstrings"}
    if "calls" in wanted:
        asyncio.run(calls())
    if "schemas" in wanted:
        schemas()
    if "docstrings" in wanted:
        docstrings()


if __name__ == "__main__":
    main()
