"""The `[stop]` table of a policy file: when an agent may finish."""

from __future__ import annotations

from typing import Any

from rung.core.domain.settings_schema import ANY_TEXT, FLAG, SECONDS, TEXTS, read_values, setting, settings, whole

_COMMAND = ANY_TEXT._replace(allowed="a command")


@settings
class StopSettings:
    """The checks that an agent's work must pass before it may finish."""

    gate: bool = setting(FLAG, "Whether a claim of being done is checked at all.", default=True)
    max_blocks: int = setting(whole(0, 5), "How often an agent is kept from finishing in one session.", default=2)
    check: str = setting(_COMMAND, "Command that must exit 0.", default="")
    seconds: float = setting(SECONDS, "Time limit of `check`.", default=60.0)
    judge: str = setting(_COMMAND, "Command that judges the work: a case on standard input, a verdict out.", default="")
    judge_seconds: float = setting(SECONDS, "Time limit of `judge`; with `check`, below the hook's own.", default=45.0)
    sections: tuple[str, ...] = setting(
        TEXTS._replace(allowed="a list of headings or keys"), "Headings or keys the answer must have.", default=()
    )
    json: bool = setting(FLAG, "Whether the answer must be JSON.", default=False)


DEFAULTS = StopSettings()


def stop_from(stop: object) -> dict[str, Any]:
    """The keys of the table, checked: every error names its key."""
    return read_values(StopSettings, stop, "stop")
