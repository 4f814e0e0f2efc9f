"""`rung lab`: serving, listing faults, and testing a command under each fault."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx2
import pytest

from rung.testing import FAULTS, words
from rung.testing.provider.fault_report import FaultRun, FaultVerdict, compare, judge

if TYPE_CHECKING:
    from pathlib import Path

# An agent of three lines: it tries twice, and believes whatever ends cleanly.
AGENT = """
import json, os, urllib.error, urllib.request
def ask():
    body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "say something to me"}]}
    call = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
                                  {"x-api-key": os.environ["ANTHROPIC_API_KEY"]})
    return json.load(urllib.request.urlopen(call, timeout=60))["content"]
try:
    said = ask()
except urllib.error.HTTPError as error:
    if error.code < 429:
        raise
    said = ask()
print(*[part["text"] for part in said])
"""


def rung(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rung", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, input="", timeout=120)


def attempt(agent: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return rung("lab", "test", *arguments, "--", sys.executable, "-S", str(agent))


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "agent.py"
    path.write_text(AGENT)
    return path


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """The command prints its address and exports, follows its script, and prints a summary at the end."""
    script = tmp_path / "faults.toml"
    script.write_text('words = 4\n[[rules]]\nrequest = 1\nfault = "overloaded"\n')
    command = [sys.executable, "-m", "rung", "lab", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        url = served.stdout.readline().split()[-1]
        ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        answers = [httpx2.post(f"{url}/v1/messages", json=ask) for _ in range(2)]
        served.send_signal(signal.SIGTERM)
        rest = served.stdout.read()
    assert [answer.status_code for answer in answers] == [529, 200]
    assert answers[1].json()["content"][0]["text"] == words(4)
    assert f"ANTHROPIC_BASE_URL={url}\n" in rest
    assert f"OPENAI_BASE_URL={url}/v1\n" in rest
    assert "2 attempts; overloaded 1" in rest
    assert served.returncode == 0


def test_the_faults_are_listed() -> None:
    """Faults are listed by name; the JSON output contains their parameters."""
    listed = rung("lab", "faults").stdout
    assert all(re.search(rf"^{name} ", listed, re.MULTILINE) for name in FAULTS)
    told = json.loads(rung("lab", "faults", "--json").stdout)
    assert told["cut"]["takes"] == {"after": 5, "how": "close"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rate", "3"), "--rate: '3.0' is invalid; must be a number from 0 to 1"),
        (("--script", "nowhere.toml"), "nowhere.toml"),
        (("--fault", "cutt"), "faults[0].fault: 'cutt'"),
        (("test", "--fault", "cutt", "--", "true"), "did you mean cut"),
        (("test", "--fault", "cut:after", "--", "true"), "cut:KEY=VALUE"),
        (("test", "--fault", "cut:aftr=3", "--", "true"), "rules[0].aftr: 3"),
        (("test", "--", "no-such-command"), "a program that can be run"),
        (("test", "--", "false"), "a command that succeeds without faults; it exits 1"),
        (("test", "--", "true"), "a command that calls"),
        (("test", "--max-seconds", "0.2", "--", "sleep", "9"), "enough for the command without faults"),
    ],
)
def test_misuse(arguments: tuple[str, ...], said: str) -> None:
    """Invalid usage prints what is wrong on one line of stderr, at most with where to read on, and exits with 2."""
    done = rung("lab", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    first, *rest = done.stderr.splitlines()
    assert said in first
    assert rest in ([], ["See: rung help lab"])


def test_what_an_agent_survives(agent: Path) -> None:
    """Each verdict is reported for a command that behaves accordingly."""
    faults = ["overloaded", "unauthorized", "cut", "max_tokens", "no_end", "stall"]
    chosen = [word for name in faults for word in ("--fault", name)]
    done = attempt(agent, *chosen, "--max-seconds", "6", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["fault"]: row for row in json.loads(done.stdout)["faults"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "overloaded": "survived", "unauthorized": "reported", "cut": "failed", "max_tokens": "silently_wrong", "no_end": "not_triggered",
        "stall": "hung",
    }  # fmt: skip
    assert (rows["overloaded"]["attempts"], rows["overloaded"]["answer"]) == (2, "complete")
    assert (rows["max_tokens"]["exit_code"], rows["max_tokens"]["answer"]) == (0, "5 of 40 words")
    assert (rows["stall"]["exit_code"], rows["stall"]["attempts"]) == (None, 1)


def test_a_table_for_people_and_an_exit_code_for_scripts(agent: Path) -> None:
    """The output has a row per fault and a total; --strict exits with 1 on a bad verdict."""
    arguments = ("--fault", "overloaded", "--fault", "empty:times=1", "--strict", "--expect", words(40))
    done = attempt(agent, *arguments)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("without faults: 1 attempt")
    assert re.match(r"overloaded +survived +0 +complete +2 ", lines[2])
    assert re.match(r"empty +silently_wrong +0 +(none|different) +1 ", lines[3])
    assert lines[4] == "survived 1, silently_wrong 1"
    assert attempt(agent, "--fault", "overloaded", "--strict").returncode == 0


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (words(40), "complete"),
        (f"> {words(20)}\n{words(40, first=21)}", "complete"),
        (words(12), "12 of 40 words"),
        (f"{words(12)} {words(40, first=10)}", "doubled"),
        ("Error: overloaded", "none"),
        ("", "none"),
    ],
)
def test_answers_are_compared_word_by_word(output: str, said: str) -> None:
    """All words once and in order are complete, whatever the line wrapping."""
    assert compare(output, f"{words(40)}\n") == said


def test_other_answers_are_compared_as_they_are() -> None:
    """Other output must equal the baseline, or contain the expected text."""
    assert compare("done: 3", "done: 3") == "complete"
    assert compare("done: 4", "done: 3") == "different"
    assert compare("took 4 s, done", "took 3 s, done", "done") == "complete"
    assert compare(" ", "done: 3") == "none"


def test_a_run_that_says_it_went_well_is_held_to_it() -> None:
    """A successful exit code with an incomplete answer is silently wrong, not survived."""
    usual = FaultRun(exit_code=0, output=words(9), seconds=1.0)
    for output, verdict in ((words(9), FaultVerdict.SURVIVED), (words(8), FaultVerdict.SILENTLY_WRONG)):
        run = FaultRun(exit_code=0, output=output, seconds=1.0)
        assert judge(FAULTS["cut"], run, usual, triggered=True, attempts=1).verdict is verdict


# Writes its row before it asks, and again for each repetition: the answer is right, the effect is not.
WRITER = """
import json, os, urllib.error, urllib.request
def ask():
    open("ran.txt", "a").write("row\\n")
    body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "say something to me"}]}
    call = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
                                  {"x-api-key": os.environ["ANTHROPIC_API_KEY"]})
    return json.load(urllib.request.urlopen(call, timeout=20))["content"]
try:
    said = ask()
except urllib.error.HTTPError:
    said = ask()
print(*[part["text"] for part in said])
"""


def test_effects_are_judged(tmp_path: Path) -> None:
    """With --check, a run with the right answer and a wrong effect is wrong; --reset precedes each run."""
    agent = tmp_path / "agent.py"
    agent.write_text(WRITER)
    ran = tmp_path / "ran.txt"
    words = ["lab", "test", "--fault", "overloaded", "--fault", "no_end", "--json", "--reset", f"rm -f {ran}"]
    command = ["--", "/bin/sh", "-c", f"cd {tmp_path}; {sys.executable} -S agent.py"]
    shown = json.loads(rung(*words, *command).stdout)["faults"][0]
    assert (shown["verdict"], shown["answer"]) == ("survived", "complete")
    done = rung(*words, "--check", f'grep -q word && test "$(cat {ran})" = row', *command)
    first, second = json.loads(done.stdout)["faults"]
    assert (first["verdict"], first["answer"], first["exit_code"]) == ("silently_wrong", "check failed", 0)
    assert second["verdict"] == "not_triggered"


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--check", "false"), "a check that passes after a run without faults"),
        (("--reset", "exit 3"), "it exits 3"),
        (("--reset", "sleep 60", "--max-seconds", "0.2"), "it timed out"),
    ],
)
def test_a_check_that_cannot_pass_is_refused(agent: Path, option: tuple[str, ...], why: str) -> None:
    """A check that fails without faults, or a reset that fails, ends the test before the first fault."""
    done = attempt(agent, *option)
    assert (done.returncode, why in done.stderr) == (2, True), done
    assert not done.stdout


def test_a_passed_check_replaces_the_comparison() -> None:
    """Another text with the right effects is complete; text that --expect names is still required."""
    usual = FaultRun(exit_code=0, output="as usual", seconds=1.0, is_checked=True)
    other = FaultRun(exit_code=0, output="in other words", seconds=1.0, is_checked=True)
    for expect, verdict in (("", FaultVerdict.SURVIVED), ("usual", FaultVerdict.SILENTLY_WRONG)):
        found = judge(FAULTS["overloaded"], other, usual, triggered=True, attempts=2, expect=expect)
        assert found.verdict == verdict
