"""Temporary Restate server for tests, from npm: on Unix sockets only, without telemetry, installed if it is missing."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK: Final = Path(__file__).parents[3] / "bench" / "peers" / "restate"
HOME: Final = Path(sys.prefix, "restate")  # `make` installs it there, too
ARCHITECTURES: Final = {"x86_64": "x64", "aarch64": "arm64"}
NODE: Final = "node"


def program() -> Path:
    """Return the server's binary. Install it if it is missing; without npm the tests fail, they are never skipped."""
    system, machine = platform.system().lower(), platform.machine()
    package = f"@restatedev/restate-server-{system}-{ARCHITECTURES.get(machine, machine)}"
    found = HOME / "node_modules" / package / "bin" / "restate-server"
    HOME.mkdir(exist_ok=True)
    with (HOME / ".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # only one of several test processes installs it
        if not found.exists():
            _install()
    if not found.exists():
        raise RuntimeError(f"npm installed no Restate server for {system} on {machine}: {package} is missing")
    return found


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("the tests of the Restate adapter need its server, and npm to install it: install Node.js")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCK / name, HOME)
    # Without scripts: one of them reports the installation to its vendor.
    command = [npm, "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"npm ci failed in {HOME.name}: {(done.stderr or done.stdout).strip()[-400:]}")


@contextmanager
def server() -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Start a server. Yield clients of its admin API and of its ingress."""
    binary, home = (
        program(),
        Path(tempfile.mkdtemp(prefix="rung-restate-", dir="/tmp")),
    )  # a socket's path must be short
    settings = {
        "LISTEN_MODE": "unix",
        "BIND_IP": "127.0.0.1",
        "DISABLE_TELEMETRY": "true",
        "NODE_NAME": NODE,
        "BASE_DIR": str(home / "data"),
        "DEFAULT_NUM_PARTITIONS": "1",
    }
    environment = {**os.environ, **{f"RESTATE_{name}": value for name, value in settings.items()}}
    with (home / "log").open("w") as log:
        process = subprocess.Popen([binary, "--no-logo"], cwd=home, env=environment, stdout=log, stderr=log)
    try:
        with _client(home, "admin") as admin, _client(home, "ingress") as ingress:
            wait_until(lambda: _is_listening(process, home, "admin") and _is_listening(process, home, "ingress"))
            wait_until(lambda: admin.get("/health").is_success and ingress.get("/restate/health").is_success)
            yield admin, ingress
    except BaseException:
        sys.stderr.write((home / "log").read_text()[-4_000:])
        raise
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(home)


def _socket(home: Path, name: str) -> str:
    return str(home / "data" / NODE / f"{name}.sock")


def _client(home: Path, name: str) -> httpx.Client:
    transport = httpx.HTTPTransport(uds=_socket(home, name))
    return httpx.Client(transport=transport, base_url="http://restate", timeout=60)


def _is_listening(process: subprocess.Popen[bytes], home: Path, name: str) -> bool:
    """Return whether the server accepts connections. httpx leaves a socket open when it does not."""
    assert process.poll() is None, "the Restate server has ended"
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(_socket(home, name)) == 0
