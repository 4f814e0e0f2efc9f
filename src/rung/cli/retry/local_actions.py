"""Retries and escalations of a journal by this process, without a running service."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rung.cli.journal.option import existing_journal
from rung.cli.retry.option import NOT_FOUND, USAGE_STATUSES, refuse
from rung.cli.run.recorded_command import ForegroundCommand
from rung.cli.usage import UsageError
from rung.core.domain.incident import Incident
from rung.service.api_problem import ApiProblem
from rung.service.escalation import ManualEscalations
from rung.service.manual_retry import ManualRetries
from rung.service.replay import Replayers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.store.journal.journal import Journal


class LocalActions(NamedTuple):
    """Actions of a person on the sessions of a journal, and the command that a retry runs here."""

    journal: Journal
    retries: ManualRetries
    escalations: ManualEscalations
    command: ForegroundCommand


@contextmanager
def local_actions(journal_at: str | None, session: str) -> Iterator[LocalActions]:
    """Open a journal to act on a session of it; what is refused becomes one line and an exit code."""
    from rung.adapters.system.provider_client import from_environment
    from rung.cli.serve.service import spending_of
    from rung.wiring.policies import PolicyStore, file_book

    with existing_journal(journal_at) as journal:
        command = ForegroundCommand(journal)
        policies = PolicyStore(journal, file_book())
        replayers = Replayers(journal, from_environment(), spending_of(journal), command)
        retries = ManualRetries(journal, policies, replayers)
        escalations = ManualEscalations(journal, policies, replayers)
        try:
            yield LocalActions(journal, retries, escalations, command)
        except ApiProblem as problem:
            if problem.status in USAGE_STATUSES:
                raise UsageError(problem.detail + _incident_hint(journal, session, problem)) from None
            refuse(problem.detail, problem.field)


def _incident_hint(journal: Journal, session: str, problem: ApiProblem) -> str:
    """Return the session of an incident whose id was given in place of one; empty if it is no incident's."""
    found = Incident.of(journal.events(session)).terms.session if problem.status == NOT_FOUND else ""
    return f"; the incident of this id belongs to session {found!r}" if found else ""
