"""A graph of tasks as a Mermaid flowchart (mermaid.js.org).  Text in it can open nothing."""

from collections.abc import Collection, Sequence

_MAX_LABEL_CHARS = 60
_COLOURS = {
    "pending": "fill:#f4f4f4,stroke:#999,color:#333",
    "in_progress": "fill:#fff3cd,stroke:#b58900,color:#333",
    "completed": "fill:#d9f2e3,stroke:#2a7d4f,color:#143",
    "failed": "fill:#f9d6d5,stroke:#b3261e,color:#411",
    "skipped": "fill:#eee,stroke:#999,color:#777,stroke-dasharray:4",
}


def mermaid(tasks: Sequence[tuple[str, str, str, Collection[str]]]) -> str:
    """A flowchart.

    Args:
        tasks: Id, words, status and the ids that it needs of each.
    """
    names = {id: f"t{at}" for at, (id, _, _, _) in enumerate(tasks)}
    lines = ["flowchart TD"]
    for id, words, status, _ in tasks:
        label = _label(f"{id}: {words}" if words and words != id else id)
        lines.append(f'    {names[id]}["{label}"]:::{status}')
    for id, _, _, needs in tasks:
        lines.extend(f"    {names[need]} --> {names[id]}" for need in needs if need in names)
    used = {status for _, _, status, _ in tasks}
    lines.extend(f"    classDef {s} {colour}" for s, colour in _COLOURS.items() if s in used)
    return "\n".join(lines)


def _label(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= _MAX_LABEL_CHARS else line[: _MAX_LABEL_CHARS - 1] + "…"
    return "".join(c if c.isalnum() or c in " .,:_-…" else f"#{ord(c)};" for c in line)
