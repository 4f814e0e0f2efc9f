"""Recovery in Temporal: `RungPlugin` for workers, `recover` for workflows, `attempt_activity` for their attempts."""

from __future__ import annotations

from rung.adapters.durable.temporal.attempts import attempt_activity
from rung.adapters.durable.temporal.failed_activity import failure_of
from rung.adapters.durable.temporal.plugin import RungPlugin
from rung.adapters.durable.temporal.recovery import recover

__all__ = ["RungPlugin", "attempt_activity", "failure_of", "recover"]
