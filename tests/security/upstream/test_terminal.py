"""What an upstream writes into an error never controls the terminal of the person who reads it."""

from __future__ import annotations

import ast
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import rung
from rung.store import open_journal

ESCAPES = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x1b\\\x1b[2J\x1b[8m\x9b2J\x08\rhidden\u202e"
TEXT = f"model {ESCAPES}not found"


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Record one recovery whose error, model and project carry control sequences."""
    path = tmp_path / "journal.db"
    monkeypatch.setenv("RUNG_JOURNAL", str(path))

    def fail(_: rung.Request) -> None:
        raise LookupError(TEXT)

    with open_journal(path, project=f"shop{ESCAPES}") as journal:
        policy = rung.policy("task", attempts=2)
        rung.recover_sync(fail, rung.Request(prompt=TEXT, model=f"m{ESCAPES}"), policy=policy, journal=journal)
    return str(path)


def in_terminal(*arguments: str, cwd: Path | None = None) -> str:
    """Run a command on a terminal of its own and return all that it wrote there."""
    terminal, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": "200", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rung", *arguments], stdin=child, stdout=child, stderr=child, env=environment, cwd=cwd
    )
    os.close(child)
    written = b""
    try:
        while chunk := os.read(terminal, 65_536):
            written += chunk
    except OSError:  # the last process has closed the terminal
        pass
    os.close(terminal)
    process.wait()
    return written.decode()


def assert_harmless(shown: str) -> None:
    for bad in ("\x1b]", "\x1b[2J", "\x1b[8m", "\x1bP", "\x9b", "\x07", "\x08", "\u202e"):
        assert bad not in shown, shown
    assert "\rhidden" not in shown, shown


@pytest.mark.parametrize(
    "command",
    [
        ("log",),
        ("log", "--json"),
        ("report", "failures"),
        ("report", "--json"),
        ("journal", "check"),
        ("journal", "export"),
    ],
)
def test_reports_on_a_terminal(journal: str, command: tuple[str, ...]) -> None:
    """No report passes a control sequence of an error, a model or a project to the terminal."""
    shown = in_terminal(*command)
    assert_harmless(shown)


def test_show_on_a_terminal(journal: str) -> None:
    """`rung show` prints the words of the error without its control sequences, in a terminal and in a pipe."""
    listed = subprocess.run([sys.executable, "-m", "rung", "log", "--json"], capture_output=True, text=True, check=True)
    incident = listed.stdout.partition('"incident": "')[2].partition('"')[0]
    shown = in_terminal("show", incident)
    assert_harmless(shown)
    assert "model" in shown
    piped = subprocess.run([sys.executable, "-m", "rung", "show", incident], capture_output=True, text=True, check=True)
    assert_harmless(piped.stdout)
    assert "\x1b" not in piped.stdout


def test_a_run_on_a_terminal(tmp_path: Path) -> None:
    """The progress lines of `rung run` carry no control sequence of the command's JSON error."""
    script = tmp_path / "agent.py"
    script.write_text(f"import json\nprint(json.dumps({{'is_error': True, 'result': 'boom ' + {ESCAPES!r}}}))\n")
    shown = in_terminal(
        "run", "--no-journal", "--no-ask", "--buffer", "--max-attempts", "1", "--", sys.executable, str(script),
        cwd=tmp_path,
    )  # fmt: skip
    assert_harmless(shown)
    assert "boom" in shown


def test_an_error_message_of_the_command_line(tmp_path: Path) -> None:
    """An error of the command line that quotes a hostile file name or value is harmless, too."""
    shown = in_terminal("policy", "check", f"{ESCAPES}.toml", cwd=tmp_path)
    assert_harmless(shown)


def test_all_consoles_come_from_one_place() -> None:
    """No command builds a Rich console of its own, which would print what it is given."""
    folder = Path(rung.__file__).parent / "cli"
    for path in folder.rglob("*.py"):
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module == "rich.console"
            for alias in node.names
        }
        assert "Console" not in names or path.name == "terminal.py", path
