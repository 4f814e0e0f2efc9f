"""Backtest: replay a recorded incident under another policy.

The replay calls `decide` at each recorded failure. While the new decision matches the recorded one (same action,
model and agent), the next recorded attempt counts as its result. At the first decision that differs the replay
stops: the result of an attempt that was never made is unknown, except when the decision is to end the incident.

Random jitter is no difference: a decision matches if any random number could produce the recorded one. Waits are
counted at their mean, so that totals over many incidents are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import TIMEOUT_NAME
from rung.core.domain import events as ev
from rung.core.domain.failures import PROCESS_DEATH_RULE, Phase
from rung.core.domain.incident import Incident
from rung.core.recovery.decide import decide, decision_from_answer
from rung.core.recovery.limits import seconds_left
from rung.core.recovery.park import MAX_SPREAD_SECONDS
from rung.core.recovery.patience import next_wait
from rung.core.recovery.resume_point import decide_after_process_death

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy

MEAN_JITTER: Final = 0.5
TIMEOUT_TOLERANCE_SECONDS: Final = 1.0  # an attempt can run this much past its limit before it is interrupted
_EPSILON_SECONDS: Final = 1e-6
_TIMEOUT_NAMES: Final = ((TIMEOUT_NAME,), ("rung.TimeUp",))  # the second in journals of version 0.1

LIMITATIONS: Final = (
    "Attempts that were never made have no result: after the first different decision, the outcome is known only if that decision ends the incident.",
    "Waits are random: all are counted at their mean.",
    "Open circuits, the shared retry budget, people's answers and prompt texts are taken as recorded.",
    "A policy with `learn` might know other remedies: only what was recorded as learned is used.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """First decision that differs: after which attempt, and a description of both decisions."""

    attempt: int
    recorded: str
    instead: str
    stops: bool  # the new policy ends the incident here
    goes_on: bool  # the new policy continues where the recorded one ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """Result of replaying one recorded incident under another policy.

    `attempts`, `seconds` and `dollars` cover the incident up to its end, or up to the divergence when the end is
    unknown. `status` is None when the end is unknown. `doubts` names recorded attempts whose result the policy might
    have changed, such as an attempt that exceeds its time limit.
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
    waits: tuple[tuple[float, float], ...] = ()  # (recorded, new) where jitter does not explain the difference
    doubts: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether every decision matches the recorded one."""
        return self.point is None

    @property
    def is_known(self) -> bool:
        """Whether the end under the new policy is certain."""
        return (self.point is None or self.point.stops) and not self.doubts

    def describe(self) -> str:
        """Return a sentence about the differences; "the same" if there are none."""
        parts = [f"would have waited {instead:.1f} s instead of {was:.1f} s" for was, instead in self.waits]
        if self.point is not None:
            parts.append(f"would have {self.point.instead} after attempt {self.point.attempt}: {self._describe_end()}")
        return "; ".join((*parts, *self.doubts)) or "the same"

    def _describe_end(self) -> str:
        if self.status is None:
            return "outcome unknown"
        fewer = self.was_attempts - self.attempts
        attempts = f"{fewer} attempt{'s' * (fewer != 1)} fewer" if fewer else "as many attempts"
        return f"{attempts}, {self.status} instead of {self.was_status or 'open'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Totals over many incidents under another policy.

    The `…_saved` fields count incidents with a known end only; a negative value is an increase.
    """

    incidents: int
    same: int
    fewer: int  # incidents that end after fewer attempts
    otherwise: int  # incidents that end differently after the same number of attempts
    more: int  # incidents that continue where the recorded one ended; also counted in `unknown`
    unknown: int
    attempts_saved: int
    seconds_saved: float
    dollars_saved: float
    good_lost: int  # recorded recoveries that the new policy ends before they succeed


def summarize(results: Iterable[Counterfactual]) -> Summary:
    """Return the totals of many results."""
    results = list(results)
    known = [result for result in results if result.is_known]
    return Summary(
        incidents=len(results),
        same=sum(result.is_same for result in known),
        fewer=sum(result.attempts < result.was_attempts for result in known),
        otherwise=sum(not result.is_same and result.attempts == result.was_attempts for result in known),
        more=sum(result.point is not None and result.point.goes_on for result in results),
        unknown=len(results) - len(known),
        attempts_saved=sum(result.was_attempts - result.attempts for result in known),
        seconds_saved=sum(result.was_seconds - result.seconds for result in known),
        dollars_saved=sum(result.was_dollars - result.dollars for result in known),
        good_lost=sum(result.was_status is ev.Status.RECOVERED and not result.is_same for result in known),
    )


def replay(events: Sequence[ev.Event], policy: Policy) -> Counterfactual:
    """Replay a recorded incident under the policy, up to the first decision that differs."""
    run = _BacktestRun(events, policy)
    for event in events[1:]:
        run.apply(event)
        if run.point is not None:
            break
    return run.result(events)


class _BacktestRun:
    """State of one replay: the incident under the new policy, and how it differs from the recorded one."""

    def __init__(self, events: Sequence[ev.Event], policy: Policy) -> None:
        opened = events[0]
        assert isinstance(opened, ev.Opened)  # noqa: S101  # the first event of every incident
        self.policy = policy
        self.rungs = opened.terms.rungs  # of the recorded ladder
        self.incident = Incident.of([_reopen(opened, policy)])
        self.shift_seconds = 0.0  # delay against the recording, from waits that jitter does not explain
        self.mean_shift_seconds = 0.0  # delay against the recording with all waits at their mean
        self.has_asked = False
        self.has_answer = False
        self.last_event_at = opened.at
        self.point: Divergence | None = None
        self.status: ev.Status | None = None
        self.waits: list[tuple[float, float]] = []
        self.doubts: list[str] = []

    def apply(self, event: ev.Event) -> None:
        """Apply the next recorded event."""
        self.last_event_at = event.at
        now = event.at + self.shift_seconds
        if isinstance(event, ev.Decided):
            self._compare(event.decision, now)
            return
        if isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded):
            self.has_asked = self.has_answer = False
            self._check_time_limit(event, now)
        elif isinstance(event, ev.Answered):
            self.has_answer = True
        elif isinstance(event, ev.Skipped) and self.incident.decision is not None:
            event = event._replace(rung=self.incident.decision.rung)
        elif isinstance(event, ev.Hinted):
            event = event._replace(rung=self._rung_index(event.rung))
        elif isinstance(event, ev.Learned):
            event = event._replace(skips=tuple(map(self._rename, event.skips)))
        self.incident.fold(event._replace(at=now))

    def result(self, events: Sequence[ev.Event]) -> Counterfactual:
        """Return the comparison with the recorded incident."""
        was = Incident.of(events)
        opened_at = events[0].at
        return Counterfactual(
            incident=was.id,
            attempts=self.incident.attempts,
            seconds=self.last_event_at - opened_at + self.mean_shift_seconds,
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
        assert failure is not None  # noqa: S101  # a decision follows a failure
        if self.has_asked and not self.has_answer:  # the question timed out, which does not depend on the policy
            self.incident.fold(ev.Decided(now, recorded))
            return
        instead = self._predetermined_decision(failure, now)
        if instead is None:
            instead = self._decide(recorded, failure, now)
            low, high = self._wait_range(instead, self.incident.failure_to_solve or failure)
        else:
            low = high = getattr(instead, "wait", 0.0)
        if _comparison_key(instead) != _comparison_key(recorded):
            self._diverge(recorded, instead)
            return
        was, wait = getattr(recorded, "wait", 0.0), getattr(instead, "wait", 0.0)
        self.mean_shift_seconds += (low + high) / 2 - was
        if not low - _EPSILON_SECONDS <= was <= high + _EPSILON_SECONDS:
            self.waits.append((was, wait))
            self.shift_seconds += wait - was
        self.has_asked, self.has_answer = isinstance(instead, ev.Ask), False
        self.incident.fold(ev.Decided(now, instead))

    def _predetermined_decision(self, failure: Failure, now: float) -> ev.Decision | None:
        """Return the decision after a person's answer or a dead process; None if `decide` makes it."""
        if self.has_answer:
            return decision_from_answer(self.incident, self.policy, now)
        if failure.rule == PROCESS_DEATH_RULE:
            return decide_after_process_death(self.incident, self.policy, now)
        return None

    def _diverge(self, recorded: ev.Decision, instead: ev.Decision) -> None:
        stops = isinstance(instead, ev.Finish)
        self.status = instead.status if isinstance(instead, ev.Finish) else None
        self.point = Divergence(
            attempt=self.incident.attempts,
            recorded=_describe(recorded),
            instead=_describe(instead),
            stops=stops,
            goes_on=isinstance(recorded, ev.Finish) and not stops,
        )

    def _decide(self, recorded: ev.Decision, failure: Failure, now: float) -> ev.Decision:
        """Return the policy's decision: the recorded one if some jitter produces it, else the one at mean jitter."""
        index = self._rung_index(recorded.rung)
        jitters = [MEAN_JITTER]
        if not isinstance(recorded, ev.Repeat):
            jitters.insert(0, 1.0)  # the longest wait: a retry that was rejected for its wait is rejected again
        else:
            low, high = self._wait_range(recorded._replace(rung=index), self.incident.failure_to_solve or failure)
            if low < high and low <= recorded.wait <= high:
                jitters.insert(0, (recorded.wait - low) / (high - low))
        candidates = [decide(self.incident, failure, self.policy, now, jitter) for jitter in jitters]
        matching = [one for one in candidates if _comparison_key(one) == _comparison_key(recorded)]
        same_rung = [one for one in matching if one.rung == index]
        return next(iter(same_rung or matching or candidates[-1:]))

    def _wait_range(self, decision: ev.Decision, failure: Failure) -> tuple[float, float]:
        """Return the shortest and the longest possible wait of the decision."""
        if not isinstance(decision, ev.Repeat):
            wait = getattr(decision, "wait", 0.0)
            return wait, wait
        if decision.parked:
            return (decision.wait - MAX_SPREAD_SECONDS, decision.wait + MAX_SPREAD_SECONDS)
        if decision.until is not None:
            low, high = (next_wait(self.incident, failure, self.policy, jitter) for jitter in (0.0, 1.0))
            return min(low, decision.wait), high  # the patience may have cut the wait
        retry = self.incident.retries.get(decision.rung, 0) + 1
        low, high = (self.policy.backoff.wait(retry, jitter, failure.retry_after) for jitter in (0.0, 1.0))
        return low, high

    def _rung_index(self, recorded: int) -> int:
        """Return the index of the rung with the same name as the recorded one; -1 if the policy has none."""
        name = self.rungs[recorded] if recorded < len(self.rungs) else ""
        return next((index for index, rung in enumerate(self.policy.ladder.rungs) if rung.name == name), -1)

    def _rename(self, skip: ev.LearnedSkip) -> ev.LearnedSkip:
        """Return a learned skip with the policy's indexes of its rungs."""
        return skip._replace(rung=self._rung_index(skip.rung), instead=self._rung_index(skip.instead))

    def _check_time_limit(self, event: ev.AttemptFailed | ev.AttemptSucceeded, now: float) -> None:
        """Add a doubt if the policy's time limit would have changed how this attempt ended."""
        limit = seconds_left(self.incident, self.policy, now - event.seconds)
        number = self.incident.attempts + 1
        took = f"{event.seconds:.0f} s"
        if isinstance(event, ev.AttemptFailed):
            evidence = event.failure.evidence
            timed_out = evidence.phase is Phase.LIMIT and evidence.exceptions[:1] in _TIMEOUT_NAMES
            if timed_out and (limit is None or limit > event.seconds + TIMEOUT_TOLERANCE_SECONDS):
                self.doubts.append(f"attempt {number} timed out after {took}, and would have had longer")
            if timed_out or not event.made:
                return
        if limit is not None and event.seconds > limit + TIMEOUT_TOLERANCE_SECONDS:
            self.doubts.append(f"attempt {number} took {took}, and would have timed out after {limit:.0f} s")


def _reopen(opened: ev.Opened, policy: Policy) -> ev.Opened:
    """Return the opening event with the policy's limits.

    The limits of an outer incident are not recorded by themselves; the recorded limits include them.
    """
    budget = policy.budget
    deadline = None if budget.seconds is None else opened.at + budget.seconds
    dollars = budget.dollars
    if opened.parent:
        deadline = min((limit for limit in (deadline, opened.deadline) if limit is not None), default=None)
        dollars = min((limit for limit in (dollars, opened.dollars) if limit is not None), default=None)
    terms = opened.terms._replace(attended=opened.terms.attended and not policy.unattended)
    return opened._replace(terms=terms, deadline=deadline, dollars=dollars)


def _comparison_key(decision: ev.Decision) -> tuple[object, ...]:
    """Return the parts of a decision that must be equal for two decisions to match."""
    match decision:
        case ev.Repeat():
            return ("repeat", decision.until is not None, decision.parked)
        case ev.Change():
            return ("change", decision.action)
        case ev.HandOver():
            return ("hand over", decision.model, decision.agent)
        case ev.Ask():
            return ("ask", decision.model, decision.agent, *(option.id for option in decision.options))
    return ("finish", decision.status)


def _describe(decision: ev.Decision) -> str:
    """Describe the decision so that it completes "would have …"."""
    match decision:
        case ev.Repeat(parked=True):
            return f"parked for {decision.wait:.1f} s"
        case ev.Repeat(until=float()):
            return f"waited {decision.wait:.1f} s for the service"
        case ev.Repeat():
            return f"retried after {decision.wait:.1f} s"
        case ev.Change():
            return f"changed the request ({decision.action})"
        case ev.HandOver():
            return "handed over to " + ", ".join(filter(None, (decision.model, decision.agent)))
        case ev.Ask():
            return f"asked a person ({decision.question})"
    return f"stopped ({decision.status}: {decision.reason})"


__all__ = ["Counterfactual", "Divergence", "Summary", "replay", "summarize"]
