"""The PostgreSQL server for tests is found or installed; otherwise the tests fail and are never skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "store" / "postgres.py"


@pytest.fixture
def bare() -> Iterator[dict[str, str]]:
    """Environment of a machine without PostgreSQL and apt."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # the server's user must be able to read it
        Path(made).chmod(0o755)
        yield _bare(Path(made))


def _bare(made: Path) -> dict[str, str]:
    path = made / "bin"
    path.mkdir()
    for name in ("sh", "cat", "rm", "true", "mkdir", "ln", "useradd"):
        if found := shutil.which(name):
            (path / name).symlink_to(found)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "PYTEST_", "RUNG_"))}
    return {**kept, "PATH": str(path), "CI": "true", postgres.ROOT: str(made / "postgresql")}


def apt_get(bare: dict[str, str], script: str) -> None:
    """Install a fake package manager with this behaviour."""
    program = Path(bare["PATH"], "apt-get")
    program.write_text(f"#!/bin/sh\necho apt-get $* >> {bare['PATH']}/called\n{script}\n")
    program.chmod(0o755)


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *command]
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs")
def test_installed(bare: dict[str, str]) -> None:
    """A missing server is installed after an update of the package lists, reported, and started."""
    real, root = postgres.programs(), bare[postgres.ROOT]
    apt_get(
        bare,
        f'if [ "$1" = update ]; then mkdir -p {root}; exit; fi\n'
        f"[ -d {root} ] || exit 100\nmkdir {root}/99\nln -s {real} {root}/99/bin",
    )
    done = run(bare, str(SCRIPT), sys.executable, "-c", f"import os; print(os.environ['{postgres.GIVEN}'])")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("postgresql://")
    first, second = done.stderr.splitlines()
    assert first == "PostgreSQL is not here: installing it (apt-get install postgresql)"
    assert second == f"PostgreSQL for the tests: {root}/99/bin, started in a directory of its own"
    called = Path(bare["PATH"], "called").read_text().splitlines()
    assert [line.split()[1] for line in called] == ["install", "update", "install"]


def test_cannot_be_installed(bare: dict[str, str]) -> None:
    """When the installation fails, the missing part is reported and the command is not run."""
    apt_get(bare, "echo E: no such package >&2; exit 100")
    done = run(bare, str(SCRIPT), sys.executable, "-c", "print('run')")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "the tests of the store need PostgreSQL: apt-get install postgresql"
    if os.geteuid() == 0:
        assert done.stderr.splitlines()[-2] == "apt-get: E: no such package"


def test_not_skipped(bare: dict[str, str]) -> None:
    """Without a server, the tests that need one fail."""
    test = "tests/store/test_postgres.py::test_commits_are_synced"
    done = run(bare, "-m", "pytest", "-p", "no:xdist", "-rs", test)
    assert done.returncode == 1, done.stdout
    assert "need PostgreSQL: apt-get install postgresql" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 error in ")
