"""Real `rung` processes of the tests: a gateway or a service on a free port, in an environment of its own."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ADDRESS = re.compile(r"http://[^\s/]+:(\d+)")
_KEPT = ("PATH",)  # not coverage: a signal may leave its lock held


class Answer(NamedTuple):
    """A response: status, headers in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Running(NamedTuple):
    """A server's process and its port."""

    process: subprocess.Popen[str]
    port: int

    def ask(self, method: str, path: str, body: bytes | None = None, /, **headers: str) -> Answer:
        """Send a request on a connection of its own; underscores in header names stand for hyphens."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(client):
            client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = client.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())


def environment(home: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with nothing of the developer's own: settings, keys and journals are the test's."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "HOME": str(home), "PYTHONUNBUFFERED": "1", **(env or {})}


@contextlib.contextmanager
def started(home: Path, *words: str, env: Mapping[str, str] | None = None, python: str = "") -> Iterator[Running]:
    """Start `rung WORDS…`, wait for the line with its address, and end it with the block."""
    log = home / f"log-{len(list(home.glob('log-*')))}"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [python or sys.executable, "-m", "rung", *words],
            cwd=home, env=environment(home, env), stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        first = next((found for line in process.stdout if (found := _ADDRESS.search(line))), None)
        assert first is not None, f"rung {' '.join(words)} did not start: {log.read_text()}"
        yield Running(process, int(first[1]))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
