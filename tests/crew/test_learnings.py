"""Learnings of a crew: kept when an error is resolved, told where it recurs, and alive after the crew."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.evidence import clip
from rung.core.crew.contract import MessageType, TaskState
from rung.core.crew.learning import (
    MAX_QUOTED_LEARNINGS,
    CrewLearning,
    learnings_section,
    most_relevant,
    whole_sentences,
)
from rung.crew.conductor import Conductor
from rung.crew.instruction_file import full_instructions
from rung.store.crew.learnings import load_learnings
from rung.store.crew.rows import NewTask
from tests.crew.review_text import review
from tests.crew.simulated import World
from tests.crew.test_conducted import RUNG, Place, place

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["place"]  # a fixture
ERROR = "ImportError: No module named beam"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, 0, stormy=False, tasks=0)
    for name in ("a", "b"):
        made.table.add_task(NewTask(task_id=name, instruction=f"Build {name}.", command=(), stale_after=120.0))
    return made


def resolve_an_error(world: World, task: str = "a", *, summary: str = "installed beam 2 from the mirror") -> None:
    claim = world.table.claim(task, f"s-{task}")
    world.table.report_error(claim, ERROR)
    world.conductor.handle_pending()
    world.table.resume(claim)
    world.table.request_review(claim, review(0).replace("did it", summary.replace("\n", "\n| ")), checkpoint=1)
    world.conductor.handle_pending()
    assert world.table.require_task(task).state is TaskState.REVIEW_APPROVED


def test_what_resolved_an_error_is_kept(world: World) -> None:
    """Kind, cause, fix and what the worker said after it, once, in the table and in the log."""
    resolve_an_error(world)
    (learning,) = load_learnings(world.table)
    assert (learning.task, learning.error) == ("a", ERROR)
    assert learning.kind
    assert learning.fix
    assert learning.outcome == "installed beam 2 from the mirror"
    log = (world.conductor.crew.runtime_dir / "temp" / "conductor-learnings.log").read_text()
    assert log.count("\n") == 1
    assert "installed beam 2 from the mirror" in log


def test_the_same_error_of_another_task_gets_the_known_fix(world: World) -> None:
    """The rule proposes what led to the recovery, also after the first conductor is gone."""
    resolve_an_error(world)
    world.conductor = Conductor(world.conductor.crew)
    claim = world.table.claim("b", "sb")
    assert "installed beam 2 from the mirror" in full_instructions(world.table, world.table.require_task("b"))
    world.table.report_error(claim, ERROR)
    world.conductor.handle_pending()
    proposal = world.table.messages("b", types=(MessageType.FIX_PROPOSAL,))[-1].message
    assert "the same error was resolved in a" in proposal
    assert "installed beam 2 from the mirror" in proposal


def test_a_known_fix_that_helps_again_is_no_new_learning(world: World) -> None:
    """A recovery with the known fix is the same learning: its text does not grow from task to task."""
    resolve_an_error(world)
    resolve_an_error(world, "b")
    assert len(load_learnings(world.table)) == 1


def test_a_learning_is_two_sentences(world: World) -> None:
    """A long output of the worker and a quoted error leave no mark of a cut: what failed, and what resolved it."""
    output = "Installed beam 2 from the mirror. " + "Collected one more wheel. " * 50
    resolve_an_error(world, summary=clip(output, 500))
    (learning,) = load_learnings(world.table)
    said = f"{learning.line()} {learning.root_cause} {learning.fix} {learning.outcome}"
    for mark in ("left out", "…", "[begin", "[end", "> "):
        assert mark not in said
    assert learning.line().startswith("a (")
    assert f"): {ERROR}. Resolved by: " in learning.line()
    assert learning.line().endswith("; its worker reported: Installed beam 2 from the mirror.")
    assert learning.line().count(". ") == 1


def test_a_stored_learning_with_marks_is_shown_without_them() -> None:
    """A learning that an earlier release has cut in the middle of a word reads as a sentence."""
    stored = CrewLearning(task="a", kind="not_found", error="no beam", fix=clip("Install it. " + "Then w" * 100, 300))
    assert stored.line() == "a (not_found): no beam. Resolved by: Install it."


def test_a_long_note_of_a_person_is_refused(place: Place) -> None:
    """A note is never cut: one that is too long is refused with the limit."""
    place.plan([{"id": "house"}])
    assert place.say("crew", "init").returncode == 0
    refused = place.say("crew", "learn", "word " * 500)
    assert refused.returncode == 2
    assert "at most 2000 characters" in refused.stderr
    note = "word " * 300
    assert place.say("crew", "learn", note).returncode == 0
    assert place.say("crew", "learn").stdout == f"{note.strip()}\n"


@given(st.text(max_size=400), st.integers(min_value=20, max_value=200))
def test_whole_sentences_fit_and_stay(text: str, limit: int) -> None:
    """The result fits, has one line, and is not changed by a second pass."""
    kept = whole_sentences(text, limit)
    assert len(kept) <= limit
    assert "\n" not in kept
    assert whole_sentences(kept, limit) == kept


def test_a_review_without_an_error_before_teaches_nothing(world: World) -> None:
    """Only an error that was resolved is a learning."""
    world.table.request_review(world.table.claim("a", "sa"), review(0), checkpoint=1)
    world.conductor.handle_pending()
    assert load_learnings(world.table) == []


LEARNINGS = st.builds(
    CrewLearning,
    **dict.fromkeys(("task", "kind", "fingerprint", "error", "root_cause", "fix", "outcome"), st.text(max_size=40).map(str.strip)),
)  # fmt: skip


@given(LEARNINGS)
def test_a_learning_is_read_as_it_was_written(learning: CrewLearning) -> None:
    """Any text survives formatting and parsing."""
    assert CrewLearning.parse(learning.body()) == learning
    assert "\n" not in learning.line()


def test_the_most_relevant_come_first() -> None:
    """Learnings about this failure come before newer ones, and no more are told than a worker reads."""
    known = CrewLearning(task="a", fingerprint="f1", fix="x")
    others = [CrewLearning(text=f"note {number}") for number in range(20)]
    told = most_relevant([known, *others], "f1")
    assert (told[0], told[1].text, len(told)) == (known, "note 19", MAX_QUOTED_LEARNINGS)
    assert learnings_section([]) == ""


def test_a_person_teaches_the_crew(place: Place) -> None:
    """`rung crew learn TEXT` is told to workers and judges, and listed without a text."""
    judge = place.folder / "judge.py"
    judge.write_text(
        "import json, sys\nasked = json.load(sys.stdin)\n"
        f"open({str(place.folder / 'asked')!r}, 'w').write(json.dumps(asked))\n"
        "print(json.dumps({'root_cause': 'x', 'fix': 'y', 'approve': True}))\n"
    )
    script = "cat >heard; test -e been && exit 0; touch been; echo 'ImportError: No module named beam' >&2; exit 1"
    command = [*RUNG, "worker", "run", "--check", "true", "--poll-interval", "0.1", "--", "sh", "-c", script]
    place.plan([{"id": "house", "workdir": ".", "command": command}], judge=[sys.executable, str(judge)])
    assert place.say("crew", "init").returncode == 0
    assert place.say("crew", "learn", "").returncode == 2
    assert "1 in all" in place.say("crew", "learn", "bricks are in the shed").stdout
    assert place.say("crew", "learn").stdout == "bricks are in the shed\n"
    place.start()
    code, said = place.end()
    assert code == 0, said + place.log()
    assert "bricks are in the shed" in (place.folder / "heard").read_text()
    assert "bricks are in the shed" in json.loads((place.folder / "asked").read_text())["learnings"]
    listed = json.loads(place.say("crew", "learn", "--json").stdout)["learnings"]
    assert [one["task"] for one in listed] == ["", "house"]
    assert "bricks are in the shed" in (place.runtime / "temp" / "conductor-learnings.log").read_text()
