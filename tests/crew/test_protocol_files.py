"""Files of the conductor's protocol: its hand-over, its memory, PID files in the documented place."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from rung.core.crew.contract import TaskState
from rung.crew.plan_sync import insert_plan
from rung.crew.protocol_files import HANDOFF_FILE, MEMORY_FILE
from rung.crew.shutdown import shut_down
from tests.crew.review_text import review
from tests.crew.simulated import World
from tests.crew.test_conducted import SLOW, Place, place

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["place"]  # a fixture


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with a plan of two phases: the first is complete but for `b`."""
    made = World(tmp_path, 0, stormy=False, tasks=0)
    plan = {
        "crew": {"name": "house", "worker": ["w"], "phases": ["Walls", "Roof"]},
        "task": [
            {"id": "a", "instruction": "Build a."},
            *({"id": name, "instruction": f"Build {name}.", "phase": 2} for name in ("b", "c", "d", "e")),
        ],
    }
    insert_plan(made.table, plan, tmp_path, tmp_path / "plan.toml")
    claim = made.table.claim("a", "sa")
    made.table.request_review(claim, review(0), checkpoint=1)
    made.conductor.handle_pending()
    made.table.complete(claim)
    made.conductor.handle_pending()
    return made


def handoff(world: World) -> dict[str, str]:
    """Shut the conductor down, and return the sections of its hand-over."""
    shut_down(world.conductor.crew, "context runs out")
    text = (world.conductor.crew.runtime_dir / HANDOFF_FILE).read_text()
    head, *sections = text.split("\n## ")
    return {"": head} | {part.partition("\n")[0]: part for part in sections}


def test_the_hand_over_says_where_the_crew_stands(world: World) -> None:
    """Phase with number and name, plan, open tasks and their states."""
    world.table.claim("b", "sb")
    found = handoff(world)
    assert "- Phase: 2 (Roof)" in found[""]
    assert f"- Plan: {world.place}/plan.toml (revision 1" in found[""]
    assert "1 complete, 4 open, 5 in total" in found[""]
    assert "- b (phase 2): working" in found["Tasks"]
    assert "- a" not in found["Tasks"]


def test_the_hand_over_has_pending_events(world: World) -> None:
    """Errors and reviews that nobody has answered, blocked claims, and workers that left."""
    world.table.report_error(world.table.claim("b", "sb"), "the beam is too short")
    world.table.request_review(world.table.claim("c", "sc"), review(0), checkpoint=1)
    world.table.hand_off(world.table.claim("d", "sd"), "the roof is half done")
    pending = handoff(world)["Pending events"]
    assert "- b: an error waits for an answer: the beam is too short" in pending
    assert "- c: a review was requested of checkpoint 1" in pending
    assert "- d: its worker is gone" in pending


def test_the_hand_over_has_decisions_in_progress(world: World) -> None:
    """Consultations, questions to a person and to helpers, and answers that no worker has followed yet."""
    world.table.report_error(world.table.claim("b", "sb"), "ImportError: No module named beam")
    world.conductor.handle_pending()
    world.table.report_error(world.table.claim("c", "sc"), "who decides?")
    world.table.update_columns("c", note="asks: which colour?")
    world.table.report_error(world.table.claim("d", "sd"), "unclear")
    world.table.set_fact("question/investigate/d", '{"asked": 1}')
    world.table.set_fact("paused", "d: consultation 1: the roof is too heavy")
    decisions = handoff(world)["Decisions in progress"]
    assert "- the plan is being changed: d: consultation 1: the roof is too heavy" in decisions
    assert "- d: a helper was asked the question `investigate`" in decisions
    assert "- c: a person was asked: which colour?" in decisions
    assert "- b: answered, and its worker has not gone on yet: FIX PROPOSAL (Retry 1/5):" in decisions


def test_the_memory_names_plan_hand_over_and_processes(world: World) -> None:
    """The next conductor finds them by path and session."""
    world.conductor.supervise_and_dispatch()
    sessions = world.table.running_sessions()
    shut_down(world.conductor.crew, "context runs out")
    memory = (world.conductor.crew.runtime_dir / MEMORY_FILE).read_text()
    assert f"- Plan: {world.place}/plan.toml" in memory
    assert f"- Hand-over: {world.conductor.crew.runtime_dir / HANDOFF_FILE}" in memory
    assert f"session {sessions['b']}" in memory


@pytest.mark.usefixtures("measured_processes")
def test_the_documents_own_lines_end_a_worker(place: Place) -> None:
    """`kill -0` and `kill` of `temp/musician-TASK.pid` reach the worker and nobody else; its end removes the file."""
    place.plan([{"id": "house", "command": SLOW}])
    place.start()
    place.until_state("house", TaskState.WORKING)
    file = place.runtime / "temp" / "musician-house.pid"
    lines = "kill -0 $(cat temp/musician-house.pid) && kill $(cat temp/musician-house.pid)"
    assert file.read_text().strip().isdigit()
    assert subprocess.run(["sh", "-c", lines], cwd=place.runtime, check=False).returncode == 0
    place.until(lambda: place.task("house").generation > 1)
    place.say("crew", "stop", "--why", "that is enough")
    place.end()
    assert list((place.runtime / "temp").glob("musician-*")) == []
    memory = (place.runtime / "MEMORY.md").read_text()
    assert f"- Plan: {place.folder}/plan.toml (revision 1" in memory
    assert "house: PID " in memory
