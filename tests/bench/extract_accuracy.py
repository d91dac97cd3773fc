"""Print how exact extraction is on the recorded libraries, and how long a trace takes.

python -m tests.bench.extract_accuracy [--quick] [--more] [--only openinference/] [--wrong]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from collector.extract.extractor import Extractor
from collector.extract.options import Options
from tests.golden import extract_more
from tests.golden.extract_measure import Table, load, measure, rows, unpack


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="libraries whose name contains this")
    parser.add_argument("--wrong", action="store_true", help="name what was not exact")
    parser.add_argument("--more", action="store_true", help="the second set of recordings, without the timing")
    parser.add_argument("--quick", action="store_true", help="one round of the timing instead of five")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as directory:
        table, base = _table(Path(directory), args.only, more=args.more)
        print(table.markdown())
        if args.wrong:
            for case, name, wanted, got in table.wrong:
                print(f"{case}: {name}: wanted {str(wanted)[:200]!r}, got {str(got)[:200]!r}")
        if not args.more:
            _speed(base, args.only, rounds=1 if args.quick else 5)
    return 0


def _table(directory: Path, only: str, *, more: bool) -> tuple[Table, Path]:
    if more:
        return extract_more.measure(extract_more.unpack(directory), only), directory
    base = unpack(directory)
    return measure(base, only=only), base


def _speed(base: Path, only: str, rounds: int) -> None:
    """Milliseconds per trace, and as a multiple of parsing the same attribute values as JSON once."""
    extractor = Extractor(Options())
    print(
        "\n| library | traces | spans per trace | ms per trace | x json.loads of its values |\n|---|---|---|---|---|"
    )
    groups: dict[str, dict[tuple[str, ...], None]] = {}
    for row in rows():
        library = f"{row['convention']}/{row['library']}"
        if only in library:
            groups.setdefault(library, {})[tuple(row["files"])] = None
    for library, cases in sorted(groups.items()):
        loaded = [load(base, files) for files in cases]
        best = baseline = float("inf")
        for _ in range(rounds):
            begun = time.perf_counter()
            for spans, logs in loaded:
                extractor.extract(spans, logs, complete=True)
            best = min(best, time.perf_counter() - begun)
            begun = time.perf_counter()
            for spans, _logs in loaded:
                for span in spans:
                    for value in span.attributes.values():
                        if isinstance(value, str) and value[:1] in "{[":
                            _parse(value)
            baseline = min(baseline, time.perf_counter() - begun)
        traces = len(loaded)
        spans_each = sum(len(spans) for spans, _ in loaded) / traces
        times = best / baseline if baseline > 1e-5 else float("nan")
        print(f"| {library} | {traces} | {spans_each:.1f} | {1000 * best / traces:.2f} | {times:.1f} |")


def _parse(value: str) -> None:
    try:
        json.loads(value)
    except ValueError:
        return


if __name__ == "__main__":
    sys.exit(main())
