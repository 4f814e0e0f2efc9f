"""Journal of real recoveries together with their events, so that tests can count by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptError
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rung.store.journal.journal import Journal

START = 1_800_000_000.0  # 2027-01-15 08:00 UTC
HOUR, DAY = 3_600, 86_400
NO_IDEA = ValueError("no idea what to do")


class Tried(NamedTuple):
    """Attempt from its event, with the state at that moment."""

    outcome: rung.Outcome[Any]
    project: str
    session: str
    model: str
    rung: str
    prompt: str
    event: ev.AttemptFailed | ev.AttemptSucceeded

    @property
    def kind(self) -> str:
        return self.event.failure.kind.value if isinstance(self.event, ev.AttemptFailed) else ""

    @property
    def mark(self) -> str:
        return self.event.failure.fingerprint if isinstance(self.event, ev.AttemptFailed) else ""


class Recorded:
    """Runs recoveries into a journal, one after the other, on a fake clock."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.clock = FakeClock(START)
        self.outcomes: list[rung.Outcome[Any]] = []

    def recover(self, *items: Any, model: str = "small", session: str = "", policy: str = "task", **ports: Any) -> str:
        """Run a script in which each attempt takes two seconds and costs a cent; return the incident's id."""
        outcome = rung.recover_sync(
            Script(*(self._slow(item) for item in items)),
            "do it",
            policy=rung.policy(policy, models=["small", "large"]),
            session=rung.Session(model=model, id=session),
            journal=self.journal,
            clock=self.clock,
            jitter=lambda: 0.5,
            breakers=rung.BreakerRegistry(),
            retry_budget=rung.RetryBudget(),
            **ports,
        )
        self.outcomes.append(outcome)
        assert self.journal.flush()
        return outcome.id

    def _slow(self, item: Any) -> Any:
        def attempt(_: rung.Request) -> Any:
            self.clock.advance(2.0)
            rung.report_cost(0.01)
            return item

        return attempt

    def story(self) -> None:
        """Record a mix of incidents over three days and two projects."""
        self.journal.project = "web"
        self.recover("fine", session="a")
        self.recover(HttpError(429, "slow down"), "fine", session="a")
        self.clock.advance(HOUR)
        self.recover(HttpError(529, "overloaded"), session="a", model="large")
        self.recover(NO_IDEA, NO_IDEA, "fine", session="b")
        self.clock.advance(DAY)
        broken = AttemptError("bash: exit 1", finding="tool_error", phase="tool")
        named = AttemptError("grep: exit 2", finding="tool_error", phase="tool", tool="grep")
        self.recover(broken, named, "fine", session="b")
        self.recover(HttpError(401, "bad key"), "fine", policy="model", ask=lambda *_: "retry")
        self.clock.advance(DAY + HOUR)
        self.journal.project = "api"
        self.recover(HttpError(429, "slow down"), HttpError(429, "slow down"), "fine", session="c", model="large")
        self.recover(*[HttpError(529, "overloaded")] * 4, "fine", session="c")
        self.recover(NO_IDEA, session="d")
        self.recover(NO_IDEA, session="d")

    def tried(self) -> Iterator[Tried]:
        """Return all attempts, from the events of the outcomes."""
        for outcome in self.outcomes:
            opened = outcome.events[0]
            assert isinstance(opened, ev.Opened)
            assert opened.request is not None
            model, on, prompt = opened.request.model, "", ""
            for event in outcome.events:
                if isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded):
                    yield Tried(outcome, opened.terms.project, opened.terms.session, model, on, prompt, event)
                elif isinstance(event, ev.Decided) and not isinstance(event.decision, ev.Finish | ev.Ask):
                    on = opened.terms.rungs[event.decision.rung]
                    if isinstance(event.decision, ev.Repeat) and event.decision.until is not None:
                        model = opened.request.model  # it is the first model that is waited for
                elif isinstance(event, ev.Changed):
                    model, prompt = event.request.model, event.prompt
                elif isinstance(event, ev.ModelRestored):
                    model = event.model

    def decisions(self, kind: type) -> int:
        """Return how often this was decided."""
        made = (event for outcome in self.outcomes for event in outcome.events if isinstance(event, ev.Decided))
        return sum(isinstance(event.decision, kind) for event in made)


def first_failure(outcome: rung.Outcome[Any]) -> ev.AttemptFailed | None:
    """Return the first failure."""
    return next((event for event in outcome.events if isinstance(event, ev.AttemptFailed)), None)


def took(outcomes: Sequence[rung.Outcome[Any]]) -> float:
    """Return the mean time from the first failure to the end."""
    times = [outcome.events[-1].at - failed.at for outcome in outcomes if (failed := first_failure(outcome))]
    return sum(times) / len(times)
