"""Whatever asks a command of ours to end: no process is left, the contract is printed, the end is recorded, the code is documented."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import rung
from tests.waiting import is_running, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("unmeasured_processes")
RUNG = [sys.executable, "-m", "rung"]
# A child and a grandchild that ignore what asks them to end.
AGENT = "trap '' TERM INT HUP; sleep 600 & echo $$ $! > pids.new; mv pids.new pids; while :; do echo x; sleep 0.1; done"
# Answers the first call, without faults, and then behaves as the others do.
CLIENT = """
import os, pathlib, sys, urllib.request
body = b'{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}'
made = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"})
if not pathlib.Path("tested").exists():
    pathlib.Path("tested").touch()
    print(urllib.request.urlopen(made).read().decode())
    sys.exit(0)
os.execvp("sh", ["sh", "-c", sys.argv[1]])
"""
PIPELINE = '[pipeline]\nname = "p"\n[[stage]]\nid = "one"\nprompt = "do it"\ncommand = {words}\n'


def commands(folder: Path) -> dict[str, list[str]]:
    (folder / "p.toml").write_text(PIPELINE.format(words=json.dumps(["sh", "-c", AGENT])))
    (folder / "client.py").write_text(CLIENT)
    client = [sys.executable, "client.py", AGENT]
    return {
        "run": [*RUNG, "run", "--journal", "j.db", "--run-id", "r-1", "--json", "--", "sh", "-c", AGENT],
        "pipeline": [*RUNG, "pipeline", "run", "--journal", "j.db", "--run-id", "r-1", "--json", "p.toml"],
        "gateway": [*RUNG, "gateway", "--journal", "j.db", "--anthropic", "http://127.0.0.1:9", "run", "--", "sh", "-c", AGENT],
        "lab": [*RUNG, "lab", "test", "--fault", "overloaded", "--json", "--", *client],
    }  # fmt: skip


def to_us(process: subprocess.Popen[str], _: list[int]) -> None:
    """`timeout`, `kill`: the signal reaches rung alone."""
    process.send_signal(signal.SIGTERM)


def to_all(process: subprocess.Popen[str], pids: list[int]) -> None:
    """systemd: the signal reaches every process of the unit."""
    for pid in (process.pid, *pids):
        os.kill(pid, signal.SIGTERM)


def closed_terminal(process: subprocess.Popen[str], _: list[int]) -> None:
    """A closed terminal hangs up its session."""
    process.send_signal(signal.SIGHUP)


def double_ctrl_c(process: subprocess.Popen[str], _: list[int]) -> None:
    """An impatient user presses Ctrl-C twice."""
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)


ENDINGS: list[tuple[Callable[[subprocess.Popen[str], list[int]], None], int]] = [
    (to_us, 143),
    (to_all, 143),
    (closed_terminal, 129),
    (double_ctrl_c, 130),
]


def started(name: str, folder: Path, *under: str) -> tuple[subprocess.Popen[str], list[int]]:
    process = subprocess.Popen(
        [*under, *commands(folder)[name]], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: (folder / "pids").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process, [int(pid) for pid in (folder / "pids").read_text().split()]


def contract_of(name: str, out: str, errors: str) -> dict[str, Any]:
    if name == "gateway":  # standard output is the agent's: the summary is the contract
        assert "rung gateway: no requests" in errors
        return {}
    contract: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert contract["stopped"] if name == "lab" else contract["status"] == "partial"
    return contract


@pytest.mark.parametrize("name", ["run", "pipeline", "gateway", "lab"])
@pytest.mark.parametrize(("ending", "code"), ENDINGS, ids=[ending.__name__ for ending, _ in ENDINGS])
def test_asked_to_end(
    tmp_path: Path, name: str, ending: Callable[[subprocess.Popen[str], list[int]], None], code: int
) -> None:
    """Every signal that asks to end leaves no process, a contract, a record and its exit code."""
    process, pids = started(name, tmp_path)
    ending(process, pids)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    wait_until(lambda: not any(is_running(pid) for pid in pids))
    contract_of(name, out, errors)
    if name in {"run", "pipeline"}:
        with rung.journal(tmp_path / "j.db") as journal:
            names = {name for (name,) in journal.read("SELECT name FROM event")}
            is_open = [run.id for run in journal.runs.open_runs()]
        assert "ordered" in names  # and not closed: the run can be resumed
        assert is_open == (["r-1"] if name == "run" else ["r-1/one"])


HANGUP = """
import json, os, pty, sys, time
words = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(words[0], words)
while not os.path.exists("pids"):
    time.sleep(0.05)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("name", ["run", "pipeline", "gateway", "lab"])
def test_the_terminal_is_closed(tmp_path: Path, name: str) -> None:
    """A terminal that is really closed ends a command with code 129, although nothing can be printed any more."""
    line = [sys.executable, "-c", HANGUP, json.dumps(commands(tmp_path)[name])]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "129"
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_the_timeout_program(tmp_path: Path) -> None:
    """Under `timeout`, which signals its whole process group, a run prints its contract and leaves no process."""
    program = shutil.which("timeout")
    if program is None:
        pytest.skip("there is no timeout program")
    process, pids = started("run", tmp_path, program, "600")
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    contract_of("run", out, errors)
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_a_broken_pipe_of_the_agent_itself(tmp_path: Path) -> None:
    """Under `gateway run` standard output is the agent's own: SIGPIPE ends it, and what it has started."""
    with subprocess.Popen(
        commands(tmp_path)["gateway"], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 141
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        wait_until(lambda: not any(is_running(pid) for pid in pids))


@pytest.mark.parametrize("name", ["run", "pipeline"])
def test_a_broken_pipe(tmp_path: Path, name: str) -> None:
    """When nobody reads the progress any more, the run ends with code 141, and no process is left."""
    if name == "run":
        line = [*RUNG, "run", "--no-journal", "--stream", "--", "sh", "-c", AGENT]
    else:
        line = commands(tmp_path)["pipeline"]
        fails = "echo $$ $$ > pids; echo 'API Error: 529 Overloaded' >&2; exit 1"
        (tmp_path / "p.toml").write_text(PIPELINE.format(words=json.dumps(["sh", "-c", fails])))
    process = subprocess.Popen(
        line, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 141, errors
    assert "Traceback" not in errors
    wait_until(lambda: not any(is_running(int(pid)) for pid in (tmp_path / "pids").read_text().split()))


def test_the_terminal_belongs_to_the_command(tmp_path: Path) -> None:
    """On a terminal the command of `gateway run` reads the keyboard and gets Ctrl-C itself; its exit code is ours."""
    agent = "trap 'exit 7' INT; echo ready; read word; echo \"got $word\"; while :; do sleep 0.1; done"
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover  # the child: replaced at once
        os.chdir(tmp_path)
        line = [*RUNG, "gateway", "--no-journal", "--anthropic", "http://127.0.0.1:9", "run", "--", "sh", "-c", agent]
        os.execv(line[0], line)
    seen = b""

    def has_shown(word: bytes) -> bool:
        nonlocal seen
        if select.select([terminal], [], [], 0.05)[0]:
            seen += os.read(terminal, 4_096)
        return word in seen

    wait_until(lambda: has_shown(b"ready"))
    os.write(terminal, b"hello\n")
    wait_until(lambda: has_shown(b"got hello"))
    os.write(terminal, b"\x03")
    wait_until(lambda: has_shown(b"rung gateway:"))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    os.close(terminal)
