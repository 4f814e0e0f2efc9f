"""Rung catches an AI agent when it falls. Names are loaded when first used."""

from __future__ import annotations

TYPE_CHECKING = False  # what `typing` says too; importing it costs ten times as much as the rest of this
if TYPE_CHECKING:
    from typing import Any

    from rung.core.backoff import Backoff as Backoff
    from rung.core.breaker import BreakerSettings as BreakerSettings
    from rung.core.budget import Budget as Budget
    from rung.core.budget import RetryBudget as RetryBudget
    from rung.core.classify import classify as classify
    from rung.core.classify import is_retryable as is_retryable
    from rung.core.classify import use_rules as use_rules
    from rung.core.config import policy as policy
    from rung.core.errors import AttemptError as AttemptError
    from rung.core.errors import ConfigError as ConfigError
    from rung.core.errors import RungError as RungError
    from rung.core.events import Status as Status
    from rung.core.failures import Evidence as Evidence
    from rung.core.failures import Failure as Failure
    from rung.core.failures import Kind as Kind
    from rung.core.ladder import Ladder as Ladder
    from rung.core.ladder import Rung as Rung
    from rung.core.outcome import Outcome as Outcome
    from rung.core.policy import Model as Model
    from rung.core.policy import Policy as Policy
    from rung.core.request import Request as Request
    from rung.core.supervision import Intensity as Intensity
    from rung.core.verdict import Verdict as Verdict
    from rung.engine.fanout import gather as gather
    from rung.engine.fanout import gather_sync as gather_sync
    from rung.engine.guard import guarded as guarded
    from rung.engine.recover import recover as recover
    from rung.engine.recover import recover_sync as recover_sync
    from rung.engine.session import Session as Session
    from rung.engine.shared import Breakers as Breakers
    from rung.engine.tasks import resume as resume
    from rung.engine.tasks import sleep as sleep
    from rung.engine.tasks import start as start
    from rung.engine.tasks import step as step
    from rung.engine.tasks import task as task
    from rung.engine.tasks import wait as wait
    from rung.engine.telling import completed as completed
    from rung.engine.telling import spend as spend
    from rung.engine.telling import touched as touched
    from rung.store.crew.worker import Worker as Worker
    from rung.wiring.files import load_rules as load_rules
    from rung.wiring.journals import journal as journal
    from rung.wiring.policies import Policies as Policies

__version__ = "0.1.0"

_HOMES = {
    "Backoff": "rung.core.backoff",
    "BreakerSettings": "rung.core.breaker",
    "Budget": "rung.core.budget",
    "RetryBudget": "rung.core.budget",
    "classify": "rung.core.classify",
    "is_retryable": "rung.core.classify",
    "use_rules": "rung.core.classify",
    "policy": "rung.core.config",
    "AttemptError": "rung.core.errors",
    "ConfigError": "rung.core.errors",
    "RungError": "rung.core.errors",
    "TimeUp": "rung.core.errors",
    "Status": "rung.core.events",
    "Evidence": "rung.core.failures",
    "Failure": "rung.core.failures",
    "Kind": "rung.core.failures",
    "Ladder": "rung.core.ladder",
    "Rung": "rung.core.ladder",
    "Outcome": "rung.core.outcome",
    "Model": "rung.core.policy",
    "Policy": "rung.core.policy",
    "Request": "rung.core.request",
    "Intensity": "rung.core.supervision",
    "Verdict": "rung.core.verdict",
    "Job": "rung.engine.fanout",
    "gather": "rung.engine.fanout",
    "gather_sync": "rung.engine.fanout",
    "guarded": "rung.engine.guard",
    "recover": "rung.engine.recover",
    "recover_sync": "rung.engine.recover",
    "completed": "rung.engine.telling",
    "spend": "rung.engine.telling",
    "touched": "rung.engine.telling",
    "Session": "rung.engine.session",
    "Breakers": "rung.engine.shared",
    "task": "rung.engine.tasks",
    "step": "rung.engine.tasks",
    "sleep": "rung.engine.tasks",
    "wait": "rung.engine.tasks",
    "start": "rung.engine.tasks",
    "resume": "rung.engine.tasks",
    "Worker": "rung.store.crew.worker",
    "journal": "rung.wiring.journals",
    "Policies": "rung.wiring.policies",
    "load_rules": "rung.wiring.files",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  # the names are the keys of the table above


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rung' has no attribute {name!r}")
    from importlib import import_module

    if home == "rung.core.classify" or home.startswith("rung.engine."):
        import_module("rung.wiring.readers").register()  # what names failures knows the SDKs' own classes
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
