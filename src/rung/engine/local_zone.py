"""The time zone of this machine, in which command-line clients print times without a zone."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo


@cache
def local_zone() -> tzinfo:
    """Return the local zone of the operating system, with its past and future offsets. `TZ` selects another."""
    from datetime import datetime, timedelta, tzinfo

    class LocalZone(tzinfo):
        """The rules of the system's C library, as those of `time.localtime`."""

        def utcoffset(self, moment: datetime | None) -> timedelta | None:
            return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

        def dst(self, _moment: datetime | None) -> timedelta | None:
            return None

        def tzname(self, moment: datetime | None) -> str | None:
            return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

        def fromutc(self, moment: datetime) -> datetime:
            from datetime import UTC

            return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)

    return LocalZone()
