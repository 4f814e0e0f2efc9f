"""Durable runs: recoveries and tasks that any process can resume after a crash."""

from rung.engine.durable.recovery import recover, recover_sync
from rung.engine.durable.tasks import resume, sleep, start, step, task, wait

__all__ = ["recover", "recover_sync", "resume", "sleep", "start", "step", "task", "wait"]
