"""Temporary PostgreSQL server for tests.

`python tests/store/postgres.py COMMAND…` runs a command with the server's address in RUNG_POSTGRES. A missing
PostgreSQL is installed where that is allowed; otherwise the tests fail. They are never skipped.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

GIVEN: Final = "RUNG_POSTGRES"  # address of an existing server: no other is started
ROOT: Final = "RUNG_POSTGRES_ROOT"  # directory of Debian's packages, by version
USER: Final = "postgres"  # PostgreSQL does not run as root

ROOM_BYTES: Final = 4 << 30

# Durability is off: tests are faster, and no data must survive a power loss.
SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "max_wal_size": "128MB",
}


def programs() -> Path:
    """Return the directory with PostgreSQL's programs; install them if possible, else exit with one line."""
    found = _found()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with Path(tempfile.gettempdir(), "rung-postgres.lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # only one of several test processes installs it
            found = _found() or _install()
    if found is None:
        raise RuntimeError("the tests of the store need PostgreSQL: apt-get install postgresql")
    return found


def _install() -> Path | None:
    """Install Debian's package; its lists may be outdated or missing."""
    sys.stderr.write("PostgreSQL is not here: installing it (apt-get install postgresql)\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql")
    for command in (install, ("apt-get", "update", "-q"), install):
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        found = _found()
        if found is not None:
            return found
    sys.stderr.write(f"apt-get: {' '.join((done.stderr or done.stdout).split())[-400:]}\n")
    return None


def _found() -> Path | None:
    root = Path(os.environ.get(ROOT, "/usr/lib/postgresql"))
    installed = sorted(root.glob("*/bin"), key=lambda place: float(place.parent.name))
    places = [str(place) for place in reversed(installed)]
    if on_path := shutil.which("pg_ctl"):
        places.insert(0, str(Path(on_path).resolve().parent))
    if config := shutil.which("pg_config"):
        places.append(subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True).stdout.strip())
    return next(
        (Path(place) for place in places if Path(place, "pg_ctl").exists() and Path(place, "initdb").exists()), None
    )


@contextmanager
def server(**settings: str) -> Iterator[str]:
    """Start a server in a temporary directory, listening on a socket in it; return its URL."""
    bin_, home = programs(), Path(tempfile.mkdtemp(prefix="rung-pg-", dir=_parent()))  # a socket's path must be short
    user = _somebody() if os.geteuid() == 0 else None
    if user is not None:
        os.chown(home, user.pw_uid, user.pw_gid)
    control = (bin_ / "pg_ctl", "-D", home / "data", "-l", home / "log", "-w", "-t", "60")
    watchman = _watchman(user, shlex.join(map(str, (*control, "-m", "immediate", "stop"))), home)
    try:
        _run(user, bin_ / "initdb", "-D", home / "data", "-U", "rung", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        values = {**SETTINGS, "unix_socket_directories": str(home), **settings}
        with (home / "data" / "postgresql.conf").open("a") as file:  # kept over a restart
            file.writelines(f"{name} = '{value}'\n" for name, value in values.items())
        _run(user, *control, "start")
        yield f"postgresql://rung@/postgres?host={home}"
    finally:
        watchman.communicate()


def _parent() -> str:
    """Return where data is kept: in memory, where there is room for it. Tests make and drop tens of thousands of tables."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > ROOM_BYTES else "/tmp"


def _watchman(user: pwd.struct_passwd | None, stop: str, home: Path) -> subprocess.Popen[bytes]:
    """Stop the server and clean up when standard input ends, which also happens when the tests are killed."""
    script = f"cat >/dev/null; {stop} >/dev/null 2>&1; rm -rf {shlex.quote(str(home))}"
    return subprocess.Popen(["sh", "-c", script], cwd="/", stdin=subprocess.PIPE, start_new_session=True, **_as(user))


def allow_network(url: str, network: str) -> None:
    """Let clients with an address of this network connect to the server of this URL without a password."""
    import psycopg

    with (_home(url) / "data" / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {network} trust\n")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_reload_conf()")


def restart(url: str) -> None:
    """Stop the server of this URL immediately, like a crash, and start it again."""
    with outage(url):
        pass


@contextmanager
def outage(url: str) -> Iterator[None]:
    """Stop the server of this URL immediately, like a crash, for the duration of the block."""
    home, user = _home(url), _somebody() if os.geteuid() == 0 else None
    control = (programs() / "pg_ctl", "-D", home / "data", "-l", home / "log", "-w", "-t", "60")
    _run(user, *control, "-m", "immediate", "stop")
    try:
        yield
    finally:
        _run(user, *control, "start")


def _home(url: str) -> Path:
    return Path(url.partition("?host=")[2].partition("&")[0])


def _somebody() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "--system", USER], check=True, capture_output=True)
        return pwd.getpwnam(USER)


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user is not None else {}


def _run(user: pwd.struct_passwd | None, *command: str | Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    # Not a pipe: the server would inherit it, and its reader would wait for the server's end.
    with tempfile.TemporaryFile() as said:
        words = [str(part) for part in command]
        done = subprocess.run(words, cwd="/", env=environment, stdout=said, stderr=said, check=False, **_as(user))
        if done.returncode:
            said.seek(0)
            raise RuntimeError(f"{Path(command[0]).name}: {said.read().decode(errors='replace').strip()}")


def main() -> int:
    """Run a command with a temporary server, or with the given one."""
    if os.environ.get(GIVEN):
        return subprocess.run(sys.argv[1:], check=False).returncode
    try:
        with server() as address:
            sys.stderr.write(f"PostgreSQL for the tests: {programs()}, started in a directory of its own\n")
            return subprocess.run(sys.argv[1:], env={**os.environ, GIVEN: address}, check=False).returncode
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
