"""Spend limits of keys, sessions, projects and months, and the alert thresholds below them."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # dataclasses read the annotation
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from rung.core.domain.frozen_dict import FrozenDict
from rung.core.domain.settings_schema import DOLLARS, Type, optional, read_table, setting, settings

ALERT_PERCENTS: Final = (50, 75, 90, 100)  # percent of a limit
_MORE_THAN_A_MONTH: Final = 32 * 86_400.0
_NO_LIMITS: Final[Mapping[str, float]] = FrozenDict()


class SpendLimit(NamedTuple):
    """Limit of one key, session, project or month; `id` names the amount spent of it, for a key its hash."""

    scope: Literal["key", "session", "project", "month"]
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
    def has_limits(self) -> bool:
        """Whether any limit is set."""
        return bool(self.projects) or not self.session is self.project is self.month is None

    def with_overrides(self, overrides: Mapping[str, Any]) -> SpendLimits:
        """Return a copy with limits set at run time, as stored in the journal (`monthly` is the month's)."""
        session, month = overrides.get("session"), overrides.get("monthly")
        return SpendLimits(
            session=self.session if session is None else session,
            project=self.project,
            month=self.month if month is None else month,
            projects={**self.projects, **(overrides.get("projects") or {})},
        )

    def limits_for(self, session: str, project: str, month: str) -> list[SpendLimit]:
        """Return the limits that apply to a call, the widest first."""
        limits = []
        if self.month is not None:
            limits.append(SpendLimit("month", month, self.month, f"budget/month/{month}"))
        limit = self.projects.get(project, self.project)
        if limit is not None:
            limits.append(SpendLimit("project", project, limit, f"budget/project/{project}/{month}"))
        if self.session is not None and session:
            limits.append(SpendLimit("session", session, self.session, f"budget/session/{session}"))
        return limits


def reached_alert(spent: float, limit: float) -> int | None:
    """Return the highest alert threshold that is reached, in percent; None below the lowest."""
    percent = 100 * spent / limit if limit else 100.0 * (spent > 0)
    return next((threshold for threshold in reversed(ALERT_PERCENTS) if percent >= threshold), None)


def month_of(now: float) -> str:
    """Return the month of a time in UTC: 2026-11."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m")


def month_start(now: float) -> float:
    """Return the start of the month of a time in UTC."""
    return _month_start(now).timestamp()


def renewal(limit: SpendLimit, now: float) -> float | None:
    """Return when a limit renews: at the start of the next month (UTC), or None if it never does."""
    if limit.scope not in ("month", "project"):
        return None
    return _month_start(_month_start(now).timestamp() + _MORE_THAN_A_MONTH).timestamp()


def _month_start(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
