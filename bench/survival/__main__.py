"""Run the cells of the survival table that have no result yet, and write it: python -m bench.survival [--clients a,b] [--report]."""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.clients.cells import DIRECT, GATEWAY, LITELLM, PLAIN
from bench.clients.clients import CLIENTS
from bench.clients.provider.script import FAULTS
from bench.clients.store import ResultStore
from bench.survival import repeated
from bench.survival.document import (
    COLUMNS,
    FAULT,
    PARTS,
    REPEATED,
    WALL,
    Entry,
    document_of,
    fault_entries,
    repeated_entries,
    text_of,
    wall_entries,
)
from bench.survival.page import page
from bench.survival.picture import picture
from bench.walls import cells as walls
from bench.walls.store import WallStore

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUTE: Final = dict(zip(COLUMNS, (DIRECT, GATEWAY, LITELLM), strict=True))
NAMES: Final = {
    FAULT: (PLAIN, *FAULTS),
    WALL: tuple(f"{wall} s" for wall in walls.WALLS),
    REPEATED: (PLAIN, *repeated.FAULTS),
}
MEMBERS: Final = {FAULT: tuple(CLIENTS), WALL: tuple(walls.TRIES), REPEATED: tuple(repeated.AGENT)}


def _chosen(value: str, known: Sequence[str]) -> list[str]:
    """Return the names of a list; a fault's name may have a comma."""
    left, found = value.strip(), []
    while left:
        name = next((name for name in sorted(known, key=len, reverse=True) if left.startswith(name)), None)
        rest = left[len(name or "") :]
        if name is None or (rest and not rest.startswith((",", " "))):
            raise argparse.ArgumentTypeError(f"unknown: {left!r}; known: {', '.join(known)}")
        found.append(name)
        left = rest.lstrip(", ")
    return found


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line; an unknown name is an error that names the known ones."""
    parser = argparse.ArgumentParser(prog="bench.survival", description=__doc__)
    faults = list(dict.fromkeys(name for part in PARTS for name in NAMES[part]))
    for name, known in (("parts", PARTS), ("clients", tuple(CLIENTS)), ("faults", faults), ("columns", COLUMNS)):
        parser.add_argument(
            f"--{name}", type=partial(_chosen, known=known), default=[], help=f"some of: {', '.join(known)} (default: all)"
        )  # fmt: skip
    parser.add_argument("--tries", help="only cells of the part `fault` with these tries of the client's own")
    parser.add_argument("--modes", help="only cells of the part `fault` with these modes")
    parser.add_argument("--workers", default="4", help="cells of the part `fault` at once")
    parser.add_argument("--patience", default="1", help="factor of the timeouts in the part `fault`")
    parser.add_argument("--again", action="store_true", help="also run cells that have a result")
    parser.add_argument("--environments", type=Path, default=Path(".venv/clients"))
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="directory of survival.md, .svg and .json")
    parser.add_argument("--report", action="store_true", help="save the results, write the table, and run nothing")
    return parser.parse_args(arguments)


def commands(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return how the suite of each part is run, for parts with a client and a fault that are wanted."""
    found = {}
    again = ["--again"] if options.again else []
    routes = [ROUTE[column] for column in options.columns or COLUMNS]
    for part in options.parts or PARTS:
        clients = [name for name in MEMBERS[part] if name in (options.clients or MEMBERS[part])]
        faults = [name for name in NAMES[part] if name in (options.faults or NAMES[part])]
        if clients and faults:
            words = SUITES[part](clients, faults, routes, options)
            found[part] = [*words, f"--environments={options.environments}", *again]
    return found


def _clients(clients: list[str], faults: list[str], routes: list[str], options: argparse.Namespace) -> list[str]:
    told = {"tries": options.tries, "mode": options.modes, "workers": options.workers, "patience": options.patience}
    more = [f"--{name}={value}" for name, value in told.items() if value]
    return ["bench.clients", *clients, f"--fault={','.join(faults)}", f"--route={','.join(routes)}", *more]


def _walls(clients: list[str], faults: list[str], routes: list[str], _: argparse.Namespace) -> list[str]:
    seconds = ",".join(name.removesuffix(" s") for name in faults)
    ours = ",".join(walls.ONE if route == GATEWAY else route for route in routes)
    return ["bench.walls", f"--clients={','.join(clients)}", f"--walls={seconds}", f"--routes={ours}"]


def _repeated(clients: list[str], faults: list[str], routes: list[str], _: argparse.Namespace) -> list[str]:
    each = (("client", clients), ("fault", faults), ("route", routes))
    return ["bench.survival.repeated", *(f"--{name}={value}" for name, values in each for value in values)]


SUITES: Final = {FAULT: _clients, WALL: _walls, REPEATED: _repeated}


def saved_entries() -> list[Entry]:
    """Return the cells of all parts, with the committed results alone."""
    nothing = Path("/dev/null")
    twice = ResultStore(nothing, repeated.SAVED)
    return [*fault_entries(ResultStore(nothing)), *wall_entries(WallStore(nothing)), *repeated_entries(twice)]


def write(docs: Path) -> None:
    """Write the table with its document and picture, from the committed results."""
    document = document_of(saved_entries())
    (docs / "survival.json").write_text(text_of(document), encoding="utf-8")
    (docs / "survival.md").write_text(page(document), encoding="utf-8")
    (docs / "survival.svg").write_text(picture(document), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, each suite in a process of its own, and write the table."""
    options = options_of(arguments)
    if not options.report:
        for words in commands(options).values():
            subprocess.run([sys.executable, "-m", *words], check=False)  # 1: a verdict of the suite's own does not hold
    for suite in ("clients", "walls"):  # their pages have the same results
        report = f"--report={options.docs / 'reference' / suite}.md"
        where = f"--environments={options.environments}"
        subprocess.run([sys.executable, "-m", f"bench.{suite}", report, where], check=True)
    ResultStore(options.environments / repeated.STORE, repeated.SAVED).save(repeated.all_cells())
    write(options.docs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
