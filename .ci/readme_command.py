"""Print a command of the README word for word, so that what CI runs is what a reader copies.

The README marks each command block with a comment line: <!-- command: NAME -->.
"""

import re
import sys
from pathlib import Path


def command(name: str) -> str:
    """The single line of the fenced block after the marker. Raises SystemExit when the README lost it."""
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- command: {re.escape(name)} -->\s*```\w*\n(.+?)\n```", text, re.DOTALL)
    if found is None:
        sys.exit(f"README.md: the command block {name!r} is gone; CI runs the README's own words")
    return found[1].replace("\\\n", " ").strip()


if __name__ == "__main__":
    sys.stdout.write(command(sys.argv[1]) + "\n")
