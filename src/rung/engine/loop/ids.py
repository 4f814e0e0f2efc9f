"""The ids of incidents: no two alike, in this process, in one forked from it, or in any other."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from itertools import count
from typing import Final


class IncidentIds:
    """Counts, behind a name that every process draws for itself."""

    def __init__(self) -> None:
        self._process = ""
        self._count = count(1)

    def next(self) -> str:
        """An id that nobody has."""
        return f"{self._process or self._drawn()}-{next(self._count)}"

    @property
    def process(self) -> str:
        """What this process is called: its program, and the beginning of what it drew."""
        program = sys.argv[0].replace("\\", "/").rpartition("/")[2].removesuffix(".py") if sys.argv else ""
        return f"{program or 'python'}-{self._drawn()[:8]}"

    def _drawn(self) -> str:
        if not self._process:
            self._begin()
            with suppress(AttributeError):  # Windows has no fork
                os.register_at_fork(after_in_child=self._begin)
        return self._process

    def _begin(self) -> None:
        self._process = os.urandom(8).hex()


NUMBERS: Final = IncidentIds()
