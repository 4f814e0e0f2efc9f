"""Writes constraints.txt: the versions that everything was last tested with, so that tomorrow's set-up is today's.

Run by `make constraints` in a fresh environment. It has versions and nothing else: where packages come from is the
machine's own affair.
"""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

FILE = Path(__file__).parent.parent / "constraints.txt"
OURS = frozenset({"rung", "pip", "setuptools", "wheel"})


def main() -> None:
    """Write what is installed here."""
    found = {dist.metadata["Name"].lower().replace("_", "-"): dist.version for dist in distributions()}
    lines = [f"{name}=={version}\n" for name, version in sorted(found.items()) if name not in OURS]
    FILE.write_text("# Written by `make constraints`. Versions everything was last tested with.\n" + "".join(lines))


if __name__ == "__main__":
    main()
