"""What must be true of a fleet after faults: of its runs, its steps, its epochs and its spending."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.domain.errors import RunEnded
from rung.core.policy.executor_health import MAX_TAKEOVERS
from rung.gateway.keys import hash_key
from rung.store import open_journal
from rung.store.queries.spend import spent_by_keys
from rung.store.spend_holds import held_by_others
from rung.wiring.engines import engine as make_engine
from tests.fleet_hosts import audit
from tests.fleet_hosts.client import read_said
from tests.fleet_hosts.host_tasks import STEPS, read_steps, value_of
from tests.fleet_hosts.world import BUDGETS, CALL_DOLLARS, World

if TYPE_CHECKING:
    from tests.fleet_hosts.audit import Audited

PARTIAL = "partial"
ENDED = {"done", "SUCCESS", "ERROR", "CANCELLED"}


class RunHistory(NamedTuple):
    """Changes of one run, in their order, and its steps among them."""

    changes: list[Audited]

    @property
    def steps(self) -> list[Audited]:
        return [row for row in self.changes if row.what.startswith("step")]

    @property
    def epochs(self) -> list[str]:
        """Epochs that the run had, one after another; without those in which nobody owned it."""
        return _epochs(self.changes)

    @property
    def epochs_since_step(self) -> list[str]:
        """Epochs in which no step was recorded, at the end of the run."""
        last = max((row.seq for row in self.steps), default=0)
        return _epochs([row for row in self.changes if row.seq > last])


def _epochs(changes: list[Audited]) -> list[str]:
    found: list[str] = []
    for row in changes:
        if row.epoch not in {"", "0"} and (not found or found[-1] != row.epoch):
            found.append(row.epoch)
    return found


class HostRecords:
    """All that was written down in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.said = read_said(world.folder)
        self.logged = read_steps(world.folder)
        rows = audit.read(world.url)
        known = {host.name for host in world.hosts}  # a watchdog lists an executor that did not say where it is
        self.executors = {row.run: row.owner for row in rows if row.what == "executor" and row.owner in known}
        self.processes = {
            row.writer: (row.owner, int(row.key)) for row in rows if row.what == "executor" and row.owner in known
        }
        self.spent: defaultdict[str, list[float]] = defaultdict(list)  # dollars over time, by the hash of a key
        changes: defaultdict[str, list[Audited]] = defaultdict(list)
        for row in rows:
            if row.what == "spent":
                self.spent[row.run].append(float(row.key))
            elif row.what != "executor":
                changes[row.run].append(row)
        self.runs = {run: RunHistory(each) for run, each in changes.items()}

    def names(self, what: str) -> set[str]:
        """Return the runs or calls of which this was said."""
        return {each.name for each in self.said if each.what == what}

    def host_of(self, owner: str) -> str:
        """Return the host of an owner: of the journal, a process; of DBOS, an executor."""
        return str(json.loads(owner)[0]) if owner.startswith("[") else self.executors.get(owner, "")

    def rejected_ends(self) -> int:
        """Return how many steps ended in a process that had lost its run: what they returned was not recorded."""
        recorded = {(row.run, row.key) for history in self.runs.values() for row in history.steps}
        return sum(each.what == "end" for each in self.logged) - len(recorded)

    def takeovers(self) -> int:
        """Return how often a run came to another host than the one that had it."""
        count = 0
        for history in self.runs.values():
            hosts = [self.host_of(row.owner) for row in history.changes if row.owner and row.epoch not in {"", "0"}]
            count += sum(one != other for one, other in pairwise(hosts))
        return count


def check_runs(evidence: HostRecords) -> None:
    """Acknowledged means present; every run ended exactly once, with the right value."""
    world = evidence.world
    acknowledged = evidence.names("submitted")
    assert acknowledged
    assert not evidence.names("rejected")
    assert acknowledged <= evidence.runs.keys() <= evidence.names("submitting")
    for run, history in evidence.runs.items():
        ends = [row for row in history.changes if row.what == "run" and row.key in ENDED]
        assert len(ends) == 1, (run, history.changes)
        assert history.changes[-1] is ends[0], f"{run}: changed after its end: {history.changes}"
    values = asyncio.run(_values(world, sorted(evidence.runs)))
    for run, value in values.items():
        history = evidence.runs[run]
        if value == PARTIAL:
            assert len(history.epochs_since_step) > MAX_TAKEOVERS, (run, history.changes)
        else:
            assert value == [value_of(run, key) for key in STEPS], (run, value, history.changes)
            assert [row.key for row in history.steps] == list(STEPS), (run, history.changes)


async def _values(world: World, runs: list[str]) -> dict[str, Any]:
    """Return the value of each run, or `partial` for one that three hosts in turn lost without a new step."""
    engine = make_engine(world.engine, url=world.url)

    async def value(run: str) -> Any:
        try:
            return await engine.result(run, 60)
        except RunEnded as error:
            return error.status

    try:
        return {run: await value(run) for run in runs}
    finally:
        await engine.close()
        if hasattr(engine, "journal"):
            engine.journal.close()


def check_epochs(evidence: HostRecords) -> None:
    """Epochs only grow, and every write comes from the process that owns the run at that moment."""
    for run, history in evidence.runs.items():
        epochs = history.epochs
        assert len(set(epochs)) == len(epochs), f"{run}: an earlier epoch came back: {epochs}"
        if evidence.world.engine == "embedded":
            assert epochs == sorted(epochs, key=int), f"{run}: epochs {epochs}"
        owner = ""
        for row in history.changes:
            owner = row.owner or owner
            if row.what.startswith("step") or row.key in ENDED:
                writer = evidence.world.hosts_by_address[row.address].name
                owned_by = evidence.host_of(owner)
                assert writer == owned_by, f"{run} of {owned_by}: written by {writer}: {row}"
                if evidence.world.engine == "embedded":
                    host, _, _, pid, _ = json.loads(owner)
                    assert evidence.processes[row.writer] == (host, pid), f"{run} of {host} {pid}: {row}"


def check_steps(evidence: HostRecords) -> None:
    """Each step is recorded once and not changed; it begins again only in a new epoch, before it is recorded."""
    begun = Counter((each.run, each.key) for each in evidence.logged if each.what == "begin")
    ended = {(each.run, each.key) for each in evidence.logged if each.what == "end"}
    for run, history in evidence.runs.items():
        keys = STEPS[: len(history.steps)]
        assert [(row.what, row.key) for row in history.steps] == [("step INSERT", key) for key in keys], run
        for key in keys:
            assert (run, key) in ended
            assert 1 <= begun[run, key] <= len(history.epochs), (run, key, begun[run, key], history.epochs)
    recorded = {(row.run, row.key): row for history in evidence.runs.values() for row in history.steps}
    late = [
        (each, recorded[each.run, each.key])
        for each in evidence.logged
        if each.what == "begin" and (each.run, each.key) in recorded and each.at > recorded[each.run, each.key].at
    ]
    assert not late, f"a finished step began again: {late}"


def check_spending(evidence: HostRecords) -> None:
    """No budget is overspent or negative, and what the provider has answered is recorded or still held."""
    world = evidence.world
    key_of = {each.name: each.where.rpartition("/")[2] for each in evidence.said if each.what == "asking"}
    paid = Counter(key_of[call_of(record)] for record in world.lab.requests)
    with open_journal(world.url) as journal:
        recorded, held = spent_by_keys(journal), held_by_others(journal, "", world.now()).held
    for name, budget in BUDGETS.items():
        digest = hash_key(world.keys[name])
        spent, reserved = recorded.get(digest, 0.0), held.get(digest, 0.0)
        dollars = paid[name] * CALL_DOLLARS
        answers = Counter(each.what for each in evidence.said if each.where.endswith(f"/{name}"))
        said = f"{name}: paid {dollars}, recorded {spent}, held {reserved}, budget {budget}, answers {answers}"
        assert [0.0, *evidence.spent[digest]] == sorted(evidence.spent[digest] + [0.0]), said
        assert 0 < spent == evidence.spent[digest][-1] <= budget, said
        assert dollars <= budget, said
        assert dollars <= spent + reserved, said


def check_status(world: World) -> None:
    """The status lists all workers that run as live, none of a host that died, and no limit that is negative."""
    status = world.status()
    live = {each["id"] for each in status["executors"] if each["health"] == "live"}
    running = {name for host in world.hosts for name in world.workers_of(host, host.boots)}
    died = {name for host in world.hosts for boot in range(1, host.boots) for name in world.workers_of(host, boot)}
    assert running <= live, (running, status)
    assert not died & live, (died, status)
    assert all(limit["used"] >= 0 and limit["out"] >= 0 for limit in status["limits"]), status


def is_spent(world: World, after: float) -> bool:
    """Return whether every gateway has refused its last two calls with the small budget since a time."""
    answers: defaultdict[str, list[str]] = defaultdict(list)
    for each in read_said(world.folder):
        if each.where.endswith("/small") and each.what != "asking" and each.at > after:
            answers[each.where].append(each.what)
    return len(answers) == len(world.hosts) and all(each[-2:] == ["429", "429"] for each in answers.values())


def call_of(record: Any) -> str:
    """Return the call that a request of the provider's log belongs to."""
    return str(record.json["messages"][0]["content"])


def unrecorded(evidence: HostRecords, deaths: dict[str, float]) -> set[str]:
    """Return the answered calls that are not in the journal, of gateways that did not die before they could record it."""
    world = evidence.world
    answered = {
        each.name
        for each in evidence.said
        if each.what == "answered"
        and each.at > deaths.get(world.hosts_by_address[each.where.partition(":")[0]].name, 0.0)
    }
    return answered - audit.recorded_sessions(world.url)
