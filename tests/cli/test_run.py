"""`rung run` with real commands: rungs, output and exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import is_running, wait_until

if TYPE_CHECKING:
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung", "run"]


def run(*words: str, given: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUNG, *words], input=given, capture_output=True, text=True, timeout=60, cwd=cwd, check=False
    )


def script(path: Path, body: str) -> str:
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(0o755)
    return str(path)


FAILS_ONCE = """
import pathlib, sys
mark = pathlib.Path(sys.argv[1])
if not mark.exists():
    mark.write_text("")
    sys.exit("curl: (7) Failed to connect: Connection refused")
print("fine")
"""

COUNTS = """
import pathlib, sys
log = pathlib.Path(sys.argv[1])
log.write_text((log.read_text() if log.exists() else "") + repr(sys.stdin.read()) + "\\n")
print("draft"); sys.exit("no idea")
"""


def test_success_passes_through() -> None:
    """A successful command gets our input, and only its output is printed."""
    done = run("--", "cat", given="hello")
    assert (done.returncode, done.stdout) == (0, "hello")


def test_a_blip_is_repeated(tmp_path: Path) -> None:
    """A lost connection is retried, and only the successful run's output is printed."""
    agent = script(tmp_path / "agent", FAILS_ONCE)
    done = run("--", agent, str(tmp_path / "mark"))
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "network: curl: (7) Failed to connect" in done.stderr
    assert "recovered" in done.stderr


def test_the_error_comes_back_on_stdin(tmp_path: Path) -> None:
    """A failing command is run again with the error and its output in front of the task."""
    agent = script(tmp_path / "agent", COUNTS)
    done = run("--", agent, str(tmp_path / "log"), given="do the thing")
    inputs = [line for line in (tmp_path / "log").read_text().splitlines() if line]
    assert inputs[0] == "'do the thing'"
    assert "no idea" in inputs[1]
    assert "draft" in inputs[1]
    assert "do the thing" in inputs[1]
    assert done.returncode == 3
    contract = json.loads(done.stdout)
    assert (contract["status"], contract["escalationPath"]) == ("partial", [2, 3, 5])
    assert contract["attempts"] == len(inputs)


def test_recovery_in_the_command_line(tmp_path: Path) -> None:
    """{recovery} in the command is replaced by the recovery prompt, and stdin is the task."""
    body = "import sys\nprint(sys.stdin.read(), len(sys.argv[1]))\nsys.exit('bad' if not sys.argv[1] else 0)"
    agent = script(tmp_path / "agent", body)
    done = run("--", agent, "{recovery}", given="task")
    words = done.stdout.split()
    assert (done.returncode, words[0]) == (0, "task")
    assert int(words[1]) > 50


def test_a_fallback_takes_over() -> None:
    """A fallback command takes over with the context; {model} is replaced by the model."""
    done = run("--fallback", "cat", "--", "sh", "-c", "echo 'API Error: 529 Overloaded' >&2; exit 1", given="the task")
    assert (done.returncode, done.stdout) == (0, "the task")
    done = run("--model", "small", "--model", "large", "--", "sh", "-c", "test {model} = large && echo {model}")
    assert (done.returncode, done.stdout) == (0, "large\n")


def test_a_json_result_that_is_an_error(tmp_path: Path) -> None:
    """A result that says success and is_error true is a failure, classified by its status."""
    result = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 401, "result": "bad key"}
    done = run("--", "sh", "-c", f"echo '{json.dumps(result)}'")
    assert done.returncode == 3
    contract = json.loads(done.stdout)
    assert (contract["errorType"], contract["attempts"]) == ("auth_error", 1)


@pytest.mark.parametrize(
    ("policy", "words", "code", "status"),
    [("task", "exit 7", 3, "partial"), ("call", "exit 7", 1, "failed"), ("pipeline", "exit 7", 4, "blocked")],
)
def test_exit_codes_differ(tmp_path: Path, policy: str, words: str, code: int, status: str) -> None:
    """Partial, failed and blocked have exit codes of their own, and the contract is printed."""
    done = run("--policy", policy, "--", "sh", "-c", words, cwd=tmp_path)
    assert done.returncode == code
    assert json.loads(done.stdout)["status"] == status
    assert (tmp_path / "tasks/pipeline-blocked.md").exists() == (status == "blocked")


def test_progress_as_json_lines(tmp_path: Path) -> None:
    """With --json every event and every level record is a line, and the last line is the outcome with the output."""
    agent = script(tmp_path / "agent", FAILS_ONCE)
    done = run("--json", "--", agent, str(tmp_path / "mark"))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == [
        "opened",
        "attempt_failed",
        "decided",
        "level",
        "attempt_succeeded",
        "level",
        "outcome",
    ]
    levels = [line for line in lines if line["name"] == "level"]
    assert [(line["taskId"], line["status"]) for line in levels] == [
        (lines[0]["id"], "in_progress"),
        (lines[0]["id"], "completed"),
    ]
    assert (lines[-1]["status"], lines[-1]["output"]) == ("recovered", "fine\n")


def test_a_check_must_pass(tmp_path: Path) -> None:
    """A run whose check fails has failed; the output of the check goes into the next attempt."""
    body = "import sys, pathlib\nt = sys.stdin.read()\nif 'do not' in t.lower(): pathlib.Path('made').write_text('')"
    agent = script(tmp_path / "agent", body)
    done = run("--check", "ls made", "--", agent, given="make it", cwd=tmp_path)
    assert done.returncode == 0
    assert "test_failure" in done.stderr


def test_an_attempt_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """A command that times out is killed with its children."""
    pid = tmp_path / "pid"
    words = f"sleep 600 & echo $! > {pid}; wait"
    done = run("--policy", "call", "--retries", "0", "--attempt-seconds", "5", "--", "sh", "-c", words)
    assert done.returncode == 1
    assert json.loads(done.stdout)["errorType"] == "timeout"
    wait_until(lambda: not is_running(int(pid.read_text())))


@pytest.mark.usefixtures("unmeasured_processes")
@pytest.mark.parametrize("when", ["attempt", "backoff"])
def test_ctrl_c_stops_at_once(tmp_path: Path, when: str) -> None:
    """Ctrl-C stops at once, in an attempt or in a backoff, and leaves a partial outcome; exit 130."""
    ready = tmp_path / "ready"
    words = (
        f"touch {ready}; sleep 600"
        if when == "attempt"
        else f"touch {ready}; echo 'API Error: 529 Overloaded' >&2; exit 1"
    )
    policy = tmp_path / "p.toml"
    policy.write_text('[policy]\nladder = "call"\nbackoff = {base = 50, cap = 50, jitter = false}\n')
    process = subprocess.Popen(
        [*RUNG, "--policy", str(policy), "--", "sh", "-c", words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    if when == "backoff":
        while "again in" not in (line := process.stderr.readline()):
            assert line, "it ended without a pause"
    wait_until(ready.exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    contract: dict[str, Any] = json.loads(out)
    assert contract["status"] == "partial"
    assert contract["recommendation"]


def test_dollars_limit_a_command_that_prints_its_cost() -> None:
    """The cost in the JSON of each attempt counts, also of those that failed; none starts once the limit is spent."""
    result = json.dumps({"is_error": True, "result": "API Error: 529 Overloaded", "total_cost_usd": 0.4})
    done = run("--no-journal", "--dollars", "0.75", "--", "sh", "-c", f"echo '{result}'; exit 1")
    contract = json.loads(done.stdout)
    assert (done.returncode, contract["attempts"], contract["dollars"]) == (3, 2, 0.8)
    assert "the budget of $0.75 is spent" in contract["failureReason"]


def test_the_costs_of_all_agents_that_a_script_starts_count(tmp_path: Path) -> None:
    """A script that starts an agent twice has cost what both of their results say, between whatever else it prints."""
    results = [json.dumps({"result": "done", "session_id": name, "total_cost_usd": 3}) for name in ("one", "two")]
    text = tmp_path / "printed"
    text.write_text("\n".join(["starting", results[0], "between", results[1], "ended", ""]))
    done = run("--no-journal", "--dollars", "5", "--", "sh", "-c", f"cat {text}; exit 1")
    contract = json.loads(done.stdout)
    assert (contract["attempts"], contract["dollars"]) == (1, 6.0)


@pytest.mark.parametrize("cost", ["", "-1", "true", "1e999", '"2"'])
def test_a_dollar_limit_that_hears_of_no_cost_says_so(cost: str) -> None:
    """A command that tells no cost, or nonsense, is not limited in dollars, and the run says so."""
    printed = f'{{"result": "done", "total_cost_usd": {cost}}}' if cost else "done"
    done = run("--no-journal", "--dollars", "1", "--", "echo", printed)
    assert (done.returncode, done.stdout) == (0, printed + "\n")
    assert "the limit of $1.00 limited nothing" in done.stderr


BROKEN = "echo 'cat: x: No such file or directory' >&2; exit 1"


@pytest.mark.parametrize(
    ("words", "given", "attempts"),
    [
        (BROKEN, "", 2),  # what it does with an input is known when there is one
        (BROKEN, "do it", 1),
        ("cat > /dev/null; " + BROKEN, "do it", 6),
        ("echo {recovery}; " + BROKEN, "do it", 6),
    ],
)
def test_a_command_that_reads_no_input_is_not_repeated_for_nothing(words: str, given: str, attempts: int) -> None:
    """No instruction reaches a command that does not read its input: a failure that a retry cannot fix ends the run."""
    done = run("--no-journal", "--", "sh", "-c", words, given=given)
    contract = json.loads(done.stdout)
    assert (done.returncode, contract["attempts"]) == (3, attempts)
    is_unread = attempts < 6
    assert (
        "nudge, replan, force-done skipped: the command does not read its input" in contract["failureReason"]
    ) == is_unread
    assert ("write {recovery} where it takes the error" in done.stderr) == is_unread


def test_a_failure_that_no_instruction_helps_asks_for_no_placeholder() -> None:
    """A refused key ends the run for its own reason: that the command did not read its input has cost nothing."""
    done = run("--no-journal", "--", "sh", "-c", "echo 'API Error: 401 invalid x-api-key' >&2; exit 1", given="do it")
    assert "auth_error" in done.stderr
    assert "did not read its input" not in done.stderr


@pytest.mark.parametrize(
    ("words", "given", "attempts"),
    [
        ("echo x >> {log}; echo done", "", 2),  # the new plan is the first input that it gets
        ("echo x >> {log}; echo done", "do it", 1),
        ("cat > /dev/null; echo x >> {log}; echo done", "do it", 3),
        ("echo x >> {log}; echo {{recovery}}", "do it", 3),
    ],
)
def test_a_script_is_not_repeated_for_a_turn_that_it_cannot_read(
    words: str, given: str, attempts: int, tmp_path: Path
) -> None:
    """A script that succeeds, fails its check and does not read its input gets no new plan and no last turn."""
    log = tmp_path / "log"
    done = run("--no-journal", "--check", "false", "--", "sh", "-c", words.format(log=log), given=given)
    contract = json.loads(done.stdout)
    assert (done.returncode, contract["attempts"], len(log.read_text().split())) == (3, attempts, attempts)
    assert ("the command does not read its input" in contract["failureReason"]) == (attempts < 3)
    assert ("write {recovery} where it takes the error" in done.stderr) == (attempts < 3)


def test_a_last_turn_goes_to_a_command_that_reads_it() -> None:
    """Whether a last turn can be told is a question to the command that gets it, not to the fallback before it."""
    last = ("--no-journal", "--check", "false", "--fallback")
    done = run(*last, "sh -c 'cat > /dev/null; echo other'", "--", "echo", "deaf", given="do it")
    assert json.loads(done.stdout)["attempts"] == 2
    done = run(*last, "echo other", "--", "sh", "-c", "cat > /dev/null; echo reads", given="do it")
    assert json.loads(done.stdout)["attempts"] == 4


def test_a_check_that_passes_after_the_last_turn_is_a_recovery(tmp_path: Path) -> None:
    """A run whose last turn passes `--check` has succeeded: exit code 0 and the output of that turn."""
    words = f"cat > /dev/null; echo x >> {tmp_path}/log; wc -l < {tmp_path}/log"
    check = f"sh -c 'test $(wc -l < {tmp_path}/log) = 3'"
    done = run("--no-journal", "--check", check, "--", "sh", "-c", words, given="do it")
    assert (done.returncode, done.stdout.strip()) == (0, "3")
    assert "↑ force-done" in done.stderr
    assert "✓ attempt 3    recovered" in done.stderr


def test_a_command_that_reads_no_input_is_still_retried_and_handed_over() -> None:
    """An overload is retried, and a fallback takes over, whether the command reads its input or not."""
    done = run("--no-journal", "--patience", "0", "--", "sh", "-c", "echo 503 overloaded >&2; exit 1", given="do it")
    assert json.loads(done.stdout)["attempts"] == 4
    done = run("--no-journal", "--fallback", "echo other", "--", "sh", "-c", BROKEN, given="do it")
    assert (done.returncode, done.stdout, done.stderr.count("No such file or directory\n")) == (0, "other\n", 1)


def test_a_fallback_can_take_over_at_once() -> None:
    """With `--escalate-after 0` an overloaded command is not repeated before its fallback."""
    options = ("--no-journal", "--escalate-after", "0", "--fallback", "echo other")
    done = run(*options, "--", "sh", "-c", "echo 503 overloaded >&2; exit 1")
    assert (done.returncode, done.stdout) == (0, "other\n")
    assert done.stderr.count("503 overloaded\n") == 1


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--policy", "nope.toml", "--", "true"), "nope.toml"),
        (("--template", "wild", "--", "true"), "template"),
        (("--max-attempts", "-1", "--", "true"), "attempts"),
        (("--retries", "-2", "--", "true"), "retries"),
        (("--attempt-seconds", "0", "--", "true"), "attempt_seconds"),
        (("--retries", "0", "--fallback", "echo other", "--", "false"), "--escalate-after 0"),
    ],
)
def test_bad_input_runs_nothing(words: tuple[str, ...], named: str, tmp_path: Path) -> None:
    """Wrong usage is a one-line error; exit code 2, nothing runs."""
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert named in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_no_command_is_wrong_usage() -> None:
    """A missing COMMAND is exit code 2."""
    assert run().returncode == 2


def test_a_check_that_cannot_run(tmp_path: Path) -> None:
    """A check that is gone when it should run has verified nothing: the run is partial, and the command is not run again."""
    check = script(tmp_path / "check", "")
    done = run("--no-ask", "--check", check, "--", "sh", "-c", f"rm {check}; echo ran >> log; echo done", cwd=tmp_path)
    assert done.returncode == 3
    assert (tmp_path / "log").read_text() == "ran\n"


def test_a_check_whose_output_is_not_text(tmp_path: Path) -> None:
    """A check that fails and prints a byte that is not UTF-8 has failed."""
    check = "sh -c 'printf \"\\377\"; exit 1'"
    done = run("--max-attempts", "1", "--check", check, "--", "echo", "done", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["errorType"]) == (3, "test_failure")


def test_an_exhausted_plan_reaches_the_fallback() -> None:
    """A fallback whose account is unknown takes over from an exhausted plan; one that gets the same model does not."""
    spent = "echo 'You exceeded your current quota' >&2; exit 1"
    done = run("--no-journal", "--fallback", "cat", "--", "sh", "-c", spent, given="the task")
    assert (done.returncode, done.stdout) == (0, "the task")
    same = run("--no-journal", "--model", "a", "--fallback", "echo {model}", "--", "sh", "-c", f": {{model}}; {spent}")
    assert (same.returncode, json.loads(same.stdout)["attempts"]) == (3, 1)


def test_models_need_a_place_in_the_command(tmp_path: Path) -> None:
    """Several models without {model} are refused; those of a file are not used, and that is said before the start."""
    words = ("--", "sh", "-c", "echo x >> log; echo 'model not found' >&2; exit 1")
    refused = run("--no-journal", "--model", "a", "--model", "b", *words, cwd=tmp_path)
    assert (refused.returncode, "no command has {model}" in refused.stderr) == (2, True)
    assert not (tmp_path / "log").exists()
    (tmp_path / "p.toml").write_text('[policy]\nladder = "call"\nmodels = ["a", "b"]\nescalate_after = 0\n')
    done = run("--no-journal", "--policy", "p.toml", *words, cwd=tmp_path)
    assert "never handed over to another model" in done.stderr
    assert "hand over to b" not in done.stderr
    assert (tmp_path / "log").read_text() == "x\n"


def test_each_of_equal_failures_has_its_number() -> None:
    """Progress counts the attempts of equal failures, and says which one comes next and which is the last."""
    options = ("--no-journal", "--policy", "model", "--retries", "2", "--patience", "0")
    done = run(*options, "--", "sh", "-c", "echo 'HTTP 503' >&2; exit 1")
    lines = [line for line in done.stderr.splitlines() if "attempt" in line]
    assert [line.split()[2] for line in lines if line.startswith("✗")] == ["1", "2", "3"]
    assert [line.rpartition(", ")[2] for line in lines if line.startswith("↻")] == ["attempt 2 of 3", "attempt 3 of 3"]
