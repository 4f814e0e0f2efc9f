"""The recovery of each task on the `crew` ladder: its events stand in the task's row, and are told to the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rung.core import events as ev
from rung.core.codec import from_json, to_json
from rung.core.decide import decide
from rung.core.fixing import no_progress
from rung.core.incident import Incident
from rung.core.ladder import Scope
from rung.core.request import Request
from rung.engine.numbers import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.failures import Failure
    from rung.core.policy import Policy
    from rung.store.crew.rows import Task

Story: TypeAlias = list[dict[str, Any]]  # the events of one recovery, as JSON

_EITHER: Final = 0.5  # nothing on this ladder waits, so chance has no say


class Stories:
    """Decides for tasks. What it returns is written with the state it leads to, in one transaction."""

    def __init__(
        self,
        policy: Policy,
        now: Callable[[], float],
        journal: Any = None,
        *,
        attended: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.policy = policy
        self._now = now
        self._journal = journal
        self._attended = attended
        self._say = say

    def failed(self, task: Task, failure: Failure) -> tuple[ev.Decision, Story]:
        """What to do after this error of the task's worker, and the story to write down with it."""
        told = _read(task.history)
        before = len(told)
        now = self._now()
        if not told:
            told.append(self._opened(task, now))
        told.append(ev.AttemptFailed(now, failure, 0.0, 0.0, may_retry=True))
        decision = decide(Incident.of(told), failure, self.policy, now, _EITHER)
        told.append(ev.Decided(now, decision))
        self._tell(told, before)
        return decision, _written(told)

    def over(self, task: Task, status: ev.Status, why: str) -> Story:
        """The trouble is over: it is told, and the next one begins with an empty page."""
        told = _read(task.history)
        if told:
            before = len(told)
            good = status is ev.Status.RECOVERED
            told.append(ev.AttemptSucceeded(self._now(), 0.0, 0.0) if good else ev.Closed(self._now(), status, why))
            self._tell(told, before)
        return []

    def stuck(self, task: Task, failure: Failure) -> bool:
        """Is it the error that two corrections were already made for?"""
        return no_progress(
            [*(one.fingerprint for one in Incident.of(_read(task.history)).failures), failure.fingerprint]
        )

    def _opened(self, task: Task, now: float) -> ev.Opened:
        """The opening event. A task is the session of its incidents: each earlier error was a try on a session rung."""
        ladder = self.policy.ladder
        rungs = tuple(rung.name for rung in ladder.rungs)
        terms = ev.Terms(ladder.name, self.policy.name, rungs=rungs, attended=self._attended)
        earlier = max(0, task.error_tries - 1)
        used = tuple((rung.name, earlier) for rung in ladder.rungs if earlier and rung.scope is Scope.SESSION)
        asked = Request(prompt=task.title or task.task_id, agent=task.worked_by or task.task_id)
        return ev.Opened(now, NUMBERS.next(), terms, asked, None, None, used=used)

    def _tell(self, told: list[ev.Event], before: int) -> None:
        if self._journal is None:
            return
        opened = told[0]
        assert isinstance(opened, ev.Opened)  # noqa: S101  # a story begins with it
        try:
            self._journal.append(opened.id, before, tuple(told[before:])).result()
        except Exception as error:  # noqa: BLE001  # the table is what counts; a dead conductor may have told it already
            self._say(f"not kept in the journal: {error}")


def _read(story: Story | None) -> list[ev.Event]:
    return [from_json(table) for table in story or ()]


def _written(told: list[ev.Event]) -> Story:
    return [to_json(event) for event in told]
