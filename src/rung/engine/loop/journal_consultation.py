"""Lookups in the journal after a failure: the rung that resolved it before, and the tries that have not helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.domain import events as ev

if TYPE_CHECKING:
    from rung.core.domain.failures import Failure
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.journal import RungStatistics


def consult_journal(run: RecoveryRun, failure: Failure) -> None:
    """Record what the journal knows about this failure: the rung that fixed it before, and tries to leave out."""
    if run.incident.decision is None:
        _suggest_remedy(run, failure)
    if run.statistics is not None and failure.kind.value not in run.incident.learned:
        _learn(run, run.statistics, failure)


def _learn(run: RecoveryRun, statistics: RungStatistics, failure: Failure) -> None:
    """Record which tries recorded outcomes leave out after failures of this kind."""
    from rung.core.recovery.learned_skips import explores, learned_skips

    policy, now, first = run.policy, run.clock.now(), run.incident.first_request
    try:
        counts = statistics.rung_counts(run.terms.project, run.terms.ladder, policy.learn.window, now)
        skips = learned_skips(counts, policy, failure.kind, first.model if first is not None else "")
    except Exception as error:  # a failing lookup must not prevent the recovery
        run.record_crash("statistics", error)
        return
    if skips:
        explored = explores(run.incident.id, policy.learn.explore)
        run.append(ev.Learned(now, failure.kind.value, skips, explored))


def _suggest_remedy(run: RecoveryRun, failure: Failure) -> None:
    """Look up the rung that resolved this failure before, and record it as a hint."""
    if run.remedies is None:
        return
    try:
        name = run.remedies.suggest_rung(run.terms.project, failure)
    except Exception as error:  # a failing lookup must not prevent the recovery
        run.record_crash("remedies", error)
        return
    if name is not None and name in run.terms.rungs:
        rung = run.terms.rungs.index(name)
        run.append(ev.Hinted(run.clock.now(), rung, f"{name} worked last time"))
