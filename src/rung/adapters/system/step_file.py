"""File in which a command reports its completed steps, one line each: the variable RUNG_STEPS names it."""

from __future__ import annotations

import tempfile
from typing import Final

from rung.engine.attempt_api import report_step

STEPS_VARIABLE: Final = "RUNG_STEPS"
MAX_STEPS: Final = 1_000  # of one run


class StepFile:
    """Temporary file that a command appends lines to. It vanishes with this object."""

    def __init__(self) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="rung-steps-")  # noqa: SIM115  # closed with this object
        self._rest = b""
        self._reported = 0

    def __del__(self) -> None:
        self._file.close()

    @property
    def path(self) -> str:
        """Path for the command."""
        return self._file.name

    def report_new(self, *, final: bool = False) -> None:
        """Report the lines that were added since the last call; a line without an end only if it is the last one."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        if final:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            step = line.decode("utf-8", "replace").strip()
            if step and self._reported < MAX_STEPS:
                self._reported += 1
                report_step(step)
