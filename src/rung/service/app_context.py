"""What the routes share: the journal, who has access, the stream, and the policies in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import Depends, Request

from rung.service.auth import Authenticator, Principal, Role
from rung.service.auth_middleware import require_role
from rung.service.crew_tables import CrewTables
from rung.service.routes.stream import EventBroadcaster
from rung.store.journal.journal import Journal
from rung.wiring.policies import PolicyStore

if TYPE_CHECKING:
    from rung.service.replay import Replayers


class AppContext(NamedTuple):
    """The parts of one service, chosen when it starts."""

    journal: Journal
    auth: Authenticator
    stream: EventBroadcaster
    policies: PolicyStore
    replayers: Replayers
    journal_location: str  # of the journal, as it is shown
    demo: bool = False
    crews: CrewTables = CrewTables()


def _hub(request: Request) -> AppContext:
    hub: AppContext = request.app.state.hub
    return hub


Context = Annotated[AppContext, Depends(_hub)]
Reader = Annotated[Principal, Depends(require_role(Role.READ))]
Actor = Annotated[Principal, Depends(require_role(Role.ACT))]
Admin = Annotated[Principal, Depends(require_role(Role.ADMIN))]
