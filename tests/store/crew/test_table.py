"""What the shared table promises, on both stores, to our own workers and to strangers."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.core.domain.errors import ClaimBlocked, ConfigError, IllegalTransition, LeaseExpired, StoreUnavailable
from rung.store.crew.rows import NewTask, TaskLease
from rung.store.crew.table import CrewTable
from tests.store import postgres
from tests.store.crew.stranger import OLD, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.crew.rows import TaskRow
    from tests.store.crew.stranger import Stranger

TASK = "task-01"
CLAIM = (
    "UPDATE orchestration_tasks SET state = 'working', session_id = '{session}', worked_by = 'w', started_at ="
    " datetime('now'), last_heartbeat = datetime('now'), retry_count = 0 WHERE task_id = 'task-01'"
    " AND state IN ('watching', 'fix_proposed', 'exit_requested')"
)
WRITES: dict[str, Callable[[CrewTable, TaskLease], object]] = {
    "beat": lambda table, claim: table.heartbeat(claim),
    "beat with progress": lambda table, claim: table.heartbeat(claim, progress="3 files"),
    "error": lambda table, claim: table.report_error(claim, "boom"),
    "warn": lambda table, claim: table.warn_context(claim, "65 %"),
    "review": lambda table, claim: table.request_review(claim, "please", checkpoint=1),
    "resume": lambda table, claim: table.resume(claim),
    "resume with a word": lambda table, claim: table.resume(claim, "RESUMPTION: step 3"),
    "complete": lambda table, claim: table.complete(claim),
    "hand off": lambda table, claim: table.hand_off(claim, "HANDOFF"),
}


@pytest.fixture
def claim(table: CrewTable) -> TaskLease:
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    return table.claim(TASK, "s1")


def answered(table: CrewTable, to: TaskState, kind: MessageType = MessageType.SYSTEM) -> None:
    assert table.reply(table.require_task(TASK), to, f"now {to}", kind)


def aged(stranger: Stranger) -> None:
    stranger.changed(f"UPDATE orchestration_tasks SET last_heartbeat = '{OLD}' WHERE task_id = '{TASK}'")


# -- claims -------------------------------------------------------------------------------------------


def test_of_two_one_gets_it_and_the_other_says_that_it_did_not(table: CrewTable, claim: TaskLease) -> None:
    """A fallback row and a message on the task itself; once dropped, nothing is left of it."""
    assert claim.generation == 1
    with pytest.raises(ClaimBlocked, match="task-01 cannot be claimed by s2: it is working, owned by s1"):
        table.claim(TASK, "s2")
    with pytest.raises(ClaimBlocked):  # and again: it is the same row
        table.claim(TASK, "s2")
    (fallback,) = table.fallbacks()
    assert (fallback.task_id, fallback.state, fallback.session_id) == ("fallback-s2", TaskState.EXITED, "s2")
    assert [m.from_session for m in table.messages(TASK, types=[MessageType.CLAIM_BLOCKED])] == ["s2", "s2"]
    assert [task.task_id for task in table.tasks()] == [TASK]
    table.delete_fallback("s2")
    assert not table.fallbacks()


def test_a_strangers_claim_is_the_same_lease(table: CrewTable, stranger: Stranger) -> None:
    """One row changed, and the number of the lease is one more; whoever comes second changes none."""
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    assert stranger.changed(CLAIM.format(session="raw")) == 1
    assert stranger.row(TASK, "session_id, generation, open_for_claim") == ("raw", 1, 0)
    assert stranger.changed(CLAIM.format(session="late")) == 0
    with pytest.raises(Refused, match="session_id changes by a claim"):
        stranger.changed(f"UPDATE orchestration_tasks SET session_id = 'thief' WHERE task_id = '{TASK}'")
    with pytest.raises(Refused, match="session_id changes by a claim"):
        stranger.changed(f"UPDATE orchestration_tasks SET session_id = NULL WHERE task_id = '{TASK}'")


def test_a_claim_names_its_session(table: CrewTable, stranger: Stranger) -> None:
    """Without one there would be nobody to have it."""
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    for session in ("", ", session_id = NULL", ", session_id = ''"):
        with pytest.raises(Refused, match="by a claim that names its session"):
            stranger.changed(f"UPDATE orchestration_tasks SET state = 'working'{session} WHERE task_id = '{TASK}'")
    for bad in ("", "two words", "x" * 201, "a\nb"):
        with pytest.raises(ConfigError, match="session"):
            table.claim(TASK, bad)


def test_a_fix_is_for_its_owner_as_long_as_that_one_lives(
    table: CrewTable, claim: TaskLease, stranger: Stranger
) -> None:
    """The same state also means: open for a successor. Which of both is a matter of the owner's life."""
    table.report_error(claim, "boom")
    answered(table, TaskState.FIX_PROPOSED)
    assert stranger.changed(CLAIM.format(session="s2")) == 0
    with pytest.raises(ClaimBlocked, match="owned by s1"):
        table.claim(TASK, "s2")
    assert table.require_task(TASK).generation == 1
    aged(stranger)
    assert stranger.changed(CLAIM.format(session="s2")) == 1
    assert stranger.row(TASK, "session_id, generation") == ("s2", 2)


def test_the_owner_may_also_claim_its_fix(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """It goes on; the lease stays the same."""
    table.report_error(claim, "boom")
    answered(table, TaskState.FIX_PROPOSED)
    assert stranger.changed(CLAIM.format(session="s1")) == 1
    assert table.heartbeat(claim) is TaskState.WORKING


@pytest.mark.parametrize("opened", [TaskState.FIX_PROPOSED, TaskState.WATCHING])
@pytest.mark.parametrize("session", ["s1", "s2"])
def test_what_was_exited_is_opened_for_anybody(
    table: CrewTable, claim: TaskLease, opened: TaskState, session: str
) -> None:
    """Also for the former owner, who has to claim it like all others; the lease it had is over."""
    answered(table, TaskState.EXITED)
    answered(table, opened)
    found = table.require_task(TASK)
    assert (found.session_id, found.open_for_claim) == ("", True)
    assert bool(found.worked_by) == (opened is TaskState.FIX_PROPOSED)  # whose successor it is
    again = table.claim(TASK, session)
    assert again.generation > claim.generation
    with pytest.raises(LeaseExpired):
        table.heartbeat(claim)
    assert table.heartbeat(again) is TaskState.WORKING


def test_an_opened_task_belongs_to_nobody(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """A former owner's raw SQL that names no session cannot go on with it."""
    answered(table, TaskState.EXITED)
    answered(table, TaskState.FIX_PROPOSED)
    for state in ("working", "needs_review"):
        with pytest.raises(Refused, match="legal from there"):
            stranger.changed(f"UPDATE orchestration_tasks SET state = '{state}' WHERE task_id = '{TASK}'")


def test_no_review_is_asked_for_work_of_nobody(table: CrewTable, claim: TaskLease) -> None:
    """A task that was opened again has no session, so not even the conductor can put it up for review."""
    table.hand_off(claim, "HANDOFF: half of it")
    table.reply(table.require_task(claim.task_id), TaskState.FIX_PROPOSED, "go on", MessageType.FIX_PROPOSAL)
    opened = table.require_task(claim.task_id)
    with pytest.raises(IllegalTransition):
        table.reply(opened, TaskState.NEEDS_REVIEW, "done", MessageType.SYSTEM)
    assert table.require_task(claim.task_id).state is TaskState.FIX_PROPOSED


def test_the_next_is_the_most_urgent_that_waits_for_nobody(table: CrewTable) -> None:
    """By priority, then by name; and only after what it depends on is complete."""
    table.add_task(NewTask(task_id="task-01", instruction="do it", depends_on=("task-03",), priority=9))
    table.add_task(NewTask(task_id="task-02", instruction="do it"))
    table.add_task(NewTask(task_id="task-03", instruction="do it", priority=1))
    first = table.claim_next("s1")
    assert first is not None
    assert first.task_id == "task-03"
    second = table.claim_next("s2")
    assert second is not None
    assert second.task_id == "task-02"
    assert table.claim_next("s3") is None
    table.request_review(first, "x", checkpoint=1)
    table.reply(table.require_task("task-03"), TaskState.REVIEW_APPROVED, "", MessageType.APPROVAL)
    table.complete(first)
    third = table.claim_next("s3")
    assert third is not None
    assert third.task_id == "task-01"
    assert not table.fallbacks()


# -- the fence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["opened", "claimed by another", "claimed by itself", "complete"])
def test_a_stale_workers_every_write_is_refused_and_told(table: CrewTable, claim: TaskLease, lost: str) -> None:
    """Nothing is changed: neither a message nor a state nor a heartbeat."""
    if lost == "complete":
        table.request_review(claim, "x", checkpoint=1)
        answered(table, TaskState.REVIEW_APPROVED)
        table.complete(claim)
    else:
        answered(table, TaskState.EXITED)
        answered(table, TaskState.WATCHING)
        if lost != "opened":
            table.claim(TASK, "s2" if lost == "claimed by another" else "s1")
    before, said = table.require_task(TASK), len(table.messages())
    told = re.compile(r"s1 no longer owns task-01 .* nothing was written; stop working on it")
    for name, write in WRITES.items():
        with pytest.raises(LeaseExpired) as refused:
            write(table, claim)
        assert told.fullmatch(str(refused.value)), name
        assert _still(table.require_task(TASK)) == _still(before), name
        assert len(table.messages()) == said, name


def _still(task: TaskRow) -> TaskRow:
    """Without what goes by by itself."""
    return replace(task, heartbeat_age=0, progress_age=0, state_age=0)


def test_what_the_conductor_ended_can_only_be_handed_off(table: CrewTable, claim: TaskLease) -> None:
    """It says `exited` before it ends the process, which then may still say how far it got."""
    answered(table, TaskState.EXITED)
    for name, write in WRITES.items():
        if name != "hand off":
            with pytest.raises(LeaseExpired):
                write(table, claim)
    WRITES["hand off"](table, claim)
    assert table.messages(TASK)[-1].message_type is MessageType.HANDOFF
    assert table.require_task(TASK).state is TaskState.EXITED


def test_a_claim_is_its_session_and_its_generation(table: CrewTable, claim: TaskLease) -> None:
    """Neither alone will do."""
    for session, generation in (("s1", 7), ("s1", 0), ("s9", 1)):
        with pytest.raises(LeaseExpired):
            table.heartbeat(TaskLease(task_id=TASK, session=session, generation=generation))


# -- counting -----------------------------------------------------------------------------------------


def test_errors_are_counted_for_life_whoever_makes_them(table: CrewTable, stranger: Stranger) -> None:
    """Every claim sets `retry_count` to 0, as the contract has it; the count of a life is kept apart."""
    table.add_task(NewTask(task_id=TASK, instruction="do it"))
    for number in range(1, 4):
        stranger.changed(CLAIM.format(session=f"s{number}"))
        stranger.says(TASK, f"s{number}", "error")
        stranger.changed(
            "UPDATE orchestration_tasks SET state = 'error', retry_count = retry_count + 1, last_error = 'boom',"
            f" last_heartbeat = datetime('now') WHERE task_id = '{TASK}'"
        )
        assert stranger.row(TASK, "retry_count, error_tries") == (1, number)
        answered(table, TaskState.EXITED)
        answered(table, TaskState.FIX_PROPOSED if number % 2 else TaskState.WATCHING)
    claim = table.claim(TASK, "s4")
    assert table.report_error(claim, "boom") == 4


def test_a_context_warning_is_no_error(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """Neither ours nor a stranger's, also where that one counts it; what comes after an answer is an error again."""
    table.warn_context(claim, "65 %")
    answered(table, TaskState.REVIEW_APPROVED)
    table.resume(claim)
    assert table.require_task(TASK).last_error == ""
    stranger.says(TASK, "s1", "context_warning")
    stranger.changed(
        "UPDATE orchestration_tasks SET state = 'error', retry_count = retry_count + 1, last_heartbeat ="
        f" datetime('now'), last_error = 'context_exhaustion_warning' WHERE task_id = '{TASK}'"
    )
    assert stranger.row(TASK, "retry_count, error_tries, warnings") == (0, 0, 2)
    answered(table, TaskState.FIX_PROPOSED)
    stranger.changed(f"UPDATE orchestration_tasks SET state = 'working' WHERE task_id = '{TASK}'")
    stranger.says(TASK, "s1", "error")
    stranger.changed(f"UPDATE orchestration_tasks SET state = 'error' WHERE task_id = '{TASK}'")  # it says not why
    assert stranger.row(TASK, "error_tries, warnings") == (1, 2)
    with pytest.raises(ConfigError, match="report a context warning as such"):
        table.report_error(claim, "context_exhaustion_warning")


def test_reviews_are_counted_until_one_is_approved(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """However the request is worded or numbered: only an approval begins a new checkpoint."""
    counted = []
    for body in ("CHECKPOINT 1: REVIEW REQUEST", "checkpoint 1: again", "REVIEW REQUEST: no number", "CHECKPOINT 2: x"):
        stranger.changed(
            "INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
            f" VALUES ('{TASK}', 's1', '{body}', 'review_request')"
        )
        counted.append(stranger.row(TASK, "checkpoint, review_cycles"))
    assert counted == [(1, 1), (1, 2), (1, 3), (2, 4)]
    assert table.request_review(claim, "CHECKPOINT 2: in full", checkpoint=2) == 5
    answered(table, TaskState.REVIEW_FAILED)
    assert table.request_review(claim, "in short", checkpoint=12) == 6
    assert table.messages(TASK)[-1].message.startswith("CHECKPOINT 12: REVIEW REQUEST\nin short")
    assert table.require_task(TASK).checkpoint == 12
    answered(table, TaskState.REVIEW_APPROVED)
    assert stranger.row(TASK, "review_cycles, reviews_approved") == (0, 1)
    assert table.request_review(claim, "x", checkpoint=2) == 1
    with pytest.raises(ConfigError, match="checkpoint"):
        table.request_review(claim, "x", checkpoint=-1)


def test_a_worker_lowers_no_count_of_its_reviews(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """Neither the reviews of this checkpoint nor the approved ones are the worker's to write."""
    table.request_review(claim, "x", checkpoint=1)
    for change in ("review_cycles = 0, checkpoint = 7", "review_cycles = 0", "reviews_approved = 9", "checkpoints = 0"):
        row = stranger.row(TASK, "review_cycles, reviews_approved, checkpoints")
        if change == "checkpoints = 0":
            table.update_columns(TASK, checkpoints=1)
        with pytest.raises(Exception, match="a worker writes only state"):
            stranger.changed(f"UPDATE orchestration_tasks SET {change} WHERE task_id = '{TASK}'")
        assert stranger.row(TASK, "review_cycles, reviews_approved") == row[:2]


def test_a_task_completes_after_all_its_checkpoints(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """Checkpoints are numbered by their approvals; completion before the last one is refused, by SQL and by ours."""
    table.update_columns(TASK, checkpoints=2)
    for number, asked in ((1, 7), (2, 1), (3, 99)):
        if number > 1:
            with pytest.raises(IllegalTransition, match=f"{number - 1} of 3 reviews are approved"):
                table.complete(claim)
            table.resume(claim)
            with pytest.raises(Exception, match="reviews_approved must exceed checkpoints"):
                stranger.changed(f"UPDATE orchestration_tasks SET state = 'complete' WHERE task_id = '{TASK}'")
        table.request_review(claim, "x", checkpoint=asked)
        assert table.require_task(TASK).checkpoint == number
        answered(table, TaskState.REVIEW_APPROVED)
    table.complete(claim)
    assert table.require_task(TASK).state is TaskState.COMPLETE


def test_approved_checkpoints_stay_approved_for_a_successor(table: CrewTable, claim: TaskLease) -> None:
    """Another worker goes on at the checkpoint its predecessor reached."""
    table.update_columns(TASK, checkpoints=1)
    table.request_review(claim, "x", checkpoint=1)
    answered(table, TaskState.REVIEW_APPROVED)
    answered(table, TaskState.EXITED)
    answered(table, TaskState.FIX_PROPOSED)
    claim = table.claim(TASK, "s2")
    table.request_review(claim, "x", checkpoint=1)
    assert table.require_task(TASK).checkpoint == 2
    answered(table, TaskState.REVIEW_APPROVED)
    table.complete(claim)


@pytest.mark.parametrize("since", ["error", "review failed", "another claim"])
def test_an_approval_holds_until_something_goes_wrong(table: CrewTable, claim: TaskLease, since: str) -> None:
    """Then it takes another."""
    table.request_review(claim, "x", checkpoint=1)
    answered(table, TaskState.REVIEW_APPROVED)
    assert table.require_task(TASK).approved
    if since == "error":
        table.report_error(claim, "boom")
        answered(table, TaskState.FIX_PROPOSED)
    elif since == "review failed":
        table.request_review(claim, "y", checkpoint=2)
        answered(table, TaskState.REVIEW_FAILED)
    else:
        answered(table, TaskState.EXITED)
        answered(table, TaskState.FIX_PROPOSED)
        claim = table.claim(TASK, "s2")
    with pytest.raises(IllegalTransition, match="once a review has approved it"):
        table.complete(claim)
    assert table.require_task(TASK).state is not TaskState.COMPLETE


# -- time ---------------------------------------------------------------------------------------------


def test_a_move_is_a_sign_of_life(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """Also where it does not say so; and of the conductor's row as well."""
    aged(stranger)
    stranger.says(TASK, "s1", "review_request")
    stranger.changed(f"UPDATE orchestration_tasks SET state = 'needs_review' WHERE task_id = '{TASK}'")
    assert not table.require_task(TASK).is_stale
    table.heartbeat_self(CONDUCTOR, TaskState.REVIEWING, session="c1")
    with stranger.conducts():
        stranger.changed(f"UPDATE orchestration_tasks SET last_heartbeat = '{OLD}' WHERE task_id = '{CONDUCTOR}'")
        stranger.changed(f"UPDATE orchestration_tasks SET state = 'watching' WHERE task_id = '{CONDUCTOR}'")
    found = table.task(CONDUCTOR)
    assert found is not None
    assert not found.is_stale


@pytest.mark.parametrize("heartbeat", ["NULL", "'yesterday'", "''", f"'{OLD}'", "'2026-02-31 99:00:00'"])
def test_no_heartbeat_is_a_stale_one(table: CrewTable, claim: TaskLease, stranger: Stranger, heartbeat: str) -> None:
    """Missing, old, or no time at all."""
    assert not any(task.is_stale for task in table.claimed_tasks())
    stranger.changed(f"UPDATE orchestration_tasks SET last_heartbeat = {heartbeat} WHERE task_id = '{TASK}'")
    assert [task.task_id for task in table.claimed_tasks() if task.is_stale] == [TASK]
    assert table.require_task(TASK).is_stale


@pytest.mark.parametrize(
    "state", ["working", "needs_review", "error", "review_approved", "review_failed", "fix_proposed", "exit_requested"]
)
def test_every_state_that_somebody_has_is_watched(
    table: CrewTable, claim: TaskLease, stranger: Stranger, state: str
) -> None:
    """Also where the worker only waits; each by its own measure of patience."""
    stranger.force(TASK, state=f"'{state}'", last_heartbeat="NULL")
    assert [task.task_id for task in table.claimed_tasks() if task.is_stale] == [TASK]
    stranger.force(TASK, last_heartbeat="datetime('now')", stale_after="-1")
    assert [task.task_id for task in table.claimed_tasks() if task.is_stale] == [TASK]
    stranger.force(TASK, stale_after="60")
    assert not any(task.is_stale for task in table.claimed_tasks())


def test_what_nobody_has_is_not_stale(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """Neither what waits to be claimed, nor what is over, nor the conductor's own row."""
    table.add_task(NewTask(task_id="task-02", instruction="do it"))
    for state in ("watching", "exited", "complete"):
        stranger.force(TASK, state=f"'{state}'", last_heartbeat="NULL")
        assert not any(task.is_stale for task in table.claimed_tasks())


def test_nobody_lives_in_the_future(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """A heartbeat in local time, hours ahead, would otherwise look alive for hours."""
    ahead = (datetime.now(UTC) + timedelta(hours=5)).strftime("%Y-%m-%d %H:%M:%S")
    stranger.changed(f"UPDATE orchestration_tasks SET last_heartbeat = '{ahead}' WHERE task_id = '{TASK}'")
    age = table.require_task(TASK).heartbeat_age
    assert age is not None
    assert 0 <= age < 60


def test_times_are_utc_text(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """As SQLite's datetime('now') writes them, in every column and table."""
    table.heartbeat(claim, progress="1")
    table.request_review(claim, "x", checkpoint=1)
    answered(table, TaskState.REVIEW_APPROVED)
    table.complete(claim)
    table.record_restart(TASK, "died")
    table.record_launch("s1", TASK)
    table.record_exit("s1", 0)
    stranger.changed(
        "INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
        f" VALUES ('{TASK}', 's1', 'm', 'warning')"
    )
    times = [
        *stranger.row(TASK, "started_at, completed_at, last_heartbeat, progress_at"),
        *(row[0] for row in stranger.asked("SELECT timestamp FROM orchestration_messages")),
        *(row[0] for row in stranger.asked("SELECT at FROM crew_restarts")),
        *stranger.asked("SELECT launched_at, ended_at FROM crew_processes")[0],
    ]
    now = datetime.now(UTC).replace(tzinfo=None)
    for text in times:
        assert isinstance(text, str)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", text), text
        assert abs((now - datetime.fromisoformat(text)).total_seconds()) < 120


# -- the conductor's side -----------------------------------------------------------------------------


def test_an_answer_to_what_has_moved_on_is_not_given(table: CrewTable, claim: TaskLease) -> None:
    """Neither the move nor the message: the row is not the one that was read."""
    table.report_error(claim, "boom")
    seen = table.require_task(TASK)
    answered(table, TaskState.FIX_PROPOSED)
    table.resume(claim)
    said = len(table.messages())
    assert not table.reply(seen, TaskState.FIX_PROPOSED, "a second fix", MessageType.FIX_PROPOSAL)
    assert len(table.messages()) == said
    assert table.require_task(TASK).state is TaskState.WORKING


def test_an_answer_can_change_columns_of_ours(table: CrewTable, claim: TaskLease) -> None:
    """In the same transaction; lists and records are kept as JSON."""
    table.report_error(claim, "boom")
    history = [{"rung": "fix", "tries": 1}]
    table.reply(table.require_task(TASK), TaskState.FIX_PROPOSED, "", MessageType.SYSTEM, history=history, note="i-1")
    table.update_columns(TASK, outcome="escalated", writes=("a.py", "b.py"), redispatches=2, open_for_claim=False)
    found = table.require_task(TASK)
    assert (found.history, found.note, found.outcome) == (history, "i-1", "escalated")
    assert (found.writes, found.redispatches) == (("a.py", "b.py"), 2)
    for name in ("state", "session_id", "generation", "error_tries", "task_id", "no_such"):
        with pytest.raises(TypeError, match=name):
            table.update_columns(TASK, **{name: 1})


def test_a_task_is_added_with_its_instruction(table: CrewTable) -> None:
    """Both or neither; its name is no other's, nor a reserved one."""
    new = NewTask(
        task_id=TASK, instruction_path="tasks/01.md", command=("sh", "-c", "true"), depends_on=("task-00a",), title="T"
    )
    table.add_task(new)
    found = table.require_task(TASK)
    assert (found.state, found.command, found.depends_on, found.title) == (
        TaskState.WATCHING,
        ("sh", "-c", "true"),
        ("task-00a",),
        "T",
    )
    assert [m.message for m in table.messages(TASK, types=[MessageType.INSTRUCTION])] == ["tasks/01.md"]
    for name in (TASK, CONDUCTOR, WATCHDOG, "fallback-x", "", "a b", "x" * 101):
        with pytest.raises(ConfigError, match="task_id"):
            table.add_task(NewTask(task_id=name, instruction="do it"))
    with pytest.raises(ConfigError, match="stale_after"):
        table.add_task(NewTask(task_id="task-02", instruction="do it", stale_after=0))
    with pytest.raises(ConfigError, match=r"a task of this crew: task-01"):
        table.claim("task-99", "s1")
    assert len(table.messages()) == 1


def test_the_reserved_rows_are_in_no_workers_query(table: CrewTable) -> None:
    """Nor in its counts; each beats for itself."""
    assert not table.tasks()
    assert sum(table.counts().values()) == 0
    table.heartbeat_self(WATCHDOG, TaskState.CONFIRMED, session="w1")
    table.heartbeat_self(CONDUCTOR)
    watchdog, conductor = table.task(WATCHDOG), table.task(CONDUCTOR)
    assert watchdog is not None
    assert conductor is not None
    assert (watchdog.state, watchdog.session_id) == (TaskState.CONFIRMED, "w1")
    assert not conductor.is_stale
    with pytest.raises(ConfigError, match="who"):
        table.heartbeat_self("task-01")
    with pytest.raises(ConfigError):
        table.claim(CONDUCTOR, "s1")


def test_processes_restarts_and_facts_are_remembered(table: CrewTable) -> None:
    """By whoever opens the table next."""
    table.record_launch("s1", TASK, ("sh", "-c", "x"))
    table.record_launch("s2", TASK)
    table.record_exit("s1", 3)
    with table.clone() as other:
        assert [process.session_id for process in other.processes()] == ["s2"]
        first = other.processes(alive_only=False)[0]
        assert (first.command, first.exit_code) == (("sh", "-c", "x"), 3)
        other.record_restart(TASK, "died")
        assert other.get_fact("paused") is None
        other.set_fact("paused", "yes")
        other.set_fact("paused", "no")
    assert table.get_fact("paused") == "no"
    assert [restart.why for restart in table.restarts(60)] == ["died"]
    assert not table.restarts(-60)


def test_texts_of_any_kind_are_kept(table: CrewTable, claim: TaskLease) -> None:
    """Quotes, percent signs, question marks, other alphabets; what no text can hold is marked."""
    body = "it's 100 % “done”? {x} \\ — Ünïcødé 漢字"
    table.report_error(claim, "what's wrong?", body=f"{body}\0{chr(0xD800)}")
    said = table.messages(TASK)[-1].message
    assert said.startswith(body)
    assert table.require_task(TASK).last_error == "what's wrong?"


def test_one_spoilt_row_does_not_hide_the_others(table: CrewTable, claim: TaskLease, stranger: Stranger) -> None:
    """What a stranger made unreadable is as if it were not there."""
    stranger.force(TASK, depends_on="'nothing'", writes="'{'", command="'5'", history="'[1'", retry_count="NULL")
    table.add_task(NewTask(task_id="task-02", instruction="do it"))
    first, second = table.tasks()
    assert (first.depends_on, first.writes, first.command, first.history, first.retry_count) == ((), (), None, None, 0)
    assert second.task_id == "task-02"
    assert table.claim_next("s2") is not None


def test_a_lost_connection_is_opened_again(postgres_server: str, postgres_url: str) -> None:
    """The statement that meets a lost connection fails, and the next one works; a lost transaction is not continued."""
    import psycopg

    with CrewTable.open(postgres_url, create=True) as table, psycopg.connect(postgres_server, autocommit=True) as other:

        def lose() -> None:
            ((pid,),) = table.connection.execute("SELECT pg_backend_pid()")
            other.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))

        lose()
        with pytest.raises(StoreUnavailable):
            table.counts()
        table.add_task(NewTask(task_id=TASK, instruction="do it"))
        table.connection.begin()
        lose()
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                table.tasks()
        table.connection.rollback()
        assert [row.task_id for row in table.tasks()] == [TASK]


def test_a_server_that_is_gone_is_unavailable() -> None:
    """While the server is down, every statement says so."""
    with postgres.server() as url:
        table = CrewTable.open(url, create=True)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            table.counts()
    table.close()
