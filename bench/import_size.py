"""How long `import antiphon` takes, and how much disk the core takes.

Builds a new environment, installs this checkout into it without extras, times fresh interpreters
and adds up what lies in site-packages.  The best of the runs counts: what else the machine does can
only slow a run.  Limits are the project's own (import under 0.3 s, core under 40 MB) and the exit
code says whether they hold.

    python bench/import_size.py [--runs N]
"""

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_IMPORT = 0.3
"""Seconds that `import antiphon` may take beyond a bare interpreter."""
MAX_SIZE_BYTES = 40_000_000
"""Bytes that the core and its dependencies may take."""

STATEMENTS = {
    "bare interpreter": "pass",
    "import antiphon": "import antiphon",
    "antiphon.Message": "import antiphon; antiphon.Message",
    "antiphon.tool": "import antiphon; antiphon.tool",
    "every public name": "import antiphon; [getattr(antiphon, n) for n in antiphon.__all__]",
    "antiphon --version": "import sys; from antiphon.cli import main; main(['--version'])",
    "antiphon --help": "import sys; from antiphon.cli import main; main(['--help'])",
}
"""What is timed: a label, and code for a fresh interpreter."""


def fresh_environment(folder: Path) -> Path:
    """A new environment with this checkout installed; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", str(ROOT)]
    subprocess.run(install, check=True)
    return python


def seconds(python: Path, code: str, runs: int) -> float:
    """The best wall time of a fresh interpreter that runs some code, in seconds."""
    command = [str(python), "-c", code]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # writes the bytecode
    times: list[float] = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times)


def sizes(site: Path) -> dict[str, int]:
    """Bytes of each package in site-packages, without pip, setuptools and bytecode."""
    found: dict[str, int] = {}
    for path in sorted(site.iterdir()):
        name = path.name.partition("-")[0].removesuffix(".libs").removesuffix(".py")
        if name in ("pip", "setuptools", "pkg_resources", "_distutils_hack", "__pycache__"):
            continue
        files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
        n_bytes = sum(f.stat().st_size for f in files if f.suffix != ".pyc")
        found[name] = found.get(name, 0) + n_bytes
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a limit does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="fresh interpreters for each line")
    runs = parser.parse_args(argv).runs
    print(f"Python {platform.python_version()}, {platform.machine()}, best of {runs} runs\n")
    with tempfile.TemporaryDirectory() as folder:
        python = fresh_environment(Path(folder))
        times = {label: seconds(python, code, runs) for label, code in STATEMENTS.items()}
        (site,) = Path(folder).glob("lib/python*/site-packages")
        packages = sizes(site)
    return report(times, packages)


def report(times: dict[str, float], packages: dict[str, int]) -> int:
    """Print both tables; 1 when a limit does not hold."""
    bare = times["bare interpreter"]
    print(f"{'statement':<22} {'wall':>9} {'added':>9}")
    for label, wall in times.items():
        print(f"{label:<22} {wall * 1000:>6.0f} ms {(wall - bare) * 1000:>6.0f} ms")
    print(f"\n{'package':<22} {'size':>9}")
    for name, n_bytes in sorted(packages.items(), key=lambda item: -item[1]):
        print(f"{name:<22} {n_bytes / 1e6:>6.2f} MB")
    total = sum(packages.values())
    print(f"{'all':<22} {total / 1e6:>6.2f} MB")
    slow, large = times["import antiphon"] - bare > MAX_IMPORT, total > MAX_SIZE_BYTES
    print(f"\nimport under {MAX_IMPORT} s: {'no' if slow else 'yes'}")
    print(f"core under {MAX_SIZE_BYTES / 1e6:.0f} MB: {'no' if large else 'yes'}")
    return int(slow or large)


if __name__ == "__main__":
    sys.exit(main())
