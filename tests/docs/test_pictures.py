"""The recording in README shows what the program prints today."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "scripts" / "write_pictures.py"
    return subprocess.run(
        [sys.executable, str(script), "--check", *arguments], capture_output=True, text=True, check=False
    )


def test_the_recording_is_what_the_demo_prints() -> None:
    """A new recording of `rung demo` in a terminal has the text of the picture, and the pictures are small."""
    checked = check("terminal")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_recording_that_lies_is_found(tmp_path: Path) -> None:
    """`--check` names the first line that the program does not print."""
    copy = shutil.copytree(PICTURES, tmp_path / "pictures")
    svg = (copy / "terminal.svg").read_text(encoding="utf-8")
    (copy / "terminal.svg").write_text(svg.replace("overloaded: Overloaded", "overloaded: Busy", 1), encoding="utf-8")
    checked = check("terminal", "--folder", str(copy))
    assert checked.returncode == 1
    assert "overloaded: Busy" in checked.stderr
    assert "make pictures" in checked.stderr
