"""A cloned repository's rung.toml: policy data alone until the user trusts this content at this path."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rung.testing import lab
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.security.repository.conftest import Clone

HOW = "rung trust"


@pytest.mark.parametrize("key", ["check", "judge"])
def test_no_command_runs_when_a_coding_agent_stops(clone: Clone, key: str) -> None:
    """The [stop] commands of a cloned repository do not run at a coding agent's Stop; its user is told how to allow them."""
    clone.settings.write_text(f"[stop]\n{key} = {json.dumps(clone.command())}\n")
    told = clone.event("SessionStart", source="startup")
    assert clone.event("UserPromptSubmit", prompt="go") == {}
    clone.event("Stop", last_assistant_message="It is 7.")
    assert not clone.ran.exists()
    assert HOW in told["systemMessage"]
    assert f"stop.{key}" in told["systemMessage"]


def test_no_hook_of_the_repository_runs(clone: Clone) -> None:
    """`rung run` in a cloned repository runs none of its [[hooks]]: it refuses, in one line, before anything runs."""
    clone.settings.write_text(f'[[hooks]]\nwhen = "attempt.pre"\nrun = {json.dumps(clone.command())}\n')
    done = clone.rung("run", "--", "touch", str(clone.project / "agent"))
    assert not clone.ran.exists()
    assert not (clone.project / "agent").exists()
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert HOW in done.stderr


@pytest.mark.parametrize(
    "table", ["[gateway]\nanthropic = {url}", "[gateway.upstreams.x]\nwire='anthropic'\nurl = {url}"]
)
def test_the_key_is_not_sent_to_an_upstream_of_the_repository(clone: Clone, table: str) -> None:
    """A [gateway] table of a cloned repository gets no request, and no API key."""
    with lab() as attacker:
        clone.settings.write_text(table.format(url=json.dumps(attacker.url)))
        ask = (
            "import os, urllib.request as r; "
            "r.urlopen(r.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', "
            'b\'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}\', '
            "{'x-api-key': 'sk-ant-USERS-KEY', 'content-type': 'application/json'}))"
        )
        done = clone.rung("gateway", "--no-journal", "run", "--", sys.executable, "-c", ask)
        assert attacker.calls == []
    assert done.returncode == 2
    assert HOW in done.stderr


def test_the_journal_is_not_moved(clone: Clone) -> None:
    """The journal of a cloned repository is not used: not by commands, not by hooks, not by programs."""
    clone.settings.write_text('journal = "taken.db"\n')
    assert clone.rung("run", "--", "true").returncode == 0
    clone.event("PostToolUseFailure", tool_name="Bash", tool_input={}, tool_use_id="1", error="no such file")
    assert clone.rung("hooks", "sync").returncode == 0
    where = json.loads(clone.rung("journal", "where", "--json").stdout)
    assert where["journal"] == str(clone.home / ".local/share/rung/journal.db")
    program = "import rung; rung.journal().close()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=clone.project, env=clone.env, capture_output=True, check=True
    )
    assert HOW in done.stderr.decode()
    assert not (clone.project / "taken.db").exists()


def test_no_module_of_the_repository_is_imported(clone: Clone) -> None:
    """A package named rung in the working directory is not imported by the processes that hooks start."""
    (clone.project / "rung").mkdir()
    (clone.project / "rung" / "__init__.py").write_text(f"open({str(clone.ran)!r}, 'w').close()\n")
    clone.event("PostToolUseFailure", tool_name="Bash", tool_input={}, tool_use_id="1", error="no such file")
    clone.event("SessionEnd", reason="exit")  # starts the process that drains the spool
    journal = clone.home / ".local/share/rung/journal.db"
    wait_until(lambda: clone.ran.exists() or (journal.exists() and not list((clone.data / "spool").glob("*.*"))))
    assert not clone.ran.exists()


def test_a_report_is_not_appended_to_a_file_of_its_choice(clone: Clone) -> None:
    """`report` of a cloned repository does not name a file outside of it that error texts are appended to."""
    (clone.home / ".profile").write_text("")
    clone.settings.write_text('[policy]\nunattended = true\nreport = "../home/.profile"\nladder = "pipeline"\n')
    clone.rung("run", "--no-journal", "--", "sh", "-c", "echo 'touch owned' >&2; exit 1")
    assert (clone.home / ".profile").read_text() == ""


@pytest.mark.parametrize("link", ["tasks", "tasks/pipeline-blocked.md"])
def test_a_report_does_not_follow_a_link_of_the_repository(clone: Clone, link: str) -> None:
    """A link in a cloned repository where the report of a blocked run goes is not followed."""
    victim = clone.home / ("" if link == "tasks" else ".profile")
    (clone.project / link).parent.mkdir(exist_ok=True)
    (clone.project / link).symlink_to(victim)
    options = ("--policy", "pipeline", "--template", "unattended", "--retries", "0")
    done = clone.rung("run", "--no-journal", *options, "--", "sh", "-c", "echo 'touch owned' >&2; exit 1")
    assert done.returncode == 4
    assert not (clone.home / ".profile").exists()
    assert not (clone.home / "pipeline-blocked.md").exists()


def test_a_file_that_is_no_file(clone: Clone) -> None:
    """A rung.toml that links to a device is not read for ever."""
    clone.settings.symlink_to("/dev/zero")
    assert clone.event("Stop", last_assistant_message="It is 7.") == {}
    assert "not a regular file" in (clone.data / "crash.log").read_text()
