"""`[tools.NAME]` and the policies stored in the service, in commands that run programs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.store import open_journal
from rung.store.settings import put_setting

if TYPE_CHECKING:
    from pathlib import Path

FAILS = "echo x >> log; echo 'HTTP 503' >&2; exit 1"
QUICK = "[policy]\npatience = 0\nbackoff = { base = 0 }\n"
PIPELINE = (
    '[pipeline]\nname = "p"\n[policy]\npatience = 0\nbackoff = { base = 0 }\n'
    f'[[stage]]\nid = "a"\nprompt = "x"\ncommand = ["sh", "-c", "{FAILS}"]\n'
)


def rung(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rung", *words],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        check=False,
    )


def runs(cwd: Path) -> int:
    lines = (cwd / "log").read_text().splitlines()
    (cwd / "log").unlink()
    return len(lines)


@pytest.mark.parametrize("program", ["sh", "/bin/sh"])
def test_the_program_of_a_run(tmp_path: Path, program: str) -> None:
    """`rung run` takes the settings of its command's program; those of another program change nothing."""
    for tool, expected in (("sh", 1), ("bash", 4)):
        (tmp_path / "rung.toml").write_text(f"{QUICK}[tools.{tool}]\nretries = 0\n")
        rung("run", "--no-journal", "--", program, "-c", FAILS, cwd=tmp_path)
        assert runs(tmp_path) == expected
        rung("run", "--no-journal", "--policy", "rung.toml", "--", program, "-c", FAILS, cwd=tmp_path)
        assert runs(tmp_path) == expected


def test_the_program_of_a_stage(tmp_path: Path) -> None:
    """A pipeline's stage takes the settings of its command's program from rung.toml."""
    (tmp_path / "p.toml").write_text(PIPELINE)
    for tool, expected in (("sh", 1), ("bash", 3)):
        (tmp_path / "rung.toml").write_text(f"[tools.{tool}]\nretries = 0\n")
        rung("pipeline", "run", "p.toml", "--no-journal", "--no-ask", cwd=tmp_path)
        assert runs(tmp_path) == expected


@pytest.mark.parametrize("name", ["policy", "policy/web"])
def test_a_stored_policy_holds_in_the_first_run(tmp_path: Path, name: str) -> None:
    """A policy set in the service, for all or for the project, holds in the next run and the next pipeline."""
    where = str(tmp_path / "journal.db")
    with open_journal(where) as journal:
        put_setting(journal, name, {"retries": 1, "patience": 0, "backoff": {"base": 0}, "ladder": "call"}, "ada")
    rung("run", "--journal", where, "--project", "web", "--", "sh", "-c", FAILS, cwd=tmp_path)
    assert runs(tmp_path) == 2
    (tmp_path / "p.toml").write_text(PIPELINE)
    done = rung("pipeline", "run", "p.toml", "--journal", where, "--project", "web", "--no-ask", cwd=tmp_path)
    assert (runs(tmp_path), done.returncode) == (2, 4)
    with open_journal(where) as journal:
        put_setting(journal, name, {"retries": 0}, "ada")
    rung("pipeline", "run", "p.toml", "--journal", where, "--project", "web", "--no-ask", cwd=tmp_path)
    assert runs(tmp_path) == 1
