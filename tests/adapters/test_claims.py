"""Claims looked into: real files, real commands."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from rung.adapters.claims import check_claims, check_command, check_files, look

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
    before = look(tmp_path, ["a.py", "b.py"])
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
    mark = tmp_path / "mark"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', \"import time, pathlib; time.sleep(2); pathlib.Path({str(mark)!r}).touch()\"])"
    started = time.monotonic()
    check = check_command([sys.executable, "-c", code], tmp_path, seconds=0.5)
    assert (check.holds, check.seen) == (False, "did not end within 0.5 s")
    assert time.monotonic() - started < 1.9
    time.sleep(2.2)
    assert not mark.exists()


def test_all_that_an_answer_claims(tmp_path: Path) -> None:
    """Files named in the answer and the user's command are looked into together."""
    (tmp_path / "a.py").write_text("x")
    checks = check_claims("I created a.py and b.py.", tmp_path, since=time.time(), command=[sys.executable, "-c", ""])
    assert [check.holds for check in checks] == [True, False, True]
