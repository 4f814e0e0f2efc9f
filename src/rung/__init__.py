"""Rung: recovery for AI agents. Public names and sub-namespaces are imported on first use."""

from __future__ import annotations

from rung.core.classify.error_readers import register_table as _register_table
from rung.engine.journal_opener import register_journal_opener as _register_journal_opener

__version__ = "0.2.0"

TYPE_CHECKING = False  # as in `typing`, whose import would take ten times as long as the rest of this module
if TYPE_CHECKING:
    from rung import crew as crew
    from rung import detect as detect
    from rung import durable as durable
    from rung import errors as errors
    from rung import policies as policies
    from rung import rules as rules
    from rung import testing as testing
    from rung import types as types
    from rung.core.classify.classifier import classify as classify
    from rung.core.classify.classifier import is_retryable as is_retryable
    from rung.core.domain.errors import AttemptError as AttemptError
    from rung.core.domain.events import Status as Status
    from rung.core.domain.failures import Evidence as Evidence
    from rung.core.domain.failures import Failure as Failure
    from rung.core.domain.failures import Kind as Kind
    from rung.core.domain.outcome import Outcome as Outcome
    from rung.core.domain.request import Request as Request
    from rung.core.policy.breaker import BreakerSettings as BreakerSettings
    from rung.core.policy.budget import RetryBudget as RetryBudget
    from rung.core.policy.parser import policy as policy
    from rung.core.policy.policy import Policy as Policy
    from rung.engine.attempt_api import mark_side_effect as mark_side_effect
    from rung.engine.attempt_api import report_step as report_step
    from rung.engine.event_printer import print_events as print_events
    from rung.engine.gather import GatherJob as GatherJob
    from rung.engine.gather import gather as gather
    from rung.engine.gather import gather_sync as gather_sync
    from rung.engine.guarded.guard import guarded as guarded
    from rung.engine.loop.process_state import BreakerRegistry as BreakerRegistry
    from rung.engine.ports.journal import EventLog as _EventLog
    from rung.engine.recover import recover as recover
    from rung.engine.recover import recover_sync as recover_sync
    from rung.engine.session import Session as Session
    from rung.wiring.journals import journal as journal
    from rung.wiring.reported_cost import report_cost as report_cost


def _open_journal(location: str) -> _EventLog:
    from rung.wiring.journals import journal as open_journal

    return open_journal(location)


_register_table("rung.adapters.errors.registry:READERS")
_register_journal_opener(_open_journal)

_HOMES = {
    "BreakerSettings": "rung.core.policy.breaker",
    "RetryBudget": "rung.core.policy.budget",
    "classify": "rung.core.classify.classifier",
    "is_retryable": "rung.core.classify.classifier",
    "policy": "rung.core.policy.parser",
    "AttemptError": "rung.core.domain.errors",
    "Status": "rung.core.domain.events",
    "Evidence": "rung.core.domain.failures",
    "Failure": "rung.core.domain.failures",
    "Kind": "rung.core.domain.failures",
    "Outcome": "rung.core.domain.outcome",
    "Policy": "rung.core.policy.policy",
    "Request": "rung.core.domain.request",
    "GatherJob": "rung.engine.gather",
    "gather": "rung.engine.gather",
    "gather_sync": "rung.engine.gather",
    "guarded": "rung.engine.guarded.guard",
    "recover": "rung.engine.recover",
    "recover_sync": "rung.engine.recover",
    "Session": "rung.engine.session",
    "BreakerRegistry": "rung.engine.loop.process_state",
    "report_step": "rung.engine.attempt_api",
    "report_cost": "rung.wiring.reported_cost",
    "mark_side_effect": "rung.engine.attempt_api",
    "journal": "rung.wiring.journals",
    "print_events": "rung.engine.event_printer",
}
_NAMESPACES = ("crew", "detect", "durable", "errors", "policies", "rules", "testing", "types")

__all__ = ["__version__", *_HOMES, *_NAMESPACES]  # noqa: PLE0604  # the tables above are the only source of names

if not TYPE_CHECKING:  # hidden from type checkers, so that a misspelt name is an error

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _NAMESPACES:
            return import_module(f"rung.{name}")
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'rung' has no attribute {name!r}")
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
