"""Write the generated pages under docs/reference; with --check, report pages that are out of date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docpages import cli, events, flow_pictures, kinds, ladder_pictures, ladders, plans, policy, prompts, settings
from docpages.markdown import GENERATED_MARKER

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def all_pages() -> dict[str, str]:
    """Return the path (below docs/reference) and text of every generated page and picture."""
    pages: dict[str, str] = {}
    for generator in (kinds, ladders, prompts, policy, settings, plans, events, cli):
        pages |= generator.pages()
    return pages | ladder_pictures.pictures() | flow_pictures.pictures()


def obsolete(folder: Path, expected: dict[str, str]) -> list[Path]:
    """Return generated pages and pictures that are no longer expected; hand-written pages have no marker."""
    generated = [path for path in folder.rglob("*.md") if path.read_text(encoding="utf-8").startswith(GENERATED_MARKER)]
    found = sorted([*generated, *folder.glob("pictures/*.svg")])
    return [path for path in found if path.relative_to(folder).as_posix() not in expected]


def write(folder: Path) -> None:
    """Write all pages and delete obsolete ones."""
    expected = all_pages()
    for name, text in expected.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for path in obsolete(folder, expected):
        path.unlink()


def outdated(folder: Path) -> list[Path]:
    """Return pages that are missing, differ or are obsolete."""
    expected = all_pages()
    paths = {folder / name: text for name, text in expected.items()}
    changed = [path for path, text in paths.items() if not path.exists() or path.read_bytes() != text.encode()]
    return [*changed, *obsolete(folder, expected)]


def main() -> int:
    """Return the exit code: 1 if --check found an outdated page, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; list outdated pages and exit with 1 if there are any"
    )
    parser.add_argument("--into", type=Path, default=REFERENCE, help="target directory (default: docs/reference)")
    arguments = parser.parse_args()
    if not arguments.check:
        write(arguments.into)
        return 0
    paths = outdated(arguments.into)
    for path in paths:
        print(f"{path}: outdated; run `make docs`", file=sys.stderr)
    return 1 if paths else 0


if __name__ == "__main__":
    sys.exit(main())
