"""MCP over HTTP beside other accounts: a token of the user's, and nothing without it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rung.wiring.secret_file import load_secret
from tests.waiting import wait_until

pytest.importorskip("mcp")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}  # fmt: skip


@contextmanager
def serving(home: Path) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-P", "-m", "rung", "mcp", "--http", "--port", str(port)]
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    process = subprocess.Popen(command, cwd=home, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: answers(port) or process.poll() is not None)
        yield port
    finally:
        process.kill()
        process.communicate()


def answers(port: int) -> bool:
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0


def ask(port: int, **headers: str) -> tuple[int, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    known = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        link.request("POST", "/mcp", json.dumps(HELLO), {**known, **headers})
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


def test_only_the_holder_of_the_token_is_answered(tmp_path: Path) -> None:
    """Without the user's token nothing is read or reported; the token's file is 0600, and the command prints it."""
    with serving(tmp_path) as port:
        for headers in ({}, {"authorization": "Bearer guess"}, {"authorization": "Bearer "}, {"authorization": "é"}):
            status, body = ask(port, **headers)
            assert (status, b"authorization" in body) == (401, True)
        path = tmp_path / ".local/share/rung/mcp.token"
        assert path.stat().st_mode & 0o777 == 0o600
        command = [sys.executable, "-P", "-m", "rung", "mcp", "--print-token"]
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        token = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
        assert token == path.read_text().strip()
        assert ask(port, authorization=f"Bearer {token}")[0] == 200
        assert ask(port, authorization=f"bearer {token}")[0] == 200


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_token_that_others_could_read_is_replaced(tmp_path: Path, mode: int) -> None:
    """A token that lies there, and that others can read or write, is not taken; one of the user's own is kept."""
    path = tmp_path / "new" / "mcp.token"
    first = load_secret(str(path))
    assert load_secret(str(path)) == first
    path.chmod(mode)
    second = load_secret(str(path))
    assert second != first
    assert path.read_text() == second
    assert path.stat().st_mode & 0o777 == 0o600
