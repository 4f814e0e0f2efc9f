"""Settings of the `[stop]` table of a policy file: when an agent may finish."""

from __future__ import annotations

from typing import Any

from rung.core.domain.settings_schema import ANY_TEXT, FLAG, SECONDS, TEXTS, read_values, setting, settings, whole

_COMMAND = ANY_TEXT._replace(allowed="a command")


@settings
class StopSettings:
    """Checks that an agent's work must pass before it may finish."""

    gate: bool = setting(FLAG, "Whether an agent's claim to be done is checked.", default=True)
    max_blocks: int = setting(
        whole(0, 5),
        "How often an agent is kept from finishing in one session. If set, also in a row; else the stop after a block passes.",
        default=2,
    )
    check: str = setting(_COMMAND, "Command that must exit 0.", default="")
    seconds: float = setting(SECONDS, "Time limit of `check`.", default=60.0)
    judge: str = setting(
        _COMMAND, "Command that judges the work: reads a case on standard input, writes a verdict.", default=""
    )
    judge_seconds: float = setting(
        SECONDS, "Time limit of `judge`. The sum with `seconds` must be below the hook's timeout.", default=45.0
    )
    sections: tuple[str, ...] = setting(
        TEXTS._replace(allowed="a list of headings or keys"), "Headings or keys the answer must have.", default=()
    )
    json: bool = setting(FLAG, "Whether the answer must be JSON.", default=False)


DEFAULTS = StopSettings()


def read_stop_settings(stop: object) -> dict[str, Any]:
    """Return the checked keys of the table; every error names its key."""
    return read_values(StopSettings, stop, "stop")
