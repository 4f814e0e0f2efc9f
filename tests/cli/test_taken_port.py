"""A port that is taken: every server says what listens there, and which option chooses another."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rung.cli.group import root
from rung.testing.provider import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVERS = {
    "serve": ["serve"],
    "gateway": ["gateway", "--no-journal"],
    "mcp": ["mcp", "--http"],
    "lab": ["lab"],
    "hooks": ["hooks", "serve", "--http"],
}


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep journals, tokens and sockets of the servers in a folder of this test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("RUNG_HOOKS", str(tmp_path / "hooks"))
    monkeypatch.setenv("RUNG_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.chdir(tmp_path)


def refused(*words: str) -> str:
    done = CliRunner().invoke(root, words, prog_name="rung")
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    return done.stderr


@contextmanager
def running(*words: str) -> Iterator[str]:
    """Run a server in a process of its own, and yield its port."""
    with subprocess.Popen(
        [sys.executable, "-m", "rung", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ.copy(),
    ) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            port = next(found[1] for line in lines if (found := re.search(r"127\.0\.0\.1:(\d+)", line)))
            with closing(HTTPConnection("127.0.0.1", int(port), timeout=60)) as connection:  # it may still be starting
                connection.request("GET", "/healthz")
                connection.getresponse()
            yield port
        finally:
            process.kill()


@pytest.mark.parametrize("name", SERVERS)
def test_a_foreign_program_listens(name: str) -> None:
    """A port taken by a program that is not of Rung is named, with the option that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert refused(*SERVERS[name], "--port", port) == (
            f"rung: port {port} on 127.0.0.1 is taken by another program; "
            "choose another with --port N (--port 0 picks a free one)\n"
        )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("serve", "taken by a running `rung serve`;"),
        ("gateway", "taken by a running gateway (`rung gateway status` shows it);"),
        ("mcp", "taken by a running `rung mcp --http`;"),
        ("hooks", "taken by a running `rung hooks serve`;"),
    ],
)
def test_a_server_of_rung_listens(name: str, said: str) -> None:
    """A port taken by a server of Rung: the message names that server."""
    with running(*SERVERS[name], *(["--no-gateway"] if name == "serve" else [])) as port:
        assert said in refused("serve", "--no-gateway", "--port", port)


def test_a_lab_listens() -> None:
    """A port taken by a lab: the message names it."""
    with Lab() as lab:
        assert "taken by a running `rung lab`;" in refused("gateway", "--no-journal", "--port", str(lab.port))


def test_the_gateway_of_a_service_finds_its_port_taken() -> None:
    """`rung serve --gateway-port` names its own option, not that of the dashboard."""
    with Lab() as lab:
        said = refused("serve", "--port", "0", "--gateway-port", str(lab.port))
    assert said.endswith("choose another with --gateway-port N (--gateway-port 0 picks a free one)\n")


def test_a_host_of_another_machine() -> None:
    """An address that is not of this machine is said to be so, and no port is recommended."""
    said = refused("serve", "--no-gateway", "--host", "203.0.113.9", "--token", "t" * 32)
    assert said == "rung: --port: 203.0.113.9 is not an address of this machine\n"
