"""Faults by other processes and sudden ends: locks, deleted files, lost permissions, kill -9, forks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from rung.store.backends.sqlite import SqliteBackend
from rung.store.journal.journal import Journal
from tests.store.faults import processes
from tests.store.faults.stories import Teller, held
from tests.store.faults.trials import LONG, Seen, check

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
STORM = bool(os.environ.get("RUNG_STORM"))
KILLS = 600 if STORM else 20


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "tests.store.faults.processes", *map(str, words)]


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command(*words),
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture(scope="module")
def faultfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Library that makes system calls fail; empty without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    made = tmp_path_factory.mktemp("faultfs")
    if compiler is None or sys.platform != "linux":
        yield {}
        return
    source = Path(__file__).with_name("faultfs.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", made / "faultfs.so", source, "-ldl"], check=True, timeout=60
    )
    (made / "orders").write_bytes(bytes(4096))
    yield {"LD_PRELOAD": str(made / "faultfs.so"), "FAULT_ORDERS": str(made / "orders")}


@pytest.mark.parametrize("act", ["write", "sync"])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_system_calls_fail(path: Path, faultfs: dict[str, str], act: str, error: str) -> None:
    """When system calls report a full or broken disk, work continues and nothing is lost or duplicated."""
    found = json.loads(run("trouble", path, act, error, **faultfs))
    check(Seen(*found["seen"]))
    assert sorted(held(path)) == sorted(map(tuple, found["places"]))


def test_locked_file(path: Path) -> None:
    """While another process holds the file, one caller waits briefly, the others not; then all is written."""
    told: list[str] = []
    journal = Journal(SqliteBackend(path, busy_timeout_ms=300), on_warning=told.append)
    teller = Teller(Random(1))
    journal.append(*teller.part()).result(LONG)
    with subprocess.Popen(
        command("lock", path), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        kept = [journal.append(*teller.part()).result(LONG) is not None for _ in range(50)]
        assert journal.last_error == "database is locked"
        other.communicate("enough\n")
    while not journal.flush(LONG):
        pass
    journal.close()
    assert not any(kept)
    assert len(told) == 2, told
    assert held(path) == teller.told


@pytest.mark.parametrize("left", [(), ("-wal", "-shm")], ids=["all", "only the file"])
def test_deleted_file(path: Path, left: tuple[str, ...]) -> None:
    """Writes to a deleted file are not acknowledged: they go to a new one, with a warning."""
    told: list[str] = []
    journal = Journal(SqliteBackend(path), on_warning=told.append)
    teller = Teller(Random(1), "before")
    for _ in range(5):
        journal.append(*teller.part()).result(LONG)
    for file in path.parent.iterdir():
        if not file.name.endswith(left or ("nothing",)):
            file.unlink()
    later = Teller(Random(2), "after", teller.now)
    for _ in range(5):
        journal.append(*later.part()).result(LONG)
    assert journal.flush(LONG)
    journal.close()
    assert "the file was deleted or replaced" in told[0]
    assert len(told) == 2, told
    assert held(path) == later.told


def test_directory_without_rights() -> None:
    """Without permission to open files work continues, and later everything is written."""
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        directory = Path(base) / "of nobody"
        steps, told, places = json.loads(run("rights", directory))
        assert steps[:5] == [True, True, False, False, False]
        assert steps[5].startswith(f"{directory}/another.db: ")
        assert steps[6] is True
        assert len(told) == 2, told
        assert sorted(held(directory / "journal.db")) == sorted(map(tuple, places))


@pytest.mark.parametrize("seed", range(KILLS // 20))
def test_killed(path: Path, seed: int) -> None:
    """A process killed repeatedly while it appends loses no acknowledged event."""
    context: Any = get_context("forkserver")
    context.set_forkserver_preload(["tests.store.faults.processes"])
    random = Random(seed)
    said = path.with_name("said")
    said.touch()
    for number in range(1, 21):
        before = said.stat().st_size
        process = context.Process(target=processes.append, args=(path, number, said))
        process.start()
        until = time.monotonic() + LONG
        while said.stat().st_size == before and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(random.random() / 20)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    places = {(incident, int(n)) for incident, n in (line.split() for line in said.read_text().splitlines())}
    assert len(places) >= 20
    lost = places - set(held(path))
    assert not lost, f"seed {seed}: {len(lost)} acknowledged events are lost"


@pytest.mark.parametrize("seed", range(20 if STORM else 1))
def test_forked(path: Path, seed: int) -> None:
    """Forks at any moment: parent and children all write, and nothing is lost or duplicated."""
    said = run("fork", path, str(seed)).split("\n")
    places = {(incident, int(n)) for incident, n in (line.split() for line in said if line)}
    found = held(path)
    assert not places - set(found), f"seed {seed}"
    assert {f"child{number}-1" for number in range(6)} <= {incident for incident, _ in found}
    assert {f"quiet{number}-1" for number in range(6)} <= {incident for incident, _ in found}
