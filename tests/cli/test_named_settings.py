"""`--config` of the servers, and the journal that they print at their start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from stat import S_IMODE
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rung.cli.group import root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("RUNG_HOOKS", str(tmp_path / "hooks"))
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.delenv("RUNG_JOURNAL", raising=False)
    monkeypatch.chdir(tmp_path)


@contextmanager
def printed(*words: str, lines: int) -> Iterator[list[str]]:
    """Run a server, and yield the first lines that it prints."""
    with subprocess.Popen(
        [sys.executable, "-m", "rung", *words], stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as process:
        assert process.stdout is not None
        try:
            yield [process.stdout.readline().rstrip("\n") for _ in range(lines)]
        finally:
            process.send_signal(signal.SIGINT)


def test_the_service_takes_journal_and_gateway_from_the_named_file(tmp_path: Path) -> None:
    """`rung serve --config` uses the journal and the gateway's settings of that file, which needs no trust."""
    (tmp_path / "mine.toml").write_text(f'journal = "{tmp_path}/own/j.db"\n[gateway]\nhost = "localhost"\n')
    with printed("serve", "--port", "0", "--config", "mine.toml", lines=3) as (_, journal, gateway):
        assert journal == f"  journal: {tmp_path}/own/j.db"
        assert gateway.startswith("  gateway: ")
    assert S_IMODE((tmp_path / "own").stat().st_mode) == 0o700


def test_the_service_refuses_a_wrong_named_file(tmp_path: Path) -> None:
    """A file of `rung serve --config` that is missing or wrong is named, and nothing starts."""
    (tmp_path / "wrong.toml").write_text("journal = 5\n")
    for name, said in (("missing.toml", "cannot be read"), ("wrong.toml", "journal: 5 is invalid; must be a path")):
        done = CliRunner().invoke(root, ["serve", "--port", "0", "--config", name], prog_name="rung")
        assert done.exit_code == 2
        assert done.stderr.startswith(f"rung: {name}: ")
        assert said in done.stderr


def test_the_gateway_prints_its_journal(tmp_path: Path) -> None:
    """The gateway prints which journal it writes: that of the option, or of the file that `--config` names."""
    (tmp_path / "mine.toml").write_text(f'journal = "{tmp_path}/own.db"\n')
    with printed("gateway", "--port", "0", "--config", "mine.toml", lines=2) as (_, journal):
        assert journal == f"rung gateway: journal: {tmp_path}/own.db"
    words = ("gateway", "--port", "0", "--config", "mine.toml", "--journal", "other.db")
    with printed(*words, lines=2) as (_, journal):
        assert journal == "rung gateway: journal: other.db"


def test_the_gateway_prints_that_it_writes_none() -> None:
    """A gateway without a journal says so."""
    with printed("gateway", "--port", "0", "--no-journal", lines=2) as (_, journal):
        assert journal == "rung gateway: no journal is written"
