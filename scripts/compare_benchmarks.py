"""Run the quick benchmarks of this tree and of another revision in turns, and print what changed.

    python scripts/compare_benchmarks.py REVISION [--rounds 3] [BENCHMARK ...]

Each tree has an environment of its own that shares the installed packages. The lines that a benchmark prints are
matched by their words, and the median of each number over all rounds is compared. A number that is more than 10 %
off is marked: whether that is better or worse depends on what it counts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
TOLERANCE: Final = 0.10
NUMBER: Final = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
# The name of a benchmark: its place in a tree with folders, in one without, and its arguments.
BENCHMARKS: Final = {
    "overhead": ("bench.overhead", "bench/overhead.py", ["--quick"]),
    "journal": ("bench.journal", "bench/journal.py", ["--quick"]),
    "reports": ("bench.journal.reports", "bench/journal_reports.py", ["--quick"]),
    "corpus": ("bench.corpus", "bench/corpus.py", ["--speed", "--who", "rung,status"]),
    "loops": ("bench.loops", "bench/loops.py", ["--speed"]),
    "gateway": ("bench.gateway", "bench/gateway.py", ["--quick", "--requests", "0"]),
    "lab": ("bench.gateway.lab", "bench/lab.py", ["--requests", "5000"]),
    "hooks": ("bench.hooks", "bench/hooks.py", []),
}
Numbers = dict[str, list[list[float]]]  # the words of a line: its numbers, one list for each time it was printed


class Tree(NamedTuple):
    """A source tree, and a Python that imports rung from it."""

    name: str
    root: Path
    python: Path


def environment(name: str, root: Path, folder: Path) -> Tree:
    """An environment with the packages of this one, and rung from the given tree."""
    place = folder / f"venv-{name}"
    venv.create(place, symlinks=True)
    packages = sysconfig.get_paths(vars={"base": str(place), "platbase": str(place)})["purelib"]
    installed = sysconfig.get_paths()["purelib"]
    (Path(packages) / "tree.pth").write_text(f"{root / 'src'}\nimport site; site.addsitedir({installed!r})\n")
    return Tree(name, root, place / "bin" / "python")


def run(tree: Tree, benchmark: str) -> str:
    """What a benchmark prints in a tree."""
    module, script, arguments = BENCHMARKS[benchmark]
    folders = (tree.root / "bench" / "__init__.py").exists()
    command = [str(tree.python), *(["-m", module] if folders else [script]), *arguments]
    path = os.environ["PATH"]
    done = subprocess.run(  # noqa: S603  # our own benchmarks
        command, cwd=tree.root, env={**os.environ, "PATH": f"{tree.python.parent}{os.pathsep}{path}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(f"{benchmark} in {tree.name}: exit code {done.returncode}\n{done.stderr[-2_000:]}", file=sys.stderr)
    return done.stdout


def read(text: str) -> Numbers:
    """The numbers of each line, by its words."""
    found: Numbers = defaultdict(list)
    for line in text.splitlines():
        numbers = [float(number.replace(",", "")) for number in NUMBER.findall(line)]
        if numbers:
            found[" ".join(NUMBER.sub("#", line).split())].append(numbers)
    return found


def compare(base: list[Numbers], here: list[Numbers]) -> list[str]:
    """One line for each number that both trees print: both medians, and their ratio."""
    lines = []
    for words in base[0]:
        both = [[numbers for one in runs for numbers in one.get(words, [])] for runs in (base, here)]
        if not all(both) or len({len(numbers) for side in both for numbers in side}) != 1:
            continue
        for before, after in zip(*(map(median, zip(*side, strict=True)) for side in both), strict=True):
            if before and before != after:
                ratio = after / before
                mark = "  <--" if abs(ratio - 1) > TOLERANCE else ""
                lines.append(f"  {ratio:6.2f}  {before:>14,.3f} -> {after:>14,.3f}  {words[:70]}{mark}")
    return lines


def main() -> None:
    """Compare this tree with a revision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("benchmarks", nargs="*", choices=[[], *BENCHMARKS], default=list(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = ROOT.parent / "shared"  # read by some benchmarks, beside their tree
        if data.exists():
            (folder / data.name).symlink_to(data)
        subprocess.run([*git, "add", "-q", "--detach", str(folder / "base"), options.revision], check=True)  # noqa: S603  # a revision of ours
        try:
            trees = [environment("base", folder / "base", folder), environment("here", ROOT, folder)]
            for benchmark in options.benchmarks:
                print(f"{benchmark}: this tree as a ratio to {options.revision}", flush=True)
                runs: dict[str, list[Numbers]] = defaultdict(list)
                for _ in range(options.rounds):
                    for tree in trees:
                        runs[tree.name].append(read(run(tree, benchmark)))
                print("\n".join(compare(runs["base"], runs["here"])) or "  nothing to compare", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(folder / "base")], check=True)  # noqa: S603  # ours


if __name__ == "__main__":
    main()
