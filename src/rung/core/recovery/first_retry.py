"""First retry of an incident: the decision after a first failure, cached.

Most recoveries end after one retry. Its decision depends on few facts, so `decide` makes it once for each policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.error_types import failure_type
from rung.core.domain.events import AttemptFailed, IncidentContext, Opened, Repeat
from rung.core.domain.failures import Kind
from rung.core.domain.incident import Incident

if TYPE_CHECKING:
    from rung.core.classify.error_types import ErrorType
    from rung.core.domain.failures import Failure, Phase
    from rung.core.policy.policy import Policy


class FirstRetryCache:
    """Cache of `decide` under one policy: retries after the first failure of an incident without a request.

    Such a decision depends only on the failure's kind, error type, phase, repeats and retryability, provided that the failure has
    no retry-after hint, the retry budget has room and the deadline is further away than the longest wait. A cached
    decision was made with the longest wait: where that one is allowed, a shorter one is too.
    """

    __slots__ = ("_context", "_decisions", "_is_usable", "_policy")

    def __init__(self, policy: Policy, context: IncidentContext) -> None:
        self._policy = policy
        self._context = context
        self._decisions: dict[tuple[Kind, bool, Phase, int, bool | ErrorType], Repeat | None] = {}
        # With sizes, the entry rung also depends on the text. A dollar cap depends on what was spent.
        self._is_usable = not policy.ladder.sizes and policy.budget.dollars is None

    def lookup(self, failure: Failure, deadline: float | None, now: float, jitter: float) -> Repeat | None:
        """Return the retry that `decide` chooses after this failure, or None if `decide` itself must be asked."""
        evidence = failure.evidence
        if failure.retry_after is not None or evidence.output_started or evidence.side_effects or not self._is_usable:
            return None
        if evidence.final or evidence.spare_keys or evidence.tool in self._policy.tools.tables:
            return None
        key = (
            failure.kind,
            failure.retryable,
            evidence.phase,
            evidence.repeats,
            failure.kind is Kind.TIMEOUT and failure_type(failure),
        )
        try:
            retry = self._decisions[key]
        except KeyError:
            retry = self._decisions[key] = self._decide(failure)
        if retry is None or (deadline is not None and now + retry.wait >= deadline):
            return None
        return retry._replace(wait=self._policy.backoff.wait(1, jitter)) if retry.wait else retry

    def _decide(self, failure: Failure) -> Repeat | None:
        from rung.core.recovery.decide import decide  # imported at the first failure, and with it the classifier

        opened = Opened(0.0, "", self._context)
        incident = Incident.of([opened, AttemptFailed(0.0, failure, 0.0, 0.0, may_retry=True)])
        decision = decide(incident, failure, self._policy, 0.0, 1.0)
        return decision if isinstance(decision, Repeat) and not decision.skipped else None
