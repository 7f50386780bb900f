"""The command line: `antiphon`, a noun, a verb.

Start with `_main.py`.  Each command is one module named after its noun, with two functions:
``add_parser(subparsers)`` describes its arguments and ``run(args)`` does the work and returns the
exit code.  A command reads arguments, calls one public function, and prints; whatever it cannot do
it raises as an `AntiphonError`, which becomes one line here and nowhere else.
"""

from antiphon.cli._main import main

__all__ = ["main"]
