"""Audit trail of the journal: actions of people on the command line."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


def account() -> str:
    """Return the name of the account that acts."""
    try:
        return f"{getpass.getuser()} (rung)"
    except (KeyError, OSError):  # an account without a name
        return "rung"


def record_crew_action(database: str, action: str, task_id: str, detail: Mapping[str, Any]) -> None:
    """Record an action on a crew, or on one of its tasks, as the service does.

    The crew's table already has it, so an unavailable journal is a warning.
    """
    from rung.core.domain.errors import StoreError, StoreUnavailable
    from rung.store.crew.operator_commands import crew_name
    from rung.store.settings import record_audit
    from rung.wiring.journals import journal

    subject = "/".join(filter(None, ("crew", crew_name(database), task_id)))
    try:
        with journal() as store:
            record_audit(store, account(), action, subject, detail)
    except (StoreError, StoreUnavailable) as error:
        click.echo(f"rung: done, but not recorded in the audit trail: {error}", err=True)
