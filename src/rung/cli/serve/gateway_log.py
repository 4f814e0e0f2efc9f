"""Log of a gateway in the foreground: a line on standard error for each failed attempt, recovery and failed call."""

from __future__ import annotations

import logging

from rung.engine.log_switch import LOG_SWITCH
from rung.engine.loop.recovery_log import LOGGER


def log_to_standard_error() -> None:
    """Write what the gateway recovers to standard error, with the time of day."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    LOG_SWITCH.is_on = True
