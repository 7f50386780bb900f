"""`antiphon view`: a recorded run, or the first rows of a dataset, as one HTML page."""

import argparse
import os
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from antiphon.cli._main import Subparsers
from antiphon.datasets import Checker, Finding, iter_rows, read_row
from antiphon.errors import AntiphonError, DataError, UsageError, clip
from antiphon.events import Trajectory
from antiphon.messages import Conversation
from antiphon.viewer import (
    DatasetRow,
    Encoding,
    Record,
    make_server,
    render_page,
    render_rows,
)

_EPILOG = """\
example:
  antiphon view run.json --html run.html
  antiphon view rows.jsonl --format qwen2_5 --tokenizer qwen2_5 --loss react --tokens
  antiphon view rows.jsonl --browse"""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon view`."""
    parser = subparsers.add_parser(
        "view",
        help="draw a recorded run as one HTML page",
        description="Draw a recorded run, or the first rows of a dataset, as one HTML page that "
        "needs no network: conversation, timeline, exact texts, tokens by weight, events.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", metavar="FILE", help="a recorded run, or rows: JSON, JSONL, - for stdin"
    )
    parser.add_argument(
        "--html", metavar="OUT", help="where to write the page; beside FILE by default, - is stdout"
    )
    parser.add_argument(
        "--rows", type=int, help="how many rows of a dataset to show: 20, or all with --browse"
    )
    parser.add_argument(
        "--browse",
        action="store_true",
        help="show rows in a list to search and filter, with what is wrong with each",
    )
    parser.add_argument("--format", metavar="NAME", help="the family whose text to weigh")
    parser.add_argument("--loss", metavar="POLICY", default="default", help="the loss policy")
    parser.add_argument(
        "--tokenizer",
        metavar="NAME",
        default="",
        help="a name, directory, GGUF file or local: show tokens; else the run's own, if here",
    )
    parser.add_argument(
        "--tokens",
        action="store_true",
        help="print the tokens instead of a page: coloured by author and weight, or one a line",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument("--serve", action="store_true", help="serve the page on this machine")
    parser.add_argument(
        "--port", type=int, default=0, help="where to serve; a free port by default"
    )


def run(args: argparse.Namespace) -> int:
    """Write or serve the page and print where it is.

    Raises:
        DataError: The file cannot be read, or the page cannot be written.
        UsageError: The arguments do not fit together.
    """
    source = Path(args.file)
    if args.rows is not None and args.rows < 1:
        raise UsageError(f"--rows must be 1 or more, got {args.rows}")
    if args.tokens:
        return _print_tokens(args, source)
    if args.serve:
        return _serve(args, source)
    page = _render(args, source)
    if args.html == "-":
        sys.stdout.write(page)
        return 0
    if args.html is None and args.file == "-":
        raise UsageError("what comes from stdin needs --html OUT, or --html - for stdout")
    target = source.with_suffix(".html") if args.html is None else Path(args.html)
    if target.absolute() == source.absolute():
        raise UsageError(f"the page would overwrite {clip(str(source))}; give --html another file")
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=target) from error
    print(target)
    if args.open:
        webbrowser.open(target.absolute().as_uri())
    return 0


def _print_tokens(args: argparse.Namespace, source: Path) -> int:
    """Write the tokens of the rows to stdout, in colour on a terminal, else one a line."""
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for name, trajectory in islice(_trajectories(source), args.rows or 20):
        for encoding in _encodings(args, trajectory):
            if not encoding.spans:
                continue
            n_trained = sum(span.weight > 0 for span in encoding.spans)
            what = "tokens" if encoding.tokenizer else "stretches"
            print(f"{source.name}: {name}: {len(encoding.spans)} {what}, {n_trained} count")
            lines = _painted(encoding) if color else _listed(encoding)
            print("\n".join(lines), end="\n\n")
    return 0


_PAINT = {"frame": "2", "given": "34", "written": "32"}


def _painted(encoding: Encoding) -> Iterator[str]:
    """The text, dim where it is the family's own, blue where it is read, green where the model
    writes it; what counts is underlined, what counts more than once in magenta."""
    parts: list[str] = []
    for span in encoding.spans:
        style = "35" if span.weight > 1 else _PAINT[span.author]
        style += ";4" if span.weight > 0 else ""
        text = _visible(span.text)
        parts.append("\n".join(f"\x1b[{style}m{line}\x1b[0m" for line in text.split("\n")))
    yield "".join(parts)


def _listed(encoding: Encoding) -> Iterator[str]:
    """Place, id, weight and author of each token, and its text."""
    for i, span in enumerate(encoding.spans):
        token = "" if span.token_id is None else str(span.token_id)
        yield f"{i:>6} {token:>8} {span.weight:>6g} {span.author:<8} {span.text!r}"


def _visible(text: str) -> str:
    """A text without characters that steer a terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )


def _serve(args: argparse.Namespace, source: Path) -> int:
    _render(args, source)  # a broken file is told here, not in the browser
    with make_server(lambda: _render(args, source), args.port) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        print(f"{url}  (Ctrl-C stops)", flush=True)
        if args.open:
            webbrowser.open(url)
        with suppress(KeyboardInterrupt):  # the way it is meant to end
            server.serve_forever()
    return 0


def _render(args: argparse.Namespace, source: Path) -> str:
    if args.browse:
        return render_rows(islice(_dataset_rows(args, source), args.rows), title=source.name)
    records = [
        Record(trajectory, name, _encodings(args, trajectory))
        for name, trajectory in islice(_trajectories(source), args.rows or 20)
    ]
    if not records:
        raise DataError("there is nothing in it to show", path=source)
    return render_page(records, title=source.name)


def _dataset_rows(args: argparse.Namespace, source: Path) -> Iterator[DatasetRow]:
    """Every row, with what is wrong with it; weighed where a format is named."""
    checker, broken = Checker(), list[DataError]()
    for line, row in iter_rows(source, report=broken.append):
        yield from _unread(broken)
        problems = tuple(_sentence(finding) for finding in checker.check(row, line))
        try:
            recorded = "antiphon" in row
            read = Trajectory.from_row(row) if recorded else Trajectory(read_row(row))
            encodings = _encodings(args, read) if args.format else ()
            yield DatasetRow(read.conversation, str(line), problems, encodings)
        except AntiphonError as error:
            yield DatasetRow(Conversation(), str(line), problems or (str(error),))
    yield from _unread(broken)


def _unread(broken: list[DataError]) -> Iterator[DatasetRow]:
    for error in broken:
        yield DatasetRow(Conversation(), str(error.line or ""), (str(error),))
    broken.clear()


def _sentence(finding: Finding) -> str:
    where = "" if finding.message is None else f"message {finding.message}: "
    return where + finding.text


def _encodings(args: argparse.Namespace, trajectory: Trajectory) -> tuple[Encoding, ...]:
    """The conversations as a trainer sees them, in the run's own format unless another is named.

    What was asked for must succeed; what only the record suggests may be left out, with a note.
    """
    recorded = (step.completion.format for step in trajectory.steps)
    name = args.format or next(filter(None, recorded), "")
    asked = bool(args.format or args.tokenizer or args.tokens)
    if not name:
        if asked:
            raise UsageError("the record names no format; give one with --format")
        return ()
    from antiphon.cli._training import encode_for_view, tokenizer_of

    tokenizer = args.tokenizer or tokenizer_of(trajectory)
    try:
        return encode_for_view(trajectory, format=name, loss=args.loss, tokenizer=tokenizer)
    except AntiphonError as error:
        if asked:
            raise
        print(f"antiphon: the page has no training view: {error}", file=sys.stderr)
        return ()


def _trajectories(path: Path) -> Iterator[tuple[str, Trajectory]]:
    """Each row of a file, and a name for it."""
    for line, row in iter_rows(path):
        try:
            recorded = "antiphon" in row
            trajectory = Trajectory.from_row(row) if recorded else Trajectory(read_row(row))
        except DataError as error:
            raise DataError(str(error), path=path, line=line) from error
        yield f"line {line}", trajectory
