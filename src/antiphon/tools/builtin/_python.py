"""Python code as a tool, in a process of its own.

What holds on Linux: the process and all it starts end at the time limit; its memory, files and
processor time are bounded; it sees none of this program's environment variables, starts in an empty
folder that is deleted afterwards, and has no network where the kernel lets an ordinary user make
namespaces (`sandbox_promises` says what holds here).

What does not: it is no sandbox against hostile code.  The code runs as the same user and can read
and write whatever that user can.  For code from strangers use a container or a virtual machine, and
run the tool in there.  On Windows only the time limit and the empty folder hold.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from antiphon.errors import ToolError, UsageError
from antiphon.tools._tool import Tool, tool

MAX_CODE_CHARS = 100_000
MAX_OUTPUT_BYTES = 200_000

_RUNNER = """
import ast, ctypes, os, signal, sys
seconds, memory, network = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "network"

def limit():
    try:
        import resource
    except ImportError:
        return
    for name, value in (("RLIMIT_CPU", seconds), ("RLIMIT_AS", memory), ("RLIMIT_CORE", 0),
                        ("RLIMIT_FSIZE", 50_000_000), ("RLIMIT_NOFILE", 256)):
        try:
            resource.setrlimit(getattr(resource, name), (value, value))
        except (ValueError, OSError):
            pass

def isolate():
    USER, NET, PID = 0x10000000, 0x40000000, 0x20000000
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare
    except (OSError, AttributeError, TypeError):
        return False
    spaces = PID if network else PID | NET
    if libc.unshare(spaces) != 0 and libc.unshare(spaces | USER) != 0:
        return False
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    libc.prctl(1, signal.SIGKILL)
    return True

def refuse(event, args):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"):
        raise PermissionError("no network here")

if not isolate() and not network:
    sys.addaudithook(refuse)
code = sys.stdin.read()
limit()
if code == "?promises":
    print("namespaces" if os.getpid() == 1 else "none")
    raise SystemExit
scope = {"__name__": "__main__"}
try:
    tree = ast.parse(code, "<code>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<code>", "exec"), scope)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "<code>", "eval"), scope)
        if value is not None:
            print(repr(value))
except SystemExit:
    raise
except BaseException as error:
    import traceback
    shown = traceback.TracebackException.from_exception(error)
    frames = [f for f in shown.stack if f.filename == "<code>"]
    for frame in frames[-3:]:
        print(f"line {frame.lineno}, in {frame.name}", file=sys.stderr)
    print("".join(shown.format_exception_only()).strip()[-2000:], file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
"""


def python_tool(
    *, timeout: float = 10.0, memory_mb: int = 512, network: bool = False
) -> Tool[..., Any]:
    """A tool that runs Python code in a process of its own.

    Read this module's docstring for what it cannot promise.

    Args:
        timeout: Seconds until the code is stopped.
        memory_mb: The most memory it may take, in megabytes.
        network: Whether it may use the network.

    Raises:
        UsageError: A limit is not positive.
    """
    if timeout <= 0 or memory_mb < 64:
        raise UsageError(
            "python_tool needs a positive timeout and at least 64 MB, "
            f"got {timeout} s and {memory_mb} MB"
        )

    @tool(timeout=timeout + 15.0)
    async def python(code: str) -> str:
        """Run Python code and read what it prints, and the value of its last line.

        Args:
            code: The program; nothing is kept between calls.
        """
        if len(code) > MAX_CODE_CHARS:
            raise ToolError(
                f"the code has {len(code)} characters; at most {MAX_CODE_CHARS} are run"
            )
        return await _run(code, timeout, memory_mb, network)

    return python


async def sandbox_promises() -> frozenset[str]:
    """What holds on this machine besides the limits of time and memory.

    Returns:
        ``no network`` and ``no process left behind``, where the kernel grants them.
    """
    answer = await _run("?promises", 10.0, 512, False)
    granted = answer.strip() == "namespaces"
    return frozenset({"no network", "no process left behind"}) if granted else frozenset()


async def _run(code: str, timeout: float, memory_mb: int, network: bool) -> str:
    with tempfile.TemporaryDirectory(
        prefix="antiphon-python-", ignore_cleanup_errors=True
    ) as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-c",
            _RUNNER,
            str(int(timeout) + 1),
            str(memory_mb * 1_000_000),
            "network" if network else "no-network",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(Path(folder)),
            start_new_session=True,
        )
        try:
            output, whole = await asyncio.wait_for(_talk(process, code), timeout)
        except TimeoutError:
            raise ToolError(f"the code was stopped after {timeout:g} s; make it do less") from None
        finally:
            await _end(process)
    text = output.decode("utf-8", "replace")
    if not whole:
        raise ToolError(
            f"the code was stopped after {MAX_OUTPUT_BYTES} bytes of output:\n{text[:2000]}"
        )
    if process.returncode:
        raise ToolError(_failure(text, process.returncode, memory_mb))
    return text or "(no output)"


def _failure(text: str, code: int, memory_mb: int) -> str:
    if code in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
        return f"{text}the code was stopped: it used up its processor time"
    if "MemoryError" in text:
        return f"{text.strip()} (at most {memory_mb} MB)"
    return text.strip() or f"the code ended with exit code {code} and no output"


def _environment(folder: Path) -> dict[str, str]:
    kept = {k: os.environ[k] for k in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if k in os.environ}
    return {
        **kept,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
    }


async def _talk(process: asyncio.subprocess.Process, code: str) -> tuple[bytes, bool]:
    """Send the code, read the output up to its limit: the bytes, and whether they are all."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(code.encode("utf-8", "replace"))
        await process.stdin.drain()
        process.stdin.close()
    parts: list[bytes] = []
    size = 0
    while part := await process.stdout.read(65536):
        parts.append(part)
        size += len(part)
        if size > MAX_OUTPUT_BYTES:
            return b"".join(parts)[:MAX_OUTPUT_BYTES], False
    await process.wait()
    return b"".join(parts), True


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of the process and its group, and collect it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    if process.stdout is not None:
        while await process.stdout.read(65536):  # a pipe is closed where its end was read
            pass
    await process.wait()
