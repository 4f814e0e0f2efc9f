"""Check the branch coverage of every package against its minimum.

Run after `coverage combine`. Prints one line per package, and the lines that no test reaches for each package
below its minimum. A package without a minimum fails the check.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import coverage

# Percent of statements and branches: one or two below what a whole run of `make cover` prints, since tests that kill
# processes do not reach the same lines every time.
MINIMUM_PERCENT: Final = {
    "core": 99.0,
    "engine": 98.0,
    "detectors": 95.0,
    "store": 94.0,
    "adapters": 90.0,
    "testing": 95.0,
    "wiring": 95.0,
    "crew": 88.0,
    "pipeline": 97.0,
    "wires": 92.0,
    "gateway": 93.0,
    "hooks": 82.0,
    "mcp": 90.0,
    "service": 94.0,
    "cli": 82.0,
    "schemas": 99.0,
}


class PackageCoverage(NamedTuple):
    """Coverage of one package."""

    covered: int
    total: int
    missing: list[str]

    @property
    def percent(self) -> float:
        """Percent of statements and branches that ran."""
        return 100.0 * self.covered / self.total if self.total else 100.0


def measured() -> dict[str, Any]:
    """The JSON report of the combined data, one entry per file."""
    data = coverage.Coverage()
    data.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        data.json_report(outfile=str(report))
        files: dict[str, Any] = json.loads(report.read_text())["files"]
    return files


def by_package(files: dict[str, Any]) -> dict[str, PackageCoverage]:
    """Sum the files of each package below `rung`."""
    sums: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for name, file in files.items():
        parts = Path(name).parts
        package = parts[parts.index("rung") + 1]
        if package == parts[-1]:  # a module of the root package, which only exports names
            continue
        summary = file["summary"]
        covered, total = sums[package]
        sums[package] = (
            covered + summary["covered_lines"] + summary["covered_branches"],
            total + summary["num_statements"] + summary["num_branches"],
        )
        if file["missing_lines"] or file["missing_branches"]:
            branches = [f"{begin}->{end}" for begin, end in file["missing_branches"]]
            missing[package].append(f"  {name}: {', '.join([*map(str, file['missing_lines']), *branches])}")
    return {package: PackageCoverage(*sums[package], missing[package]) for package in sorted(sums)}


def main() -> int:
    """Print the coverage of each package; 1 when one is below its minimum."""
    failed = False
    for name, package in by_package(measured()).items():
        minimum = MINIMUM_PERCENT.get(name)
        good = minimum is not None and package.percent >= minimum
        failed |= not good
        print(f"{name:<12} {package.percent:6.2f} %   minimum {'none' if minimum is None else f'{minimum:.1f} %'}")
        if not good:
            print("\n".join(package.missing))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
