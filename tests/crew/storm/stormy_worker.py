"""A worker process with a random fault: `python stormy_worker.py library|sql SEED FOLDER CHECKPOINTS`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.crew.storm.stormy_notes import Notes, do_work
from tests.crew.storm.stormy_sql import Gone, SqlWay

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tests.crew.storm.stormy_library import LibraryWay

    Way: TypeAlias = LibraryWay | SqlWay

REVIEW = """CHECKPOINT {checkpoint}: REVIEW REQUEST
Context Usage: 40%
Self-Correction: NO
Deviations: none
Agents Remaining: 0
Proposal: N/A
Summary: {summary}
Files Modified: 1
Tests: {tests}
Smoothness: {smoothness}
Reason: as planned
Key Outputs: out (created)
"""
WARNING = "CONTEXT WARNING\nContext Usage: {usage}%\nSelf-Correction: NO\nDeviations: none\nProposal: finish the file out.txt\nDistance: 1 steps\nAgents Remaining: 0"
HANDOVER = "Done: the walls of {task} ({number}). Left: the door."
FULL_HANDOVER = "# HANDOFF\n\n## Session Info\nSession: {session}\nExit reason: full\nContext at exit: 60%\n\n## Completed Steps\n- the walls of {task} ({number})\n"
ERRORS = (
    "ImportError: No module named foo",
    "Connection refused by the test server",
    "typo in config",
    "the cause is unclear",
)


def main() -> None:
    """Claim the task, act out the fault, and complete the task if it survives."""
    way_name, seed, folder, checkpoints = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    task = os.environ["RUNG_TASK"]
    notes = Notes(folder, task, seed, way_name)
    if notes.fault == "dies unclaimed":
        notes.received("", unclaimed=True)
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        if way_name == "sql":
            with SqlWay(notes) as way:
                work(way, notes, checkpoints)
        else:
            from tests.crew.storm.stormy_library import LibraryWay

            with LibraryWay(notes) as library:
                work(library, notes, checkpoints)
    except Gone:  # the task has another owner, or the worker was asked to stop and has handed over
        return


def work(way: Way, notes: Notes, checkpoints: int) -> None:
    """Act out the fault, do the work, and have every checkpoint approved."""
    notes.received(way.text, generation=way.generation, session=way.session)
    signal.signal(signal.SIGTERM, lambda *_: end(way, notes))
    way.beat("began")
    time.sleep(notes.rng.uniform(0.05, 0.4))
    if not act_out(way, notes):
        return
    lied = notes.fault.startswith("lies")
    if not lied and not do_work(way.text):
        way.beat("there is nothing to do")
    for checkpoint in range(1, checkpoints + 2):
        tests = "not run" if notes.fault == "lies about tests" else "all pass"
        while way.review(text_of_review(checkpoint, notes, tests=tests), checkpoint) != "review_approved":
            do_work(way.text)
            tests = "all pass"
    way.complete()


def text_of_review(checkpoint: int, notes: Notes, *, tests: str = "all pass") -> str:
    grade = 0 if notes.fault.startswith("lies") else notes.rng.choice((0, 1, 2, 5))
    return REVIEW.format(checkpoint=checkpoint, summary="did it", tests=tests, smoothness=grade)


def act_out(way: Way, notes: Notes) -> bool:
    """Act out the fault; return whether the worker goes on."""
    if notes.fault in LEAVING:
        if body := LEAVING[notes.fault]:
            way.hand_off(body.format(task=notes.task, number=notes.number, session=way.session))
        return False
    if notes.fault in ACTS:
        ACTS[notes.fault](way, notes)
    return True


def err(way: Way, notes: Notes) -> None:
    for _ in range(notes.rng.randint(1, 2)):
        way.error(notes.rng.choice(ERRORS))


def err_for_ever(way: Way, _: Notes) -> None:
    while True:
        way.error("3 tests failed: integration failure in door.py")


def renumber(way: Way, _: Notes) -> None:
    for checkpoint in (7, 3, 99):
        way.review("done!! trust me", checkpoint)


def dawdle(way: Way, _: Notes) -> None:
    for n in range(5):
        way.beat(f"still at it, {n}")
        time.sleep(0.4)


def loop(way: Way, _: Notes) -> None:
    """Report the same failing step again and again."""
    for n in range(10_000):
        step = {"tool": "bash", "args": {"command": "make"}, "result": "make: *** no rule", "error": True, "i": n}
        way.beat(json.dumps(step))
        time.sleep(0.15)


ACTS: dict[str, Callable[[Way, Notes], None]] = {
    "dies": lambda *_: os.kill(os.getpid(), signal.SIGKILL),
    "stands still": lambda *_: os.kill(os.getpid(), signal.SIGSTOP),
    "loops": loop,
    "errs": err,
    "errs for ever": err_for_ever,
    "warns": lambda way, _: way.warn(WARNING.format(usage=62)),
    "warns at its end": lambda way, _: way.warn(WARNING.format(usage=91)),
    "talks nonsense": lambda way, _: (way.review("done!! trust me", 1), None)[1],
    "renumbers": renumber,
    "breaks rules": lambda way, _: way.break_rules(),
    "is slow": dawdle,
}
LEAVING = {"hands over in free text": HANDOVER, "hands over in full": FULL_HANDOVER, "leaves": ""}


def end(way: Way, notes: Notes) -> Any:
    """Write down the task's state when the worker is signalled, and end."""
    notes.ended(**way.owner())
    os._exit(143)


if __name__ == "__main__":
    main()
