"""Output of `rung run`: bytes, contracts, streams and readers that go away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.cli.output import json_text
from rung.core.text.printable import printable
from tests.cli.test_run import run, script

if TYPE_CHECKING:
    from pathlib import Path

RUN = [sys.executable, "-m", "rung", "run", "--no-journal"]
OVERLOADED = "echo 'API Error: 529 Overloaded' >&2; exit 1"


def test_a_failed_run_keeps_its_output_and_steps() -> None:
    """The contract of a run that timed out has what the command wrote and the steps that it reported."""
    agent = "echo half of it; echo 'built the parser' >> $RUNG_STEPS; printf 'tested it' >> $RUNG_STEPS; sleep 600"
    done = run("--no-journal", "--attempt-seconds", "5", "--max-attempts", "1", "--", "sh", "-c", agent)
    contract = json.loads(done.stdout)
    assert (done.returncode, contract["output"]) == (3, "half of it\n")
    assert contract["completedSteps"] == ["built the parser", "tested it"]


@pytest.mark.parametrize("words", [("--json",), ("--buffer",)])
def test_a_contract_has_the_letters_of_every_language(words: tuple[str, ...]) -> None:
    """JSON on standard output is UTF-8 as it is; where the stream cannot encode it, it is escaped."""
    text = "Straße 東京"
    agent = ("--", "sh", "-c", f"echo '{text}: x' >&2; exit 1")
    environment = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    for encoding in ("utf-8", "latin-1"):
        done = subprocess.run(
            [*RUN, "--max-attempts", "1", *words, *agent],
            env=environment | {"PYTHONIOENCODING": encoding}, capture_output=True, check=False,
        )  # fmt: skip
        shown = done.stdout.decode(encoding)
        last = shown.splitlines()[-1] if words == ("--json",) else shown
        assert text in json.loads(last)["failureReason"]
        assert (text in shown) == (encoding == "utf-8")


def test_json_loses_no_character_on_its_way_to_the_terminal() -> None:
    """A value with a control sequence is escaped, because the streams of all commands remove what controls a terminal."""
    value = {"error": "\x9b31m \u202e ü"}
    text = json_text(value)
    assert json.loads(printable(text)) == value


@pytest.mark.parametrize("option", ["--json", "--buffer"])
def test_a_last_turn_is_inside_the_contract(tmp_path: Path, option: str) -> None:
    """The text of a last turn is a field of the contract: standard output is one JSON document, or JSON lines."""
    body = "import sys\ntold = sys.stdin.read()\nprint('I did A, not B', end='')\nsys.exit(0 if 'final' in told.lower() else 'no')"
    done = run("--no-journal", option, "--", script(tmp_path / "agent", body), given="do A and B")
    last = done.stdout.splitlines()[-1] if option == "--json" else done.stdout
    assert json.loads(last)["output"] == "I did A, not B"
    assert json.loads(last)["status"] == "partial"


def test_a_check_that_fails_keeps_the_agents_output(tmp_path: Path) -> None:
    """When the check fails, the contract has the output of the agent, not that of the check."""
    done = run(
        "--no-journal",
        "--max-attempts",
        "1",
        "--check",
        "sh -c 'echo checked; exit 1'",
        "--",
        "echo",
        "mine",
        cwd=tmp_path,
    )
    assert json.loads(done.stdout)["output"] == "mine\n"


def test_streamed_output_is_shown_once() -> None:
    """With --stream, what a failed attempt has shown is not shown again by the next one; the contract is the last line."""
    done = run(
        "--no-journal",
        "--retries",
        "2",
        "--patience",
        "0",
        "--stream",
        "--",
        "sh",
        "-c",
        f"echo one; echo two; {OVERLOADED}",
    )
    *shown, contract = done.stdout.splitlines()
    assert shown == ["one", "two"]
    assert json.loads(contract)["attempts"] == 3


def test_the_contract_begins_a_line_of_its_own() -> None:
    """Streamed output without a last line end is not glued to the contract."""
    done = run("--no-journal", "--max-attempts", "1", "--stream", "--", "sh", "-c", "printf half; exit 1")
    assert done.stdout.startswith("half\n{")


def test_equal_failures_have_numbers_of_their_own() -> None:
    """Each attempt is printed with its number, also when it fails like the one before."""
    done = run("--no-journal", "--retries", "2", "--patience", "0", "--", "sh", "-c", OVERLOADED)
    numbers = [line.split()[2] for line in done.stderr.splitlines() if line.startswith("✗ attempt")]
    assert numbers == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("options", "agent"),
    [
        (("--stream",), "echo >> log; while :; do echo x; sleep 0.05; done"),
        (("--json",), f"echo >> log; {OVERLOADED}"),
        ((), "echo >> log; seq 1 1000000"),
    ],
)
def test_a_reader_that_goes_away(tmp_path: Path, options: tuple[str, ...], agent: str) -> None:
    """`| head` ends the run, with exit code 141 and without a traceback; the command runs once."""
    process = subprocess.Popen(
        [*RUN, *options, "--", "sh", "-c", agent], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 141
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
    assert (tmp_path / "log").read_text() == "\n"


def test_bytes_pass_unchanged() -> None:
    """Input and output that are not UTF-8 arrive as they are, with --buffer and with --stream."""
    for option in ("--buffer", "--stream"):
        done = subprocess.run(
            [*RUN, option, "--", "cat"], input=b"\xff\xfeX", capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (0, b"\xff\xfeX"), done.stderr


def test_a_slow_death_is_waited_for(tmp_path: Path) -> None:
    """A command that needs more than a second to end at its limit can clean up, and no other attempt runs beside it."""
    agent = script(
        tmp_path / "agent",
        "import pathlib, signal, sys, time\n"
        "here = pathlib.Path('running')\n"
        "here.exists() and pathlib.Path('beside').touch()\n"
        "here.touch()\n"
        "def end(*_):\n"
        "    time.sleep(1.4); here.unlink(); sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "time.sleep(600)\n",
    )
    done = run("--no-journal", "--attempt-seconds", "6", "--max-attempts", "2", "--", agent, cwd=tmp_path)
    assert json.loads(done.stdout)["attempts"] == 2
    assert not (tmp_path / "running").exists()
    assert not (tmp_path / "beside").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_the_contract_is_readable(encoding: str) -> None:
    """The contract has the letters of the error as they are, where standard output can have them."""
    script = "printf '请稍后再试\\377\\n' >&2; exit 1"
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [*RUN, "--retries", "0", "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, env=env, check=False, stdin=subprocess.DEVNULL)
    assert ("再试".encode() in done.stdout) == (encoding == "utf-8")
    assert "请稍后再试" in json.loads(done.stdout)["failureReason"]
