"""The table against a model of it: any order of claims, late writers, answers, silences and raw moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from rung.core.crew.contract import MessageType, TaskState
from rung.core.domain.errors import ClaimBlocked, IllegalTransition, LeaseExpired
from rung.store.crew.rows import NewTask, TaskLease
from tests.store.crew.stranger import OLD
from tests.store.crew.test_moves import allowed
from tests.store.test_model import small

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.crew.table import CrewTable

WARNING = "context_exhaustion_warning"
ANSWERED = ("review_approved", "review_failed", "fix_proposed")
ENDED = ("complete", "exited")
_NAMES = count(1)


class Refused(Exception):
    """The model says no."""


@dataclass
class Row:
    """What a task must be like."""

    state: str = "watching"
    session: str = ""
    generation: int = 0
    open: bool = True
    approved: bool = False
    tries: int = 0
    warnings: int = 0
    retries: int = 0
    stale: bool = False
    last_error: str = ""
    checkpoint: int | None = None
    cycles: int = 0
    messages: int = 1  # its instruction

    def may(self, to: str) -> bool:
        """Is a move legal that says nothing about the session?"""
        if to == self.state:
            return True
        if self.state == "fix_proposed" and not self.session and to in {"working", "needs_review"}:
            return False
        return allowed(self.state, to, stale=self.stale, approved=self.approved, warned=self.last_error == WARNING)

    def move(self, to: str) -> None:
        """Move it, by a statement that says nothing about the session; what that does besides is written out here."""
        if not self.may(to):
            raise Refused
        before, was_stale, self.state = self.state, self.stale, to
        if to == before:
            return
        self.stale = False
        opened = to in {"watching", "fix_proposed"} and (before == "exited" or was_stale)
        self.open = opened
        if opened or (before == "exit_requested" and to == "working"):
            self.generation += 1
            self.approved = False
        if opened:
            self.session = ""
        if to in {"error", "needs_review", "review_failed"}:
            self.approved = False
        if (before, to) == ("needs_review", "review_approved"):
            self.approved, self.cycles = True, 0
        if to == "error" and self.last_error == WARNING:
            self.warnings += 1
        elif to == "error":
            self.tries += 1
        if to == "working" and self.last_error == WARNING:
            self.last_error = ""

    def claim(self, session: str) -> None:
        """Take it, or not."""
        if self.state not in {"watching", "fix_proposed", "exit_requested"}:
            raise Refused
        held = self.state == "fix_proposed" and not self.open
        if held and session != self.session and not self.stale:
            raise Refused
        if not (held and session == self.session):
            self.generation += 1
            self.approved = False
        self.state, self.session, self.open, self.stale, self.retries = "working", session, False, False, 0
        if self.last_error == WARNING:
            self.last_error = ""


sessions = st.sampled_from(["s1", "s2", "s3"])
states = st.sampled_from([state.value for state in TaskState])


class Machine(RuleBasedStateMachine):
    """One task, three sessions, a conductor, and strangers."""

    claims = Bundle("claims")  # also those that are over
    table: CrewTable

    def __init__(self) -> None:
        super().__init__()
        self.task = f"task-{next(_NAMES):05}"
        self.table.add_task(NewTask(task_id=self.task, instruction="x"))
        self.row = Row(stale=True)  # it never gave a sign of life; which matters to nobody as long as it watches

    @rule(target=claims, session=sessions)
    def claim(self, session: str) -> Any:
        try:
            claim = self.table.claim(self.task, session)
        except ClaimBlocked:
            claim = None
        before = (self.row.state, self.row.generation)
        try:
            self.row.claim(session)
        except Refused:
            assert claim is None, before
            self.row.messages += 1
            return multiple()
        assert claim is not None, before
        return claim

    def _writes(
        self, claim: TaskLease, write: Callable[[], object], model: Callable[[], None], ends: tuple[str, ...] = ENDED
    ) -> None:
        """A worker's write and the model of it end alike: done, illegal, or not its own any more."""
        row, before = self.row, Row(**vars(self.row))
        mine = (claim.session, claim.generation) == (row.session, row.generation) and row.state not in ends
        expected: type[Exception] | None = None if mine else LeaseExpired
        if mine:
            try:
                model()
            except Refused:
                expected, self.row = IllegalTransition, before
        try:
            write()
            found = None
        except (LeaseExpired, IllegalTransition) as error:
            found = type(error)
        assert found is expected, (before, claim)

    def _at_work(self) -> None:
        if self.row.state in ANSWERED:
            self.row.move("working")

    @rule(claim=claims)
    def beat(self, claim: TaskLease) -> None:
        def model() -> None:
            self.row.stale = False

        self._writes(claim, lambda: self.table.heartbeat(claim), model)

    @rule(claim=claims)
    def error(self, claim: TaskLease) -> None:
        def model() -> None:
            self._at_work()
            if self.row.state != "working":
                raise Refused
            self.row.last_error, self.row.retries = "boom", self.row.retries + 1
            self.row.move("error")
            self.row.messages += 1

        self._writes(claim, lambda: self.table.report_error(claim, "boom"), model)

    @rule(claim=claims)
    def warn(self, claim: TaskLease) -> None:
        def model() -> None:
            self._at_work()
            if self.row.state != "working":
                raise Refused
            self.row.last_error = WARNING
            self.row.move("error")
            self.row.messages += 1

        self._writes(claim, lambda: self.table.warn_context(claim, "w"), model)

    @rule(claim=claims, checkpoint=st.integers(1, 2))
    def review(self, claim: TaskLease, checkpoint: int) -> None:
        def model() -> None:
            if self.row.state not in {"working", *ANSWERED}:
                raise Refused
            self.row.cycles += 1
            self.row.checkpoint = checkpoint
            self.row.move("needs_review")
            self.row.messages += 1

        self._writes(claim, lambda: self.table.request_review(claim, "r", checkpoint=checkpoint), model)

    @rule(claim=claims)
    def resume(self, claim: TaskLease) -> None:
        def model() -> None:
            if self.row.state not in {"working", *ANSWERED}:
                raise Refused
            self.row.move("working")
            self.row.stale = False

        self._writes(claim, lambda: self.table.resume(claim), model)

    @rule(claim=claims)
    def complete(self, claim: TaskLease) -> None:
        def model() -> None:
            self._at_work()
            self.row.move("complete")
            self.row.messages += 1

        self._writes(claim, lambda: self.table.complete(claim), model)

    @rule(claim=claims)
    def hand_off(self, claim: TaskLease) -> None:
        def model() -> None:
            self.row.move("exited")
            self.row.messages += 1

        self._writes(claim, lambda: self.table.hand_off(claim, "h"), model, ("complete",))

    @rule(to=states)
    def answer(self, to: str) -> None:
        """By the conductor, to anything at all."""
        seen = self.table.require_task(self.task)
        legal = self.row.may(to)
        try:
            assert self.table.reply(seen, TaskState(to), "a", MessageType.SYSTEM)
            done = True
        except IllegalTransition:
            done = False
        assert done == legal, (self.row, to)
        if legal:
            self.row.move(to)
            self.row.messages += 1

    @rule(to=states)
    def late_answer(self, to: str) -> None:
        """By one who read the row in another condition: nothing happens."""
        seen = self.table.require_task(self.task)
        other = TaskState.WORKING if seen.state is not TaskState.WORKING else TaskState.ERROR

        assert not self.table.reply(replace(seen, state=other), TaskState(to), "a", MessageType.SYSTEM)
        assert not self.table.reply(
            replace(seen, generation=seen.generation + 1), TaskState(to), "a", MessageType.SYSTEM
        )

    @rule(session=sessions)
    def steal(self, session: str) -> None:
        """By a stranger who only wants the session to be his."""
        if session == self.row.session:
            return
        try:
            self.table.connection.execute(
                "UPDATE orchestration_tasks SET session_id = ? WHERE task_id = ?", [session, self.task]
            )
        except IllegalTransition:
            return
        raise AssertionError("stolen")

    @rule()
    def silence(self) -> None:
        """Nobody hears of it for longer than it may be."""
        self.table.connection.execute(
            "UPDATE orchestration_tasks SET last_heartbeat = ? WHERE task_id = ?", [OLD, self.task]
        )
        self.row.stale = True

    @invariant()
    def the_same(self) -> None:
        found = self.table.require_task(self.task)
        row = self.row
        assert (found.state, found.session_id, found.generation, found.open_for_claim) == (
            row.state,
            row.session,
            row.generation,
            row.open,
        )
        assert (found.approved, found.error_tries, found.warnings, found.retry_count, found.last_error) == (
            row.approved,
            row.tries,
            row.warnings,
            row.retries,
            row.last_error,
        )
        assert (found.checkpoint, found.review_cycles) == (row.checkpoint, row.cycles)
        assert found.is_stale == row.stale
        assert len(self.table.messages(self.task)) == row.messages


def test_the_table_is_as_its_model_says(table: CrewTable) -> None:
    """Whatever is done to a task in whatever order, by whom: what is legal is done, all else changes nothing."""
    machine = type("OnThisTable", (Machine,), {"table": table})
    run_state_machine_as_test(machine, settings=small)
