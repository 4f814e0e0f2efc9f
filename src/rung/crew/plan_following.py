"""A conductor follows the plan: the `[crew]` table of a revision is in force in the next turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.crew.judgement import CommandJudgement
from rung.crew.plan_sync import APPLIED_KEY, current_plan
from rung.crew.settings import ConductorSettings

if TYPE_CHECKING:
    from rung.crew.context import ConductorContext


def follow_plan(crew: ConductorContext) -> None:
    """Take over the settings and commands of a plan that has replaced the one this context was built for."""
    applied = crew.table.get_fact(APPLIED_KEY) or ""
    if applied == crew.applied_revision:
        return
    plan = current_plan(crew.table)
    if plan is not None:
        crew.settings = ConductorSettings.from_plan(plan.settings)
        crew.judgement = CommandJudgement.of_plan(plan)
        crew.recoveries.attended = crew.settings.attended
    crew.applied_revision = applied
