"""Messages of commands about names and combinations: they say what is there and what to type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rung.cli.group import root
from rung.core.domain.request import Request
from rung.engine.durable import recovery as durable
from rung.engine.recover import recover_sync
from rung.engine.session import Session
from rung.store import open_journal
from rung.testing import Script

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

PLAN = """
[crew]
name = "docs"
worker = ["true"]
judge = ["true"]

[[task]]
id = "a"
instruction = "write"

[[task]]
id = "b"
instruction = "read"
depends_on = ["a"]
"""


def call(*words: str) -> Result:
    return CliRunner().invoke(root, words, input="", prog_name="rung")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "journal.db"
    monkeypatch.setenv("RUNG_JOURNAL", str(path))
    with open_journal(path) as opened:
        recover_sync(Script("fine"), Request(prompt="x"), journal=opened)
        request, session = Request(prompt="x"), Session(id="mine")
        durable.recover_sync(lambda _: "fine", request, journal=opened, run_id="ended", session=session)
    return str(path)


@pytest.mark.parametrize("words", [("log",), ("log", "--json"), ("show", "ended"), ("ladder", "show", "task")])
def test_a_reader_that_has_gone_ends_a_command_quietly(words: tuple[str, ...], journal: str) -> None:
    """`| head` ends every command with exit code 141, as it does under a shell, and says nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "rung", *words], stdout=writer, stderr=subprocess.PIPE, check=False,
        env={**os.environ, "RUNG_JOURNAL": journal},
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("show", "nope"), "there is no incident 'nope'; give an id or a prefix of it (`rung log` prints the ids)"),
        (("resume", "nope"), "there is no open run 'nope' (see `rung resume --list`)"),
        (("resume", "ended"), "run 'ended' has ended: rung show ended"),
        (("retry", "ended"), "there is no session 'ended'; the incident of this id belongs to session 'mine'"),
        (("resume", "--due", "x"), "--due cannot be combined with RUN"),
        (("token", "revoke", "ann"), "there is no token of 'ann' (see `rung token list`)"),
        (("fleet", "drain"), "give one executor, or --all, or --host HOST, and only one of them"),
        (
            ("run", "--no-journal", "--run-id", "x", "--", "true"),
            "--no-journal cannot be combined with --journal or --run-id",
        ),
        (
            ("journal", "export", "-o", "a.xml"),
            "--out: 'a.xml' is invalid; must be a name that ends in one of .csv, .jsonl, .parquet, or given with --format",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_messages_read_well(words: tuple[str, ...], line: str, journal: str) -> None:
    """A name that is not there, and options that do not go together, are said in plain words."""
    done = call(*words)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"rung: {line}\n")


def test_an_export_takes_its_format_from_the_name(tmp_path: Path, journal: str) -> None:
    """The ending of the file says the format; any name is allowed with --format."""
    assert call("journal", "export", "events", "-o", str(tmp_path / "e.jsonl")).exit_code == 0
    json.loads((tmp_path / "e.jsonl").read_text().splitlines()[0])
    assert call("journal", "export", "events", "--format", "csv", "-o", str(tmp_path / "e.xml")).exit_code == 0
    assert call("journal", "export", "events", "-o", str(tmp_path / "plain")).exit_code == 0
    assert not (tmp_path / "a.xml").exists()


def test_crew_check_prints_the_order_of_the_tasks(tmp_path: Path) -> None:
    """`rung crew check` validates a plan and its programs, and prints its tasks in turns, without a database."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    done = call("crew", "check", str(plan))
    assert (done.exit_code, done.stdout.splitlines()[-2:]) == (0, ["1. a", "2. b"]), done.output
    assert done.stdout.startswith("docs: 2 tasks, ")
    assert json.loads(call("crew", "check", str(plan), "--json").stdout)["turns"] == [["a"], ["b"]]
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]
    plan.write_text(PLAN.replace('worker = ["true"]', 'worker = ["no-such-agent"]'))
    done = call("crew", "check", str(plan))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"rung: {plan}: crew.worker: 'no-such-agent' is invalid")


def test_crew_stop_says_when_nobody_conducts(tmp_path: Path) -> None:
    """Stopping a crew that no process conducts says so, instead of promising a stop."""
    at = str(tmp_path / "crew.db")
    assert "crew database, 0 tasks" in call("crew", "init", "--db", at).stdout
    assert call("crew", "add", "one", "--body", "x", "--db", at).exit_code == 0
    assert "crew database, 1 task\n" in call("crew", "init", "--db", at).stdout
    done = call("crew", "stop", "--db", at)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "no process conducts this crew: there is nothing to stop\n"


def test_gateway_run_takes_the_options_of_the_gateway(tmp_path: Path) -> None:
    """Options of the gateway may stand after `run`; what follows the first word belongs to the command."""
    script = "import sys; print(sys.argv[1:])"
    command = [sys.executable, "-m", "rung", "gateway", "run", "--no-journal", "--anthropic", "http://127.0.0.1:1"]
    done = subprocess.run(
        [*command, sys.executable, "-c", script, "--port", "x"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "['--port', 'x']\n"), done.stderr


def test_an_empty_recovery_prompt_is_told(tmp_path: Path) -> None:
    """A command whose only prompt is {recovery} is told that it is empty in the first attempt."""
    command = [sys.executable, "-m", "rung", "run", "--no-journal", "--", "echo", "{recovery}"]
    told = "{recovery} is empty in the first attempt"
    alone = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert told in alone.stderr
    given = subprocess.run(command, capture_output=True, text=True, check=False, input="task", cwd=tmp_path)
    assert told not in given.stderr


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_hook_program_explains_itself(option: str, tmp_path: Path) -> None:
    """`rung-hook --help` says what it is for, and counts as no crash."""
    command = [sys.executable, "-c", "from rung.hooks.entry import main; main()", option, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert "rung hooks install" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "end"),
    [
        (["--templat", "off"], "unknown option '--templat'; did you mean --template?"),
        (["--template"], "--template: its value is missing"),
        (["--template", "unatended"], "unattended, helper, off; did you mean unattended?"),
    ],
)
def test_a_mistyped_option_gets_one_near_suggestion(options: list[str], end: str) -> None:
    """Only near names are suggested, for options and templates alike; `--` is no value of an option."""
    done = CliRunner().invoke(root, ["run", *options, "--", sys.executable], prog_name="rung")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0].endswith(end)
