"""A project's notes: read however people write them, only ever added to, by any number of processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.adapters.system.learnings_file import (
    ISSUES,
    LEARNINGS,
    LearningsFile,
    LearningsIssue,
    load_notes,
    write_entry,
)
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0  # 2026-09-21
BUSY = HttpError(529, "overloaded")
LOST = rung.AttemptError("no such file: notes.txt", finding="not_found")

BY_HAND = """\
\ufeff# Our issues

Some words of mine.

```markdown
## [ISSUE-XXX] Title
- **Date**: …
## [ISSUE-900] an example
```

## [ISSUE-7] The build server forgets things
**Date:** 2026-01-02
**Severity**: Critical
* __Status__: In Progress
- **Description**: It loses its cache,
  now and then.

  Nobody knows why.
- **Workaround**: run it again

### Resolution
None that lasts.

---
## [ISSUE-003]Without any field
It is just bad.
## [TODO] not an issue
"""

LEARNED = """\
## [Rate-Limit] They count per minute
**Date**: 2026-01-02
**Importance**: critical

Wait a minute, not a second.

Really.

---

## [BUILD] Run make twice
"""


def recover(folder: Path, *script: Any, **ports: Any) -> rung.Outcome[Any]:
    policy = ports.pop("policy", None) or rung.policy("task", report="")
    return rung.recover_sync(
        Script(*script),
        rung.Request(prompt="do it", model="small"),
        policy=policy,
        listeners=[LearningsFile(folder, write=ports.pop("write", None))],
        clock=FakeClock(NOW),
        jitter=lambda: 0.5,
        retry_budget=None,
        breakers=rung.BreakerRegistry(),
        **ports,
    )


def loop(text: str = "the same again") -> rung.AttemptError:
    return rung.AttemptError(text, finding="loop_detected", repeats=9)


def test_what_people_write_is_read(tmp_path: Path) -> None:
    """Headings and fields are understood in the ways people write them; examples in fences are not entries."""
    (tmp_path / ISSUES).write_text(BY_HAND, encoding="utf-8")
    (tmp_path / LEARNINGS).write_text(LEARNED.replace("\n", "\r\n"), encoding="utf-8", newline="")
    learnings, issues = load_notes(tmp_path)
    first, second = issues
    assert first == LearningsIssue(
        7, "The build server forgets things", "2026-01-02", "Critical", "In Progress",
        "It loses its cache,\n  now and then.\n\n  Nobody knows why.", "", "run it again", "None that lasts.", "",
    )  # fmt: skip
    assert (second.number, second.title, second.description) == (3, "Without any field", "It is just bad.")
    assert learnings[0][:4] == ("Rate-Limit", "They count per minute", "2026-01-02", "CRITICAL")
    assert learnings[0].body == "Wait a minute, not a second.\n\nReally."
    assert learnings[1] == ("BUILD", "Run make twice", "", "LOW", "")


def test_nothing_there(tmp_path: Path) -> None:
    """Without notes nothing is known; bytes that are no text do not break anything."""
    assert load_notes(tmp_path / "none") == ([], [])
    (tmp_path / ISSUES).write_bytes(b"\xff\xfe## [ISSUE-1] \xff\n## [ISSUE-2] good\n")
    assert [issue.number for issue in load_notes(tmp_path)[1]] == [2]


def test_a_partial_end_leaves_an_issue(tmp_path: Path) -> None:
    """A forced end is noted with its cause, what was done, and what a person can do."""
    outcome = recover(tmp_path / "notes", loop(), "what I did")
    assert outcome.status == "partial"
    _, (issue,) = load_notes(tmp_path / "notes")
    assert (issue.number, issue.title, issue.date) == (1, "the same again", "2026-09-21")
    assert (issue.severity, issue.status, issue.resolution) == ("Medium", "Open", "none yet")
    assert issue.description.startswith("Ended partial at attempt 2: loop_detected: the same again. Failures: loop")
    assert issue.root_cause == "loop_detected (rule finding): the same again"
    assert issue.workaround == outcome.recommendation
    assert outcome.failure is not None
    assert issue.fingerprint == outcome.failure.fingerprint
    assert (
        (tmp_path / "notes" / ISSUES).read_text().startswith("# Issues\n\n## [ISSUE-001] the same again\n\n- **Date**")
    )


def test_how_bad_it_is(tmp_path: Path) -> None:
    """What only a person can mend is severe, what passes by itself is not."""
    recover(tmp_path, rung.AttemptError("no key", finding="missing_credentials"))
    recover(tmp_path, BUSY)
    assert [issue.severity for issue in load_notes(tmp_path)[1]] == ["High", "Low"]


def test_what_is_no_issue(tmp_path: Path) -> None:
    """A success, a recovery, a failed end, and somebody's Ctrl-C leave no issue; a blocked end does."""
    recover(tmp_path, "done")
    assert not list(tmp_path.iterdir())
    recover(tmp_path, LOST, "done")
    recover(tmp_path, LOST, policy=rung.policy("call", report=""))
    with pytest.raises(KeyboardInterrupt):
        recover(tmp_path, BUSY, KeyboardInterrupt())
    assert load_notes(tmp_path)[1] == []
    recover(tmp_path, LOST, policy=rung.policy("crew", report=""))
    assert [issue.description.partition(" at ")[0] for issue in load_notes(tmp_path)[1]] == ["Ended blocked"]


def test_a_new_kind_leaves_a_learning(tmp_path: Path) -> None:
    """The first failure of a kind is noted once it is known what helped; further ones of that kind are not."""
    recover(tmp_path, LOST, "done")
    recover(tmp_path, rung.AttemptError("another file", finding="not_found"), "done")
    recover(tmp_path, BUSY, "done")
    recover(tmp_path, loop(), "what I did")
    two = rung.policy("task", models=["small", "large"], agents=["expert"], report="")
    recover(tmp_path, rung.AttemptError("cannot", finding="capability_mismatch"), "done", policy=two)
    learnings, _ = load_notes(tmp_path)
    assert [(one.category, one.importance) for one in learnings] == [
        ("NOT_FOUND", "MEDIUM"),
        ("OVERLOADED", "LOW"),
        ("LOOP_DETECTED", "HIGH"),
        ("CAPABILITY_MISMATCH", "MEDIUM"),
    ]
    assert [one.body.splitlines()[1] for one in learnings] == [
        "What helped: nudge.",
        "What helped: trying again.",
        "Nothing helped: partial, loop_detected: the same again",
        "What helped: handing over to small, expert.",
    ]
    assert learnings[0].body.splitlines()[0] == "First seen as not_found (rule finding): no such file: notes.txt"
    assert learnings[0].body.splitlines()[2].startswith("What helps in general: ")
    assert {one.date for one in learnings} == {"2026-09-21"}


def test_several_kinds_in_one_incident(tmp_path: Path) -> None:
    """Each new kind of an incident is noted, and what it led to."""
    recover(tmp_path, LOST, rung.AttemptError("", finding="test_failure"), "done")
    first, second = load_notes(tmp_path)[0]
    assert first.body.splitlines()[1] == "Then came test_failure."
    assert (second.title, second.body.splitlines()[1]) == ("test_failure", "What helped: replan.")


def test_a_kind_that_is_noted_is_not_looked_up_again(tmp_path: Path) -> None:
    """One notebook writes about a kind once, and asks the file no more."""
    book = LearningsFile(tmp_path)
    for _ in range(2):
        rung.recover_sync(Script(LOST, "done"), "x", listeners=[book], clock=FakeClock(NOW), retry_budget=None)
    (tmp_path / LEARNINGS).unlink()
    rung.recover_sync(Script(LOST, "done"), "x", listeners=[book], clock=FakeClock(NOW), retry_budget=None)
    assert not (tmp_path / LEARNINGS).exists()


def test_what_a_person_wrote_stays(tmp_path: Path) -> None:
    """Ours comes after theirs, with the next number and their line ends; not a byte of theirs is changed."""
    theirs = BY_HAND.replace("\n", "\r\n").encode() + b"no newline at the end"
    (tmp_path / ISSUES).write_bytes(theirs)
    recover(tmp_path, loop(), "what I did")
    whole = (tmp_path / ISSUES).read_bytes()
    assert whole.startswith(theirs + b"\r\n\r\n## [ISSUE-008] the same again\r\n\r\n- **Date**")
    assert b"\n" not in whole.replace(b"\r\n", b"")
    assert [issue.number for issue in load_notes(tmp_path)[1]] == [7, 3, 8]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_one_empty_line_between(tmp_path: Path, end: str) -> None:
    """However the file ends, one empty line stands before ours."""
    (tmp_path / ISSUES).write_text(f"# Mine{end}")
    recover(tmp_path, loop(), "what I did")
    assert (tmp_path / ISSUES).read_text().startswith("# Mine\n\n## [ISSUE-001]")


def test_the_same_trouble_is_noted_once(tmp_path: Path) -> None:
    """A fingerprint that is there, also in what a person has resolved, is not written again."""
    for _ in range(3):
        recover(tmp_path, loop(), "what I did")
    recover(tmp_path, loop("something else"), "what I did")
    assert [issue.title for issue in load_notes(tmp_path)[1]] == ["the same again", "something else"]
    text = (tmp_path / ISSUES).read_text().replace("Open", "Resolved")
    (tmp_path / ISSUES).write_text(text)
    recover(tmp_path, loop(), "what I did")
    assert (tmp_path / ISSUES).read_text() == text


def test_a_kind_a_person_knows_is_known(tmp_path: Path) -> None:
    """A learning of a kind that somebody wrote by hand is enough."""
    (tmp_path / LEARNINGS).write_text(LEARNED)
    recover(tmp_path, HttpError(429, "too many requests"), "done")
    assert (tmp_path / LEARNINGS).read_text() == LEARNED


def test_no_secret_and_no_entry_in_an_entry(tmp_path: Path) -> None:
    """A message is one line without secrets: it cannot look like an entry, a field or a rule of the file."""
    evil = (
        "bad\n## [ISSUE-999] fake\n---\n**Status**: Resolved\nAuthorization: Bearer sk-ant-api03-abcdefghijklmnop1234"
    )
    recover(tmp_path, loop(evil), "what I did")
    learnings, issues = load_notes(tmp_path)
    assert [issue.number for issue in issues] == [1]
    assert issues[0].status == "Open"
    assert len(learnings) == 1
    assert "abcdefghijklmnop1234" not in (tmp_path / ISSUES).read_text() + (tmp_path / LEARNINGS).read_text()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A notebook that breaks is passed over, like any listener."""
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="LearningsFile failed and was ignored"):
        assert recover(tmp_path / "file", LOST, "done").ok


def test_a_file_replaced_meanwhile(tmp_path: Path) -> None:
    """What an editor puts in the place of the file while we write is added to: what we wrote is not lost with the old."""
    (tmp_path / ISSUES).write_text("old\n")
    times: list[int] = []

    def meanwhile(*arguments: Any) -> None:
        write_entry(*arguments)
        if not times:
            (tmp_path / "new").write_text("a person's new text\n")
            (tmp_path / "new").replace(tmp_path / ISSUES)
        times.append(1)

    recover(tmp_path, loop(), "what I did", write=meanwhile)
    text = (tmp_path / ISSUES).read_text()
    assert text.startswith("a person's new text\n\n## [ISSUE-001]")
    assert len(times) == 3  # twice the issue, once the learning


def test_a_file_that_is_never_there(tmp_path: Path) -> None:
    """A file that goes away each time is given up, and said."""

    def gone(*arguments: Any) -> None:
        write_entry(*arguments)
        (tmp_path / ISSUES).unlink(missing_ok=True)

    with pytest.warns(RuntimeWarning, match="replaced repeatedly"):
        recover(tmp_path, loop(), "what I did", write=gone)


def test_a_full_disk(tmp_path: Path) -> None:
    """What is written in part is said, not passed off as done."""
    end, other = os.pipe()
    os.set_blocking(other, False)
    with pytest.raises(OSError, match="only part"):
        write_entry(other, "", "x" * 10_000_000)
    os.close(end)
    os.close(other)


WRITER = """
import sys, rung
from rung.adapters.system.learnings_file import LearningsFile
from rung.testing import Script
folder, me = sys.argv[1:]
book = LearningsFile(folder)
words = ["alpha", "bravo", "carol", "delta", "eagle", "frost", "grape", "horse", "igloo", "joker"]
print("ready", flush=True)
sys.stdin.readline()
for word in words:
    for name in (me, "both"):
        error = rung.AttemptError(f"{name} {word}", finding="loop_detected", repeats=9)
        policy = rung.policy("task", report="")
        rung.recover_sync(Script(error, "x"), "t", policy=policy, listeners=[book], breakers=rung.BreakerRegistry())
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Nothing is lost, no number is given twice, nothing is noted twice, and a person's words stay."""
    (tmp_path / ISSUES).write_text(BY_HAND, encoding="utf-8")
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    stop = threading.Event()
    person = threading.Thread(target=_jots, args=(tmp_path / ISSUES, stop))
    person.start()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    stop.set()
    person.join()
    for writer in writers:
        writer.communicate()
    text = (tmp_path / ISSUES).read_text(encoding="utf-8")
    assert text.startswith(BY_HAND)
    learnings, issues = load_notes(tmp_path)
    assert [issue.number for issue in issues] == [7, 3, *range(8, 38)]
    assert len({issue.fingerprint for issue in issues[2:]}) == 30
    assert all(issue.workaround and issue.root_cause for issue in issues[2:])
    assert len(learnings) == 1
    jotted = [int(number) for number in re.findall(r"^jotted (\d+)$", text, re.MULTILINE)]
    assert jotted == list(range(len(jotted)))


def _jots(path: Path, stop: threading.Event) -> None:
    """A person's shell: `echo … >> issues.md`, without a lock."""
    number = 0
    while not stop.wait(0.002):
        with path.open("ab", buffering=0) as file:
            file.write(f"\njotted {number}\n".encode())
        number += 1
