"""A package index or a registry cannot give us anything but what was locked."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOCKS = [ROOT / "constraints.txt", *sorted((ROOT / "requirements").glob("*.txt"))]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_a_hash(lock: Path) -> None:
    """Each requirement of a lock file is one version with at least one hash, and no index is named."""
    requirements = re.split(r"\n(?=\S)", "\n".join(line for line in lock.read_text().splitlines() if line[:1] != "#"))
    assert requirements
    for requirement in requirements:
        assert re.match(r"[a-z0-9.-]+(\[[a-z,-]+\])?==[^\s;]+", requirement), requirement[:100]
        assert "--hash=sha256:" in requirement, requirement[:100]
        assert "://" not in requirement


def test_make_installs_only_what_is_locked() -> None:
    """Every installation in the Makefile checks hashes, follows a lock file, or fetches nothing."""
    text = re.sub(r"^#.*", "", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    lines = [line for line in text.splitlines() if re.search(r"pip install|\$\(call pip,|npm ", line)]
    commands = [each for line in lines if not line.startswith("pip = ") for each in re.split(r"&&|;|\|\|", line)]
    installs = [
        each for each in commands if re.search(r"(pip|npm) install|npm ci|\$\(call pip,", each) and "echo" not in each
    ]
    assert len(installs) >= 4
    locked = ("--require-hashes", "--no-deps --no-build-isolation", "npm ci", "npm install --no-save")
    for command in installs:
        assert any(each in command for each in locked), command
        assert "npm " not in command or "--ignore-scripts" in command, command


@pytest.mark.parametrize("peer", ["portkey", "agents"])
def test_peers_from_npm(peer: str) -> None:
    """The gateways and agents we compare with are exact versions, and each package of their lock has its integrity."""
    folder = ROOT / "bench" / "peers" / peer
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert set(wanted) <= {name.removeprefix("node_modules/") for name in packages}
    assert all("integrity" in package or package.get("inBundle") for name, package in packages.items() if name)


def test_what_we_subclass_has_an_upper_bound() -> None:
    """A release of uvicorn or mcp that changes what we build on is not installed before it was tested."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in ("uvicorn", "mcp"):
        found = [each for extra in extras.values() for each in extra if re.match(rf"{name}[\[><]", each)]
        assert found
        assert all("<" in each for each in found), found
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    assert not any("_captured_signals" in source for source in sources)
