"""The report of a verification as one HTML page that needs nothing else."""

from collections.abc import Iterable, Sequence
from html import escape

from antiphon.batch import write_text
from antiphon.events import dump_row
from antiphon.verification._stages import VerifyReport

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #222; background: #fff }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; width: 100% }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .6rem; text-align: left;
  vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
h2 { margin-top: 2rem }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 }
  th, td { border-color: #444 } }
"""


def save_report(report: VerifyReport) -> None:
    """Write ``report.json`` and ``report.html`` into the report's folder.

    Raises:
        DataError: They cannot be written.
    """
    write_text(report.out / "report.json", dump_row(report.to_row(), indent=1) + "\n")
    write_text(report.out / "report.html", page(report))


def page(report: VerifyReport) -> str:
    """The page."""
    n = report.n_kept + report.n_dropped
    share = f"{report.n_kept / n:.1%}" if n else "none"
    parts = [
        f"<p>{report.n_kept} of {n} rows are kept ({share}). "
        f"{report.n_masked} messages in them have the loss 0.</p>",
        _section(
            "Dropped, by the check that failed", ("check", "rows"), report.dropped.most_common()
        ),
        *(_reasons(name, rows) for name, rows in report.reasons.items()),
        _section(
            "Every check",
            ("check", "pass", "fail", "unsure"),
            [(k, c["pass"], c["fail"], c["unsure"]) for k, c in sorted(report.checks.items())],
        ),
        _section(
            "Kinds of task",
            ("kind", "kept", "dropped"),
            [(k, c["kept"], c["dropped"]) for k, c in sorted(report.kinds.items())],
        ),
        _section("Calls in kept rows", ("tool", "calls"), report.tools.most_common(40)),
        _section("Kept rows by user messages", ("messages", "rows"), sorted(report.turns.items())),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Verification</title>'
        f"<style>{_STYLE}</style>\n<h1>Verification</h1>\n{body}\n</html>\n"
    )


def _section(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows]
    if not lines:
        return ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<h2>{escape(title)}</h2>\n<table><tr>{names}</tr>\n" + "\n".join(lines) + "\n</table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td class="number">{value}</td>'
    return f"<td>{escape(str(value))}</td>"


def _reasons(name: str, rows: Sequence[tuple[str, str]]) -> str:
    return _section(f"{name}: the first rows", ("row", "reason"), rows)
