"""Manual restarts from the audit trail, with the sessions that they belong to, and the sessions of a period."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.recovery.success_criteria import RESTART_ACTIONS, is_manual_restart
from rung.store.queries import reports_sql as sql
from rung.store.queries.incidents import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.backends.port import Readable
    from rung.store.queries.reports_sql import ReportFilter

_SESSION_FIELDS: Final = {"project": "project", "model": "model", "kind": "kind", "session": "id"}
_PAGE: Final = 500  # names in one query


class ManualRestart(NamedTuple):
    """Action of a person that restarted work. `session` is empty for a task of a crew; `is_escalation`: to another model."""

    at: float
    action: str
    session: str
    is_escalation: bool


def manual_restarts(journal: Readable, where: ReportFilter) -> list[ManualRestart]:
    """Return the manual restarts of a time range, in order. Filters apply to the session as it is now."""
    audit = sql.ReportSource("audit", 0, "at", {})
    clause, values = audit.clause(where, condition=f"action IN ({placeholders(RESTART_ACTIONS)})")
    rows = journal.read(
        f"SELECT at, action, subject, detail FROM audit{clause} ORDER BY seq",  # noqa: S608  # our own names
        [*RESTART_ACTIONS, *values],
    )
    acts = [(at, action, subject, json.loads(detail)) for at, action, subject, detail in rows]
    acts = [act for act in acts if is_manual_restart(act[1], str(act[3].get("option", "")))]
    incidents = _incident_sessions(journal, (subject for _, _, subject, _ in acts))
    found = [
        ManualRestart(at, action, _session(subject, incidents), _is_escalation(action, detail))
        for at, action, subject, detail in acts
    ]
    if all(getattr(where, name) is None for name in _SESSION_FIELDS):
        return found
    chosen = _chosen_sessions(journal, where, {one.session for one in found})
    return [one for one in found if one.session in chosen]


def active_sessions(journal: Readable, where: ReportFilter) -> int:
    """Return the number of sessions that were active in a time range."""
    sessions = sql.ReportSource("session", 0, "touched_at", _SESSION_FIELDS)
    condition, began = ("", []) if where.until is None else ("began_at < ?", [where.until])
    clause, values = sessions.clause(replace(where, until=None), condition=condition)
    ((count,),) = journal.read(f"SELECT count(*) FROM session{clause}", [*began, *values])  # noqa: S608  # our own names
    return int(count)


def _session(subject: str, incidents: dict[str, str]) -> str:
    """Return the session of an audit entry's subject: `session/ID`, `incident/ID` or `run/ID`; empty for a crew's."""
    of, _, name = subject.partition("/")
    return name if of == "session" else incidents.get(name, "") if of in ("incident", "run") else ""


def _is_escalation(action: str, detail: dict[str, Any]) -> bool:
    changes_model = bool(detail.get("to_model")) and detail.get("to_model") != detail.get("from_model")
    return action == "escalate" or (action == "retry" and changes_model)


def _incident_sessions(journal: Readable, subjects: Iterable[str]) -> dict[str, str]:
    """Return the sessions of the incidents among these subjects; the incident of a run has its id."""
    names = sorted({name for of, _, name in (each.partition("/") for each in subjects) if of in ("incident", "run")})
    found: dict[str, str] = {}
    for start in range(0, len(names), _PAGE):
        page = names[start : start + _PAGE]
        found |= dict(
            journal.read(f"SELECT id, session FROM incident WHERE id IN ({placeholders(page)})", page)  # noqa: S608  # placeholders
        )
    return found


def _chosen_sessions(journal: Readable, where: ReportFilter, names: set[str]) -> set[str]:
    sessions = sql.ReportSource("session", 0, "touched_at", _SESSION_FIELDS)
    found: set[str] = set()
    ordered = sorted(names)
    for start in range(0, len(ordered), _PAGE):
        page = ordered[start : start + _PAGE]
        clause, values = sessions.clause(
            replace(where, since=None, until=None), condition=f"id IN ({placeholders(page)})"
        )
        found |= {name for (name,) in journal.read(f"SELECT id FROM session{clause}", [*page, *values])}  # noqa: S608  # our own names
    return found
