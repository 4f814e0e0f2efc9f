"""`rung serve`, as a person starts and ends it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.service.conftest import TOKEN, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RUNG = [sys.executable, "-m", "rung.cli.main"]
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def up(
    *options: str, cwd: Path, command: Sequence[str] = (*RUNG, "serve")
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The service in a process of its own; what it printed as its address."""
    process = subprocess.Popen(
        [*command, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "XDG_DATA_HOME": str(cwd), "PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            process.kill()
            raise AssertionError(line + process.communicate()[1])
        address = found[0]
        eventually(lambda: _answers(address))
        yield process, address
    finally:
        process.kill()
        process.communicate()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address.partition("?")[0].rstrip("/") + "/healthz").status_code == 200
    except httpx.HTTPError:
        return False


def test_ctrl_c_with_streams_open(tmp_path: Path) -> None:
    """It ends quietly, though five listen; and its token opens it again after a restart."""
    with up("--journal", str(tmp_path / "j.db"), cwd=tmp_path) as (process, address):
        base, token = address.split("?token=")
        headers = {"authorization": f"Bearer {token}"}
        clients = [httpx.Client(timeout=60) for _ in range(5)]
        answers = [
            client.send(client.build_request("GET", base + "api/events", headers=headers), stream=True)
            for client in clients
        ]
        assert all(answer.status_code == 200 for answer in answers)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)  # without care, never
        assert "Traceback" not in said
        assert process.returncode == 0
        for client in clients:
            client.close()
    with up("--journal", str(tmp_path / "j.db"), cwd=tmp_path) as (_, again):
        assert again.endswith(token)


def test_the_gateway_comes_with_it(tmp_path: Path) -> None:
    """On a port of its own, in the same process, over the same journal; or not, where nobody wants it."""
    with up("--journal", str(tmp_path / "j.db"), cwd=tmp_path) as (process, _):
        assert process.stdout is not None
        said = process.stdout.readline() + process.stdout.readline()
        found = re.search(r"ANTHROPIC_BASE_URL=(\S+)", said)
        assert found is not None, said
        assert httpx.get(found[1] + "/healthz").status_code == 200
    with up("--no-gateway", "--journal", str(tmp_path / "j.db"), cwd=tmp_path) as (process, _):
        assert process.stdout is not None
        assert "BASE_URL" not in process.stdout.readline() + process.stdout.readline()


def test_the_demo(tmp_path: Path) -> None:
    """Something happens within seconds, and nothing is left behind."""
    command = [sys.executable, "-m", "examples.demo_world"]
    with up("--token", TOKEN, cwd=tmp_path, command=command) as (process, address):
        base, headers = address.partition("?")[0], {"authorization": f"Bearer {TOKEN}"}
        eventually(lambda: httpx.get(base + "api/sessions?status=active", headers=headers).json()["items"])
        place = httpx.get(base + "api/me", headers=headers).json()["journal"]
        assert httpx.get(base + "api/analytics/failures", headers=headers).json()["totalFailures"] > 50
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert not os.path.exists(place)  # noqa: PTH110  # a text, as it was told


def test_a_second_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second demo on the same port names the address of the first; after the first, nothing is recorded."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "examples.demo_world"]
    with subprocess.Popen([*command, "--port", port], stdout=subprocess.PIPE, text=True, cwd=ROOT) as first:
        assert first.stdout is not None
        address = first.stdout.readline().split()[-1]
        second = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
        )
        first.send_signal(signal.SIGTERM)
    assert second.returncode == 2
    assert second.stderr.splitlines()[0] == f"rung: another `make run` is up: {address}"
    assert "PORT=0" in second.stderr
    assert not list((tmp_path / "data").rglob("demo-*"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "70000"], "70000"),
        (["--token", "short"], "16 or more ASCII characters"),
        (["--host", "0.0.0.0"], "--token"),  # it is refused
        (["--journal", "/proc/nowhere/x.db"], "/proc/nowhere"),
        (["--host", "203.0.113.9", "--token", TOKEN], "203.0.113.9 is not an address of this machine"),
    ],
)
def test_what_cannot_be(tmp_path: Path, options: list[str], words: str) -> None:
    """One line, exit 2."""
    done = subprocess.run(
        [*RUNG, "serve", *options], capture_output=True, text=True, timeout=30, check=False, cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    assert words in done.stderr.splitlines()[-2 if "See: " in done.stderr else -1]
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """Said, with the way out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*RUNG, "serve", "--port", port], capture_output=True, text=True, timeout=30, check=False, cwd=tmp_path
        )
    assert (done.returncode, "--port 0 picks a free one" in done.stderr) == (2, True)


def test_tokens_on_the_command_line(tmp_path: Path) -> None:
    """Made, used, listed, taken back."""
    journal = str(tmp_path / "j.db")

    def token(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*RUNG, "token", *words, "--journal", journal], capture_output=True, text=True, timeout=30, check=False
        )

    with up("--journal", journal, cwd=tmp_path) as (_, address):
        made = token("add", "ada", "--role", "act").stdout.strip()
        base = address.partition("?")[0]
        assert httpx.get(base + "api/me", headers={"authorization": f"Bearer {made}"}).json()["role"] == "act"
        assert "ada" in token("list").stdout
        assert made not in token("list", "--json").stdout
        assert token("revoke", "ada").returncode == 0
        assert token("revoke", "ada").returncode == 2


@pytest.mark.parametrize("words", [("serve", "--no-gateway"), ("gateway", "--no-journal")])
def test_signals_in_quick_succession_end_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Signals that interrupt each other's handler, as of a supervisor and a terminal, end the process."""
    with up(*words[1:], cwd=tmp_path, command=(*RUNG, words[0])) as (process, _):
        for _ in range(300):
            process.send_signal(signal.SIGTERM)
        process.wait(30)
