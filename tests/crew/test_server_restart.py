"""A crew whose PostgreSQL server goes away and comes back."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from rung.store.crew.table import CrewTable
from tests.crew.running import RUNG, RunningCrew, until_file
from tests.store import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("unmeasured_processes")
AWAY_SECONDS = [float(text) for text in os.environ.get("RUNG_SERVER_AWAY", "8").split()]


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[RunningCrew]:
    """Return a crew on a server of its own, which the test may stop."""
    with postgres.server() as url:
        made = RunningCrew(tmp_path, url)
        yield made
        made.close()


@pytest.mark.parametrize("seconds", AWAY_SECONDS)
def test_a_crew_outlives_its_server(crew: RunningCrew, seconds: float) -> None:
    """Conductor, watchdog, workers, `crew run` and `crew status` reconnect; no one is evicted, replaced or lost.

    The server is away for longer than every limit of silence, and a worker's work ends meanwhile.
    """
    during, after = crew.folder / "during", crew.folder / "after"
    tasks = [
        {"id": "a", "command": until_file(during)},
        {"id": "b", "command": until_file(after)},
        {"id": "c", "depends_on": ["a"]},
    ]
    crew.plan(tasks, workers=2, stale_after=5.0, conductor_stale=5.0, claim_within=5.0, exit_within=5.0)
    front = crew.run()
    for name in ("a", "b"):
        crew.until_state(name, "working")
    before = crew.conductors(), crew.watchdogs()
    with postgres.outage(crew.url):
        during.touch()
        status = crew.start("crew", "status", "--db", crew.url)
        time.sleep(seconds)  # a server keeps its own time
    crew.until_state("c", "complete")
    assert crew.conductors() == before[0]
    assert crew.watchdogs() == before[1]
    after.touch()
    said, _ = front.communicate(timeout=240)
    assert front.returncode == 0, said + crew.log()
    shown, _ = status.communicate(timeout=240)
    assert status.returncode == 0, shown
    assert "is unavailable, trying again" in shown
    with CrewTable.open(crew.url) as table:
        assert {task.generation for task in table.tasks()} == {1}
        assert not table.restarts(3_600)
        assert [message.message_type.value for message in table.messages("a")].count("review_request") == 1
    for text in (said, shown, crew.log()):
        assert "Traceback" not in text
        assert "evicted" not in text
        assert "relaunched" not in text


def test_a_server_that_never_answers_is_an_error_in_one_line(tmp_path: Path) -> None:
    """A wrong password, database or option of the URL is not waited for."""
    with postgres.server() as url:
        wrong = url.replace("/postgres?", "/nothing?")
        done = subprocess.run(
            [*RUNG, "crew", "status", "--db", wrong], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert 'database "nothing" does not exist' in done.stderr
