"""An error text that a command line takes in place of `{recovery}` is never run by a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.adapters.system.placeholders import fill_placeholders
from rung.adapters.system.process import AgentCommand
from rung.core.domain.errors import ConfigError
from rung.core.domain.request import Request

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = "$(touch pwned) `touch pwned` \"; touch pwned; ' ; touch pwned #"


@pytest.mark.parametrize(
    "script",
    [
        'printf %s "{recovery}"',
        "printf %s '{recovery}'",
        "printf %s {recovery}",
        'printf %s "it\'s" > /dev/null; printf %s "{recovery}"',
        'printf %s "$RUNG_RECOVERY"',
    ],
)
@pytest.mark.parametrize("shell", [["sh", "-c"], ["bash", "-o", "pipefail", "-ec"], ["env", "A=1", "sh", "-c"]])
def test_a_shell_gets_the_text_and_runs_none_of_it(
    shell: list[str], script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever `{recovery}` stands in a script, the command gets the text word for word and none of it runs."""
    monkeypatch.chdir(tmp_path)
    command = AgentCommand(by_agent={"": [*shell, script]})
    assert command(Request(prompt="p", recovery=ORDERS)) == ORDERS
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=200))
def test_any_text_as_an_argument(text: str) -> None:
    """Any text, with NUL or half a surrogate pair in it, is an argument that a command can be started with."""
    words, variables = fill_placeholders(["agent", "--prompt={recovery}", "x{recovery}"], {"{recovery}": text})
    assert variables == {}
    assert not any("\0" in word for word in words)
    "".join(words).encode()
    assert words[1].removeprefix("--prompt=") == words[2].removeprefix("x")


def test_a_nul_in_an_error_does_not_end_the_recovery() -> None:
    """After an error with a NUL in it the next attempt with `{recovery}` runs."""
    command = AgentCommand(by_agent={"": [sys.executable, "-c", "import sys; print(sys.argv[1])", "{recovery}"]})
    assert command(Request(prompt="p", recovery="a\0b")) == "ab\n"


@pytest.mark.parametrize(
    "words",
    [
        ["ssh", "host", "agent", "{recovery}"],
        ["timeout", "5", "ssh", "-p", "22", "host", "agent {recovery}"],
        [sys.executable, "-c", "print('{recovery}')"],
        ["node", "-e", "ask(`{recovery}`)"],
        ["watch", "agent", "{recovery}"],
    ],
)
def test_text_as_code_is_refused_at_the_start(words: list[str]) -> None:
    """A command that would read the text as code is refused before anything runs; the error says what to do."""
    with pytest.raises(ConfigError, match=r"RUNG_RECOVERY"):
        AgentCommand(by_agent={"": words})


@pytest.mark.parametrize(
    "words",
    [
        ["claude", "-p", "{recovery}"],
        ["python3", "-m", "agent", "-p", "{recovery}"],
        ["node", "agent.js", "-e", "{recovery}"],
        ["sh", "agent.sh", "-c", "{recovery}"],
        ["sh", "-c", 'agent "$1"', "sh", "{recovery}"],
    ],
)
def test_ordinary_arguments_stay_arguments(words: list[str]) -> None:
    """Options that mean something else to other programs do not turn an argument into code."""
    assert fill_placeholders(words, {"{recovery}": ORDERS}) == ([*words[:-1], ORDERS], {})


def test_rung_run_with_a_hostile_agent(tmp_path: Path) -> None:
    """`rung run -- sh -c '… "{recovery}"'` after a failure passes the error on as text."""
    script = 'case "{recovery}" in "") echo \'file $(touch pwned) not found\' >&2; exit 1;; *) echo "{recovery}";; esac'
    run = [sys.executable, "-m", "rung", "run", "--no-journal", "--json", "--", "sh", "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path, stdin=subprocess.DEVNULL)
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["status"] == "recovered", done.stderr
    assert "$(touch pwned)" in outcome["output"]
    assert not (tmp_path / "pwned").exists()
