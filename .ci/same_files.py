"""Check that the installed package has every file of the source, and no other."""

import sys
from pathlib import Path

import antiphon


def files(root: Path) -> set[str]:
    """The files under a folder, bytecode left out."""
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts}


def main() -> int:
    """Compare; 1 when they differ."""
    installed, source = Path(antiphon.__file__).parent, Path("src/antiphon").resolve()
    if installed.resolve() == source:
        print("this is the source itself; install the package first")
        return 1
    missing, extra = files(source) - files(installed), files(installed) - files(source)
    for name in sorted(missing):
        print(f"not in the wheel: {name}")
    for name in sorted(extra):
        print(f"only in the wheel: {name}")
    return int(bool(missing or extra))


if __name__ == "__main__":
    sys.exit(main())
