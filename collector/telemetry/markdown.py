"""The table of metrics for people, made from the table of metrics."""

from __future__ import annotations

from collections.abc import Iterable

from collector.telemetry.metrics import table
from collector.telemetry.spec import MetricSpec

BEGIN = "<!-- metrics: begin, made by `python -m collector.telemetry.markdown FILE` -->"
END = "<!-- metrics: end -->"


def markdown_table(specs: Iterable[MetricSpec] | None = None) -> str:
    """One Markdown table of all metrics, grouped by stage, in the order of declaration."""
    groups: dict[str, list[MetricSpec]] = {}
    for spec in table() if specs is None else specs:
        groups.setdefault(spec.group, []).append(spec)
    lines = ["| stage | metric | type | labels | meaning |", "| --- | --- | --- | --- | --- |"]
    for group, rows in groups.items():
        for spec in rows:
            labels = ", ".join(f"`{name}`" for name in spec.labels) + (" + segments" if spec.segmented else "")
            text = spec.help.replace("|", "\\|")
            lines.append(f"| {group} | `{spec.name}` | {spec.type} | {labels.removeprefix(' + ')} | {text} |")
    return "\n".join(lines)


def embed(document: str) -> str:
    """The document with the table between its two marker lines; ValueError where they are missing."""
    start, end = document.find(BEGIN), document.find(END)
    if start < 0 or end < start:
        raise ValueError(f"the document lacks the lines {BEGIN!r} and {END!r}, in this order")
    return f"{document[: start + len(BEGIN)]}\n{markdown_table()}\n{document[end:]}"


def main(argv: list[str]) -> int:
    """Rewrite the table in each of the files named."""
    from pathlib import Path

    for name in argv:
        path = Path(name)
        path.write_text(embed(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
