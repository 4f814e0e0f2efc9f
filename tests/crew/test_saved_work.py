"""The work of a worker that was killed is saved: its last output, and the diff of its folder with new files."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.crew.running import WORKER, RunningCrew

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[RunningCrew]:
    """Return a crew in an empty folder; its processes are killed afterwards."""
    made = RunningCrew(tmp_path)
    yield made
    made.close()


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_work_of_a_killed_worker_is_saved(place: RunningCrew) -> None:
    """After kill -9, the report has the output so far; the diff has changed and new files, and the index is unchanged."""
    folder = place.folder
    (folder / "letters").write_text("a\n")
    (folder / ".gitignore").write_text("ignored\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "State")
    script = folder / "work.sh"
    script.write_text(
        "cat >/dev/null; test -e ignored && exit 0\n"
        "echo b >> letters; mkdir new; printf 'one\\ntwo' > new/text; touch new/empty; printf 'a\\0b' > new/binary\n"
        "head -c 70000 /dev/zero | tr '\\0' x > new/large; ln -s /etc/passwd new/link\n"
        "echo 'halfway there'; echo 'and an error' >&2; touch ignored; exec sleep 600\n"
    )
    place.plan([{"id": "slow", "command": [*WORKER, "sh", str(script)]}])
    front = place.run()
    runtime = folder / "crew.db.d"
    place.until((folder / "ignored").exists)
    place.until(lambda: "halfway there" in (log := (runtime / "logs/slow.log").read_text()) and "and an error" in log)
    before = (folder / ".git/index").read_bytes()
    os.killpg(int((runtime / "pids/slow.pid").read_text().split()[0]), signal.SIGKILL)
    assert front.wait(timeout=120) == 0, place.log()
    report = (runtime / "partial/slow-1.md").read_text()
    assert "halfway there" in report.partition("## Last output")[2]
    assert f"- folder: {folder}\n" in report
    diff = runtime / "partial/slow-1.diff"
    text = diff.read_text()
    for name in ("new/binary", "new/large", "new/link"):
        assert f"New file, not saved: '{name}'\n" in text
    assert "root:" not in text
    assert "crew.db" not in text
    clone = folder.with_name(f"{folder.name}-clone")
    git(folder.parent, "clone", "-q", str(folder), str(clone))
    git(clone, "apply", str(diff))
    assert (clone / "letters").read_text() == "a\nb\n"
    assert ((clone / "new/text").read_text(), (clone / "new/empty").read_text()) == ("one\ntwo", "")
    assert (folder / ".git/index").read_bytes() == before


def test_outside_a_work_tree_nothing_is_compared(place: RunningCrew) -> None:
    """Without a git work tree, the output is saved and the report says that there is no diff."""
    folder = place.folder
    script = folder / "work.sh"
    script.write_text("cat >/dev/null; test -e seen && exit 0\necho halfway; touch seen; exec sleep 600\n")
    place.plan([{"id": "slow", "command": [*WORKER, "sh", str(script)]}])
    front = place.run()
    runtime = folder / "crew.db.d"
    place.until(lambda: "halfway" in (runtime / "logs/slow.log").read_text() and (folder / "seen").exists())
    os.killpg(int((runtime / "pids/slow.pid").read_text().split()[0]), signal.SIGKILL)
    assert front.wait(timeout=120) == 0, place.log()
    report = (runtime / "partial/slow-1.md").read_text()
    assert "halfway" in report
    assert "- diff: empty, or not a git work tree\n" in report
    assert not (runtime / "partial/slow-1.diff").exists()
