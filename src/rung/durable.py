"""Durable runs: recoveries and tasks that any process can resume after a crash."""

from rung.engine.durable.recovery import recover, recover_sync
from rung.engine.durable.task_recovery import recover_in_task
from rung.engine.durable.tasks import resume, sleep, start, step, task, wait
from rung.engine.durable.tools import tool
from rung.wiring.engines import engine

__all__ = [
    "engine",
    "recover",
    "recover_in_task",
    "recover_sync",
    "resume",
    "sleep",
    "start",
    "step",
    "task",
    "tool",
    "wait",
]
