"""Types for annotations: what listeners, operators, checks and rung handlers receive, and the keyword arguments of `recover`."""

from rung.core.domain.events import Ask, Event
from rung.core.domain.incident import Incident
from rung.core.policy.policy_settings import PolicySettings
from rung.engine.ports.clock import Clock
from rung.engine.ports.recovery import Checkpoint, Listener, Operator, ResultValidator, RungHandler
from rung.engine.recovery_arguments import Ports

__all__ = [
    "Ask",
    "Checkpoint",
    "Clock",
    "Event",
    "Incident",
    "Listener",
    "Operator",
    "PolicySettings",
    "Ports",
    "ResultValidator",
    "RungHandler",
]
