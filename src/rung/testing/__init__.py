"""Fakes for testing your own agents: a clock that moves when told, attempts that follow a script."""

from rung.testing.clock import FakeClock
from rung.testing.script import HttpError, Script

__all__ = ["FakeClock", "HttpError", "Script"]
