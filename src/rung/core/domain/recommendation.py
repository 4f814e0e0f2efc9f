"""Why and where a recovery stopped, and what a person should do about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind, error_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.domain.failures import Failure
    from rung.core.domain.incident import Incident

_ADD_MODEL: Final = "add another model to fall back to"
_RECOMMENDATIONS: Final[Mapping[Kind, str]] = {
    Kind.MISSING_CREDENTIALS: "Provide the missing credentials, then run it again.",
    Kind.AUTH_ERROR: "Check the key or token: the provider rejects it. Then run it again.",
    Kind.QUOTA_EXHAUSTED: "Add credit or wait until the plan's limit resets, then run it again.",
    Kind.BUDGET_EXHAUSTED: "Raise the budget if the work is worth it, then run it again.",
    Kind.RATE_LIMIT: "Wait for the limit to reset, or spread the calls; then run it again.",
    Kind.SERVICE_DOWN: f"Run it again when the service is back, or {_ADD_MODEL}.",
    Kind.OVERLOADED: f"Run it again when the service is less busy, wait longer (`patience`), or {_ADD_MODEL}.",
    Kind.CONTEXT_LIMIT: "Split the task, or give it to a model with a larger context.",
    Kind.TEST_FAILURE: "Look at the failing test or check; the agent did not find the cause.",
    Kind.LOOP_DETECTED: "Look at what it kept repeating; provide the missing fact or permission.",
    Kind.STRATEGIC_AMBIGUITY: "Decide which approach to take, then run it again with that decision.",
    Kind.TURNS_EXHAUSTED: "Give it more turns, or a smaller task.",
    Kind.CAPABILITY_MISMATCH: "Give it to an agent or a model that can do this, or do this part yourself.",
    Kind.PERMISSION_DENIED: "Grant the missing permission, or tell it where it may work.",
    Kind.TIMEOUT: "Give it more time or a smaller task, or find out what it waited for.",
    Kind.NETWORK: "Check the connection to the service, then run it again.",
    Kind.CONFIGURATION: "Correct the setting named in the error, then run it again.",
}


# Reasons for which `core.recovery.decide` ends a recovery although a rung is left.
_LIMIT_REACHED: Final = re.compile(r"the budget of .+ is spent|the deadline has passed")
# Reasons for which `core.recovery.handover` skips a model that is listed: another one would not help.
_SKIPPED_FOR_BUDGET: Final = (
    ("more than the remaining budget", "raise the budget in dollars, which was too small for the fallback"),
    ("and the budget is in dollars", "set the `cost` of the fallback, which the budget in dollars needs"),
)


def recommendation(failure: Failure | None, reason: str = "") -> str:
    """Return what a person should do about the last failure of a recovery that stopped for a reason."""
    raise_limit = "Raise that limit if the work is worth it. " if _LIMIT_REACHED.match(reason) else ""
    if failure is None:
        return raise_limit.strip() or "Run it again."
    general = f"Look at the error ({failure.kind}); change what it names, then run it again."
    return raise_limit + _after_skip(_RECOMMENDATIONS.get(failure.kind, general), reason)


def _after_skip(advice: str, reason: str) -> str:
    """Return the advice with what makes a listed model usable, if the recovery stopped because it was skipped."""
    remedy = next((remedy for skip, remedy in _SKIPPED_FOR_BUDGET if skip in reason), "")
    if not remedy:
        return advice
    if _ADD_MODEL in advice:
        return advice.replace(_ADD_MODEL, remedy)
    return f"{advice} Or {remedy}."


def failure_reason(incident: Incident) -> str:
    """Return why the recovery stopped. A limit, a stop or a person is not the whole reason: the last error is named, too."""
    failure, reason = incident.failure, incident.reason
    if failure is None or not failure.message or error_line(failure, 100).rstrip("…") in reason:
        return reason
    return f"{reason}; last error: {failure.headline()}"


def failed_at(incident: Incident) -> str:
    """Return where the recovery stopped: the step that failed where it is known, else the attempt and the last step."""
    attempt = f"attempt {incident.attempts}"
    evidence = None if incident.failure is None else incident.failure.evidence
    if evidence is not None and evidence.step:
        return evidence.step
    if evidence is not None and evidence.missing:
        return f"{', '.join(evidence.missing)} ({attempt})"
    if evidence is not None and evidence.tool:
        return f"tool {evidence.tool} ({attempt})"
    return f"{attempt}, after: {incident.steps[-1]}" if incident.steps else attempt
