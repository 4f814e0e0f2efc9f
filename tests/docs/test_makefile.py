"""The Makefile as a newcomer meets it: its help, and the interpreter that it takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A program that answers as an interpreter of some version does.
INTERPRETER = """#!/bin/sh
case "$2" in
  *platform*) echo {version} ;;
  *version_info*) exit {too_old} ;;
  *ensurepip*) exit {no_venv} ;;
esac
"""


def interpreter(folder: Path, name: str, version: str, *, has_venv: bool = True) -> None:
    too_old = int(tuple(map(int, version.split(".")[:2])) < (3, 11))
    file = folder / name
    file.write_text(INTERPRETER.format(version=version, too_old=too_old, no_venv=int(not has_venv)))
    file.chmod(0o755)


def find_python(path: Path, *given: str) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("sh") or "/bin/sh", str(ROOT / "scripts/find_python.sh"), *given]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": str(path)})


def test_help_lists_every_target() -> None:
    """`make help` lists every target that has a comment, `run` and `test` first, and needs no environment."""
    done = subprocess.run(["make", "help", "VENV=/nowhere"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE)
    assert listed[:2] == ["run", "test"]
    assert sorted(listed) == sorted(re.findall(r"^([a-z-]+):.*  ## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_first_suitable_python(tmp_path: Path) -> None:
    """An old python3 is passed over for a newer one on PATH."""
    interpreter(tmp_path, "python3", "3.10.12")
    interpreter(tmp_path, "python3.12", "3.12.4")
    assert find_python(tmp_path).stdout == "python3.12\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "python3 is Python 3.10.12."),
        (("python3.13",), "python3.13 (3.13.1) has no venv module"),
        (("nowhere",), "nowhere cannot be run."),
    ],
)
def test_no_suitable_python(tmp_path: Path, given: tuple[str, ...], words: str) -> None:
    """Without Python 3.11 or its venv module, one line says what was found and how to name another."""
    interpreter(tmp_path, "python3", "3.10.12")
    if given:
        interpreter(tmp_path, "python3.13", "3.13.1", has_venv=False)
    done = find_python(tmp_path, *given)
    assert done.returncode == 1
    assert done.stderr.startswith("make: Rung needs Python 3.11 or newer.")
    assert words in done.stderr
    assert "PYTHON=" in done.stderr


def test_this_python_suits() -> None:
    """The real script accepts the interpreter that runs the tests."""
    assert find_python(Path(os.environ["PATH"].split(os.pathsep)[0]), sys.executable).stdout.strip() == sys.executable
