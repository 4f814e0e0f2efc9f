"""Objects shared by all routes, and the FastAPI dependencies that provide them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import Depends, Request

from rung.service.auth import Authenticator, Principal, Role
from rung.service.auth_middleware import require_role
from rung.service.crew_tables import CrewTables
from rung.service.escalation import ManualEscalations
from rung.service.limits import MAX_HEAVY, MAX_HEAVY_PER_TOKEN, ConcurrencyLimit
from rung.service.manual_retry import ManualRetries
from rung.service.routes.stream import EventBroadcaster
from rung.store.journal.journal import Journal
from rung.wiring.alerts import Alerts
from rung.wiring.policies import PolicyStore
from rung.wiring.settings_file import SettingsFile

if TYPE_CHECKING:
    from rung.service.replay import Replayers


class AppContext(NamedTuple):
    """Shared objects of one service, created at start."""

    journal: Journal
    auth: Authenticator
    stream: EventBroadcaster
    policies: PolicyStore
    replayers: Replayers
    journal_location: str  # for display; without a password
    demo: bool = False
    crews: CrewTables = CrewTables()
    webhook_hosts: frozenset[str] = frozenset()  # may be on this machine or link-local
    gateway: str = ""  # address of the gateway beside this service
    alerts: Alerts | None = None  # rules of the settings file
    untrusted: SettingsFile | None = None  # the settings file, if it has alerts that are off because it is not trusted
    heavy: ConcurrencyLimit = ConcurrencyLimit("exports and backtests", MAX_HEAVY, MAX_HEAVY_PER_TOKEN)

    @property
    def retries(self) -> ManualRetries:
        """Retries that a person asks for."""
        return ManualRetries(self.journal, self.policies, self.replayers)

    @property
    def escalations(self) -> ManualEscalations:
        """Escalations that a person asks for."""
        return ManualEscalations(self.journal, self.policies, self.replayers)


def _context(request: Request) -> AppContext:
    context: AppContext = request.app.state.context
    return context


Context = Annotated[AppContext, Depends(_context)]
Reader = Annotated[Principal, Depends(require_role(Role.READ))]
Actor = Annotated[Principal, Depends(require_role(Role.ACT))]
Admin = Annotated[Principal, Depends(require_role(Role.ADMIN))]
