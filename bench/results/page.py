"""The page of results and its pictures, made from docs/results and docs/survival.json alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from bench.results.benchmarks import BENCHMARKS, CORPUS, WORLDS
from bench.results.record import BadRecord, read_records
from bench.results.section import DASH, table
from bench.results.sections import accuracy, durability, faults, speed
from bench.results.sections.worlds import worlds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench.results.record import Record
    from bench.results.section import Section

MARKER: Final = (
    "<!-- Generated from docs/results/*.json and survival.json. Do not edit: run `make results` or `make docs`. -->"
)
FOLDER: Final = "results"
_INTRO: Final = """Every figure here was measured by a command that you can run, beside the peers named in the same table, in the same run and on the
same machine. Ratios are the figures to compare; seconds depend on the machine. `make results` runs everything (hours),
`make results NAME="overhead loops"` some, and `make docs` writes this page from the [stored figures](results) without running anything. A
benchmark without stored figures is *not measured in this version*. The digest after Rung's version is that of its source files. "Where we
lose" is computed: it lists each measure in which a peer is better at the precision shown."""


def sections(records: Mapping[str, Record], survival: Mapping[str, Any] | None) -> list[Section]:
    """Return all sections, measured or not; figures that no section shows are an error."""
    known = {name for name in records if name in BENCHMARKS or name.startswith((f"{CORPUS}-", f"{WORLDS}-"))}
    if unknown := sorted(records.keys() - (known - {CORPUS})):
        raise BadRecord(f"no section shows {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    return [
        speed.overhead(records),
        speed.concurrency(records),
        speed.gateway(records),
        faults.walls(survival),
        faults.faults(survival),
        faults.matrix(records),
        faults.incidents(records),
        worlds(records),
        accuracy.classification(records),
        accuracy.loops(records),
        durability.power_cuts(records),
        durability.journal(records),
        durability.fleet(records),
    ]


def page(found: list[Section]) -> str:
    """Return the page."""
    parts = [MARKER, "# Results", _INTRO, _overview(found), *(section.text(FOLDER) for section in found)]
    return "\n\n".join(parts) + "\n"


def _overview(found: list[Section]) -> str:
    body = []
    for section in found:
        link = section.title.lower().replace(",", "").replace(":", "").replace(" ", "-")
        lost = str(len(section.losses)) if section.is_measured else DASH
        body.append([f"[{section.title}](#{link})", section.headline, lost])
    return table(["section", "headline", "where we lose: lines"], body)


def files(docs: Path) -> dict[Path, str]:
    """Return the page and its pictures by path, made from what is stored below `docs`."""
    survival = docs / "survival.json"
    document = json.loads(survival.read_text(encoding="utf-8")) if survival.exists() else None
    found = sections(read_records(docs / FOLDER), document)
    pictures = {docs / FOLDER / name: text for section in found for name, text in section.pictures.items()}
    return {docs / "results.md": page(found), **pictures}


def outdated(docs: Path) -> list[Path]:
    """Return what is missing, differs, or is left over."""
    expected = files(docs)
    changed = [path for path, text in expected.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    return changed + [path for path in sorted((docs / FOLDER).glob("*.svg")) if path not in expected]


def write(docs: Path) -> None:
    """Write the page and its pictures, and delete pictures that are left over."""
    expected = files(docs)
    for path in outdated(docs):
        if path in expected:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(expected[path], encoding="utf-8", newline="\n")
        else:
            path.unlink()
