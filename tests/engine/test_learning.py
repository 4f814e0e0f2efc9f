"""The engine asks the journal what helped before: once, only where the policy learns, and never at a price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.recovery.learned_skips import RungCount
from rung.testing import Script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Failure
    from tests.conftest import World

LOST = rung.AttemptError("lost", finding="not_found")


class Memory:
    """A journal that keeps what it is told, and says what it was told to say."""

    project = "site"

    def __init__(self, says: Any) -> None:
        self.says = says
        self.asked: list[tuple[str, str]] = []
        self.kept: list[ev.Event] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        assert first == len(self.kept)
        self.kept.extend(events)

    def suggest_rung(self, project: str, failure: Failure) -> Any:
        self.asked.append((project, failure.kind.value))
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class Forgetful:
    """A journal that keeps, and cannot be asked."""

    def append(self, *_: object) -> None:
        return


def names(events: Sequence[ev.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_the_journal_is_asked_once(world: World) -> None:
    """At the first failure, about that failure, in this project; the hint is written down before what follows."""
    journal = Memory("replan")
    policy = rung.policy("task", learn=True)
    outcome = world.recover(Script(LOST, LOST, "done"), "task", policy=policy, journal=journal)
    assert journal.asked == [("site", "not_found")]
    assert names(journal.kept)[:4] == ["Opened", "AttemptFailed", "Hinted", "Decided"]
    hinted, decided = journal.kept[2:4]
    assert isinstance(hinted, ev.Hinted)
    assert isinstance(decided, ev.Decided)
    assert (hinted.rung, hinted.reason) == (2, "replan worked last time")
    assert decided.decision.reason == "not_found: replan worked last time"
    assert outcome.path[0] == 3


def test_also_when_the_hinted_rung_breaks(world: World) -> None:
    """A rung whose change breaks is passed over; nobody is asked about the same failure again."""
    journal = Memory("replan")
    policy = rung.policy("task", learn=True, models=["small", "large"])
    outcome = world.recover(
        Script(LOST, "done"), "task", policy=policy, journal=journal, rung_handlers={"replan": lambda *_: None}
    )
    assert len(journal.asked) == 1
    assert outcome.path == (3, 4)


@pytest.mark.parametrize("says", [None, "no such rung", "retry"])
def test_nothing_useful_remembered(world: World, says: str | None) -> None:
    """No hint, or one that is no use here, and the ladder begins as ever."""
    policy = rung.policy("task", learn=True)
    outcome = world.recover(Script(LOST, "done"), "task", policy=policy, journal=Memory(says))
    assert outcome.path == (2,)
    assert ("Hinted" in names(outcome.events)) == (says == "retry")


def test_a_memory_that_breaks_is_ignored(world: World) -> None:
    """A crash of the memory is recorded and shown, and the recovery goes on without it."""
    policy = rung.policy("task", learn=True)
    with pytest.warns(RuntimeWarning, match="remedies failed and was ignored: OSError: gone"):
        outcome = world.recover(Script(LOST, "done"), "task", policy=policy, journal=Memory(OSError("gone")))
    assert outcome.status == "recovered"
    (crash,) = [event for event in outcome.events if isinstance(event, ev.Crashed)]
    assert (crash.what, crash.error) == ("remedies", "OSError: gone")


def test_nobody_is_asked_unless_the_policy_learns(world: World) -> None:
    """Off by default."""
    journal = Memory("replan")
    outcome = world.recover(Script(LOST, "done"), "task", policy="task", journal=journal)
    assert journal.asked == []
    assert outcome.path == (2,)


@pytest.mark.parametrize("journal", [None, Forgetful()], ids=["none", "forgetful"])
def test_a_journal_without_a_memory(world: World, journal: Any) -> None:
    """Without a journal that can be asked a policy that learns is like any other."""
    outcome = world.recover(Script(LOST, "done"), "task", policy=rung.policy("task", learn=True), journal=journal)
    assert outcome.path == (2,)


GAVE_UP = rung.AttemptError("cannot do it", finding="gave_up")


class Counting(Memory):
    """A journal that remembers no rung, and counts how often each one helped."""

    def __init__(self, counts: Any) -> None:
        super().__init__(None)
        self.counts = counts
        self.windows: list[tuple[str, str, float]] = []

    def rung_counts(self, project: str, ladder: str, window: float, now: float) -> Any:
        self.windows.append((project, ladder, window))
        if isinstance(self.counts, Exception):
            raise self.counts
        return self.counts


NUDGES_SELDOM_HELP = [
    RungCount("small", "gave_up", name, 1, 100, helped)
    for name, helped in (("nudge", 2), ("replan", 50), ("fallback", 60))
]


def learning(explore: float = 0.0) -> Any:
    return rung.policy("task", learn={"enabled": True, "explore": explore}, report="")


def test_a_rung_that_seldom_helps_is_left_out(world: World) -> None:
    """What was learned is recorded before the decision, and the outcome tells the skip with its reason."""
    journal = Counting(NUDGES_SELDOM_HELP)
    outcome = world.recover(
        Script(GAVE_UP, "done"), rung.Request(prompt="do it", model="small"), policy=learning(), journal=journal
    )
    assert outcome.path == (3,)
    assert names(journal.kept) == [
        "Opened",
        "AttemptFailed",
        "Learned",
        "Decided",
        "Abandoned",
        "Changed",
        "AttemptSucceeded",
    ]
    (skipped,) = outcome.to_dict()["skipped"]
    assert skipped["reason"] == ("learned: 2 of 100 tries (1 to 7 %) helped, of replan 50 of 100 tries (40 to 60 %)")
    assert journal.windows == [("site", "task", 2_592_000.0)]


def test_counts_are_read_after_failures_only(world: World) -> None:
    """A call that succeeds at once asks nothing; a kind with skips is looked up once, another by itself."""
    journal = Counting(NUDGES_SELDOM_HELP)
    world.recover(Script("done"), "do it", policy=learning(), journal=journal)
    assert journal.windows == []
    journal = Counting(NUDGES_SELDOM_HELP)
    world.recover(Script(GAVE_UP, LOST, GAVE_UP, "done"), "do it", policy=learning(), journal=journal)
    assert len(journal.windows) == 2
    assert names(journal.kept).count("Learned") == 1


def test_some_incidents_explore(world: World) -> None:
    """The share of the policy takes the ladder's own order, and says so."""
    paths = []
    for _ in range(40):
        outcome = world.recover(
            Script(GAVE_UP, "done"), "do it", policy=learning(0.5), journal=Counting(NUDGES_SELDOM_HELP)
        )
        (learned,) = [event for event in outcome.events if isinstance(event, ev.Learned)]
        paths.append((outcome.path, learned.explored))
    assert set(paths) == {((2,), True), ((3,), False)}


def test_counts_that_cannot_be_read(world: World) -> None:
    """A journal that fails costs a warning: the recovery takes the plain ladder."""
    with pytest.warns(RuntimeWarning, match="statistics failed and was ignored: OSError: gone"):
        outcome = world.recover(Script(GAVE_UP, "done"), "do it", policy=learning(), journal=Counting(OSError("gone")))
    assert outcome.path == (2,)


def test_nothing_is_counted_unless_the_policy_learns(world: World) -> None:
    """Off by default, also with counts."""
    journal = Counting(NUDGES_SELDOM_HELP)
    outcome = world.recover(Script(GAVE_UP, "done"), "do it", policy="task", journal=journal)
    assert (outcome.path, journal.windows) == ((2,), [])
