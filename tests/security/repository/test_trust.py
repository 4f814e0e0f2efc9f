"""Trust: given by the user to one path with one content, and to nothing else."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.wiring import trust

if TYPE_CHECKING:
    from pathlib import Path

    from tests.security.repository.conftest import Clone


def hook_of(clone: Clone) -> str:
    """Return settings with a hook that shows that it ran."""
    return f'[[hooks]]\nwhen = "attempt.pre"\nrun = {json.dumps(clone.command())}\n'


def test_a_trusted_file_is_used_whole(clone: Clone) -> None:
    """After `rung trust` the hooks of the file run."""
    clone.settings.write_text(hook_of(clone))
    assert clone.rung("trust").stdout.startswith("trusted")
    assert clone.rung("run", "--", "true").returncode == 0
    assert clone.ran.exists()


def test_one_byte_more_is_another_file(clone: Clone) -> None:
    """A trusted file that changes is not trusted; with its old content it is again."""
    clone.settings.write_text(hook_of(clone))
    clone.rung("trust")
    clone.settings.write_text(hook_of(clone) + "\n")
    assert clone.rung("run", "--", "true").returncode == 2
    assert not clone.ran.exists()
    clone.settings.write_text(hook_of(clone))
    assert clone.rung("run", "--", "true").returncode == 0


@pytest.mark.parametrize("link", [False, True])
def test_the_same_content_elsewhere_is_another_file(clone: Clone, link: bool) -> None:
    """A copy of a trusted file, or a link to it, is not trusted at another place."""
    clone.settings.write_text(hook_of(clone))
    clone.rung("trust")
    other = clone.project.parent / "other"
    other.mkdir()
    if link:
        (other / "rung.toml").symlink_to(clone.settings)
    else:
        (other / "rung.toml").write_bytes(clone.settings.read_bytes())
    assert clone.rung("run", "--", "true", cwd=other).returncode == 2
    assert not clone.ran.exists()


def test_a_denied_file_is_policy_alone_without_a_question(clone: Clone) -> None:
    """After `rung trust --deny` a run goes on without the hooks and says nothing; `--forget` withdraws the decision."""
    clone.settings.write_text(hook_of(clone))
    assert clone.rung("trust", "--deny").stdout.startswith("denied")
    done = clone.rung("run", "--", "true")
    assert (done.returncode, "trust" in done.stderr) == (0, False)
    assert not clone.ran.exists()
    clone.rung("trust", "--forget")
    assert clone.rung("run", "--", "true").returncode == 2


def test_a_named_file_needs_no_trust(clone: Clone) -> None:
    """A file that the user names in an option is used whole."""
    clone.settings.write_text(hook_of(clone))
    assert clone.rung("run", "--policy", "rung.toml", "--", "true").returncode == 0
    assert clone.ran.exists()


@pytest.mark.parametrize(("answer", "runs"), [("y", True), ("n", False)])
def test_a_terminal_is_asked_once(clone: Clone, answer: str, runs: bool) -> None:
    """On a terminal the user is asked before anything runs; the answer is kept, and a no means policy alone."""
    clone.settings.write_text(hook_of(clone))
    shown = on_terminal(clone, answer + "\n", "run", "--", "true")
    assert "hooks" in shown
    assert shown.count("Trust this file?") == 1
    assert clone.ran.exists() == runs
    assert clone.rung("run", "--", "true").returncode == 0


def on_terminal(clone: Clone, typed: str, *arguments: str) -> str:
    """Run the command line on a terminal of its own; return what it shows."""
    terminal, own = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "rung", *arguments], cwd=clone.project, env={**clone.env, "TERM": "dumb"},
        stdin=own, stdout=own, stderr=own, close_fds=True,
    )  # fmt: skip
    os.close(own)
    os.write(terminal, typed.encode())
    shown = b""
    try:
        while piece := os.read(terminal, 4_096):
            shown += piece
    except OSError:  # the terminal is closed when the process ends
        pass
    process.wait(60)
    os.close(terminal)
    return shown.decode()


def test_a_gateway_reloads_only_what_is_trusted(clone: Clone) -> None:
    """A running gateway does not take up a changed file, such as one that a pull brought, until it is trusted."""
    clone.settings.write_text("[gateway]\nport = 0\n")
    clone.rung("trust")
    command = [sys.executable, "-P", "-m", "rung", "gateway", "--no-journal"]
    env = {**clone.env, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=clone.project, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "http://" in process.stdout.readline()
            assert "journal" in process.stdout.readline()
            clone.settings.write_text('[gateway]\nport = 0\nanthropic = "http://127.0.0.1:1"\n')
            assert "not trusted" in process.stdout.readline()
            clone.rung("trust")
            assert "settings reloaded" in process.stdout.readline()
        finally:
            process.kill()


def test_decisions_are_private(clone: Clone) -> None:
    """Decisions are files of mode 0600 in a folder of mode 0700; in a folder that others can write to they do not count."""
    clone.settings.write_text(hook_of(clone))
    clone.rung("trust")
    folder = clone.home / ".local/state/rung/trust"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]
    folder.chmod(0o777)
    assert clone.rung("run", "--", "true").returncode == 2
    assert clone.rung("trust").returncode == 2


def test_what_was_met_is_listed(clone: Clone) -> None:
    """`rung trust --list` and `rung hooks status` show a file that a hook met, with what it sets, and the decision."""
    clone.settings.write_text('journal = "x.db"\n[stop]\ncheck = "true"\n[policy]\nmodels = ["dear"]\n')
    clone.event("SessionStart", source="startup")
    (listed,) = json.loads(clone.rung("trust", "--list", "--json").stdout)["files"]
    assert listed == {
        "path": str(clone.settings.resolve()), "decision": "undecided", "sets": ["journal", "stop.check", "policy.models"],
    }  # fmt: skip
    assert f"undecided  {clone.settings.resolve()}: sets journal, stop.check" in clone.rung("hooks", "status").stdout
    clone.rung("trust")
    assert f"trusted    {clone.settings.resolve()}" in clone.rung("hooks", "status").stdout


def test_a_session_takes_up_trust_at_its_next_stop(clone: Clone) -> None:
    """A file that is trusted while a session runs is used from the next prompt or stop on."""
    clone.settings.write_text('[stop]\ncheck = "false"\n')
    assert clone.event("Stop", last_assistant_message="It is 7.") == {}
    clone.rung("trust")
    assert clone.event("Stop", last_assistant_message="It is 7.")["decision"] == "block"


def test_a_check_that_was_in_force_stays_for_the_session(clone: Clone) -> None:
    """An agent does not get past the project's check by changing the file, or by moving to a directory with another one."""
    clone.settings.write_text('[stop]\ncheck = "false"\n')
    clone.rung("trust")
    clone.event("UserPromptSubmit", prompt="go")
    clone.settings.write_text("[stop]\ngate = false\n")
    other = clone.project / "other"
    other.mkdir()
    (other / "rung.toml").write_text("[stop]\ngate = false\n")
    assert clone.event("Stop", last_assistant_message="It is 7.", cwd=str(other))["decision"] == "block"


def test_a_command_of_an_older_versions_state_does_not_run(clone: Clone) -> None:
    """A session that an older version began, with the commands of a file that nobody trusted, begins anew."""
    clone.event("UserPromptSubmit", prompt="go")
    (state,) = (clone.data / "sessions").glob("*.json")
    table = json.loads(state.read_text())
    state.write_text(json.dumps({**table, "v": 1, "stop": {"check": clone.command()}}))
    clone.event("Stop", last_assistant_message="It is 7.")
    assert not clone.ran.exists()


def test_a_check_runs_where_it_was_trusted(clone: Clone) -> None:
    """An agent that moves to another directory does not take the project's check there."""
    clone.settings.write_text("[stop]\ncheck = \"sh -c 'pwd > ../ran; false'\"\n")
    clone.rung("trust")
    clone.event("UserPromptSubmit", prompt="go")
    elsewhere = clone.project / "vendored" / "hostile"
    elsewhere.mkdir(parents=True)
    clone.event("Stop", last_assistant_message="It is 7.", cwd=str(elsewhere))
    assert clone.ran.read_text().strip() == str(clone.project.resolve())


def test_a_judge_runs_where_it_was_trusted(clone: Clone) -> None:
    """A trusted judge with a relative path is not taken from the directory in which the hook's process happens to run."""
    clone.settings.write_text('[stop]\njudge = "./judge"\n')
    clone.rung("trust")
    hostile = clone.project.parent / "hostile"
    hostile.mkdir()
    for place, command in ((hostile, clone.command()), (clone.project, f"touch {clone.ran}-here")):
        (place / "judge").write_text(f"#!/bin/sh\n{command}\n")
        (place / "judge").chmod(0o755)
    clone.event("Stop", last_assistant_message="It is 7.", run_in=hostile)
    assert not clone.ran.exists()
    assert clone.ran.with_name("ran-here").exists()


def test_a_notice_is_one_line_that_a_file_cannot_forge(clone: Clone) -> None:
    """Keys with control characters or without end do not reach the terminal as they are."""
    keys = "".join(f'"x\\u001b[2J\\n{"y" * 99}{number}" = 1\n' for number in range(500))
    clone.settings.write_text(f'journal = "x.db"\n{keys}')
    line, *_ = clone.rung("journal", "where").stderr.splitlines()
    assert line.isprintable()
    assert len(line) < 2_000
    assert "journal" in line
    assert "more" in line


def test_notes_of_files_do_not_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clones that come and go leave a bounded number of notes; decisions stay."""
    monkeypatch.setenv(trust.STATE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(trust, "MAX_NOTES", 5)
    trust.decide(tmp_path / "mine" / "rung.toml", b"x", trust.Decision.TRUSTED)
    for number in range(trust.MAX_NOTES + 5):
        trust.note_met(tmp_path / str(number) / "rung.toml", b"x")
    assert len(trust.known_paths()) == trust.MAX_NOTES + 1
    assert tmp_path / "mine" / "rung.toml" in trust.known_paths()
