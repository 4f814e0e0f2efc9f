"""Invalid input is a one-line error with file, key, value and what is allowed; exit code 2; nothing runs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.errors import ConfigError, FileError
from rung.core.domain.failures import Kind
from rung.wiring.files import load_policy
from rung.wiring.toml_reader import read_table

if TYPE_CHECKING:
    from pathlib import Path

RUNGS = 'rungs = [{ action = "retry" }, { action = "force-done" }]\n'
BAD = {
    "missing rung": (
        f'[ladder]\n{RUNGS}[ladder.entry]\ntimeout = "nudge"\n',
        ["ladder.entry.timeout", "'nudge'", "one of this ladder's rungs: retry, force-done"],
    ),
    "missing default_entry": (
        f'[ladder]\n{RUNGS}default_entry = "ask"\n',
        ["ladder.default_entry", "'ask'", "retry, force-done"],
    ),
    "no ending": (
        '[ladder]\nrungs = [{ action = "retry" }]\n',
        ["ladder.rungs", "'retry'", "ask, surface or force-done"],
    ),
    "no rungs": ('[ladder]\nname = "x"\n', ["ladder.rungs", "None", "at least one rung"]),
    "unknown action": (
        '[ladder]\nrungs = [{ action = "pray" }]\n',
        ["ladder.rungs[0].action", "'pray'", *("retry", "force-done")],
    ),
    "negative tries": (
        '[ladder]\nrungs = [{ action = "retry", tries = -1 }, { action = "ask" }]\n',
        ["ladder.rungs[0].tries", "-1", "0 or more"],
    ),
    "negative seconds": ("[policy]\nseconds = -1\n", ["seconds", "-1", "0 or more"]),
    "negative dollars": ("[policy.budget]\ndollars = -0.5\n", ["budget.dollars", "-0.5", "0 or more"]),
    "no attempts": ("[policy]\nattempts = 0\n", ["attempts", "0", "1 or more"]),
    "unknown kind": (
        f'[ladder]\n{RUNGS}[ladder.entry]\nrate_limits = "retry"\n',
        ["ladder.entry.rate_limits", "'rate_limits'", *Kind, "transient"],
    ),
    "unknown kind to retry": ('[policy]\nretry = ["bad mood"]\n', ["policy.retry", "'bad mood'", *Kind]),
    "kind never to retry": ('[policy]\nretry = ["auth_error"]\n', ["policy.retry", "'auth_error'", "never retried"]),
    "unknown key": ("[policy]\natempts = 3\n", ["policy.atempts", "3", "attempts", "retry_after_cap"]),
    "unknown table": ("[polic]\nattempts = 3\n", ["polic", "policy, ladder, projects, tools"]),
    "unknown key of a rung": (
        '[ladder]\nrungs = [{ action = "ask", trys = 2 }]\n',
        ["ladder.rungs[0].trys", "2", "tries"],
    ),
    "unknown ladder": ('[policy]\nladder = "tsk"\n', ["policy.ladder", "'tsk'", "task, call, pipeline, model, crew"]),
    "unknown template": ('[policy]\ntemplate = "brave"\n', ["policy.template", "'brave'", "conservative"]),
    "wrong in a project": ("[projects.web]\nretries = -1\n", ["projects.web", "-1", "0 or more"]),
    "wrong in a tool": (
        '[tools.bash]\nconfirm = "maybe"\n',
        ["tools.bash.confirm", "'maybe'", "never, more_expensive, always"],
    ),
    "not a table": ("policy = 5\n", ["policy", "5", "a table"]),
    "two ladders": (
        f'[policy]\nladder = "task"\n[ladder]\n{RUNGS}',
        ["policy.ladder", "'task'", "[ladder] table"],
    ),
    "not TOML": ("[policy]\nattempts = 3\nseconds 5\n", ["is not TOML", "line 3"]),
}


def refused(*arguments: str) -> str:
    command = [sys.executable, "-m", "rung", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("rung: ")
    return done.stderr


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_wrong(case: str, tmp_path: Path) -> None:
    """One line on stderr, exit code 2: the file, the key, the value and what is allowed."""
    text, words = BAD[case]
    path = tmp_path / "own.toml"
    path.write_text(text)
    line = refused("policy", "check", str(path))
    for word in (str(path), *words):
        assert word in line


@pytest.mark.parametrize("command", [("ladder", "check"), ("ladder", "show"), ("policy", "check"), ("alerts", "check")])
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_every_command_that_reads_a_file(command: tuple[str, ...], as_json: tuple[str, ...], tmp_path: Path) -> None:
    """All commands reject an invalid or missing file in the same way."""
    path = tmp_path / "own.toml"
    assert refused(*command, str(path), *as_json) == f"rung: {path}: cannot be read: No such file or directory\n"
    path.write_text("[policy]\natempts = 3\n")
    assert "policy.atempts: 3" in refused(*command, str(path), *as_json)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A folder and a file that is not UTF-8 are rejected by name."""
    assert refused("policy", "check", str(tmp_path)) == f"rung: {tmp_path}: cannot be read: Is a directory\n"
    path = tmp_path / "latin.toml"
    path.write_bytes(b'[policy]\nname = "caf\xe9"\n')
    assert refused("policy", "check", str(path)) == f"rung: {path}: is not UTF-8: byte 0xe9 at 20\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ladder", "show", "tsk"), ["'tsk'", "task, call", "did you mean task?"]),
        (("policy", "show", "tsk"), ["'tsk'", "task, call"]),
        (("policy", "show", "task", "--template", "brave"), ["'brave'", "conservative"]),
        (("explain", "time_out"), ["'time_out'", "did you mean timeout"]),
        (("schema", "events"), ["'events'", "pipeline-failure", "did you mean event"]),
    ],
)
def test_names_that_do_not_exist(arguments: tuple[str, ...], words: list[str]) -> None:
    """An unknown ladder, template, kind or schema is a one-line error that lists the valid names."""
    line = refused(*arguments)
    assert all(word in line for word in words)


def test_a_huge_value_stays_one_readable_line(tmp_path: Path) -> None:
    """A table given as a value is clipped in the error."""
    path = tmp_path / "own.toml"
    path.write_text(f"[policy]\nunattended = [{', '.join(map(str, range(5000)))}]\n")
    line = refused("policy", "check", str(path))
    assert len(line) < 500 + len(str(path))
    assert "policy.unattended" in line
    assert "true or false" in line


def test_the_error_as_a_value(tmp_path: Path) -> None:
    """The library raises a ConfigError with path, key, value and what is allowed."""
    path = tmp_path / "own.toml"
    path.write_text("[policy]\nretries = -1\n")
    with pytest.raises(FileError) as raised:
        load_policy(path)
    error = raised.value
    assert isinstance(error, ConfigError)
    assert (error.path, error.value) == (str(path), -1)
    assert "0 or more" in error.allowed
    with pytest.raises(FileError, match="cannot be read"):
        read_table(tmp_path / "nowhere.toml")


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    """A file from an editor that writes a byte order mark is read like any other."""
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xef\xbb\xbf[policy]\nattempts = 3\n")
    assert load_policy(path).default.budget.attempts == 3
