"""One crew on PostgreSQL, started on two hosts: two folders, network namespaces, host names and sets of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rung.cli.exit_codes import ALREADY_CONDUCTED
from rung.store.crew.table import CrewTable
from tests.crew.running import RunningCrew, until_file
from tests.crew.two_hosts import NotAllowed, two_hosts

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.crew.two_hosts import Host

pytestmark = pytest.mark.usefixtures("unmeasured_processes")


class TwoHosts:
    """A crew, and the hosts that it is started on."""

    def __init__(self, folder: Path, hosts: tuple[Host, Host], url: str) -> None:
        self.crew = RunningCrew(folder, url)
        self.hosts = hosts
        self.folders = [folder / host.name for host in hosts]
        for place in self.folders:
            place.mkdir()

    def run(self, number: int, *options: str) -> subprocess.Popen[str]:
        """Start `rung crew run` on a host, in the host's folder."""
        host, crew = self.hosts[number], self.crew
        words = ["crew", "run", str(crew.folder / "plan.toml"), "--db", host.url, *options]
        return crew.start(*words, folder=self.folders[number], prefix=host.prefix)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TwoHosts]:
    """Return two hosts and their server. Skipped where this machine allows no namespaces."""
    try:
        with two_hosts() as (first, second, url):
            made = TwoHosts(tmp_path, (first, second), url)
            yield made
            made.crew.close()
    except NotAllowed as error:
        pytest.skip(f"no network namespaces here: {error}")


def test_one_crew_on_two_hosts(world: TwoHosts) -> None:
    """The second host is refused and told who conducts; it stands by, and a live crew keeps its workers to the end."""
    crew, go = world.crew, world.crew.folder / "go"
    crew.plan([{"id": "a", "command": until_file(go)}, {"id": "b", "command": until_file(go)}, {"id": "c"}], workers=2)
    first = world.run(0)
    for name in ("a", "b"):
        crew.until_state(name, "working")
    refused = world.run(1)
    said, _ = refused.communicate(timeout=120)
    assert refused.returncode == ALREADY_CONDUCTED, said
    assert " on host-1, since " in said
    standby = world.run(1, "--standby")
    assert standby.stdout is not None
    assert "on host-1" in standby.stdout.readline()
    go.touch()
    for front in (first, standby):
        said, _ = front.communicate(timeout=240)
        assert front.returncode == 0, said + crew.log()
        assert "3 of 3 tasks complete" in said
    with CrewTable.open(crew.url) as table:
        assert {task.generation for task in table.tasks()} == {1}
        assert {process.machine.split('"')[1] for process in table.processes(alive_only=False)} == {"host-1"}


def test_a_host_that_is_cut_off_is_replaced(world: TwoHosts) -> None:
    """The standby takes over when the lease expires, and the crew goes on there; the cut host, back again, ends by itself."""
    crew, go = world.crew, world.crew.folder / "go"
    crew.plan(
        [{"id": "a", "command": until_file(go)}, {"id": "b", "command": until_file(go)}],
        workers=2, stale_after=12.0, conductor_stale=6.0,
    )  # fmt: skip
    first = world.run(0)
    for name in ("a", "b"):
        crew.until_state(name, "working")
    second = world.run(1, "--standby")
    assert second.stdout is not None
    assert "standing by" in second.stdout.readline()
    world.hosts[0].cut()
    with CrewTable.open(crew.url) as table:
        crew.until(lambda: table.conductor_lease().host == "host-2")
        assert {task.generation for task in table.claimed_tasks()} == {1}  # its workers are not taken for dead at once
        crew.until(lambda: {task.generation for task in table.claimed_tasks()} == {3})  # but when their leases end
        world.hosts[0].join()
        crew.until(lambda: "another conductor has the lease" in crew.log())
        go.touch()
        said, _ = second.communicate(timeout=240)
        assert second.returncode == 0, said + crew.log()
        said, _ = first.communicate(timeout=240)
        assert first.returncode == 0, said + crew.log()
        assert table.conductor_lease().term > 0
    assert "Traceback" not in crew.log() + said
