"""Log of recoveries: the standard logger `rung`. Imported at the first failure of a process.

A failed attempt that is followed by another one is a warning, a recovery that succeeds after failures is an info, and one
that ends without a success is a warning, or an error if its status is `failed`. The logger has no handler: a program that
does not configure logging sees warnings and errors on standard error, by Python's handler of last resort.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.failures import error_line, first_line
from rung.core.domain.recommendation import failure_reason, recommendation
from rung.core.domain.skipped_rungs import describe_skips
from rung.core.text.event_text import describe_event
from rung.core.text.printable import printable
from rung.engine.local_zone import local_zone
from rung.engine.log_switch import LOG_SWITCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident
    from rung.engine.loop.run import RecoveryRun

LOGGER: Final = logging.getLogger("rung")
_warned_budgets: set[tuple[str, str, float]] = set()


def log_decision(run: RecoveryRun, failure: Failure, decision: ev.Decision, now: float) -> None:
    """Log a failed attempt and what is done about it. The end of a recovery is logged by `log_end`."""
    if isinstance(decision, ev.Finish):
        return
    incident = run.incident
    earlier = (event for event in reversed(run.log[:-1]) if isinstance(event, ev.AttemptFailed | ev.Decided))
    # A second decision about the same failure: a rung was skipped, or a person has answered.
    level = logging.INFO if isinstance(next(earlier, None), ev.Decided) else logging.WARNING
    what = f"attempt {incident.attempts} failed" if run.attempt_made else "attempt not made"
    _log_failure(level, run.log_name, what, failure, ev.Decided(now, decision), run.terms.rungs, incident)


def log_first_retry(name: str, failure: Failure, decision: ev.Repeat, now: float, rungs: Sequence[str]) -> None:
    """Log the first failure of a guarded call that is retried without an incident."""
    if LOG_SWITCH.is_on and LOGGER.isEnabledFor(logging.WARNING):
        _log_failure(logging.WARNING, name, "attempt 1 failed", failure, ev.Decided(now, decision), rungs, None)


class FailureLog:
    """Listener that logs the failed attempts of a recovery in a loop that is somebody else's."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, event: ev.Event, incident: Incident, /) -> None:
        """Log a decision that another attempt follows; the loop raises the error itself if none does."""
        if isinstance(event, ev.Decided) and not isinstance(event.decision, ev.Finish) and incident.failure is not None:
            what = f"attempt {incident.attempts} failed"
            _log_failure(logging.WARNING, self._name, what, incident.failure, event, incident.terms.rungs, incident)


def _log_failure(
    level: int,
    name: str,
    what: str,
    failure: Failure,
    decided: ev.Decided,
    rungs: Sequence[str],
    incident: Incident | None,
) -> None:
    if not (LOG_SWITCH.is_on and LOGGER.isEnabledFor(level)):
        return
    described = describe_event(decided, rungs, 0, local_zone())
    facts = _facts(name, incident, kind=failure.kind.value, action=described.subject, wait=_wait_of(decided.decision))
    message = printable(error_line(failure))
    skips = describe_skips(decided.decision.skipped, rungs)
    text = f"{described.subject} ({described.text}{'; ' * bool(skips)}{printable(skips)})"
    _emit(level, "%s: %s: %s: %s; next: %s", name, what, failure.kind.value, message, text, facts=facts)


def log_recovered(name: str, attempts: int, seconds: float, incident: Incident | None = None) -> None:
    """Log a success after failures."""
    if LOG_SWITCH.is_on and LOGGER.isEnabledFor(logging.INFO):
        facts = _facts(name, incident, attempts=attempts, status=ev.Status.RECOVERED.value)
        _emit(logging.INFO, "%s: recovered after %s in %.1f s", name, _count(attempts), seconds, facts=facts)


def log_end(run: RecoveryRun, now: float) -> None:
    """Log a recovery that ended without a success.

    If the error is raised to the caller and nothing was tried, there is nothing to say that the error does not say.
    """
    incident = run.incident
    status, attempts = incident.status, incident.attempts
    level = logging.ERROR if status is ev.Status.FAILED and not run.raises else logging.WARNING
    if run.raises and attempts <= 1:
        level = logging.DEBUG
    if not (LOG_SWITCH.is_on and LOGGER.isEnabledFor(level)):
        return
    reason = printable(first_line(failure_reason(incident), 300))
    advice = recommendation(incident.failure, incident.reason)
    facts = _facts(run.log_name, incident, attempts=attempts, status=str(status))
    text = "%s: %s after %s in %.1f s: %s. %s"
    seconds = now - incident.opened_at
    _emit(level, text, run.log_name, status, _count(attempts), seconds, reason.rstrip("."), advice, facts=facts)


def log_cancelled(run: RecoveryRun, reason: str) -> None:
    """Log a recovery that was stopped from outside."""
    if LOG_SWITCH.is_on and LOGGER.isEnabledFor(logging.INFO):
        facts = _facts(run.log_name, run.incident, attempts=run.incident.attempts, status="cancelled")
        _emit(logging.INFO, "%s: %s after %s", run.log_name, reason, _count(run.incident.attempts), facts=facts)


def warn_unheard_costs(run: RecoveryRun) -> None:
    """Warn, once for each policy, that a dollar budget has limited nothing because no attempt reported a cost.

    An attempt that failed may have cost nothing: only a result that no cost was reported for is a reason.
    """
    dollars, incident = run.policy.budget.dollars, run.incident
    has_result = incident.status in (ev.Status.SUCCEEDED, ev.Status.RECOVERED)
    if dollars is None or run.has_heard_cost or incident.dollars or not has_result:
        return
    budget = (run.policy.ladder.name, run.policy.name, dollars)
    if budget in _warned_budgets or not LOG_SWITCH.is_on:
        return
    _warned_budgets.add(budget)
    _emit(
        logging.WARNING,
        "%s: the budget of $%.2f limited nothing: no attempt reported a cost. Call rung.report_cost(dollars) or "
        "rung.report_cost(usage=response.usage, model=response.model) in the attempt. This is logged once.",
        run.log_name,
        dollars,
        facts=_facts(run.log_name, run.incident, dollars=dollars),
    )


def _emit(level: int, text: str, *values: object, facts: dict[str, Any]) -> None:
    """Write a record. A handler or filter that raises must not end the recovery."""
    try:
        LOGGER.log(level, text, *values, extra=facts)
    except Exception as error:
        import warnings

        warnings.warn(f"rung: a log handler failed and was ignored: {error!r}", RuntimeWarning, stacklevel=2)


def _facts(name: str, incident: Incident | None, **facts: Any) -> dict[str, Any]:
    """Return the fields of a log record, for handlers that write structured logs."""
    found = {"name": name, "incident": "" if incident is None else incident.id, **facts}
    if incident is not None:
        found.setdefault("attempts", incident.attempts)
    return {f"rung_{key}": value for key, value in found.items()}


def _wait_of(decision: ev.Decision) -> float:
    return decision.wait if isinstance(decision, ev.Repeat | ev.Change) else 0.0


def _count(attempts: int) -> str:
    return f"{attempts} attempt{'s' * (attempts != 1)}"
