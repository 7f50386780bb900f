"""The plan of a run as a graph to draw: where each task stands, what it needs, how it ended.

A task stands one row below the lowest task that it needs.  Earlier plans of the run that were given
up are told by the events; the graph is the last plan with every task that was begun.
"""

from antiphon.events import PlanEvent, TaskEvent, Trajectory
from antiphon.messages import JsonObject, JsonValue, dump_json
from antiphon.viewer._timeline import finite

_REFERENCE_MARKS = ("${", "}")


def plan_row(trajectory: Trajectory) -> "JsonObject | None":
    """The graph; ``None`` where the run had no plan."""
    tasks: dict[str, JsonObject] = {}
    for event in trajectory.events:
        if isinstance(event, PlanEvent) and event.state in ("proposed", "edited"):
            begun = {id: row for id, row in tasks.items() if row["status"] != "pending"}
            tasks = {**begun, **_tasks_of(event, begun)}
        elif isinstance(event, TaskEvent):
            row = tasks.setdefault(event.task, _task({"id": event.task}))
            row["status"] = event.status
            row["reason"] = event.reason
            if event.call is not None:
                row["call"] = f"{event.call.name}({dump_json(event.call.arguments)})"
            if event.result is not None:
                row["result"] = event.result.text
            row["started" if event.status == "in_progress" else "ended"] = finite(event.time)
    if not tasks:
        return None
    rows = _depths(tasks)
    return {"tasks": [{**row, "row": rows[id]} for id, row in tasks.items()]}


def _tasks_of(event: PlanEvent, begun: dict[str, JsonObject]) -> dict[str, JsonObject]:
    given = event.plan.get("tasks")
    found: dict[str, JsonObject] = {}
    for row in given if isinstance(given, list) else []:
        if isinstance(row, dict):
            made = _task(row)
            id = str(made["id"])
            known = begun.get(id)
            found[id] = known if known is not None and known["status"] == "completed" else made
    return found


def _task(row: JsonObject) -> JsonObject:
    arguments = row.get("arguments")
    needs = row.get("depends_on")
    ids = [str(id) for id in needs] if isinstance(needs, list) else []
    text = f"{dump_json(arguments)} {row.get('prompt') or ''}"
    return {
        "id": str(row.get("id", "")),
        "what": str(row.get("title") or row.get("tool") or row.get("prompt") or ""),
        "call": f"{row['tool']}({dump_json(arguments)})" if row.get("tool") else "",
        "needs": list(dict.fromkeys([*ids, *_referred(text)])),
        "status": str(row.get("status", "pending")),
        "reason": "",
        "result": "",
        "started": None,
        "ended": None,
    }


def _referred(text: str) -> list[str]:
    """Ids between ``${`` and the first mark behind them."""
    opens, closes = _REFERENCE_MARKS
    found: list[str] = []
    for part in text.replace("$$", "").split(opens)[1:]:
        inside = part.partition(closes)[0]
        id = inside.partition(".")[0].partition("[")[0]
        if id and all(c.isalnum() or c in "_-" for c in id):
            found.append(id)
    return found


def _depths(tasks: dict[str, JsonObject]) -> dict[str, int]:
    """The row of each task, below all that it needs; what goes in a circle stays where it is."""
    rows = dict.fromkeys(tasks, 0)
    for _ in tasks:
        changed = False
        for id, task in tasks.items():
            needs: JsonValue = task["needs"]
            above = [rows[str(n)] for n in (needs if isinstance(needs, list) else []) if n in rows]
            row = min(len(tasks), max((r + 1 for r in above), default=0))
            changed = changed or row != rows[id]
            rows[id] = row
        if not changed:
            break
    return rows
