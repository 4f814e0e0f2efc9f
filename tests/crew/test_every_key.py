"""Every key of a plan has an effect: each key names the test that proves it, and a key without one fails."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.crew.contract import MessageType, TaskState
from rung.core.crew.plan import CrewSettings, PlannedTask, checked_plan
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import declared_settings
from rung.crew.dispatch import HALTED_KEY
from rung.crew.judgement import CommandJudgement
from rung.crew.plan_sync import apply_plan, insert_plan, require_programs
from rung.crew.settings import ConductorSettings
from tests.crew.simulated import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.crew.rows import TaskRow

HERE = "tests/crew/test_every_key.py"
PROOFS = {
    "crew.name": f"{HERE}::test_name_revision_and_phase",
    "crew.revision": f"{HERE}::test_name_revision_and_phase",
    "crew.phases": "tests/crew/test_protocol_files.py::test_the_hand_over_says_where_the_crew_stands",
    "crew.workers": f"{HERE}::test_workers_and_priority",
    "crew.worker": f"{HERE}::test_what_a_worker_is_launched_with",
    "crew.stale_after": f"{HERE}::test_stale_after",
    "crew.review": "tests/crew/test_plan_keys.py::test_a_reviewer_is_called_for_each_request",
    "crew.judge": "tests/crew/test_plan_keys.py::test_large_flaws_go_back_to_the_writer",
    "crew.replanner": "tests/crew/test_conducted.py::test_a_new_plan_is_carried_over",
    "crew.poll": "tests/crew/test_conducted.py::test_a_plan_is_carried_out",
    "crew.beat": f"{HERE}::test_what_a_worker_is_launched_with",
    "crew.hung": f"{HERE}::test_hung",
    "crew.exit_within": "tests/crew/test_exit_requested.py::test_a_worker_that_ignores_its_exit_is_ended",
    "crew.grace": f"{HERE}::test_grace",
    "crew.claim_within": f"{HERE}::test_claim_within",
    "crew.redispatches": f"{HERE}::test_redispatches",
    "crew.restarts": f"{HERE}::test_restarts_of_the_crew",
    "crew.restart_seconds": f"{HERE}::test_restarts_of_the_crew",
    "crew.deaths": f"{HERE}::test_deaths_of_the_crew",
    "crew.death_seconds": f"{HERE}::test_deaths_of_the_crew",
    "crew.conductor_stale": "tests/crew/test_one_conductor.py::test_a_stopped_conductor_wakes_up_to_nothing",
    "crew.patience": "tests/crew/test_pools.py::test_patience_ends_and_the_ladder_goes_on",
    "crew.park": f"{HERE}::test_park",
    "crew.probe_interval": f"{HERE}::test_probes",
    "crew.probe_seconds": f"{HERE}::test_probes",
    "crew.spread": "tests/crew/test_pools.py::test_the_others_start_one_after_the_other",
    "crew.mandatory": "tests/crew/test_plan_keys.py::test_a_mandatory_item_goes_to_the_replanner_at_once",
    "crew.attended": "tests/crew/test_conducted.py::test_a_person_answers",
    "task.id": f"{HERE}::test_what_a_worker_is_launched_with",
    "task.title": f"{HERE}::test_what_a_worker_is_launched_with",
    "task.instruction": f"{HERE}::test_what_a_worker_is_launched_with",
    "task.instruction_path": "tests/crew/test_plan_keys.py::test_small_flaws_of_instructions_are_mended",
    "task.command": f"{HERE}::test_what_a_worker_is_launched_with",
    "task.workdir": f"{HERE}::test_what_a_worker_is_launched_with",
    "task.depends_on": "tests/crew/test_conducted.py::test_a_plan_is_carried_out",
    "task.writes": "tests/crew/test_conducted.py::test_a_plan_that_cannot_run_is_refused",
    "task.checkpoints": "tests/crew/test_plan_keys.py::test_checkpoints_of_a_command",
    "task.mandatory": "tests/crew/test_plan_keys.py::test_a_mandatory_item_goes_to_the_replanner_at_once",
    "task.redispatches": f"{HERE}::test_redispatches",
    "task.estimate": f"{HERE}::test_estimate",
    "task.stale_after": f"{HERE}::test_stale_after",
    "task.pool": f"{HERE}::test_pool",
    "task.priority": f"{HERE}::test_workers_and_priority",
    "task.phase": f"{HERE}::test_name_revision_and_phase",
    "task.mark": "tests/crew/test_conducted.py::test_a_new_plan_is_carried_over",
}


def test_every_key_has_its_proof() -> None:
    """Each declared key of a plan names an existing test, and no other key does."""
    keys = {f"crew.{key.name}" for key in declared_settings(CrewSettings)}
    keys |= {f"task.{key.name}" for key in declared_settings(PlannedTask)}
    assert set(PROOFS) == keys
    root = Path(__file__).parents[2]
    for key, proof in PROOFS.items():
        file, name = proof.split("::")
        assert re.search(rf"^def {name}\b", (root / file).read_text(), re.MULTILINE), key


class Planned(World):
    """A world whose tasks and settings come from a plan; launches and ended processes are recorded."""

    def __init__(self, place: Path, tasks: Sequence[dict[str, Any]], **settings: Any) -> None:
        super().__init__(place, 0, stormy=False, tasks=0)
        plan = {
            "crew": {"worker": ["worker"], "grace": 0.5, **settings},
            "task": [{"instruction": "x", **one} for one in tasks],
        }
        self.plan = insert_plan(self.table, plan, place)
        self.crew = self.conductor.crew
        self.crew.settings = ConductorSettings.from_plan(self.plan.settings)
        self.crew.judgement = CommandJudgement.of_plan(self.plan)
        self.launched: list[tuple[str, list[str], Mapping[str, str], Path | None]] = []
        self.graces: list[float] = []
        launch, end = self.processes.launch, self.processes.end

        def recorded(name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> None:
            self.launched.append((name, list(command), environment, workdir))
            launch(name, command, environment, workdir)

        def ended(name: str, grace: float = 0.0) -> int | None:
            self.graces.append(grace)
            return end(name, grace)

        self.processes.launch, self.processes.end = recorded, ended  # type: ignore[method-assign]  # recorders

    def row(self, name: str = "a") -> TaskRow:
        return self.table.require_task(name)

    def launch_all(self) -> None:
        """Launch what is ready, and let each worker claim its task."""
        self.conductor.run_once()
        for worker in self.processes.running.values():
            if worker.claim is None:
                worker.act(self.table, self.now)

    def lose(self, *names: str) -> None:
        """Kill the workers of these tasks, and let the conductor notice and launch others."""
        for name in names:
            self.processes.running[name].alive = False
        self.conductor.run_once()
        self.launch_all()


def test_name_revision_and_phase(tmp_path: Path) -> None:
    """The replanner's report names the plan, its revision and the phase of the task."""
    world = Planned(tmp_path, [{"id": "a", "phase": 7}], name="letters", revision=4)
    world.launch_all()
    claim = world.processes.running["a"].claim
    assert claim is not None
    world.table.report_error(claim, "this requires cross-phase changes")
    world.conductor.handle_pending()
    report = (tmp_path / "runtime" / "blocker-report-r1-a.md").read_text()
    assert "letters" in report
    assert re.search(r"revision\D{0,5}4", report, re.IGNORECASE)
    assert re.search(r"phase\D{0,5}7", report, re.IGNORECASE)


def test_workers_and_priority(tmp_path: Path) -> None:
    """So many workers run at once, those of the highest priority first."""
    world = Planned(tmp_path, [{"id": "a"}, {"id": "b", "priority": 2}, {"id": "c", "priority": 1}], workers=2)
    world.launch_all()
    assert [name for name, *_ in world.launched] == ["b", "c"]


def test_what_a_worker_is_launched_with(tmp_path: Path) -> None:
    """A task's own command, else the crew's, with the placeholders filled, in its folder, with the interval of heartbeats."""
    (tmp_path / "folder").mkdir()
    tasks: list[dict[str, Any]] = [
        {"id": "a", "title": "First", "instruction": "Say hello.", "workdir": "folder"},
        {"id": "b", "command": ["mine", "{task}"]},
    ]
    world = Planned(tmp_path, tasks, worker=["all", "{task}", "{instruction}"], beat=7)
    world.launch_all()
    (_, first, environment, workdir), (_, second, _, _) = world.launched
    assert first[:2] == ["all", "a"]
    assert "Say hello." in first[2]
    assert second == ["mine", "b"]
    assert (environment["RUNG_TASK"], environment["RUNG_BEAT"]) == ("a", "7")
    assert workdir == tmp_path / "folder"
    assert world.row().title == "First"


@pytest.mark.parametrize(("settings", "task"), [({"stale_after": 100}, {}), ({}, {"stale_after": 100})])
def test_stale_after(tmp_path: Path, settings: dict[str, Any], task: dict[str, Any]) -> None:
    """A worker without a heartbeat for so long is evicted, not before: by the crew's limit, or by the task's own."""
    world = Planned(tmp_path, [{"id": "a", **task}], **settings)
    world.launch_all()
    for seconds, evicted in ((50, 0), (45, 0), (10, 1)):
        assert world.watch(seconds) == evicted


def test_hung(tmp_path: Path) -> None:
    """A worker with heartbeats, but without progress for so long, is evicted."""
    world = Planned(tmp_path, [{"id": "a"}], hung=300)
    world.launch_all()
    claim = world.processes.running["a"].claim
    assert claim is not None
    world.table.heartbeat(claim, progress="step 1")
    for seconds, evicted in ((150, 0), (140, 0), (20, 1)):
        world.table.heartbeat(claim)
        assert world.watch(seconds) == evicted


def test_grace(tmp_path: Path) -> None:
    """A worker that is ended gets this time between the two signals."""
    world = Planned(tmp_path, [{"id": "a"}], grace=11)
    world.launch_all()
    world.now += 600
    world.conductor.run_once()
    assert 11 in world.graces


def test_claim_within(tmp_path: Path) -> None:
    """A launched worker that has not claimed its task in this time is replaced."""
    world = Planned(tmp_path, [{"id": "a"}], claim_within=40, stale_after=1000, redispatches=9)
    world.conductor.run_once()
    for seconds, restarts in ((39, 0), (2, 1)):
        world.watch(seconds)
        assert world.row().redispatches == restarts


@pytest.mark.parametrize(
    ("settings", "task", "allowed"),
    [({"redispatches": 2}, {}, 2), ({"redispatches": 0}, {}, 0), ({}, {"redispatches": 1}, 1), ({"redispatches": 1}, {"redispatches": 2}, 2)],
)  # fmt: skip
def test_redispatches(tmp_path: Path, settings: dict[str, Any], task: dict[str, Any], allowed: int) -> None:
    """A task is given to so many other workers, by the crew's limit or by its own; then it is given up, and only it."""
    world = Planned(tmp_path, [{"id": "a", **task}, {"id": "b"}], restarts=99, deaths=99, **settings)
    world.launch_all()
    for number in range(1, allowed + 1):
        world.now += 60
        world.lose("a")
        assert (world.row().redispatches, world.row().outcome) == (number, "")
    world.now += 60
    world.processes.running["a"].alive = False
    world.conductor.run_once()
    world.conductor.run_once()
    assert world.row().outcome == "escalated"
    assert f"redispatched {allowed} times; the limit is {allowed}" in world.row().note
    assert world.row("b").outcome == ""
    assert not world.table.get_fact(HALTED_KEY)


@pytest.mark.parametrize(("pause", "is_halted"), [(60, True), (200, False)])
def test_restarts_of_the_crew(tmp_path: Path, pause: float, is_halted: bool) -> None:
    """So many restarts within this time stop the crew; spread over more time they do not."""
    names = ["a", "b", "c", "d", "e"]
    world = Planned(
        tmp_path,
        [{"id": one} for one in names],
        workers=5,
        restarts=4,
        restart_seconds=400,
        deaths=99,
        stale_after=5000,
    )
    world.launch_all()
    for name in names:
        world.now += pause
        world.lose(name)
    assert bool(world.table.get_fact(HALTED_KEY)) is is_halted
    assert (world.row("e").outcome == "escalated") is is_halted


@pytest.mark.parametrize(("pause", "is_halted"), [(1, True), (30, False)])
def test_deaths_of_the_crew(tmp_path: Path, pause: float, is_halted: bool) -> None:
    """Workers of so many tasks that die within this time stop the crew; one after the other they do not."""
    names = ["a", "b", "c"]
    world = Planned(tmp_path, [{"id": one} for one in names], workers=3, restarts=99, deaths=2, death_seconds=20)
    world.launch_all()
    for name in names:
        world.now += pause
        world.lose(name)
    assert bool(world.table.get_fact(HALTED_KEY)) is is_halted
    if is_halted:
        assert "common cause" in (world.table.get_fact(HALTED_KEY) or "")


@pytest.mark.parametrize(("park", "state"), [(600, "parked"), (60, "blocked")])
def test_park(tmp_path: Path, park: float, state: str) -> None:
    """A limit that ends within this time parks the pool; one that ends later blocks it until a person helps."""
    world = Planned(tmp_path, [{"id": "a"}], park=park)
    world.launch_all()
    claim = world.processes.running["a"].claim
    assert claim is not None
    world.table.report_error(claim, f"429 rate limit exceeded, resets at {int(world.now) + 300}")
    world.conductor.handle_pending()
    assert world.table.pools()["default"].state == state


def test_probes(tmp_path: Path) -> None:
    """Probes of a failing service are at least this far apart, and work with progress for this long opens the pool."""
    world = Planned(tmp_path, [{"id": "a"}], probe_interval=100, probe_seconds=50, patience=9000, claim_within=9000)

    def meets_overload() -> None:
        world.launch_all()
        claim = world.processes.running["a"].claim
        assert claim is not None
        world.table.report_error(claim, "HTTP 529 overloaded_error")
        world.conductor.handle_pending()
        world.table.hand_off(claim, "HANDOFF: asked to stop")
        world.processes.running["a"].alive = False
        world.conductor.run_once()

    meets_overload()
    starts = []
    for _ in range(60):
        world.now += 20
        before = len(world.launched)
        world.conductor.run_once()
        if len(world.launched) > before:
            starts.append(world.now)
            if len(starts) == 3:
                break
            meets_overload()
    assert all(later - earlier >= 100 for earlier, later in pairwise(starts))
    world.launch_all()
    claim = world.processes.running["a"].claim
    assert claim is not None
    for seconds, is_open in ((10, False), (30, False), (20, True)):
        world.now += seconds
        world.table.heartbeat(claim, progress=f"step {world.now}")
        world.conductor.run_once()
        assert world.table.pools()["default"].is_open is is_open


def test_pool(tmp_path: Path) -> None:
    """Only the tasks of the pool that met a limit wait."""
    world = Planned(
        tmp_path, [{"id": "a", "pool": "one"}, {"id": "b", "pool": "one", "depends_on": ["c"]}, {"id": "c"}]
    )
    world.launch_all()
    claim = world.processes.running["a"].claim
    assert claim is not None
    world.table.report_error(claim, f"429 rate limit exceeded, resets at {int(world.now) + 300}")
    world.conductor.handle_pending()
    assert [name for name, pool in world.table.pools().items() if not pool.is_open] == ["one"]


@pytest.mark.parametrize(("estimate", "answer"), [(60.0, "review_approved"), (20.0, "fix_proposed")])
def test_estimate(tmp_path: Path, estimate: float, answer: str) -> None:
    """A context warning is compared with the estimate: more than twice of it is not waved through."""
    world = Planned(tmp_path, [{"id": "a", "estimate": estimate}])
    world.launch_all()
    claim = world.processes.running["a"].claim
    assert claim is not None
    body = "Context Usage: 66%\nSelf-Correction: NO\nAgents Remaining: 0\nDeviations: medium: 1\nSteps To Checkpoint: 1\nProposal: finish step 4 and its test"
    world.table.warn_context(claim, body)
    world.conductor.handle_pending()
    assert world.row().state == answer


def test_the_settings_of_a_revision_are_in_force(tmp_path: Path) -> None:
    """A new plan's `[crew]` table holds from the next turn on: workers, limits and who reviews."""
    world = Planned(tmp_path, [{"id": "a"}, {"id": "b"}], workers=1)
    new = {
        "crew": {"worker": ["other"], "revision": 2, "workers": 2, "review": "person", "redispatches": 7},
        "task": [{"id": one, "instruction": "x"} for one in "ab"],
    }
    apply_plan(world.crew, new, checked_plan(new))
    world.launch_all()
    assert [command for _, command, *_ in world.launched] == [["other"], ["other"]]
    assert world.crew.settings.reviewed_by_person
    assert world.crew.settings.limits.redispatches == 7


def test_a_revised_task_takes_every_key(tmp_path: Path) -> None:
    """A revision changes all of a task's keys, and begins its reviews anew."""
    world = Planned(tmp_path, [{"id": "a", "checkpoints": 2}])
    world.table.update_columns("a", reviews_approved=2, review_cycles=3)
    changed = {
        "id": "a",
        "instruction": "y",
        "title": "T",
        "phase": 3,
        "stale_after": 900,
        "checkpoints": 1,
        "priority": 5,
        "writes": ["w"],
        "pool": "p",
        "command": ["c"],
        "workdir": ".",
    }
    new = {"crew": {"worker": ["worker"], "revision": 2}, "task": [changed]}
    apply_plan(world.crew, new, checked_plan(new))
    row = world.row()
    assert (row.title, row.phase, row.stale_after, row.checkpoints, row.priority) == ("T", 3, 900, 1, 5)
    assert (row.writes, row.command, row.workdir, world.table.pool_of("a")) == (("w",), ("c",), str(tmp_path), "p")
    assert (row.reviews_approved, row.review_cycles) == (0, 0)
    assert "y" in world.table.messages("a", types=(MessageType.INSTRUCTION,))[-1].message
    assert row.state is TaskState.WATCHING


@pytest.mark.parametrize("key", ["review", "judge", "replanner"])
def test_a_question_as_code_is_refused(tmp_path: Path, key: str) -> None:
    """A command that would run its question as code is refused before the crew starts, by its key."""
    plan = {
        "crew": {"worker": [sys.executable], key: [sys.executable, "-c", "{prompt}"]},
        "task": [{"id": "a", "instruction": "x"}],
    }
    with pytest.raises(ConfigError) as raised:
        require_programs(checked_plan(plan), tmp_path)
    assert raised.value.key == f"crew.{key}"
