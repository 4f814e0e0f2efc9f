"""Claims looked into: real files, real commands."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from rung.adapters.system.claims import check_claims, check_command, check_files, snapshot_files
from tests.waiting import is_running, wait_until

if TYPE_CHECKING:
    from pathlib import Path


def test_files(tmp_path: Path) -> None:
    """A claimed file must be there, inside the work tree, and have changed since the work began."""
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text("x")
    os.utime(old, (1_000, 1_000))
    began = time.time()
    new.write_text("y")
    checks = check_files(tmp_path, ["old.py", "new.py", "gone.py", "../outside.py", "bad\0name"], since=began)
    assert [(check.holds, check.seen) for check in checks] == [
        (False, "not changed since the work began"),
        (True, "changed"),
        (False, "there is no such file"),
        (False, "outside the work tree"),
        (False, "outside the work tree"),
    ]


def test_files_seen_before(tmp_path: Path) -> None:
    """What was looked at before is compared with that, whatever the clock says."""
    file = tmp_path / "a.py"
    file.write_text("x")
    before = snapshot_files(tmp_path, ["a.py", "b.py"])
    assert list(before) == ["a.py"]
    assert not check_files(tmp_path, ["a.py"], since=0, before=before)[0].holds
    file.write_text("xy")
    assert check_files(tmp_path, ["a.py"], since=time.time() + 999, before=before)[0].holds


def test_a_command_is_run_afresh(tmp_path: Path) -> None:
    """Its exit code decides, and what it printed last is shown when it fails."""
    good = check_command([sys.executable, "-c", "print('fine')"], tmp_path)
    assert (good.holds, good.seen) == (True, "exit code 0")
    bad = check_command([sys.executable, "-c", "print('1 failed'); raise SystemExit(3)"], tmp_path)
    assert (bad.holds, bad.seen) == (False, "exit code 3: 1 failed")
    assert not check_command("no-such-program --now", tmp_path).holds


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    """It and what it started are gone after its time."""
    pid = tmp_path / "pid"
    check = check_command(["sh", "-c", f"sleep 600 & echo $! > {pid}; wait"], tmp_path, seconds=1.0)
    assert (check.holds, check.seen) == (False, "did not end within 1 s")
    wait_until(lambda: not is_running(int(pid.read_text())))


def test_all_that_an_answer_claims(tmp_path: Path) -> None:
    """Files named in the answer and the user's command are looked into together."""
    (tmp_path / "a.py").write_text("x")
    checks = check_claims("I created a.py and b.py.", tmp_path, since=time.time(), command=[sys.executable, "-c", ""])
    assert [check.holds for check in checks] == [True, False, True]
