"""Crews: the worker's side of a task that a conductor supervises."""

from rung.store.crew.worker import CrewWorker

__all__ = ["CrewWorker"]
