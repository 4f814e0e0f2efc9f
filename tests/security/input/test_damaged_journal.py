"""A journal with events that cannot be read is shown as far as it can be, and its check says so."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import rung
from rung.cli.group import root
from rung.testing import HttpError, Script
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.conftest import Running

BODIES = {"not UTF-8": b'{"name": "\xff"}', "not JSON": b"{", "no object": b"[]", "deep": b'{"a":' + b"[" * 100_000}


def damage(path: Path, body: bytes) -> None:
    """Make the second of an incident's four events unreadable."""
    with rung.journal(path) as journal:
        request = rung.Request(prompt="p", model="m")
        policy = rung.policy("model", report="")
        rung.recover_sync(Script(HttpError(401, "no")), request, journal=journal, policy=policy)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE event SET body = CAST(? AS TEXT) WHERE n = 1", (body,))
    connection.commit()
    connection.close()


def command(*words: str) -> Any:
    return CliRunner().invoke(root, list(words))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_events_that_cannot_be_read(tmp_path: Path, body: bytes) -> None:
    """`rung log` shows the other events and marks the damaged one; `rung journal check` counts it as bad."""
    path = tmp_path / "journal.db"
    damage(path, body)
    at = ("--journal", str(path))
    lines = [json.loads(line) for line in command("log", "--json", *at).stdout.splitlines()]
    assert [line["name"] for line in lines] == ["opened", "unreadable", "decided", "closed"]
    assert "unreadable" in command("log", *at).stdout
    checked = command("journal", "check", *at)
    assert (checked.exit_code, "4 events, 1 of them cannot be read" in checked.stdout) == (1, True)
    for words in (("show", lines[0]["incident"]), ("journal", "rebuild"), ("journal", "export", "events"), ("report",)):
        done = command(*words, *at)
        assert done.exit_code in (0, 2), (words, done.output)
        assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)


def test_the_stream_goes_on(service: Running, tmp_path: Path) -> None:
    """A listener gets the events behind a damaged one: one bad row does not stop everybody's dashboard."""
    damage(tmp_path / "journal.db", BODIES["not UTF-8"])
    with service.admin.stream("GET", "/api/events", params={"since": 0}) as answer:
        names = (line.removeprefix("event: ") for line in answer.iter_lines() if line.startswith("event: "))
        assert [next(names) for _ in range(5)] == ["hello", "opened", "attempt_failed", "decided", "closed"]


def test_a_path_with_nul(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal's path with a NUL character is refused in one line, wherever it is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNG_JOURNAL", raising=False)
    write_trusted(tmp_path / "rung.toml", 'journal = "a\\u0000b"')
    for words in (("log",), ("journal", "check"), ("serve", "--port", "0", "--no-gateway")):
        done = command(*words)
        assert done.exit_code == 2, done.output
        assert isinstance(done.exception, SystemExit), done.exception
