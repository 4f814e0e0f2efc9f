"""Errors that Rung raises."""

from rung.core.domain.errors import AttemptError, Busy, ConfigError, Refused, RungError, TimeUp

__all__ = ["AttemptError", "Busy", "ConfigError", "Refused", "RungError", "TimeUp"]
