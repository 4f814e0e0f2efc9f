"""Write the pictures of README from the running program; with --check, report pictures that no longer show it.

`terminal` is a recording of `rung demo` (SVG), `incident` is the dashboard's incident page over the demo world (PNG).
A recording is compared by its text, a page by its text and by its look.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from pictures import incident, terminal
from pictures.recording import record

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
COMMAND: Final = "rung demo"
MAX_DIFFERENCE: Final = 0.03  # of the look of two pages
MAX_BYTES: Final = {"terminal.svg": 100_000, "incident.png": 300_000}


def write_terminal(folder: Path) -> None:
    """Record `rung demo` and write it."""
    svg = terminal.draw(COMMAND, COMMAND, record([str(Path(sys.executable).with_name("rung")), "demo"]))
    (folder / "terminal.svg").write_text(svg, encoding="utf-8", newline="\n")


def check_terminal(folder: Path) -> list[str]:
    """Compare the text of the recording with that of a new one, made without pauses."""
    shown = terminal.text_of((folder / "terminal.svg").read_text(encoding="utf-8"))
    lines = record([str(Path(sys.executable).with_name("rung")), "demo", "--fast"])
    now = terminal.text_of(terminal.draw(COMMAND, COMMAND, lines))
    return [] if shown == now else [_first_difference("terminal.svg", shown, now)]


def write_incident(folder: Path) -> None:
    """Take the picture of the incident page and write it with the page's text."""
    picture = incident.take()
    (folder / "incident.png").write_bytes(picture.png)
    (folder / "incident.txt").write_text(picture.text, encoding="utf-8", newline="\n")


def check_incident(folder: Path) -> list[str]:
    """Compare the text and the look of the page with those of a new picture."""
    picture = incident.take()
    shown = (folder / "incident.txt").read_text(encoding="utf-8").splitlines()
    problems = [] if shown == picture.text.splitlines() else [
        _first_difference("incident.png", shown, picture.text.splitlines())
    ]  # fmt: skip
    by = incident.difference((folder / "incident.png").read_bytes(), picture.png)
    return [*problems, f"incident.png looks different: by {by:.3f}"] if by > MAX_DIFFERENCE else problems


def too_large(folder: Path) -> list[str]:
    """Return a message for each picture that a page would load slowly."""
    sizes = {name: (folder / name).stat().st_size for name in MAX_BYTES}
    return [
        f"{name} has {size:,} bytes; allowed are {MAX_BYTES[name]:,}"
        for name, size in sizes.items()
        if size > MAX_BYTES[name]
    ]


def _first_difference(name: str, shown: list[str], now: list[str]) -> str:
    pairs = zip([*shown, *[""] * len(now)], [*now, *[""] * len(shown)], strict=False)
    old, new = next((old, new) for old, new in pairs if old != new)
    return f"{name} shows {old!r}, but the program shows {new!r}"


PICTURES: Final = {"terminal": (write_terminal, check_terminal), "incident": (write_incident, check_incident)}


def main() -> int:
    """Return the exit code: 1 if --check found a picture that is out of date, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="terminal or incident (default: both)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a picture is out of date")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the pictures (default: docs/pictures)")
    arguments = parser.parse_args()
    names = arguments.names or list(PICTURES)
    if unknown := [name for name in names if name not in PICTURES]:
        parser.error(f"unknown picture {unknown[0]!r}; there are {', '.join(PICTURES)}")
    problems = []
    for name in names:
        write, check = PICTURES[name]
        if arguments.check:
            problems += check(arguments.folder)
        else:
            write(arguments.folder)
    problems += too_large(arguments.folder)
    for problem in problems:
        print(f"{problem}; run `make pictures`" if arguments.check else problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
