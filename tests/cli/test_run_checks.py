"""Hooks, completion checks and judge of `rung run`; `rung detect output` and `rung detect stalls`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import rung
from rung.cli.group import root
from rung.core.domain import events as ev
from rung.core.domain.request import Request
from rung.detectors.stalls import StallThresholds
from rung.wiring.stalls import stalls
from tests.cli.test_run import run, script
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from pathlib import Path

LOGS = """
import json, pathlib, sys
given = json.load(sys.stdin)
log = pathlib.Path(sys.argv[1])
log.write_text((log.read_text() if log.exists() else "") + given["when"] + " " + str(given["ok"]) + " " + given["rung"] + "\\n")
"""
SCORES = """
import json, pathlib, sys
case = json.load(sys.stdin)
pathlib.Path(sys.argv[1]).write_text(json.dumps(case))
good = 22 if "proof" in case["answer"] else 3
print(json.dumps({"goalAlignment": 22, "actionCompleteness": 20, "evidenceOfCompletion": good, "finalStateCoherence": 20}))
"""
PROVES_WHEN_TOLD = """
import sys
told = sys.stdin.read()
print("<think>I could say anything</think>It is 7" + (", and here is the proof" if "judged" in told else ""))
"""
FAILS_ONCE = """
import pathlib, sys
mark = pathlib.Path(sys.argv[1])
if not mark.exists():
    mark.write_text("")
    sys.exit("curl: (7) Failed to connect: Connection refused")
print("fine")
"""


def test_hooks_of_a_policy_file(tmp_path: Path) -> None:
    """Attempt hooks run for the first attempt, rung hooks for the attempts of a recovery; `attempt.pre` for both."""
    hook, log = script(tmp_path / "hook", LOGS), tmp_path / "log"
    rows = "".join(
        f'[[hooks]]\nwhen = "{when}"\nrun = "{hook} {log}"\n' for when in ("attempt.pre", "attempt.post", "rung.post")
    )
    write_trusted(tmp_path / "rung.toml", rows)
    done = run("--no-journal", "--", script(tmp_path / "agent", FAILS_ONCE), str(tmp_path / "mark"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert log.read_text().splitlines() == [
        "attempt.pre None ",
        "attempt.post False ",
        "attempt.pre None retry",
        "rung.post True retry",
    ]


def test_a_planner_and_an_investigator(tmp_path: Path) -> None:
    """`--investigate` finds the cause before a new plan, `--planner` makes it; a program that does not exist is exit code 2."""
    agent = script(
        tmp_path / "agent",
        'import sys\nif "use jose" in sys.stdin.read(): print("signed")\n'
        'else: sys.exit("Blocked: the architecture does not support signing")\n',
    )
    cause = script(tmp_path / "cause", 'print("passport cannot sign")')
    plan = script(tmp_path / "plan", 'import json, sys\nprint("as", json.load(sys.stdin)["cause"], "use jose")')
    done = run("--no-journal", "--json", "--planner", plan, "--investigate", cause, "--", agent, given="sign")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, told[-1]["output"], told[-1]["attempts"]) == (0, "signed\n", 2)
    assert [one["cause"] for one in told if one["name"] == "abandoned"] == ["passport cannot sign"]
    assert run("--no-journal", "--planner", "/nowhere/plan", "--", "true").returncode == 2


def test_notes_are_read_before_a_run_and_added_to_after_it(tmp_path: Path) -> None:
    """`notes` of a trusted file, or `--notes`: the command gets what is known, and a partial end is added; `--no-notes` is off."""
    write_trusted(tmp_path / "rung.toml", 'notes = "known"\n')
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "learnings.md").write_text("## [TOOL_ERROR] Use make -k\n")
    said = run("--no-journal", "--", "cat", given="do it", cwd=tmp_path).stdout
    assert said.endswith("\n\ndo it")
    assert "> Learning (TOOL_ERROR): Use make -k." in said
    assert run("--no-journal", "--no-notes", "--", "cat", given="do it", cwd=tmp_path).stdout == "do it"
    done = run("--no-journal", "--notes", "mine", "--max-attempts", "1", "--", "cat", "/nowhere", cwd=tmp_path)
    assert done.returncode == 3
    assert "/nowhere" in (tmp_path / "mine" / "issues.md").read_text()


def test_crashes_of_hooks_are_shown_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that failed in one run is told at the start of the next one, once, and counted by `rung hooks status`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    first = run("--no-journal", "--hook", "attempt.post=false", "--", "echo", "hi")
    assert (first.returncode, "earlier runs" in first.stderr) == (0, False)
    assert "hook attempt.post" in first.stderr
    told = [run("--no-journal", "--", "echo", "hi").stderr for _ in range(2)]
    assert "a hook failed once in earlier runs. Last: attempt.post false: RuntimeError: exit code 1" in told[0]
    assert "earlier runs" not in told[1]
    status = CliRunner().invoke(root, ["hooks", "status"])
    assert "run hooks    1 crashes of `rung run` hooks in" in status.output


def test_a_hook_says_no(tmp_path: Path) -> None:
    """A pre-hook that exits with 2 vetoes the attempt."""
    no = script(tmp_path / "no", 'import sys\nsys.exit(print("not today", file=sys.stderr) or 2)')
    mark = tmp_path / "mark"
    done = run(
        "--no-journal",
        "--retries",
        "0",
        "--hook",
        f"attempt.pre={no}",
        "--hook",
        f"rung.pre={no}",
        "--",
        "touch",
        str(mark),
    )
    assert done.returncode in (1, 3, 4)
    assert "not today" in done.stderr
    assert not mark.exists()


def test_a_hook_says_no_in_bytes(tmp_path: Path) -> None:
    """A veto whose reason is not UTF-8 is a veto."""
    no = script(tmp_path / "no", 'import sys\nsys.stderr.buffer.write(b"not \\xff\\xfe today")\nsys.exit(2)')
    done = run("--no-journal", "--hook", f"attempt.pre={no}", "--", "touch", str(tmp_path / "mark"))
    assert (done.returncode, "today" in done.stderr, (tmp_path / "mark").exists()) == (3, True, False), done.stderr


@pytest.mark.parametrize(("closed", "code"), [("false", 0), ("true", 3)])
def test_a_hook_that_breaks(tmp_path: Path, closed: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing hook is ignored and logged; if it fails closed, the attempt is not made."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    rows = "".join(
        f'[[hooks]]\nwhen = "{when}"\nrun = "false"\nfail_closed = {closed}\n' for when in ("attempt.pre", "rung.pre")
    )
    write_trusted(tmp_path / "rung.toml", rows)
    done = run("--no-journal", "--max-attempts", "2", "--", "echo", "fine", cwd=tmp_path)
    assert (done.returncode, "fine" in done.stdout) == (code, code == 0), done.stderr
    lines = [json.loads(line) for line in (tmp_path / "data" / "rung" / "user-hooks.jsonl").read_text().splitlines()]
    assert {"at", "when", "hook", "error"} <= lines[0].keys()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[hooks]]\nwhen = "never"\nrun = "x"', "hooks[0].when"),
        ('[[hooks]]\nwhen = "rung.pre"', "hooks[0].run"),
        ('[[hooks]]\nwhen = "rung.pre"\nrun = "x"\nseconds = 0', "hooks[0].seconds"),
        ('[[hooks]]\nwhen = "rung.pre"\nrun = "x"\nloud = true', "hooks[0].loud"),
        ("[stop]\njudge = 3", "stop.judge"),
        ('[stop]\nsections = "Summary"', "stop.sections"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    """An invalid hook is a one-line error that names the key; exit code 2, and nothing runs."""
    write_trusted(tmp_path / "rung.toml", text)
    done = run("--no-journal", "--", "echo", "fine", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_judge_sends_it_back(tmp_path: Path) -> None:
    """Work without evidence fails the judge, is nudged, and then passes; the judge never sees thoughts."""
    seen = tmp_path / "case.json"
    judge = f"{script(tmp_path / 'judge', SCORES)} {seen}"
    done = run(
        "--no-journal", "--judge", judge, "--", script(tmp_path / "agent", PROVES_WHEN_TOLD), given="what is it?"
    )
    assert done.returncode == 0, done.stderr
    assert "here is the proof" in done.stdout
    case = json.loads(seen.read_text())
    assert case["task"] == "what is it?"
    assert "I could say anything" not in case["answer"]


def test_claims_come_before_the_judge(tmp_path: Path) -> None:
    """A claimed file that does not exist is found without asking the judge."""
    seen = tmp_path / "case.json"
    judge = f"{script(tmp_path / 'judge', SCORES)} {seen}"
    done = run(
        "--no-journal", "--max-attempts", "1", "--judge", judge, "--", "echo", "I created proof.txt.", cwd=tmp_path
    )
    assert done.returncode != 0
    assert "proof.txt" in done.stderr
    assert not seen.exists()


def test_a_judge_that_breaks_lets_nothing_pass(tmp_path: Path) -> None:
    """A judge that cannot run has verified nothing: the run is partial."""
    judge = script(tmp_path / "judge", "")
    done = run("--no-journal", "--judge", judge, "--", "sh", "-c", f"rm {judge}; echo fine", cwd=tmp_path)
    assert done.returncode == 3
    assert '"errorType": "unverified"' in done.stdout


def test_sections_that_are_missing(tmp_path: Path) -> None:
    """`[stop] sections` and `json` apply to the output of a command."""
    write_trusted(tmp_path / "rung.toml", '[stop]\nsections = ["Summary", "Risks"]\n')
    told = script(
        tmp_path / "agent",
        'import sys\ntold = sys.stdin.read()\nprint("# Summary\\nall\\n" + ("# Risks\\nnone" if "Risks" in told else ""))',
    )
    done = run("--no-journal", "--", told, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "# Risks" in done.stdout


def invoke(*words: str, given: str | None = None) -> Any:
    return CliRunner().invoke(root, words, input=given)


def test_detect_output() -> None:
    """`rung detect output` prints the finding as JSON, and exits with 1."""
    done = invoke("detect", "output", "--section", "Risks", given="# Summary\nall of it\n")
    assert (done.exit_code, json.loads(done.output)["missing"]) == (1, ["Risks"])
    assert json.loads(invoke("detect", "output", given="It is 7.").output) == {"ok": True}
    assert json.loads(invoke("detect", "output", "--expect-json", given="it is 7").output)["kind"] == "malformed_output"
    assert json.loads(invoke("detect", "output", "--evidence", given="All done.").output)["rule"] == "done-unproven"
    assert invoke("detect", "output", "/nowhere/at/all").exit_code == 2


def test_stalls_by_the_journals_history(tmp_path: Path) -> None:
    """Tasks that take ten times as long as usual, or are silent, are reported; ordinary ones are not."""
    now = time.time()
    path = tmp_path / "j.db"
    with rung.journal(path) as journal:
        terms = ev.IncidentContext("task", "p", project="shop")
        for number in range(8):
            story: list[ev.Event] = [
                ev.Opened(now - 5_000, f"done{number}", terms, Request(prompt="x")),
                ev.AttemptSucceeded(now - 4_900, 40.0, 0.0),
            ]
            journal.append(f"done{number}", 0, story).result()
        failed = ev.AttemptFailed(now - 20, rung.classify(TimeoutError("slow")), 1.0, 0.0, may_retry=True)
        for name, ago in (("slow", 400.0), ("usual", 60.0)):
            journal.append(name, 0, [ev.Opened(now - ago, name, terms, Request(prompt="x")), failed]).result()
        other = terms._replace(project="other")
        journal.append("quiet", 0, [ev.Opened(now - 700, "quiet", other, Request(prompt="x"))]).result()
        journal.flush()
        found = {
            stall.incident.id: stall.finding.rule
            for stall in stalls(journal, now, StallThresholds(silence_seconds=300.0))
        }
        assert found == {"slow": "overdue", "quiet": "silent"}
    done = invoke("detect", "stalls", "--journal", str(path), "--project", "shop", "--json")
    assert done.exit_code == 1
    assert [json.loads(line)["incident"] for line in done.output.splitlines()] == ["slow"]
    assert invoke("detect", "stalls", "--journal", str(path), "--project", "none").exit_code == 0


HANGS_WHEN_KNOWN = """
import pathlib, sys, time
mark = pathlib.Path(sys.argv[1])
runs = int(mark.read_text()) + 1 if mark.exists() else 1
mark.write_text(str(runs))
if runs == 2:
    time.sleep(60)
print("fine")
"""


def test_a_silent_command_enters_the_ladder(tmp_path: Path) -> None:
    """A command that is silent for longer than it took before is ended as stalled and nudged, without `rung detect`."""
    (tmp_path / "rung.toml").write_text("[policy]\nstalls = { samples = 1, min_seconds = 3, factor = 1 }\n")
    command = ("--", script(tmp_path / "agent", HANGS_WHEN_KNOWN), str(tmp_path / "mark"))
    assert run(*command, cwd=tmp_path).returncode == 0
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "stalled" in done.stderr
    assert "longer than similar attempts have taken" in done.stderr
    assert done.stdout == "fine\n"
