"""Incident ids: unique across processes, including forked ones."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from itertools import count
from typing import Final


class IncidentIds:
    """Generator of ids: a random token for each process, then a counter."""

    def __init__(self) -> None:
        self._token = ""
        self._count = count(1)

    def next(self) -> str:
        """Return a new unique id."""
        return f"{self._token or self._draw_once()}-{next(self._count)}"

    @property
    def process_name(self) -> str:
        """Name of this process: its program, and the start of its random token."""
        program = sys.argv[0].replace("\\", "/").rpartition("/")[2].removesuffix(".py") if sys.argv else ""
        return f"{program or 'python'}-{self._draw_once()[:8]}"

    def _draw_once(self) -> str:
        if not self._token:
            self._draw()
            with suppress(AttributeError):  # Windows has no fork
                os.register_at_fork(after_in_child=self._draw)
        return self._token

    def _draw(self) -> None:
        self._token = os.urandom(8).hex()


INCIDENT_IDS: Final = IncidentIds()
