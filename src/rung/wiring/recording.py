"""Recording of failed calls, so that a person can have them made again: the `[recording]` table, and RUNG_RECORDING."""

from __future__ import annotations

import os
from typing import Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import COUNT, FLAG, POSITIVE_SECONDS, read_settings, setting, settings

VARIABLE: Final = "RUNG_RECORDING"
_DAY_SECONDS: Final = 86_400.0
_DAYS: Final = POSITIVE_SECONDS._replace(allowed="a number of days, more than 0")


@settings
class RecordingSettings:
    """Settings of the recording of failed calls: of the gateway, `rung run`, pipelines and agents with hooks: `[recording]`."""

    requests: bool = setting(
        FLAG,
        "Record what a retry needs of a failed call, encrypted under this account's key. `RUNG_RECORDING=off` overrides it.",
        default=True,
    )
    days: float = setting(_DAYS, "How long it is kept.", default=7.0)
    max_bytes: int = setting(COUNT, "Largest request body or standard input that is recorded.", default=2 * 1024 * 1024)

    @property
    def keep_seconds(self) -> float:
        """How long a call is kept, in seconds."""
        return self.days * _DAY_SECONDS


def recording_settings(table: object = None) -> RecordingSettings:
    """Return the settings of a file's `[recording]` table, overridden by the environment."""
    read: RecordingSettings = read_settings(RecordingSettings, {} if table is None else table, "recording")
    switch = os.environ.get(VARIABLE, "")
    if switch not in ("", "on", "off"):
        raise ConfigError(VARIABLE, switch, "on or off")
    if not switch:
        return read
    return RecordingSettings(requests=switch == "on", days=read.days, max_bytes=read.max_bytes)
