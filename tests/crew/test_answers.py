"""The conductor's answers, one message at a time, in simulated time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, MessageType, TaskState
from rung.core.crew.liveness import RestartLimits
from rung.crew.shutdown import shut_down
from rung.store.crew.operator_commands import OperatorReply, reply_to_task
from tests.crew.review_text import review
from tests.crew.simulated import World

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.crew.rows import TaskLease, TaskRow


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with one task and no launched worker: the test is the worker."""
    made = World(tmp_path, 0, stormy=False, tasks=1)
    made.table.update_columns("task-01", command=[])
    return made


def claimed(world: World, session: str = "s1") -> TaskLease:
    return world.table.claim("task-01", session)


def task(world: World) -> TaskRow:
    found = world.table.task("task-01")
    assert found is not None
    return found


def said(world: World, kind: MessageType) -> list[str]:
    return [message.message for message in world.table.messages("task-01", types=(kind,))]


def test_the_fifth_error_goes_to_the_plan(world: World) -> None:
    """Four fixes for life, also across sessions; the fifth error gets none, and without another plan it is escalated."""
    claim = claimed(world)
    for n in range(1, 6):
        if n == 4:  # another session, which the contract's counter begins anew for
            world.table.hand_off(claim, "enough")
            world.conductor.handle_pending()
            claim = claimed(world, "s2")
            assert task(world).retry_count == 0
        world.table.report_error(claim, f"ImportError: No module named foo{n}")
        world.conductor.handle_pending()
        if n < 5:
            assert task(world).state is TaskState.FIX_PROPOSED
            assert said(world, MessageType.FIX_PROPOSAL)[-1].startswith(f"FIX PROPOSAL (Retry {n}/5)")
            world.table.resume(claim)
    assert (task(world).state, task(world).outcome) == (TaskState.EXITED, "escalated")
    assert len(said(world, MessageType.FIX_PROPOSAL)) == 4
    assert (world.place / "runtime" / "blocker-report-r1-task-01.md").exists()


def test_corrections_of_earlier_incidents_count(world: World) -> None:
    """An approved review closes the incident; the next one of the task has only the remaining fixes."""
    claim = claimed(world)
    for n in range(1, 6):
        if n in (3, 5):
            world.table.request_review(claim, review(0), checkpoint=n)
            world.conductor.handle_pending()
            assert (task(world).state, task(world).history) == (TaskState.REVIEW_APPROVED, [])
            world.table.resume(claim)
        world.table.report_error(claim, f"ImportError: No module named foo{n}")
        world.conductor.handle_pending()
        if n < 5:
            assert task(world).state is TaskState.FIX_PROPOSED
            world.table.resume(claim)
    assert (task(world).state, task(world).outcome) == (TaskState.EXITED, "escalated")


def test_an_investigated_error_is_one_of_the_five(world: World) -> None:
    """No fix is proposed for the fifth error if one of the four before was investigated."""
    claim = claimed(world)
    for n in range(1, 6):
        world.table.report_error(claim, "a deadlock" if n == 1 else f"ImportError: No module named foo{n}")
        world.conductor.handle_pending()
        if n == 1:  # otherwise the next error goes straight up from there
            world.table.request_review(claim, review(0), checkpoint=1)
            world.conductor.handle_pending()
        if n < 5:
            world.table.resume(claim)
    assert len(said(world, MessageType.FIX_PROPOSAL)) == 4
    assert task(world).outcome == "escalated"


def test_the_count_of_the_worker_is_looked_at(world: World) -> None:
    """An error with `retry_count` at 5 gets no fix, even if the table has seen fewer errors."""
    claim = claimed(world)
    world.table.connection.execute("UPDATE orchestration_tasks SET retry_count = 4 WHERE task_id = 'task-01'")
    world.table.report_error(claim, "ImportError: No module named foo")
    assert (task(world).retry_count, task(world).error_tries) == (5, 1)
    world.conductor.handle_pending()
    assert said(world, MessageType.FIX_PROPOSAL) == []
    assert task(world).outcome == "escalated"


@pytest.mark.parametrize("with_hand_over", [False, True])
@pytest.mark.parametrize("in_error", [False, True])
def test_a_worker_that_leaves_after_its_fifth_error_is_not_replaced(
    world: World, in_error: bool, with_hand_over: bool
) -> None:
    """A worker that exits when its corrections are spent leaves its task to the replanner, not to a successor."""
    claim = claimed(world)
    for n in range(1, 5):
        world.table.report_error(claim, f"ImportError: No module named foo{n}")
        world.conductor.handle_pending()
        world.table.resume(claim)
    if in_error or with_hand_over:
        world.table.report_error(claim, "ImportError: No module named foo5")
    if with_hand_over:
        world.table.hand_off(claim, "HANDOFF: five tries are spent")
    else:
        world.table.connection.execute(
            "UPDATE orchestration_tasks SET state = 'exited', retry_count = 5 WHERE task_id = 'task-01'"
        )
    world.conductor.handle_pending()
    assert (task(world).state, task(world).outcome, task(world).redispatches) == (TaskState.EXITED, "escalated", 0)
    assert (world.place / "runtime" / "blocker-report-r1-task-01.md").exists()


def test_a_hand_over_after_a_persons_fix_has_a_successor(world: World) -> None:
    """A worker that a person has helped after its fifth error hands over like any other."""
    claim = claimed(world)
    world.table.connection.execute("UPDATE orchestration_tasks SET retry_count = 4 WHERE task_id = 'task-01'")
    world.table.report_error(claim, "ImportError: No module named foo")
    reply_to_task(world.table, "task-01", "it is in the other folder", OperatorReply.FIX)
    world.table.resume(claim)
    world.table.hand_off(claim, "HANDOFF: the context is full")
    world.conductor.handle_pending()
    assert (task(world).open_for_claim, task(world).outcome) == (True, "")


def test_a_workers_exit_code_names_its_error(world: World) -> None:
    """Tool and exit code of the report are part of the classified evidence."""
    claim = claimed(world)
    world.table.report_error(
        claim, "it stopped", body="ERROR (Retry 1/5):\nError: it stopped\nTool: bash\nExit Code: 137"
    )
    world.conductor.handle_pending()
    failure = next(event["failure"] for event in task(world).history if event["name"] == "attempt_failed")
    assert (failure["kind"], failure["evidence"]["tool"]) == ("resource_exhausted", "bash")


def test_an_error_that_two_corrections_did_not_change_is_called_that(world: World) -> None:
    """The third proposal for one error says that the plan may be wrong."""
    claim = claimed(world)
    for _ in range(3):
        world.table.report_error(claim, "ImportError: No module named foo")
        world.conductor.handle_pending()
        world.table.resume(claim)
    first, _, third = said(world, MessageType.FIX_PROPOSAL)
    assert "Two fixes have not changed this error" in third
    assert "Two fixes" not in first


def test_errors_come_before_reviews_and_both_before_ends(tmp_path: Path) -> None:
    """Pending tasks are handled in this order: errors, reviews, exits."""
    world = World(tmp_path, 0, stormy=False, tasks=3)
    for n in (1, 2, 3):
        world.table.update_columns(f"task-0{n}", command=[], depends_on=[])
    claims = {n: world.table.claim(f"task-0{n}", f"s{n}") for n in (1, 2, 3)}
    world.table.hand_off(claims[1], "gone")
    world.table.request_review(claims[2], "x", checkpoint=1)
    world.table.report_error(claims[3], "typo")
    world.conductor.handle_pending()
    answers = [m.task_id for m in world.table.messages() if m.from_session == CONDUCTOR]
    assert answers[-3:] == ["task-03", "task-02", "task-01"]


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ("Context Usage: 66%\nSelf-Correction: NO\nAgents Remaining: 0\nDeviations: none\nSteps To Checkpoint: 1\nProposal: finish step 4 and its test", TaskState.REVIEW_APPROVED),
        ("Context Usage: 70%\nSelf-Correction: NO\nAgents Remaining: 0\nDeviations: medium: 1\nSteps To Checkpoint: 9\nProposal: finish step 4 and its test", TaskState.FIX_PROPOSED),
        ("Context Usage: 79%\nProposal: go on", TaskState.EXIT_REQUESTED),
    ],
)  # fmt: skip
def test_context_warnings_are_weighed_and_never_counted(world: World, body: str, state: TaskState) -> None:
    """A context warning is answered with proceed, override or stop, and is not counted as an error."""
    claim = claimed(world)
    world.table.warn_context(claim, body)
    world.conductor.handle_pending()
    assert task(world).state is state
    assert (task(world).error_tries, task(world).warnings) == (0, 1)


@pytest.mark.parametrize(
    ("smoothness", "state"),
    [(0, TaskState.REVIEW_APPROVED), (4, TaskState.REVIEW_APPROVED), (5, TaskState.REVIEW_APPROVED), (6, TaskState.REVIEW_FAILED), (9, TaskState.REVIEW_FAILED)],
)  # fmt: skip
def test_reviews_by_their_grade(world: World, smoothness: int, state: TaskState) -> None:
    """0 to 4 are approved, 5 after a full review, 6 and worse are sent back."""
    claim = claimed(world)
    world.table.request_review(claim, review(smoothness), checkpoint=1)
    world.conductor.handle_pending()
    assert task(world).state is state


def test_a_review_that_does_not_end(world: World) -> None:
    """Five reviews of one checkpoint are answered; the sixth leads to replanning and escalation."""
    claim = claimed(world)
    for _ in range(5):
        world.table.request_review(claim, review(7), checkpoint=1)
        world.conductor.handle_pending()
        assert task(world).state is TaskState.REVIEW_FAILED
        world.table.resume(claim)
    world.table.request_review(claim, review(7), checkpoint=1)
    world.conductor.handle_pending()
    assert (task(world).state, task(world).outcome) == (TaskState.EXITED, "escalated")


def test_a_second_session_that_came_too_late(world: World) -> None:
    """The fallback row of a blocked claim is removed, and the owner continues."""
    from rung.core.domain.errors import ClaimBlocked

    claim = claimed(world)
    with pytest.raises(ClaimBlocked):
        claimed(world, "s2")
    assert len(world.table.fallbacks()) == 1
    world.conductor.handle_pending()
    assert world.table.fallbacks() == []
    assert world.table.heartbeat(claim) is TaskState.WORKING


def test_a_silent_worker_is_found_in_whatever_state(world: World) -> None:
    """A stale worker is evicted by the next check, also while it waits for an answer."""
    claim = claimed(world)
    world.table.report_error(claim, "typo")
    world.conductor.handle_pending()
    assert world.watch(119) == 0
    assert world.watch(5) == 1
    assert task(world).state is TaskState.EXITED
    world.conductor.handle_pending()
    assert task(world).open_for_claim
    assert task(world).redispatches == 1


def test_the_progress_of_a_predecessor_is_not_the_workers(world: World) -> None:
    """A worker that takes over a task long after its predecessor's last progress is not hung."""
    claim = claimed(world)
    world.now += 60
    world.table.heartbeat(claim, progress="step 1")
    world.table.hand_off(claim, "enough")
    world.conductor.handle_pending()
    world.now += 5 * 3_600
    claimed(world, "s2")
    assert world.conductor.supervise_and_dispatch() == 0
    assert task(world).state is TaskState.WORKING


def test_missing_instructions_are_a_persons(tmp_path: Path) -> None:
    """A task without its instruction file is not dispatched but escalated."""
    world = World(tmp_path, 0, stormy=False, tasks=1)
    world.table.update_columns("task-01", instruction_path=str(tmp_path / "nothing.md"))
    world.run()
    assert task(world).outcome == "escalated"
    assert "instructions" in task(world).note


def test_a_conductors_own_end_counts_against_nobody(tmp_path: Path) -> None:
    """A shutdown ends healthy workers; the next conductor restarts them all without counting against limits."""
    world = World(tmp_path, 0, stormy=False, tasks=8)
    world.conductor.crew.settings = replace(world.conductor.crew.settings, limits=RestartLimits())
    for n in range(1, 9):
        world.table.update_columns(f"task-0{n}", depends_on=[])
    world.conductor.run_once()
    for worker in world.processes.running.values():
        worker.act(world.table, world.now)
    shut_down(world.conductor.crew, "context runs out")
    assert world.table.counts()[TaskState.EXITED] == 8
    world.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)
    world.conductor.run_once()
    assert len(world.table.running_sessions()) == 8
    assert {row.redispatches for row in world.table.tasks()} == {0}


def test_what_is_known_of_loops_goes_with_the_worker(world: World) -> None:
    """The loop detectors' state is dropped with the worker it belongs to."""
    claim = claimed(world)
    world.table.heartbeat(claim, progress='{"tool": "bash", "args": "make", "result": "x", "i": 1}')
    world.conductor.supervise_and_dispatch()
    assert len(world.conductor.crew.loop_states) == 1
    world.table.hand_off(claim, "done")
    world.conductor.supervise_and_dispatch()
    assert world.conductor.crew.loop_states == {}


def test_a_limit_of_a_worker_parks_its_pool_until_the_reset(world: World) -> None:
    """A worker that met a limit is asked to hand over, uncounted, and the pool is parked until the limit reopens."""
    claim = claimed(world)
    limit = f"429 rate limit exceeded, resets at {int(world.now) + 30}"
    world.table.report_error(claim, limit, body=f"ERROR (Retry 1/5):\nError: {limit}")
    world.conductor.handle_pending()
    assert (task(world).state, task(world).error_tries, task(world).history) == (TaskState.EXIT_REQUESTED, 0, None)
    assert said(world, MessageType.EXIT_REQUEST)[-1].startswith("PARKED: rate_limit")
    world.table.hand_off(claim, "HANDOFF: asked to stop")
    world.conductor.handle_pending()
    assert (task(world).state, task(world).redispatches, task(world).note) == (TaskState.FIX_PROPOSED, 0, "")
    assert world.table.pools()["default"].until == int(world.now) + 30


def test_renumbered_checkpoints_escape_no_limit(world: World) -> None:
    """Reviews are counted until one is approved: the sixth is exhausted, whatever checkpoint each names."""
    claim = claimed(world)
    for number in (1, 2, 3, 1, 7):
        world.table.request_review(claim, review(7), checkpoint=number)
        world.conductor.handle_pending()
        assert task(world).state is TaskState.REVIEW_FAILED
        world.table.resume(claim)
    world.table.request_review(claim, review(7), checkpoint=8)
    world.conductor.handle_pending()
    assert (task(world).state, task(world).outcome) == (TaskState.EXITED, "escalated")
    assert "5 reviews without approval" in (world.place / "runtime" / "blocker-report-r1-task-01.md").read_text()


def test_each_checkpoint_has_five_reviews(world: World) -> None:
    """An approval begins the next checkpoint, with reviews of its own; the answer says which review is next."""
    world.table.update_columns("task-01", checkpoints=1)
    claim = claimed(world)
    for _ in range(2):
        for grade in (7, 7, 7, 7, 0):
            world.table.request_review(claim, review(grade), checkpoint=3)
            world.conductor.handle_pending()
            world.table.resume(claim)
    first, second = said(world, MessageType.APPROVAL)
    assert first.startswith("REVIEW APPROVED: checkpoint 1. Continue.\n1 of 2 reviews are approved")
    assert second == "REVIEW APPROVED: checkpoint 2. Continue."
    world.table.complete(claim)


def test_an_error_beyond_authority_spends_no_correction(world: World) -> None:
    """It goes to the replanner at once, and neither the table's count nor the worker's grows by it."""
    world.conductor.crew.settings = replace(world.conductor.crew.settings, attended=True)
    claim = claimed(world)
    world.table.report_error(claim, "ImportError: No module named foo")
    world.conductor.handle_pending()
    world.table.resume(claim)
    world.table.report_error(claim, "this requires cross-phase changes")
    world.conductor.handle_pending()
    assert task(world).note.startswith("asks: ")
    assert (task(world).error_tries, task(world).retry_count) == (1, 1)
    world.table.excuse_error(task(world))  # as another conductor would that handles it again
    assert (task(world).error_tries, task(world).retry_count) == (1, 1)
