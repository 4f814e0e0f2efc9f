"""Writes the generated pages under docs/reference; with --check only says whether they are up to date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docpages import events, kinds, ladders, plans, policy, prompts
from docpages.markdown import MARK

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def all_pages() -> dict[str, str]:
    """Path (below docs/reference) and text of every generated page."""
    made: dict[str, str] = {}
    for source in (kinds, ladders, prompts, policy, plans, events):
        made |= source.pages()
    return made


def stale(folder: Path, wanted: dict[str, str]) -> list[Path]:
    """Pages we once wrote and would not write now; pages written by hand do not carry our mark."""
    there = sorted(folder.rglob("*.md"))
    return [
        path
        for path in there
        if path.relative_to(folder).as_posix() not in wanted and path.read_text(encoding="utf-8").startswith(MARK)
    ]


def write(folder: Path) -> None:
    """Bring the folder up to date."""
    wanted = all_pages()
    for name, text in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for path in stale(folder, wanted):
        path.unlink()


def differing(folder: Path) -> list[Path]:
    """Pages that are missing, differ or should not be there."""
    wanted = all_pages()
    paths = {folder / name: text for name, text in wanted.items()}
    wrong = [path for path, text in paths.items() if not path.exists() or path.read_bytes() != text.encode()]
    return [*wrong, *stale(folder, wanted)]


def main() -> int:
    """0 when the pages are (now) right, 1 when --check found one that is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the pages that differ")
    parser.add_argument("--into", type=Path, default=REFERENCE, help="another folder (default: docs/reference)")
    arguments = parser.parse_args()
    if not arguments.check:
        write(arguments.into)
        return 0
    wrong = differing(arguments.into)
    for path in wrong:
        print(f"{path}: not what would be written; run `make docs`", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
