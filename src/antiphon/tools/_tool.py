"""A Python function as a tool: described once, then called with what a model wrote.

Everything that does not change from call to call is worked out when the tool is made.  A call
never raises for what a model sent or for what the function did: it answers with a `ToolResult`.
Only cancellation passes through.
"""

import asyncio
import copy
import difflib
import logging
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from antiphon.errors import ToolDefinitionError, ToolError, UsageError
from antiphon.messages import ToolCall, ToolResult, ToolSpec
from antiphon.messages._json_schema import check_depth
from antiphon.tools._answers import Rejected
from antiphon.tools._arguments import ArgumentReader
from antiphon.tools._context import RunContext
from antiphon.tools._execution import (
    N_FORKS,
    Job,
    Outcome,
    TimedOut,
    asked_to_wait,
    error_text,
    finish,
    leave,
    run_async,
    run_async_in_thread,
    run_in_thread,
    run_inline,
)
from antiphon.tools._foreign import SchemaReader
from antiphon.tools._names import VALID, valid_name
from antiphon.tools._result import MAX_CHARS, make_result, safe_text
from antiphon.tools._schema import class_schema, parameters_schema, returns_schema
from antiphon.tools._signature import (
    Signature,
    class_signature,
    is_data_class,
    looks_like_a_method,
    read_signature,
)

_log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
Values = dict[str, Any]
Approval = bool | Callable[[Values], bool]

TIMEOUT_SECONDS = 10.0
"""How long a function may take that says nothing of it: a run must not hang on the silent kind."""
_MAX_PAUSE_SECONDS = 60.0
_VALUES = frozenset({str, int, float, bool, type(None), dict, list, tuple})  # nothing to wait for
_OPTIONS = (
    "timeout",
    "threaded",
    "approval",
    "idempotent",
    "serial",
    "max_chars",
    "max_concurrent",
    "retries",
    "show_errors",
    "capture_stdout",
)


class Tool(Generic[P, R]):
    """A function offered to a model.  Make one with `tool`; calling it calls the function.

    Attributes:
        spec: What the model sees.
        function: The function itself.
        timeout: Seconds until a call is answered as timed out, 10 unless said otherwise; ``None``
            waits for ever.
        threaded: Where the function runs.  ``None``: a plain one in a thread, an async one in the
            event loop.  False: in the event loop; a plain one then holds it up and its timeout
            cannot be kept, but a call costs microseconds.  True: in a thread, an async one with an
            event loop of its own, so that it may block.
        approval: Whether a person must agree first: yes, no, or a function of the arguments.
        idempotent: Whether calling twice does no more than calling once.
        serial: Whether calls of one reply to tools that say so run one at a time, in the calls'
            order, beside those to other tools.
        max_chars: The longest text the model is shown of a result, in characters.
        max_concurrent: How many calls may run at once; ``None`` for any number.
        retries: How often a call that raised is made again, after a pause: what its exception asks
            for (`retry_after`, or its response's Retry-After), if that is a minute or less.  Only
            for idempotent tools.
        show_errors: Whether the model is told the text of an exception, or only that there was one.
        capture_stdout: Whether what the function prints is put in front of its result.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        threaded: bool | None = None,
        approval: Approval = False,
        idempotent: bool = False,
        serial: bool = False,
        max_chars: int = MAX_CHARS,
        max_concurrent: int | None = None,
        retries: int = 0,
        show_errors: bool = True,
        capture_stdout: bool = False,
        spec: ToolSpec | None = None,
    ) -> None:
        _check_options(name, timeout, max_chars, max_concurrent, retries, idempotent)
        self.function = function
        self.timeout = timeout
        self.threaded = threaded
        self.approval = approval
        self.idempotent = idempotent
        self.serial = serial
        self.max_chars = max_chars
        self.max_concurrent = max_concurrent
        self.retries = retries
        self.show_errors = show_errors
        self.capture_stdout = capture_stdout
        self._slots: weakref.WeakKeyDictionary[Any, asyncio.Semaphore] = weakref.WeakKeyDictionary()
        if spec is None:
            self._describe(name, description)
        else:
            self._take_over(spec)

    @classmethod
    def from_spec(
        cls, spec: ToolSpec, function: Callable[[Values], Any], **options: Any
    ) -> "Tool[..., Any]":
        """A tool that others describe: its function is given all arguments as one object.

        Args:
            spec: What the model sees; arguments are checked by its schema.
            function: Plain or async, called with the checked arguments.
            options: See `Tool`.

        Raises:
            RenderError: The schema is nested too deep to be checked.
        """
        made: Callable[..., Any] = function
        return Tool(made, spec=spec, **options)

    def _take_over(self, spec: ToolSpec) -> None:
        check_depth(spec.parameters, spec.name)
        self._is_method = False
        self.spec = spec
        self.signature = read_signature(self.function)
        self._reader: ArgumentReader | SchemaReader = SchemaReader(spec.name, spec.parameters)
        self._bind = _pass_whole
        self._context_names: tuple[str, ...] = ()
        self._settle()

    def _describe(self, name: str | None, description: str | None) -> None:
        function: Any = self.function
        if isinstance(function, staticmethod | classmethod):
            kind = "staticmethod" if isinstance(function, staticmethod) else "classmethod"
            raise ToolDefinitionError(
                f"@tool must stand below @{kind}, not above it; swap the two lines"
            )
        self._is_method = looks_like_a_method(function)
        whole = function if is_data_class(function) else None
        self.signature = signature = (
            class_signature(function)
            if whole is not None
            else read_signature(function, skip_first=self._is_method)
        )
        if name is None and not signature.name.isidentifier():
            raise ToolDefinitionError(
                f"{signature.where}: a tool needs a name, got {signature.name!r}; "
                "give it one: tool(function, name=...)"
            )
        parameters = parameters_schema(signature) if whole is None else class_schema(whole)
        self.spec = ToolSpec(
            name=name or valid_name(signature.name),
            description=signature.description if description is None else description,
            parameters=parameters,
            returns=returns_schema(signature),
        )
        self._reader: ArgumentReader | SchemaReader = ArgumentReader(
            self.spec.name, parameters, signature, whole
        )
        self._bind = _binder(signature) if whole is None else _give_back
        self._context_names = tuple(p.name for p in signature.parameters if p.kind == "context")
        self._settle()

    def _settle(self) -> None:
        """Work out what does not change from call to call."""
        self._is_async = self.signature.is_async
        self._read = self._reader.read
        self._name = self.spec.name
        self._function: Any = self.function
        # What inspection shows of a tool is its function's.
        self.__name__ = self.signature.name
        self.__doc__ = self.function.__doc__
        self.__wrapped__ = self.function
        simple = (
            self._bind is None
            and not (self._context_names or self.capture_stdout or self.retries)
            and not self.signature.is_generator
            and self.max_concurrent is None
        )
        self._direct = simple and self.threaded is False and not self._is_async
        self._awaited = simple and self._is_async and self.timeout is None and not self.threaded

    @property
    def name(self) -> str:
        """What a call names."""
        return self.spec.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, unchecked."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    def __get__(self, instance: object, owner: type | None = None) -> "Tool[..., R]":
        """A tool made in a class body is bound to the instance, as a method is."""
        if instance is None or not self._is_method:
            return cast("Tool[..., R]", self)
        bound = copy.copy(cast("Tool[..., R]", self))
        bound.function = bound._function = bound.__wrapped__ = cast("Any", self.function).__get__(
            instance, owner
        )
        bound._is_method = False
        return bound

    def with_options(self, **options: Any) -> "Tool[P, R]":
        """The same function as another tool: other name, timeout, approval, and so on.

        Args:
            options: Keyword arguments of `tool`.
        """
        current = {key: getattr(self, key) for key in _OPTIONS}
        if isinstance(self._reader, SchemaReader):
            current["spec"] = self.spec
        else:
            current |= {"name": self.spec.name, "description": self.spec.description}
        unknown = options.keys() - current.keys()
        if unknown:
            raise UsageError(f"no tool option {sorted(unknown)[0]!r}; known: {', '.join(current)}")
        return Tool(self.function, **(current | options))

    def needs_approval(self, arguments: Values) -> bool:
        """Whether a person must agree to a call with these arguments; not to one that is refused
        as it is, which they could only agree to for nothing."""
        if self.approval is False or self.problem(arguments):
            return False
        return self.approval is True or self.approval(arguments)

    def problem(self, arguments: str | bytes | Mapping[str, Any] | None) -> str:
        """Why a call with these arguments would be refused; empty where it would not be."""
        try:
            self._read(arguments)
        except Rejected as rejected:
            return str(rejected)
        return ""

    async def call(
        self,
        arguments: str | bytes | Mapping[str, Any] | None = None,
        context: RunContext[Any] | None = None,
        call_id: str = "",
    ) -> ToolResult:
        """Check the arguments, call the function, and answer.

        Args:
            arguments: What the model sent: JSON text, or a JSON object.
            context: What tools that ask for a `RunContext` are given.
            call_id: The id of the call, which the result repeats.

        Returns:
            The result; what went wrong is in it, with `is_error`.

        Raises:
            asyncio.CancelledError: The caller was cancelled.
            UsageError: The tool is a method and has no instance.
        """
        if self._is_method:
            raise UsageError(
                f"tool {self.name!r} is a method; take it from an instance: Shop().{self.name}"
            )
        try:
            values, repairs = self._read(arguments)
        except Rejected as rejected:
            return self._failed(str(rejected), call_id)
        if self._direct:
            made = self._call_directly(values, repairs, call_id)
            if type(made) is ToolResult:
                return made
            job = Job(self._name, lambda: None, self.timeout, None)
            outcome = await finish(job, cast("Outcome", made))
        elif self._awaited:  # the short way: without time limit, context or other limits
            try:
                value: Any = await self._function(**values)
            except BaseException as error:
                _let_cancellation_pass(error)
                return self._failed(self._explain(Outcome(error=error)), call_id, repairs)
            if type(value) is str and len(value) <= self.max_chars and value.isascii():
                return ToolResult(call_id, self._name, value, False, value, (), tuple(repairs))
            return self._answer(value, repairs, call_id)
        else:
            outcome = await self._perform(values, context, call_id)
        if outcome.error is not None:
            return self._failed(self._explain(outcome), call_id, repairs)
        whole = outcome.value
        if outcome.printed:
            whole = outcome.printed if whole is None else f"{outcome.printed}\n{whole}"
        return self._answer(whole, repairs, call_id)

    def _call_directly(
        self, values: Values, repairs: Sequence[str], call_id: str
    ) -> ToolResult | Outcome:
        """The short way for a plain function without thread, context or limits.

        Returns:
            The result, or the outcome where the value is not final yet.
        """
        forks = N_FORKS[0]
        try:
            value: Any = self._function(**values)
        except BaseException as error:
            if N_FORKS[0] != forks:
                leave()
            return self._failed(self._explain(Outcome(error=error)), call_id, repairs)
        if N_FORKS[0] != forks:
            leave()
        kind = type(value)  # pyright: ignore[reportUnknownVariableType]  # narrowed from Any
        if kind is str and len(value) <= self.max_chars and value.isascii():
            return ToolResult(call_id, self._name, value, False, value, (), tuple(repairs))
        return self._answer(value, repairs, call_id) if kind in _VALUES else Outcome(value)

    def _answer(self, value: Any, repairs: Sequence[str], call_id: str) -> ToolResult:
        try:
            return make_result(
                value, name=self._name, call_id=call_id, max_chars=self.max_chars, repairs=repairs
            )
        except BaseException as error:  # the value's own code raises when it is written down
            return self._failed(self._explain(Outcome(error=error)), call_id, repairs)

    async def _perform(
        self, values: Values, context: RunContext[Any] | None, call_id: str
    ) -> Outcome:
        if context is not None or self._context_names:
            context = (context or RunContext()).for_call(self._name, call_id)
            for name in self._context_names:
                values[name] = context
        job = Job(
            self._name, lambda: self._invoke(values), self.timeout, context, self.capture_stdout
        )
        if self.max_concurrent is None:
            return await self._try(job)
        loop = asyncio.get_running_loop()
        slots = self._slots.setdefault(loop, asyncio.Semaphore(self.max_concurrent))
        async with slots:
            return await self._try(job)

    async def _try(self, job: Job) -> Outcome:
        outcome = await self._once(job)
        for attempt in range(self.retries):
            if outcome.error is None or isinstance(outcome.error, ToolError):
                break
            pause = 0.1 * 2**attempt
            asked = asked_to_wait(outcome.error)
            if asked > _MAX_PAUSE_SECONDS:
                break  # the model is told what the service says, and may do something else
            await asyncio.sleep(max(pause, asked))
            outcome = await self._once(job)
        return outcome

    async def _once(self, job: Job) -> Outcome:
        if self._is_async:
            return await (run_async_in_thread(job) if self.threaded else run_async(job))
        if self.threaded is False:
            return await finish(job, run_inline(job))
        return await finish(job, await run_in_thread(job))

    def _invoke(self, values: Values) -> Any:
        if self._bind is None:
            return self._function(**values)
        return self._bind(self._function, values)

    def _explain(self, outcome: Outcome) -> str:
        error = cast("BaseException", outcome.error)
        if isinstance(error, ToolError):
            return safe_text(str(error))
        if isinstance(error, TimedOut):
            _log.warning(
                "tool %r was given up after %g s; give it more: @tool(timeout=...)",
                self._name,
                self.timeout,
            )
        text = error_text(self._name, error, show=self.show_errors, timeout=self.timeout)
        return safe_text(f"{text}\n{outcome.printed}" if outcome.printed else text)

    def _failed(self, text: str, call_id: str, repairs: Sequence[str] = ()) -> ToolResult:
        return ToolResult(call_id, self._name, text, is_error=True, repairs=tuple(repairs))


def _let_cancellation_pass(error: BaseException) -> None:
    """Raise the cancellation of this task; one that a tool raised by itself is a failure of it."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise error


Binder = Callable[[Callable[..., Any], Values], Any]


def _pass_whole(function: Callable[..., Any], values: Values) -> Any:
    """A tool that others describe: its function takes the arguments as one object."""
    return function(values)


def _give_back(_function: Callable[..., Any], values: Values) -> Any:
    """A class as a tool: the validated instance is the value."""
    return values


def _binder(signature: Signature) -> Binder | None:
    """How values are passed; ``None`` where all of them go by name."""
    parameters = signature.parameters
    if not any(p.fill or p.kind in ("positional", "star", "double_star") for p in parameters):
        return None
    star = next((p.name for p in parameters if p.kind == "star"), "")
    by_position = [p for p in parameters if p.kind == "positional"]
    before_star = parameters[: [p.name for p in parameters].index(star)] if star else ()

    def bind(function: Callable[..., Any], values: Values) -> Any:
        for parameter in parameters:
            if parameter.fill and parameter.name not in values:
                values[parameter.name] = parameter.default
        arguments: list[Any] = []
        leading = before_star if values.get(star) else by_position
        for at, parameter in enumerate(leading):
            if parameter.name in values:
                arguments.append(values.pop(parameter.name))
            elif any(later.name in values for later in leading[at:]) or values.get(star):
                arguments.append(parameter.default)
            else:
                break
        arguments.extend(values.pop(star, ()))
        for parameter in parameters:
            if parameter.kind == "double_star":
                values.update(values.pop(parameter.name, {}))
        return function(*arguments, **values)

    return bind


def _check_options(
    name: str | None,
    timeout: float | None,
    max_chars: int,
    max_concurrent: int | None,
    retries: int,
    idempotent: bool,
) -> None:
    if name is not None and not VALID.match(name):
        raise ToolDefinitionError(
            f"a tool cannot be named {name!r}; use 1 to 64 letters, digits, '_' and '-', "
            f"for example {valid_name(name)!r}"
        )
    if timeout is not None and not timeout > 0:
        raise ToolDefinitionError(f"timeout must be a positive number of seconds, got {timeout!r}")
    if max_chars < 200:
        raise ToolDefinitionError(f"max_chars must be at least 200, got {max_chars!r}")
    if max_concurrent is not None and max_concurrent < 1:
        raise ToolDefinitionError(f"max_concurrent must be at least 1, got {max_concurrent!r}")
    if retries and not idempotent:
        raise ToolDefinitionError(
            f"retries={retries} needs idempotent=True: a call that failed may have done its work"
        )


@overload
def tool(function: Callable[P, R], /, **options: Any) -> Tool[P, R]: ...


@overload
def tool(**options: Any) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a tool.

    Args:
        function: A function, method, partial, callable object, or a pydantic class or dataclass.
        options: See `Tool`: ``name``, ``description``, ``timeout``, ``threaded``, ``approval``,
            ``idempotent``, ``serial``, ``max_chars``, ``max_concurrent``, ``retries``,
            ``show_errors``, ``capture_stdout``.

    Raises:
        ToolDefinitionError: The function cannot be described exactly.

    >>> @tool
    ... def double(n: int) -> int:
    ...     "Twice a number."
    ...     return 2 * n
    >>> double.spec.parameters["properties"]
    {'n': {'type': 'integer'}}
    """
    if function is None:
        return lambda inner: Tool(inner, **options)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(function, Tool):
        made = cast("Tool[..., Any]", function)
        return made.with_options(**options) if options else made
    return Tool(function, **options)


def unknown_tool_result(call: ToolCall, tools: Iterable[Tool[..., Any] | ToolSpec]) -> ToolResult:
    """The answer to a call of a tool that there is not.

    Args:
        call: The call.
        tools: What may be called.
    """
    names = sorted(t.name for t in tools)
    near = difflib.get_close_matches(call.name, names, n=1, cutoff=0.5)
    known = ", ".join(names[:40]) + (f", and {len(names) - 40} more" if len(names) > 40 else "")
    hint = f" Did you mean '{near[0]}'?" if near else ""
    text = f"unknown tool '{call.name[:64]}'; the tools are: {known or 'none'}.{hint}"
    return ToolResult(call.id, call.name, safe_text(text), is_error=True)
