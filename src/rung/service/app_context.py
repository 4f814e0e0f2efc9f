"""What the routes share: the journal, who has access, the stream, and the policies in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import Depends, Request

from rung.service.auth import Access, Role, Who
from rung.service.auth_middleware import needs
from rung.service.crew_tables import CrewTables
from rung.service.routes.stream import Stream
from rung.store.journal.journal import Journal
from rung.wiring.policies import Policies

if TYPE_CHECKING:
    from rung.service.replay import Replayers


class Hub(NamedTuple):
    """The parts of one service, chosen when it starts."""

    journal: Journal
    access: Access
    stream: Stream
    policies: Policies
    replayers: Replayers
    place: str  # of the journal, as it is shown
    demo: bool = False
    crews: CrewTables = CrewTables()


def _hub(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub


Parts = Annotated[Hub, Depends(_hub)]
Reader = Annotated[Who, Depends(needs(Role.READ))]
Actor = Annotated[Who, Depends(needs(Role.ACT))]
Admin = Annotated[Who, Depends(needs(Role.ADMIN))]
