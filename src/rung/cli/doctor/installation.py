"""Checks of the installation: versions, extras, the clock."""

from __future__ import annotations

import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import rung
from rung.cli.doctor.finding import DoctorFinding, State
from rung.cli.extras import EXTRAS, install_command, missing_modules

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_versions() -> Iterator[DoctorFinding]:
    """Yield the versions of Rung, Python and SQLite."""
    where = str(Path(rung.__file__).parent)
    yield DoctorFinding(
        name="rung", state=State.OK, detail=f"{rung.__version__} in {where}", facts={"version": rung.__version__}
    )
    python = platform.python_version()
    yield DoctorFinding(
        name="python",
        state=State.OK,
        detail=f"{python} ({platform.python_implementation()}) at {sys.executable}",
        facts={"version": python, "executable": sys.executable, "platform": platform.platform()},
    )
    yield _sqlite()


def _sqlite() -> DoctorFinding:
    from rung.store.backends.sqlite_drivers import ApswDriver

    try:
        version = ApswDriver().apsw.sqlite_lib_version()
    except ImportError as error:
        import sqlite3

        return DoctorFinding(
            name="sqlite",
            state=State.WARNING,
            detail=f"{sqlite3.sqlite_version} of Python: only one process can use the journal ({error})",
            fix="pip install --upgrade apsw",
            facts={"version": sqlite3.sqlite_version, "driver": "sqlite3"},
        )
    return DoctorFinding(
        name="sqlite", state=State.OK, detail=f"{version} of apsw", facts={"version": version, "driver": "apsw"}
    )


def check_extras() -> Iterator[DoctorFinding]:
    """Yield the extras that are installed, and how to install the others."""
    for extra, modules in EXTRAS.items():
        missing = missing_modules(extra)
        facts = {"installed": not missing, "missing": missing}
        if not missing:
            yield DoctorFinding(name=extra, state=State.OK, detail="installed", facts=facts)
        else:
            part = len(missing) < len(modules)
            lacks = f"incomplete: without {', '.join(missing)}" if part else "not installed"
            # Packages that extras share do not make one of them incomplete.
            state = State.WARNING if part and modules[0] not in missing else State.INFO
            yield DoctorFinding(name=extra, state=state, detail=lacks, fix=install_command(extra), facts=facts)


def check_clock() -> Iterator[DoctorFinding]:
    """Yield the time, unless the clock cannot be right: leases, resets and limits depend on it."""
    now, installed = time.time(), Path(rung.__file__).stat().st_mtime
    shown = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    facts = {"now": shown}
    if now < installed - 86_400:
        since = datetime.fromtimestamp(installed, UTC).date().isoformat()
        detail = f"{shown}: before Rung was installed ({since})"
        yield DoctorFinding(
            name="clock", state=State.BROKEN, detail=detail, fix="sudo timedatectl set-ntp true", facts=facts
        )
    else:
        yield DoctorFinding(name="clock", state=State.OK, detail=f"{shown}, zone {time.tzname[0]}", facts=facts)
