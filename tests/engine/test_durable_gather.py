"""Concurrent recoveries with a run id: each job is a durable run of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain.errors import ConfigError
from rung.engine.gather import GatherJob, gather, gather_sync
from rung.store import open_journal

if TYPE_CHECKING:
    from pathlib import Path


def work(directory: Path, number: int, *, kill: bool = False) -> Any:
    """An attempt that leaves a line behind; the third job fails first, and may kill its process in its second attempt."""

    def attempt(request: rung.Request) -> str:
        with (directory / f"{number}").open("a") as file:
            file.write(f"{request.digest()}\n")
        made = (directory / f"{number}").read_text().count("\n")
        if number == 2 and made == 1:
            raise FileNotFoundError(2, "no such file")
        if number == 2 and kill:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{number} done"

    return attempt


def run(where: Path, *, kill: bool = False, is_async: bool = False, **settings: Any) -> list[rung.Outcome[Any]]:
    """Run three jobs under one id."""
    jobs = [
        GatherJob(work(where.parent, n, kill=kill), rung.Request(prompt=f"job {n}", model="small", idempotent=True))
        for n in range(3)
    ]
    with open_journal(where) as journal:
        settings |= {"journal": journal, "run_id": "all"}
        if is_async:
            return asyncio.run(gather(*jobs, **settings))
        return gather_sync(*jobs, **settings)


@pytest.mark.parametrize("is_async", [False, True])
def test_called_again(tmp_path: Path, is_async: bool) -> None:
    """Every job has a run of its own; called again, all outcomes are returned and no attempt is made."""
    for _ in range(2):
        outcomes = run(tmp_path / "journal.db", is_async=is_async)
        assert [outcome.value for outcome in outcomes] == ["0 done", "1 done", "2 done"]
        assert [len((tmp_path / f"{n}").read_text().split()) for n in range(3)] == [1, 1, 2]
    with open_journal(tmp_path / "journal.db") as journal:
        assert sorted(journal.runs.ids_below("all")) == ["all/0", "all/1", "all/2"]


@pytest.mark.parametrize("is_async", [False, True])
def test_killed_and_resumed(tmp_path: Path, is_async: bool) -> None:
    """Killed in a changed attempt of one job, all end the same way, and that attempt is made again with its request."""
    process = get_context("spawn").Process(
        target=run, args=(tmp_path / "journal.db",), kwargs={"kill": True, "is_async": is_async}
    )
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    outcomes = run(tmp_path / "journal.db", is_async=is_async)
    assert [outcome.value for outcome in outcomes] == ["0 done", "1 done", "2 done"]
    first, killed, resumed = (tmp_path / "2").read_text().split()
    assert first != killed == resumed


def test_restarted_jobs(tmp_path: Path) -> None:
    """A job that is restarted is a new run; called again, the restarts are remembered."""

    def attempt(request: rung.Request) -> str:
        with (tmp_path / "made").open("a") as file:
            file.write(".")
        if len((tmp_path / "made").read_text()) < 3:
            raise PermissionError(13, "no key")
        return "done"

    job = GatherJob(attempt, rung.Request(prompt="p"))
    policy = rung.policy("task", attempts=1)
    with open_journal(tmp_path / "journal.db") as journal:
        for _ in range(2):
            (outcome,) = gather_sync(job, policy=policy, siblings="retry_failed_only", journal=journal, run_id="all")
            assert (outcome.value, (tmp_path / "made").read_text()) == ("done", "...")
        assert journal.runs.ids_below("all") == ["all/0", "all/0~2", "all/0~3"]


@pytest.mark.parametrize(("ports", "key"), [({"run_id": 5}, "run_id"), ({"run_id": "x"}, "journal")])
def test_bad_input(ports: dict[str, Any], key: str) -> None:
    """A run id is a string and needs a journal, before anything runs."""
    with pytest.raises(ConfigError) as caught:
        gather_sync(GatherJob(lambda _: pytest.fail("made"), rung.Request(prompt="p")), **ports)
    assert caught.value.key == key
