"""`antiphon runs`: what a store keeps, and going on with what was broken off."""

import argparse
import sys
from datetime import datetime
from pathlib import Path

from antiphon.cli._asking import Session, make_agent, model_spec, open_model, strategy_of
from antiphon.cli._main import Subparsers
from antiphon.cli._terminal import Terminal, clipped, printable
from antiphon.cli.run import exit_code, show_json
from antiphon.errors import DataError, UsageError, clip
from antiphon.events import dump_row
from antiphon.store import RunInfo, Store, open_store

_EPILOG = """\
A run is kept when it is made with --store. A run that was broken off goes on where it
stopped: no finished call is executed again.

example:
  antiphon runs list --store runs.db"""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon runs`."""
    parser = subparsers.add_parser(
        "runs",
        help="list, show and go on with runs that a store keeps",
        description="List, show and go on with runs that a store keeps.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    every = verbs.add_parser("list", help="the newest runs, newest first")
    every.add_argument("--session", metavar="NAME", help="only those of this conversation")
    every.add_argument("--limit", metavar="N", type=int, default=20, help="how many (default 20)")
    show = verbs.add_parser("show", help="write a run's trajectory to stdout")
    show.add_argument("id", metavar="ID", help="the run, or the beginning of its id")
    resume = verbs.add_parser("resume", help="go on with a run that paused or was broken off")
    resume.add_argument("id", metavar="ID", help="the run, or the beginning of its id")
    resume.add_argument("--model", metavar="SPEC", help="another model than before")
    resume.add_argument("--out", metavar="FILE", help="write the trajectory to this file")
    for verb in (every, show, resume):
        verb.add_argument(
            "--store",
            metavar="STORE",
            required=True,
            help="where runs are kept: a file, or postgresql://HOST/DATABASE",
        )
    for verb in (every, resume):
        verb.add_argument("--json", action="store_true", help="lines of JSON on stdout")


def run(args: argparse.Namespace) -> int:
    """List, show or resume.

    Raises:
        AntiphonError: The store or the run cannot be had, or the run has no answer.
    """
    if "://" not in args.store and not Path(args.store).is_file():
        raise DataError(
            "there is no store; make one: antiphon run QUESTION --store FILE", path=args.store
        )
    store = open_store(args.store)
    if args.verb == "list":
        for info in store.runs(session=args.session, limit=args.limit):
            print(_json(info) if args.json else _line(info))
        return 0
    run_id = _whole_id(store, args.id)
    if args.verb == "show":
        print(store.load(run_id).to_json(indent=2))
        return 0
    return _resume(args, store, run_id)


def _resume(args: argparse.Namespace, store: Store, run_id: str) -> int:
    kept = store.load(run_id).metadata.get("cli")
    if not isinstance(kept, dict):
        raise UsageError(
            f"run {run_id!r} was not made by antiphon run, so its tools are not known here; "
            "go on with it in Python: agent.resume(id, store=store)"
        )
    given = argparse.Namespace(**{**kept, **({"model": args.model} if args.model else {})})
    model = open_model(model_spec(given))
    show = show_json if args.json else Terminal().show
    with Session(show, store) as session:
        try:
            result = session.resume(strategy_of(given, make_agent(given, model)), run_id)
        finally:
            if args.out and session.run is not None:
                session.run.trajectory.save(args.out)
            session.close(model)
    return exit_code(result)


def _whole_id(store: Store, begins: str) -> str:
    found = [info.id for info in store.runs(limit=sys.maxsize) if info.id.startswith(begins)]
    if len(found) > 1 and begins not in found:
        raise UsageError(f"{len(found)} runs begin with {clip(begins)}; give more of the id")
    return found[0] if len(found) == 1 else begins


def _line(info: RunInfo) -> str:
    began = datetime.fromtimestamp(info.created).isoformat(" ", "seconds")
    status = "broken off" if info.status == "running" and not info.is_live else info.status
    session = f"[{info.session}] " if info.session else ""
    return printable(
        f"{info.id[:12]}  {began}  {status:<12}  {session}{clipped(info.question, 60)}"
    )


def _json(info: RunInfo) -> str:
    names = ("id", "session", "agent", "question", "created", "updated", "status", "is_live")
    return dump_row({name: getattr(info, name) for name in names})
