"""Rung catches an AI agent when it falls. Names and sub-namespaces are loaded when first used."""

from __future__ import annotations

from rung.core.error_readers import register_table as _register_table

__version__ = "0.1.0"

TYPE_CHECKING = False  # what `typing` says too; importing it costs ten times as much as the rest of this
if TYPE_CHECKING:
    from rung import crew as crew
    from rung import detect as detect
    from rung import durable as durable
    from rung import errors as errors
    from rung import policies as policies
    from rung import rules as rules
    from rung import testing as testing
    from rung.core.breaker import BreakerSettings as BreakerSettings
    from rung.core.budget import RetryBudget as RetryBudget
    from rung.core.classify import classify as classify
    from rung.core.classify import is_retryable as is_retryable
    from rung.core.config import policy as policy
    from rung.core.errors import AttemptError as AttemptError
    from rung.core.events import Status as Status
    from rung.core.failures import Evidence as Evidence
    from rung.core.failures import Failure as Failure
    from rung.core.failures import Kind as Kind
    from rung.core.outcome import Outcome as Outcome
    from rung.core.policy import Policy as Policy
    from rung.core.request import Request as Request
    from rung.engine.fanout import Job as Job
    from rung.engine.fanout import gather as gather
    from rung.engine.fanout import gather_sync as gather_sync
    from rung.engine.guard import guarded as guarded
    from rung.engine.recover import recover as recover
    from rung.engine.recover import recover_sync as recover_sync
    from rung.engine.session import Session as Session
    from rung.engine.shared import Breakers as Breakers
    from rung.engine.telling import completed as completed
    from rung.engine.telling import spend as spend
    from rung.engine.telling import touched as touched
    from rung.wiring.journals import journal as journal

_register_table("rung.adapters.registry:READERS")

_HOMES = {
    "BreakerSettings": "rung.core.breaker",
    "RetryBudget": "rung.core.budget",
    "classify": "rung.core.classify",
    "is_retryable": "rung.core.classify",
    "policy": "rung.core.config",
    "AttemptError": "rung.core.errors",
    "Status": "rung.core.events",
    "Evidence": "rung.core.failures",
    "Failure": "rung.core.failures",
    "Kind": "rung.core.failures",
    "Outcome": "rung.core.outcome",
    "Policy": "rung.core.policy",
    "Request": "rung.core.request",
    "Job": "rung.engine.fanout",
    "gather": "rung.engine.fanout",
    "gather_sync": "rung.engine.fanout",
    "guarded": "rung.engine.guard",
    "recover": "rung.engine.recover",
    "recover_sync": "rung.engine.recover",
    "Session": "rung.engine.session",
    "Breakers": "rung.engine.shared",
    "completed": "rung.engine.telling",
    "spend": "rung.engine.telling",
    "touched": "rung.engine.telling",
    "journal": "rung.wiring.journals",
}
_NAMESPACES = ("crew", "detect", "durable", "errors", "policies", "rules", "testing")

__all__ = ["__version__", *_HOMES, *_NAMESPACES]  # noqa: PLE0604  # the tables above are the one source of names

if not TYPE_CHECKING:  # a type checker sees the names above alone, so that a misspelt one is an error

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
