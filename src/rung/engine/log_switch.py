"""Whether this process logs its recoveries. Apart from the log itself, so that turning it off does not import `logging`."""

from __future__ import annotations


class LogSwitch:
    """Switch of the log. The commands of `rung` show recoveries in their own way and turn it off."""

    is_on: bool = True


LOG_SWITCH = LogSwitch()
