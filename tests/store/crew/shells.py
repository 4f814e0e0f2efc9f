"""The real shells: `sqlite3` and `psql`. Where one is missing it is installed, if that is ours to do; never skipped."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.store import postgres


def sqlite3_shell() -> str:
    """Where it is; Debian's package, where it may be installed."""
    found = shutil.which("sqlite3")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with Path(tempfile.gettempdir(), "rung-sqlite3.lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # of several test processes one installs it
            found = shutil.which("sqlite3") or _install()
    if found is None:
        raise RuntimeError("the tests of a crew's table need the sqlite3 shell: apt-get install sqlite3")
    return found


def _install() -> str | None:
    sys.stderr.write("the sqlite3 shell is not here: installing it (apt-get install sqlite3)\n")
    install = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "sqlite3")
    for command in (install, ("apt-get", "update", "-q"), install):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, env=environment, check=False, capture_output=True)
        if found := shutil.which("sqlite3"):
            return found
    return None


def psql() -> str:
    """PostgreSQL's own shell, which comes with the server."""
    beside = postgres.programs() / "psql"
    found = str(beside) if beside.exists() else shutil.which("psql")
    if found is None:
        raise RuntimeError("the tests of a crew's table need psql: apt-get install postgresql-client")
    return found


def typed(place: str, sql: str, *, goes_on: bool = False) -> subprocess.CompletedProcess[str]:
    """Type statements into the shell of this store; it stops at the first refusal, unless it `goes_on` as by default."""
    if place.startswith("postgresql:"):
        stops = [] if goes_on else ["-v", "ON_ERROR_STOP=1"]
        command = [psql(), "-X", "-q", "-A", "-t", "-F", "|", *stops, place]
    else:
        stops = [] if goes_on else ["-bail"]
        command = [sqlite3_shell(), "-batch", *stops, "-cmd", ".timeout 30000", place]
    return subprocess.run(command, input=sql, capture_output=True, text=True, check=False, timeout=120)
