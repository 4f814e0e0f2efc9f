"""What another policy would have done with a recovery that was recorded, and how far that can be known.

The recorded failures are gone through in their order, and `decide` is asked at each. As long as it decides
the same sort of thing (the same action, the same model and agent), what was recorded next is taken as its
result. At the first decision that differs nobody knows what would have come of it, unless it is to stop: so
nothing is said about an end that was not seen.

Chance is not held against a policy: a decision that it could have made with another random number is the
same. The time of its waits is taken at their average, so that many incidents together come out right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.domain import events as ev
from rung.core.domain.failures import Phase
from rung.core.domain.incident import Incident
from rung.core.recovery.decide import decide, decision_from_answer, seconds_left
from rung.core.recovery.resume_point import RULE as CUT_OFF
from rung.core.recovery.resume_point import about_cut_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy

AVERAGE: Final = 0.5  # of the random numbers a wait is made with
SLACK: Final = 1.0  # seconds by which an attempt may outlast its limit before it is really ended
_NEAR: Final = 1e-6

CANNOT_KNOW: Final = (
    "What comes of an attempt that was never made: after the first decision that differs, only an end is known.",
    "How long a wait would have been, as chance has a part in it: all are counted at their average.",
    "Open circuits, the shared retry budget, people's answers and the words of prompts are taken as recorded.",
    "What a policy that learns would have remembered: only hints that were recorded are known.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where two policies part: after which attempt, and what each does there, in words."""

    attempt: int
    recorded: str
    instead: str
    stops: bool  # it would have ended there
    goes_on: bool  # it would have gone on where the recorded one ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """One recorded recovery under another policy.

    `attempts`, `seconds` and `dollars` reach to the end where that is known, else to the point where the two
    part. `status` is None where nobody can know how it would have ended. `doubts` say why even a recorded
    result may not be this policy's: an attempt that took longer than it allows.
    """

    incident: str
    attempts: int
    seconds: float
    dollars: float
    status: ev.Status | None
    was_attempts: int
    was_seconds: float
    was_dollars: float
    was_status: ev.Status | None
    point: Divergence | None = None
    waits: tuple[tuple[float, float], ...] = ()  # recorded, instead: where chance does not explain it
    doubts: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Would it have decided the same all the way?"""
        return self.point is None

    @property
    def known(self) -> bool:
        """Is it certain how it would have ended?"""
        return (self.point is None or self.point.stops) and not self.doubts

    def words(self) -> str:
        """What would have been different, in a sentence."""
        parts = [f"would have waited {instead:.1f} s instead of {was:.1f} s" for was, instead in self.waits]
        if self.point is not None:
            parts.append(f"would have {self.point.instead} after attempt {self.point.attempt}: {self._end()}")
        return "; ".join((*parts, *self.doubts)) or "the same"

    def _end(self) -> str:
        if self.status is None:
            return "outcome unknown"
        fewer = self.was_attempts - self.attempts
        attempts = f"{fewer} attempt{'s' * (fewer != 1)} fewer" if fewer else "as many attempts"
        return f"{attempts}, {self.status} instead of {self.was_status or 'open'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Many recoveries under another policy. What is saved (or, below 0, added) counts the known ones only."""

    incidents: int
    same: int
    fewer: int  # attempts: it would have stopped earlier
    otherwise: int  # known, as many attempts, and another end
    more: int  # attempts: it would have gone on where the recorded one ended; these are among the unknown
    unknown: int
    attempts_saved: int
    seconds_saved: float
    dollars_saved: float
    good_lost: int  # recoveries it would have stopped before they came off


def summary(results: Iterable[Counterfactual]) -> Summary:
    """What many counterfactuals come to."""
    every = list(results)
    known = [one for one in every if one.known]
    return Summary(
        incidents=len(every),
        same=sum(one.same for one in known),
        fewer=sum(one.attempts < one.was_attempts for one in known),
        otherwise=sum(not one.same and one.attempts == one.was_attempts for one in known),
        more=sum(one.point is not None and one.point.goes_on for one in every),
        unknown=len(every) - len(known),
        attempts_saved=sum(one.was_attempts - one.attempts for one in known),
        seconds_saved=sum(one.was_seconds - one.seconds for one in known),
        dollars_saved=sum(one.was_dollars - one.dollars for one in known),
        good_lost=sum(one.was_status is ev.Status.RECOVERED and not one.same for one in known),
    )


def replay(events: Sequence[ev.Event], policy: Policy) -> Counterfactual:
    """What would have become of this recorded incident under the policy."""
    walk = _BacktestRun(events, policy)
    for event in events[1:]:
        walk.take(event)
        if walk.point is not None:
            break
    return walk.result(events)


class _BacktestRun:
    """The incident as it unfolds under the new policy, as far as the record can show it."""

    def __init__(self, events: Sequence[ev.Event], policy: Policy) -> None:
        opened = events[0]
        assert isinstance(opened, ev.Opened)  # noqa: S101  # every incident begins so
        self.policy = policy
        self.rungs = opened.terms.rungs  # the recorded ladder's
        self.incident = Incident.of([_reopened(opened, policy)])
        self.later = 0.0  # seconds by which everything now comes later, where chance does not explain it
        self.average = 0.0  # the same with all waits at their average
        self.asked = False
        self.answered = False
        self.last = opened.at
        self.point: Divergence | None = None
        self.status: ev.Status | None = None
        self.waits: list[tuple[float, float]] = []
        self.doubts: list[str] = []

    def take(self, event: ev.Event) -> None:
        """One more recorded event."""
        self.last = event.at
        now = event.at + self.later
        if isinstance(event, ev.Decided):
            self._compare(event.decision, now)
            return
        if isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded):
            self.asked = self.answered = False
            self._doubt(event, now)
        elif isinstance(event, ev.Answered):
            self.answered = True
        elif isinstance(event, ev.Skipped) and self.incident.decision is not None:
            event = event._replace(rung=self.incident.decision.rung)
        elif isinstance(event, ev.Hinted):
            event = event._replace(rung=self._index(event.rung))
        self.incident.fold(event._replace(at=now))

    def result(self, events: Sequence[ev.Event]) -> Counterfactual:
        """How it would have been."""
        was = Incident.of(events)
        opened_at = events[0].at
        return Counterfactual(
            incident=was.id,
            attempts=self.incident.attempts,
            seconds=self.last - opened_at + self.average,
            dollars=self.incident.dollars,
            status=self.incident.status if self.point is None else self.status,
            was_attempts=was.attempts,
            was_seconds=events[-1].at - opened_at,
            was_dollars=was.dollars,
            was_status=was.status,
            point=self.point,
            waits=tuple(self.waits),
            doubts=tuple(self.doubts),
        )

    def _compare(self, recorded: ev.Decision, now: float) -> None:
        failure = self.incident.failure
        assert failure is not None  # noqa: S101  # nothing is decided before the first one
        if self.asked and not self.answered:  # nobody answered: that is no policy's doing
            self.incident.fold(ev.Decided(now, recorded))
            return
        instead = self._told(failure, now)
        if instead is None:
            instead = self._decision(recorded, failure, now)
            low, high = self._range(instead, failure)
        else:
            low = high = getattr(instead, "wait", 0.0)
        if _sort(instead) != _sort(recorded):
            self._part(recorded, instead)
            return
        was, wait = getattr(recorded, "wait", 0.0), getattr(instead, "wait", 0.0)
        self.average += (low + high) / 2 - was
        if not low - _NEAR <= was <= high + _NEAR:
            self.waits.append((was, wait))
            self.later += wait - was
        self.asked, self.answered = isinstance(instead, ev.Ask), False
        self.incident.fold(ev.Decided(now, instead))

    def _told(self, failure: Failure, now: float) -> ev.Decision | None:
        """What a person's answer, or the death of the process, amounts to; None where it is for `decide`."""
        if self.answered:
            return decision_from_answer(self.incident, self.policy, now)
        return about_cut_off(self.incident, self.policy) if failure.rule == CUT_OFF else None

    def _part(self, recorded: ev.Decision, instead: ev.Decision) -> None:
        stops = isinstance(instead, ev.Finish)
        self.status = instead.status if isinstance(instead, ev.Finish) else None
        self.point = Divergence(
            attempt=self.incident.attempts,
            recorded=_words(recorded),
            instead=_words(instead),
            stops=stops,
            goes_on=isinstance(recorded, ev.Finish) and not stops,
        )

    def _decision(self, recorded: ev.Decision, failure: Failure, now: float) -> ev.Decision:
        """What the policy decides here: as recorded where chance could have had it so, else at the average."""
        index = self._index(recorded.rung)
        chances = [AVERAGE]
        if not isinstance(recorded, ev.Repeat):
            chances.insert(0, 1.0)  # whatever wait was too long to take, this one is no shorter
        else:
            low, high = self._range(recorded._replace(rung=index), failure)
            if low < high and low <= recorded.wait <= high:
                chances.insert(0, (recorded.wait - low) / (high - low))
        could = [decide(self.incident, failure, self.policy, now, chance) for chance in chances]
        alike = [one for one in could if _sort(one) == _sort(recorded)]
        same_rung = [one for one in alike if one.rung == index]
        return next(iter(same_rung or alike or could[-1:]))

    def _range(self, decision: ev.Decision, failure: Failure) -> tuple[float, float]:
        """The shortest and the longest wait that this decision could have had."""
        if not isinstance(decision, ev.Repeat):
            wait = getattr(decision, "wait", 0.0)
            return wait, wait
        repeat = self.incident.retries.get(decision.rung, 0) + 1
        low, high = (self.policy.backoff.wait(repeat, chance, failure.retry_after) for chance in (0.0, 1.0))
        return low, high

    def _index(self, recorded: int) -> int:
        """The rung of the same name as the recorded ladder's; -1 where the policy's has none."""
        name = self.rungs[recorded] if recorded < len(self.rungs) else ""
        return next((index for index, rung in enumerate(self.policy.ladder.rungs) if rung.name == name), -1)

    def _doubt(self, event: ev.AttemptFailed | ev.AttemptSucceeded, now: float) -> None:
        """Would this attempt have been ended earlier, or let run on?"""
        limit = seconds_left(self.incident, self.policy, now - event.seconds)
        number = self.incident.attempts + 1
        took = f"{event.seconds:.0f} s"
        if isinstance(event, ev.AttemptFailed):
            evidence = event.failure.evidence
            ended = evidence.phase is Phase.LIMIT and evidence.exceptions[:1] == ("rung.TimeUp",)
            if ended and (limit is None or limit > event.seconds + SLACK):
                self.doubts.append(f"attempt {number} was ended after {took}, and would have had longer")
            if ended or not event.made:
                return
        if limit is not None and event.seconds > limit + SLACK:
            self.doubts.append(f"attempt {number} took {took}, and would have been ended after {limit:.0f} s")


def _reopened(opened: ev.Opened, policy: Policy) -> ev.Opened:
    """The beginning under the policy. An outer incident's limits are known only as far as they were felt."""
    budget = policy.budget
    deadline = None if budget.seconds is None else opened.at + budget.seconds
    dollars = budget.dollars
    if opened.parent:
        deadline = min((limit for limit in (deadline, opened.deadline) if limit is not None), default=None)
        dollars = min((limit for limit in (dollars, opened.dollars) if limit is not None), default=None)
    terms = opened.terms._replace(attended=opened.terms.attended and not policy.unattended)
    return opened._replace(terms=terms, deadline=deadline, dollars=dollars)


def _sort(decision: ev.Decision) -> tuple[object, ...]:
    """What makes two decisions the same sort of thing."""
    match decision:
        case ev.Repeat():
            return ("repeat",)
        case ev.Change():
            return ("change", decision.action)
        case ev.HandOver():
            return ("hand over", decision.model, decision.agent)
        case ev.Ask():
            return ("ask", decision.model, decision.agent, *(option.id for option in decision.options))
    return ("finish", decision.status)


def _words(decision: ev.Decision) -> str:
    """What was done, to be read after "would have"."""
    match decision:
        case ev.Repeat():
            return f"repeated it after {decision.wait:.1f} s"
        case ev.Change():
            return f"changed the request ({decision.action})"
        case ev.HandOver():
            return "handed over to " + ", ".join(filter(None, (decision.model, decision.agent)))
        case ev.Ask():
            return f"asked a person ({decision.question})"
    return f"stopped ({decision.status}: {decision.reason})"


__all__ = ["Counterfactual", "Divergence", "Summary", "replay", "summary"]
