"""The page on running a crew: its files and commands work in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "run-a-crew.md"
BLOCK = re.compile(r"```(toml|py|sh)\n(.*?)```", re.DOTALL)
SECONDS = 240


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    """Every command on the page exits with 0 and leaves no process running."""
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RUNG_JOURNAL": str(tmp_path / "journal.db"),
    }
    environment.pop("RUNG_CREW", None)
    ran = 0
    for language, text in BLOCK.findall(PAGE.read_text()):
        if language != "sh":
            named = re.match(r"# (\S+)\n", text)
            assert named is not None, text
            (folder / named[1]).write_text(text)
            continue
        done = subprocess.run(
            ["sh", "-e", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran == 10
    assert (folder / "sorted").read_text() == "a\nb\n"
    assert "# hard needs a person" in (folder / "hard.db.d/escalations/hard.md").read_text()
    assert not list(folder.glob("*.d/pids/*")), "somebody is left behind"
