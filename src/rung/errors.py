"""Errors that Rung raises."""

from rung.core.domain.errors import (
    AttemptError,
    AttemptTimeout,
    CircuitOpenError,
    ConfigError,
    RungError,
    StoreUnavailable,
)

__all__ = ["AttemptError", "AttemptTimeout", "CircuitOpenError", "ConfigError", "RungError", "StoreUnavailable"]
