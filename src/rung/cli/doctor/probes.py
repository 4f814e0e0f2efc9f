"""Runs the checks of `rung doctor` at the same time, each with a deadline; none can hang or break the diagnosis."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from rung.cli.doctor.finding import DoctorFinding, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Check = Callable[[], Iterable[DoctorFinding]]

DEADLINE_SECONDS: Final = 5.0  # of all checks together; each has shorter limits of its own


class _Probe(threading.Thread):
    """Check in a thread of its own, which is left behind if it hangs."""

    def __init__(self, name: str, check: Check) -> None:
        super().__init__(name=f"rung-doctor-{name}", daemon=True)
        self._check = check
        self._title = name
        self.findings: list[DoctorFinding] | None = None

    def run(self) -> None:
        """Collect the findings; a check that breaks is a finding itself."""
        findings: list[DoctorFinding] = []
        try:
            findings.extend(self._check())
        except Exception as error:  # noqa: BLE001  # a check that breaks must not hide the other findings
            findings.append(
                DoctorFinding(name=self._title, state=State.BROKEN, detail=f"{type(error).__name__}: {error}")
            )
        self.findings = findings


def run_checks(
    checks: Mapping[str, Check], deadline_seconds: float = DEADLINE_SECONDS
) -> dict[str, tuple[DoctorFinding, ...]]:
    """Return the findings of each check by its name, in the order given."""
    probes = {name: _Probe(name, check) for name, check in checks.items()}
    for probe in probes.values():
        probe.start()
    until = time.monotonic() + deadline_seconds
    for probe in probes.values():
        probe.join(max(0.0, until - time.monotonic()))
    late = DoctorFinding(
        name="no answer", state=State.BROKEN, detail=f"this check did not end within {deadline_seconds:g} s"
    )
    return {name: (late,) if probe.findings is None else tuple(probe.findings) for name, probe in probes.items()}
