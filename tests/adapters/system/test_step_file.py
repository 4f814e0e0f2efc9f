"""Steps that a command reports in a file."""

from __future__ import annotations

from pathlib import Path

import rung
from rung.adapters.system.step_file import MAX_STEPS, StepFile


def test_lines_become_steps_once() -> None:
    """Each line is reported once, an unfinished line at the end, and never more than the limit."""

    def attempt(_: rung.Request) -> str:
        file = StepFile()
        with Path(file.path).open("ab", buffering=0) as writer:
            writer.write(b"one\n\ntw")
            file.report_new()
            writer.write(b"o\nthr\xff")
            file.report_new()
            file.report_new(final=True)
            writer.write(b"".join(b"x%d\n" % n for n in range(2 * MAX_STEPS)))
            file.report_new()
        return "done"

    steps = rung.recover_sync(attempt, "task").steps
    assert steps[:3] == ("one", "two", "thr\ufffd")
    assert len(steps) == MAX_STEPS
