"""What may be spent: limits on a session, on a project's month and on everybody's month; when somebody should know."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a field: dataclasses read it
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from rung.core.domain.settings_schema import DOLLARS, Type, optional, read_table, setting, settings

ALERTS: Final = (50, 75, 90, 100)  # percent of a limit
_NO_LIMITS: Final[Mapping[str, float]] = MappingProxyType({})


class SpendLimit(NamedTuple):
    """One limit over one thing, and what it is called wherever it is shown."""

    scope: Literal["session", "project", "month"]
    name: str
    limit: float
    id: str


def _read_limits(value: object, key: str) -> Mapping[str, float]:
    return {name: DOLLARS.read(limit, f"{key}.{name}") for name, limit in read_table(value, key).items()}


@settings
class SpendLimits:
    """Spend limits in US dollars: `[gateway.budgets]`. None: no limit."""

    session: float | None = setting(optional(DOLLARS), "Limit of one session.", default=None)
    project: float | None = setting(optional(DOLLARS), "Limit of each project per month.", default=None)
    month: float | None = setting(optional(DOLLARS), "Limit of all projects together per month.", default=None)
    projects: Mapping[str, float] = setting(
        Type("a table: project = US dollars", parse=_read_limits),
        "Limits of single projects per month.",
        default_factory=lambda: _NO_LIMITS,
    )

    def __post_init__(self) -> None:
        _read_limits(self.projects, "projects")

    @property
    def bounds(self) -> bool:
        """Is there any limit?"""
        return bool(self.projects) or not self.session is self.project is self.month is None

    def set_over(self, told: Mapping[str, Any]) -> SpendLimits:
        """The same with what people have set in its place, as the journal keeps it (`monthly` is the month's)."""
        session, month = told.get("session"), told.get("monthly")
        return SpendLimits(
            session=self.session if session is None else session,
            project=self.project,
            month=self.month if month is None else month,
            projects={**self.projects, **(told.get("projects") or {})},
        )

    def purses(self, session: str, project: str, month: str) -> list[SpendLimit]:
        """What one call is paid from, the widest first."""
        found = []
        if self.month is not None:
            found.append(SpendLimit("month", month, self.month, f"budget/month/{month}"))
        limit = self.projects.get(project, self.project)
        if limit is not None:
            found.append(SpendLimit("project", project, limit, f"budget/project/{project}/{month}"))
        if self.session is not None and session:
            found.append(SpendLimit("session", session, self.session, f"budget/session/{session}"))
        return found


def alert_at(spent: float, limit: float) -> int | None:
    """The highest mark that is reached; None below the first."""
    share = 100 * spent / limit if limit else 100.0 * (spent > 0)
    return next((mark for mark in reversed(ALERTS) if share >= mark), None)


def month_of(now: float) -> str:
    """The month of a moment, in UTC: 2026-11."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m")


def month_begins(now: float) -> float:
    """When that month began."""
    return datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
