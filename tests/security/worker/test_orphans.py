"""An agent does not outlive `rung run`: whatever ends the supervisor ends the command and all it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.waiting import is_running, wait_until

if TYPE_CHECKING:
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung", "run", "--no-journal"]
# A child and a grandchild; the second script ignores what asks it to end.
AGENT = "sleep 600 & echo $$ $! > {file}.new; mv {file}.new {file}; wait"
DEAF = "trap '' TERM INT HUP; " + AGENT


def started(tmp_path: Path, *options: str, agent: str = AGENT) -> tuple[subprocess.Popen[str], list[int]]:
    file = tmp_path / "pids"
    process = subprocess.Popen(
        [*RUNG, *options, "--", "sh", "-c", agent.format(file=file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(file.exists)
    return process, [int(number) for number in file.read_text().split()]


def are_gone(pids: list[int]) -> None:
    wait_until(lambda: not any(is_running(pid) for pid in pids))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_the_agent_and_leaves_a_contract(tmp_path: Path, number: int, code: int) -> None:
    """SIGTERM and SIGHUP stop a run as Ctrl-C does: no process is left, and the outcome is printed."""
    process, pids = started(tmp_path)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert json.loads(out)["status"] == "partial"
    are_gone(pids)


def test_a_second_signal_ends_the_grace_period(tmp_path: Path) -> None:
    """An agent that ignores SIGTERM is killed at once by the second signal, and does not survive it."""
    process, pids = started(tmp_path, agent=DEAF)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode in {130, 143}
    are_gone(pids)


def test_a_killed_supervisor_takes_its_agent_along(tmp_path: Path) -> None:
    """After SIGKILL of `rung run` neither the command nor its child runs on."""
    process, pids = started(tmp_path)
    process.kill()
    process.communicate(timeout=60)
    are_gone(pids)


def test_the_user_may_let_the_agent_go_on(tmp_path: Path) -> None:
    """With --no-guard the command continues after SIGKILL of `rung run`."""
    process, pids = started(tmp_path, "--no-guard")
    try:
        process.kill()
        process.communicate(timeout=60)
        (tmp_path / "other").mkdir()
        guarded, others = started(tmp_path / "other")
        guarded.kill()
        guarded.communicate(timeout=60)
        are_gone(others)  # as much time has passed as a guardian needs
        assert all(is_running(pid) for pid in pids)
    finally:
        os.killpg(pids[0], signal.SIGKILL)


def test_nohup_is_honoured(tmp_path: Path) -> None:
    """A run that was started with SIGHUP ignored goes on when the terminal is closed."""
    file, go = tmp_path / "pids", tmp_path / "go"
    agent = f"echo $$ > {file}; while ! test -e {go}; do sleep 0.05; done; echo done"
    process = subprocess.Popen(
        ["nohup", *RUNG, "--", "sh", "-c", agent], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_until(file.exists)
    process.send_signal(signal.SIGHUP)
    go.touch()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "done\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_pipeline_takes_its_agents_along(tmp_path: Path, number: int, code: int) -> None:
    """A signal to `rung pipeline run`, SIGKILL included, ends the command of a stage and all it started."""
    file = tmp_path / "pids"
    words = json.dumps(["sh", "-c", AGENT.format(file=file)])
    (tmp_path / "p.toml").write_text(
        f'[pipeline]\nname = "p"\n[[stage]]\nid = "one"\nprompt = "do it"\ncommand = {words}\n'
    )
    process = subprocess.Popen(
        [*RUNG[:3], "pipeline", "run", "--no-journal", "p.toml"], cwd=tmp_path, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: file.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    are_gone([int(one) for one in file.read_text().split()])
