"""`rung run` at a plan's limit: real processes, parked, killed, woken and taken up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.cli.run.due_runs import DueRunsThread, parked_runs
from rung.cli.run.parked_call import ParkedCall, load_parked_call
from rung.core.domain.errors import StoreDamaged
from rung.core.domain.incident import Incident
from rung.engine.durable.parking import CALL_STEP
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("unmeasured_processes")
RUNG = [sys.executable, "-m", "rung"]
# Claude Code's words, with the reset in the file `reset`; once that time has come, the input and "fine". A reset of "+3" is
# three seconds after the first start.
AGENT = """
echo "$$" >> starts
case "$(cat reset)" in +*) echo "$(($(date +%s) $(cat reset)))" > reset ;; esac
if [ "$(date +%s)" -ge "$(cat reset)" ]; then cat; echo; echo fine; exit 0; fi
echo "Claude AI usage limit reached|$(cat reset)"
exit 1
"""


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("RUNG_JOURNAL", str(tmp_path / "j.db"))


def limit(folder: Path, seconds: int) -> int:
    """Let the limit reopen so many seconds from now."""
    reset = int(time.time()) + seconds
    (folder / "reset").write_text(str(reset))
    (folder / "agent.sh").write_text(AGENT)
    return reset


def limit_from_start(folder: Path, seconds: int) -> None:
    """Let the limit reopen so many seconds after the agent meets it, however long it takes to start."""
    limit(folder, seconds)
    (folder / "reset").write_text(f"+{seconds}")


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text().splitlines())


def words(*options: str) -> list[str]:
    return [*RUNG, "run", *options, "--", "sh", "agent.sh"]


def call(line: list[str], folder: Path, given: str = "task") -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, cwd=folder, input=given, capture_output=True, text=True, timeout=60, check=False)


def resume(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return call([*RUNG, "resume", *options], folder, "")


def listed(folder: Path) -> list[dict[str, Any]]:
    done = resume(folder, "--list", "--json")
    runs: list[dict[str, Any]] = json.loads(done.stdout)["runs"] if done.returncode == 0 else []  # no journal yet
    return runs


def test_what_is_not_parked_is_explained(tmp_path: Path) -> None:
    """Without a journal and a terminal the run ends at the limit, and says which option waits for it."""
    limit(tmp_path, 7_200)
    command = [*RUNG, "run", "--no-journal", "--", "sh", "agent.sh"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 3
    assert "only --park wait waits for it" in done.stderr


def test_a_limit_is_parked_and_the_run_finishes(tmp_path: Path) -> None:
    """A command that meets a plan's limit runs again after the reset, with its input, and says until when it is parked."""
    limit_from_start(tmp_path, 4)
    done = call(words(), tmp_path)
    assert (done.returncode, done.stdout) == (0, "task\nfine\n"), done.stderr
    assert time.time() >= int((tmp_path / "reset").read_text())
    assert starts(tmp_path) == 2
    assert "parked until " in done.stderr
    assert "rung resume " in done.stderr
    assert listed(tmp_path) == []


def test_park_off_gives_up_at_once(tmp_path: Path) -> None:
    """With --park off, and above --park-max, the run ends as without parking."""
    limit(tmp_path, 9_000)
    for options, why in ((("--park", "off"), "usage limit"), (("--park-max", "60"), "the longest time parked is 60 s")):
        done = call(words(*options), tmp_path)
        assert done.returncode == 3
        assert why in json.loads(done.stdout)["failureReason"]
    assert starts(tmp_path) == 2


def test_park_exit_leaves_with_the_time(tmp_path: Path) -> None:
    """With --park exit the code is 75, and the contract has the time, the run and how to continue."""
    reset = limit(tmp_path, 9_000)
    done = call(words("--park", "exit"), tmp_path)
    assert done.returncode == 75
    contract = json.loads(done.stdout)
    assert contract["parked_until"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(reset))
    assert contract["continue"] == f"rung resume {contract['run']}"
    assert contract["failureReason"].startswith(f"parked until {contract['parked_until']}")
    (row,) = listed(tmp_path)
    assert (row["run"], row["state"], row["parked_until"]) == (contract["run"], "parked", contract["parked_until"])


def killed_in_the_park(folder: Path, *options: str) -> None:
    """Start a run, and kill it when it is parked."""
    process = subprocess.Popen(
        words(*options), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(b"task")
    process.stdin.close()
    with rung.journal() as journal:
        wait_until(lambda: journal.read("SELECT 1 FROM step WHERE key = ?", (CALL_STEP,)))
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("options", [(), ("--run-id", "mine")])
def test_a_parked_run_survives_its_process(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Killed in the park, it is finished after the reset by `rung resume --due`, which forgets no attempt."""
    limit(tmp_path, 12)
    killed_in_the_park(tmp_path, *options)
    assert starts(tmp_path) == 1
    with rung.journal() as journal:
        wait_until(lambda: [run for run in parked_runs(journal, time.time()) if run.is_due], 0.2)
    done = resume(tmp_path, "--due", "--json")
    (row,) = json.loads(done.stdout)["runs"]
    assert (done.returncode, row["state"], row["exit_code"]) == (0, "taken up", 0), done
    assert starts(tmp_path) == 2
    with rung.journal() as journal:
        assert journal.runs.result_of(row["run"])["value"] == "task\nfine\n"
        assert Incident.of(journal.events(row["run"])).attempts == 2
    assert "No parked runs" in resume(tmp_path, "--due").stdout


def test_nothing_is_due_before_the_reset(tmp_path: Path) -> None:
    """Killed in the park, a run is listed with its time and not started before it."""
    limit(tmp_path, 9_000)
    killed_in_the_park(tmp_path)
    early = resume(tmp_path, "--due")
    assert (early.returncode, starts(tmp_path)) == (0, 1)
    assert "parked until" in early.stdout


def test_a_person_wakes_a_parked_run(tmp_path: Path) -> None:
    """`rung resume RUN --now` wakes one that another process waits for, and takes up one that nobody does."""
    limit(tmp_path, 9_000)
    process = subprocess.Popen(words(), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    (row,) = wait_until(lambda: [row for row in listed(tmp_path) if row["state"] == "parked"])
    limit(tmp_path, 0)
    assert resume(tmp_path, row["run"], "--now").returncode == 0
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "\nfine\n")
    limit(tmp_path, 9_000)
    left = json.loads(call(words("--park", "exit"), tmp_path).stdout)["run"]
    limit(tmp_path, 0)
    wrong = resume(tmp_path, left, "--idempotent")
    assert (wrong.returncode, "is parked" in wrong.stderr) == (2, True)
    done = resume(tmp_path.parent, left, "--now")
    assert (done.returncode, done.stdout) == (0, "task\nfine\n"), done.stderr


def test_a_run_that_is_not_parked_is_not_woken(tmp_path: Path) -> None:
    """A wrong use of --due, --now and --model is an error that names what is allowed."""
    limit(tmp_path, 0)
    assert call(words(), tmp_path).returncode == 0
    for options, text in (
        (("--due", "x"), "--due cannot be combined with RUN"),
        (("--now",), "--now needs RUN"),
        (("x", "--model", "m"), "--model needs --now"),
        (("x", "--now"), "no open run 'x'"),
    ):
        done = resume(tmp_path, *options)
        assert (done.returncode, text in done.stderr) == (2, True), done
    done = call(words("--park", "exit", "--no-journal"), tmp_path)
    assert (done.returncode, "wait or off without a journal" in done.stderr) == (2, True)


def polled(due: DueRunsThread, said: list[str], text: str) -> bool:
    """Let the service poll once; whether it has said this last."""
    due.take_up(time.time())
    return text in said[-1]


def test_a_service_takes_up_what_is_due(tmp_path: Path) -> None:
    """A service starts a run whose limit has reopened, once, with its input and in its directory."""
    limit(tmp_path, 4_000)
    left = json.loads(call(words("--park", "exit"), tmp_path).stdout)["run"]
    limit(tmp_path, 0)
    said: list[str] = []
    with rung.journal() as journal:
        due = DueRunsThread(journal, str(tmp_path / "j.db"), said.append)
        due.take_up(time.time())
        assert (said, starts(tmp_path)) == ([], 1)
        due.take_up(time.time() + 4_040)
        due.take_up(time.time() + 4_040)
        # The process goes by its own clock: it is too early there, and the run stays parked until a person wakes it.
        wait_until(lambda: polled(due, said, "is parked again"))
        journal.runs.send(f"order/{left}", {"action": "retry", "by": "ops"})
        due.take_up(time.time() + 301)
        wait_until(lambda: polled(due, said, "succeeded"))
        assert journal.runs.result_of(left)["value"] == "task\nfine\n"
    assert starts(tmp_path) == 2
    assert sum("is taken up" in line for line in said) == 2


def test_a_forged_call_is_not_run(tmp_path: Path) -> None:
    """A call that this account has not sealed for this run on this machine is not run."""
    limit(tmp_path, 4_000)
    left = json.loads(call(words("--park", "exit"), tmp_path).stdout)["run"]
    with rung.journal() as journal:
        kept = load_parked_call(journal, left)
        assert kept is not None
        assert (kept.given, kept.folder) == (b"task", str(tmp_path))
        secret = "sk-ant-api03-" + "a1B2" * 20
        other = ParkedCall(("run", "--", "touch", secret), str(tmp_path), "", kept.host, b"")
        assert secret not in json.dumps(other.sealed(journal, left))

        def forge(step: dict[str, Any]) -> None:
            body = json.dumps(step)
            journal.write(
                lambda connection: connection.execute("UPDATE step SET result = ? WHERE key = 'call'", (body,)),
                lambda _: True,
            ).result()

        forge({"words": ["run", "--", "touch", "forged"], "folder": str(tmp_path)})
        assert load_parked_call(journal, left) is None
        forge(other.sealed(journal, "another run"))
        with pytest.raises(StoreDamaged):
            load_parked_call(journal, left)
        forge(other._replace(host="elsewhere").sealed(journal, left))
        said: list[str] = []
        DueRunsThread(journal, str(tmp_path / "j.db"), said.append).take_up(time.time() + 4_040)
        assert "a run of this machine" in said[0]
        assert len(list(parked_runs(journal, time.time()))) == 1
    assert not (tmp_path / "forged").exists()


PIPELINE = """
[pipeline]
name = "p"
[[stage]]
id = "plan"
command = ["sh", "agent.sh"]
prompt = "task"
"""
STAGE_AGENT = AGENT.replace("cat; echo; echo fine", "echo 'PASS|files:1|ref:x'; echo fine")


def test_a_parked_pipeline_is_taken_up(tmp_path: Path) -> None:
    """A pipeline whose stages are all parked leaves with code 75; `rung resume --due` resumes it as one run."""
    limit(tmp_path, 8)
    (tmp_path / "agent.sh").write_text(STAGE_AGENT)
    (tmp_path / "p.toml").write_text(PIPELINE)
    left = call([*RUNG, "pipeline", "run", "p.toml", "--park", "exit"], tmp_path)
    assert (left.returncode, "rung: parked" in left.stderr) == (75, True), left
    with rung.journal() as journal:
        wait_until(lambda: [run for run in parked_runs(journal, time.time()) if run.is_due], 0.2)
    done = resume(tmp_path, "--due", "--json")
    (row,) = json.loads(done.stdout)["runs"]
    assert (done.returncode, row["exit_code"]) == (0, 0), done
    assert starts(tmp_path) == 2
    assert listed(tmp_path) == []


def test_rung_serve_takes_up_what_is_woken(tmp_path: Path) -> None:
    """The real service takes up a parked run that a person wakes."""
    limit(tmp_path, 9_000)
    left = json.loads(call(words("--park", "exit"), tmp_path).stdout)["run"]
    limit(tmp_path, 0)
    with rung.journal() as journal:
        journal.runs.send(f"order/{left}", {"action": "retry", "by": "ops"})
        service = subprocess.Popen(
            [*RUNG, "serve", "--port", "0", "--no-gateway"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: journal.runs.result_of(left), 0.2)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
    assert starts(tmp_path) == 2


def test_a_run_that_is_stopped_after_its_park_is_not_called_parked(tmp_path: Path) -> None:
    """Stopped in the attempt after the park, the contract names the run and no time; the journal's option is repeated."""
    limit_from_start(tmp_path, 4)
    (tmp_path / "agent.sh").write_text(AGENT.replace("cat; echo; echo fine; exit 0", "touch at-work; exec sleep 600"))
    process = subprocess.Popen(
        words("--journal", "other.db"), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    wait_until((tmp_path / "at-work").exists)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    contract = json.loads(out)
    assert process.returncode == 143
    assert "parked_until" not in contract
    assert contract["continue"] == f"rung resume --journal other.db {contract['run']}"


def test_show_says_whether_a_process_waits(tmp_path: Path) -> None:
    """`rung show` of a parked run says until when, and whether its process waits; a signal leaves one way to go on."""
    limit(tmp_path, 9_000)
    process = subprocess.Popen(
        words(), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with rung.journal() as journal:
        wait_until(lambda: journal.read("SELECT 1 FROM step WHERE key = ?", (CALL_STEP,)))
    show = [*RUNG, "show", "last"]
    waiting = " ".join(call(show, tmp_path).stdout.split())
    assert "now parked until " in waiting
    assert "; its process waits" in waiting
    process.send_signal(signal.SIGTERM)
    contract = json.loads(process.communicate(timeout=60)[0])
    left = " ".join(call(show, tmp_path).stdout.split())
    assert f"no process waits: rung resume {contract['run']}" in left
    assert "suspended by SIGTERM" in left
    advice = f"Continue it with `{contract['continue']}`."
    assert [contract["recommendation"], contract["levels"][-1]["recommendation"]] == [advice, advice]
