"""Notifications of alerts: the value that every channel gets, its JSON, and its sentences."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from rung.core.alerts.rules import Metric, Severity
from rung.core.domain.dollars import format_dollars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.alerts.evaluation import Reading
    from rung.core.alerts.rules import AlertRule

FIRED: Final = "fired"
RESOLVED: Final = "resolved"
TEST: Final = "test"
SCHEMA_VERSION: Final = 1
_TITLES: Final = {FIRED: "Firing", RESOLVED: "Resolved", TEST: "Test"}
_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One message about one alert. `id` is the same whenever it is sent again, `alert` in its beginning and its end."""

    id: str
    alert: str
    event: str  # fired, resolved, test
    rule: str
    when: str
    severity: str
    value: float | None
    threshold: float
    window: float
    at: float
    project: str | None = None
    scope: str = ""  # empty: the journal; otherwise the crew that it is about
    detail: str = ""
    url: str = ""

    @property
    def link(self) -> str:
        """Return the address of the rule's page in the dashboard; empty if the dashboard's address is not known."""
        return f"{self.url.rstrip('/')}/#/alerts?rule={quote(self.rule, safe='')}" if self.url else ""

    @property
    def title(self) -> str:
        """Return one line: what happened to which rule."""
        state = _TITLES[self.event]
        about = f" ({self.project})" if self.project else ""
        return f"{state}: {self.rule}{about}"

    @property
    def summary(self) -> str:
        """Return one sentence with the figure and its threshold."""
        if self.event == TEST:
            return f"This is a test of the rule {self.rule}. Nothing is wrong."
        value = "unknown" if self.value is None else format_value(self.when, self.value)
        text = f"{SENTENCES[Metric(self.when)]}: {value}, threshold {format_value(self.when, self.threshold)}"
        text += f" {_span(self.when)} {format_span(self.window)}."
        return f"{text} {self.detail}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that webhooks and commands get; see `rung schema alert`."""
        return {"v": SCHEMA_VERSION, **asdict(self), "title": self.title, "summary": self.summary, "link": self.link}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Notification:
        """Return a stored notification; unknown fields are left out.

        Raises ValueError, KeyError or TypeError for one that this version cannot show, as of a figure that it does not know.
        """
        Metric(values["when"]), Severity(values["severity"]), _TITLES[values["event"]]
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})


SENTENCES: Final[Mapping[Metric, str]] = {
    Metric.FAILURE_RATE: "Failed attempts",
    Metric.UNRECOVERED: "Incidents that were not recovered",
    Metric.COST: "Cost",
    Metric.STUCK: "Stuck sessions",
    Metric.PARKED: "Parked work",
    Metric.DEAD_WORKERS: "Dead workers",
    Metric.UNANSWERED: "Unanswered questions",
}


def new_notification(
    rule: AlertRule, event: str, alert: str, reading: Reading, at: float, *, scope: str = "", url: str = ""
) -> Notification:
    """Return the notification of a change of a rule's alert."""
    return Notification(
        id=f"{alert}-{event}",
        alert=alert,
        event=event,
        rule=rule.name,
        when=rule.when.value,
        severity=Severity(rule.severity).value,
        value=reading.value,
        threshold=rule.threshold,
        window=rule.window_seconds,
        at=at,
        project=rule.project,
        scope=scope,
        detail=reading.detail,
        url=url,
    )


def format_value(when: str, value: float) -> str:
    """Return a figure with its unit."""
    if when == Metric.FAILURE_RATE:
        return f"{100 * value:.3g} %"
    return format_dollars(value) if when == Metric.COST else f"{value:g}"


def format_span(seconds: float) -> str:
    """Return a duration in its largest unit that divides it."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def format_time(at: float) -> str:
    """Return a time in UTC, as ISO 8601."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _span(when: str) -> str:
    return "for at least" if when in (Metric.PARKED, Metric.UNANSWERED) else "in the last"
