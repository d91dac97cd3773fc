"""What redaction costs beside screening, and what a hostile text costs beside an ordinary one.

    python -m tests.bench.redaction [--interactions N] [--eval DIRECTORY] [--quick]

All times are of the processor, in one run on one machine, the least of three: redaction of each interaction as the
worker does it, against the fast local scorers on the same interactions; a search over words (`\\w+`) on the same
texts, which any text costs; and texts of a megabyte made to be slow, each against that search over itself. `--eval`
names a directory of JSON Lines with question, contexts and response: what is found in its texts is printed, since in
texts without personal values all of it is false.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

from collector.extract.redaction import Redactor
from collector.extract.redaction_detect import Detector
from collector.extract.redaction_options import Personal, RedactionOptions
from collector.records.found import Found
from scorers.local import build
from scorers.run import run_local
from scorers.scorer import Tier
from tests.bench.local_speed import interactions

HOSTILE = (
    "a",
    "1",
    "1 ",
    "12 ",
    "212 ",
    "1.1.1.1.",
    "a@a.",
    ":",
    "a:",
    "A1",
    "DE89 ",
    "sk-",
    "-eyJ",
    "0-",
    "(0",
    "key=",
)
_WORDS = re.compile(r"\w+")


def least(work: Callable[[], object], *, times: int = 3) -> float:
    """Processor seconds of the fastest of some runs."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--interactions", type=int, default=2_000)
    parser.add_argument("--eval", type=Path, help="directory of JSON Lines")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args(argv)
    count = 200 if args.quick else args.interactions
    length = 50_000 if args.quick else 1_000_000

    items = list(interactions(count))
    found = [Found(one) for one in items]
    texts = [
        text
        for one in items
        for text in (one.question, one.response, *(p.text for p in one.contexts or ()))
        if text
    ]
    scorers = build(tier=Tier.FAST)

    def redact(redactor: Redactor) -> None:
        for one in found:
            redactor.redact(one)

    # A new one has seen no passage, as when every passage is a new one; the other has seen them all.
    redacting = least(lambda: redact(Redactor(RedactionOptions(), seed="bench")))
    seen = Redactor(RedactionOptions(), seed="bench")
    redact(seen)
    again = least(lambda: redact(seen))
    scoring = least(lambda: run_local(scorers, items), times=1 if args.quick else 3)
    words = least(lambda: [_WORDS.findall(text) for text in texts])
    size = sum(map(len, texts))
    print(f"{count} interactions, {size / count:,.0f} characters each")
    print(f"redaction            {redacting / count * 1e6:9.1f} us an interaction")
    print(f"  seen passages      {again / count * 1e6:9.1f} us an interaction")
    print(f"fast local scorers   {scoring / count * 1e6:9.1f} us an interaction")
    print(f"redaction / scorers  {redacting / scoring:9.3f}")
    print(f"  seen passages      {again / scoring:9.3f}")
    print(f"redaction / words    {redacting / words:9.2f}")

    detector = Detector(tuple(Personal), ())
    print(
        f"\nhostile texts of {length:,} characters, against a search for words in an ordinary text of that length"
    )
    ordinary = (" ".join(texts) * (length // max(1, size) + 1))[:length]
    base = least(lambda: _WORDS.findall(ordinary), times=1)
    for unit in HOSTILE:
        text = unit * (length // len(unit))
        print(f"  {unit!r:12} {least(lambda text=text: detector.hits(text), times=1) / base:8.1f} x")
    if args.eval is not None:
        report(detector, args.eval)
    return 0


def report(detector: Detector, directory: Path) -> None:
    """What is found in labelled texts, by form."""
    counts: Counter[str] = Counter()
    seen, size = 0, 0
    for file in sorted(directory.glob("*.jsonl")):
        of_file: Counter[str] = Counter()
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for text in (row.get("question"), row["response"], *row["contexts"]):
                if isinstance(text, str):
                    seen, size = seen + 1, size + len(text)
                    of_file.update(hit.name for hit in detector.hits(text))
        counts += of_file
        if of_file:
            print(f"  {file.name}: {dict(of_file)}")
    print(f"{seen:,} texts, {size:,} characters: {dict(counts)}")


if __name__ == "__main__":
    sys.exit(main())
