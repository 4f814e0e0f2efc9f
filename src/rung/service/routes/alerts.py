"""Alert routes: rules with their state, history, tests and silences."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from rung.service.app_context import Actor, AppContext, Context, Reader
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.schemas.alerts import (
    AlertChannelOut,
    AlertEntryOut,
    AlertHistoryOut,
    AlertRuleOut,
    AlertSilenceIn,
    AlertSilenceOut,
    AlertsOut,
    AlertTestOut,
    UntrustedAlertsOut,
)
from rung.store.alerts.states import history, silence
from rung.store.alerts.views import entry_view, rule_views
from rung.store.settings import record_audit
from rung.wiring.alerts import Alerts
from rung.wiring.settings_file import SettingsFile
from rung.wiring.trust import Decision

router = APIRouter(prefix="/api", tags=["alerts"], responses=PROBLEM_RESPONSES)

RuleName = Annotated[str, Path(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


@router.get("/alerts")
def alerts(context: Context, _: Reader) -> AlertsOut:
    """The alert rules of this service with their state and their value now, and its channels."""
    if context.alerts is None:
        return AlertsOut(rules=[], channels=[], untrusted=_untrusted(context.untrusted))
    settings = context.alerts.settings
    views = rule_views(context.journal, settings, context.alerts.figure)
    channels = [
        AlertChannelOut(name=each.name, type=each.type.value, resolved=each.resolved)
        for each in settings.channels.values()
    ]
    return AlertsOut(rules=[AlertRuleOut.model_validate(view) for view in views], channels=channels, untrusted=None)


@router.get("/alerts/history")
def alert_history(
    context: Context,
    _: Reader,
    rule: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> AlertHistoryOut:
    """What fired and was resolved on this journal, the newest first, and what became of each notification."""
    entries = history(context.journal, rule=rule, limit=limit)
    return AlertHistoryOut(entries=[AlertEntryOut.model_validate(entry_view(entry)) for entry in entries])


@router.post("/alerts/{name}/test")
def test_alert(name: RuleName, context: Context, principal: Actor) -> AlertTestOut:
    """Send a test notification of a rule to its channels."""
    found = _alerts_with_rule(context, name)
    record_audit(context.journal, principal.name, "test", f"alert/{name}", {})
    return AlertTestOut(errors=found.send_test(name).errors)


@router.post("/alerts/{name}/silence")
def silence_alert(name: RuleName, body: AlertSilenceIn, context: Context, principal: Actor) -> AlertSilenceOut:
    """Hold the notifications of a rule back for some minutes; if it still fires afterwards, it is notified then."""
    _alerts_with_rule(context, name)
    until = silence(context.journal, name, body.minutes * 60)
    record_audit(context.journal, principal.name, "silence", f"alert/{name}", {"minutes": body.minutes})
    return AlertSilenceOut(silenced_until=until)


def _untrusted(file: SettingsFile | None) -> UntrustedAlertsOut | None:
    if file is None:
        return None
    return UntrustedAlertsOut(
        path=file.place,
        decision="denied" if file.decision is Decision.DENIED else "undecided",
        command=file.trust_command,
    )


def _alerts_with_rule(context: AppContext, name: str) -> Alerts:
    rules = {} if context.alerts is None else context.alerts.settings.rules
    if context.alerts is None or name not in rules:
        raise ApiProblem(404, f"there is no alert rule {name!r}; the rules are: {', '.join(rules) or 'none'}")
    return context.alerts
