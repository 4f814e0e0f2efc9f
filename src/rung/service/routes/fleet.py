"""Fleet route: the processes that share this journal, their runs, leases, queues and versions."""

from __future__ import annotations

from fastapi import APIRouter

from rung.service.app_context import Context, Reader
from rung.service.problems import PROBLEM_RESPONSES
from rung.service.schemas.fleet import FleetOut
from rung.store.fleet.overview import load_overview, overview_json

router = APIRouter(prefix="/api", tags=["fleet"], responses=PROBLEM_RESPONSES)


@router.get("/fleet")
def fleet(context: Context, _: Reader) -> FleetOut:
    """The executors of the fleet with their heartbeats, open runs, late leases, queues with their lag, and versions."""
    return FleetOut.model_validate(overview_json(load_overview(context.journal)))
