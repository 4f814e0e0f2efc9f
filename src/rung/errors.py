"""Errors that Rung raises."""

from rung.core.errors import AttemptError, Busy, ConfigError, Refused, RungError, TimeUp

__all__ = ["AttemptError", "Busy", "ConfigError", "Refused", "RungError", "TimeUp"]
