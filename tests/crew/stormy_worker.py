"""A worker with a fate: run by the storm as a process of its own, `python stormy_worker.py SEED FOLDER`."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from rung.core.crew.review import ReviewRequest
from rung.core.domain.errors import IllegalTransition
from rung.store.crew.worker import CrewWorker

TROUBLE = ("dies", "stands still", "loops", "errs", "talks nonsense", "breaks rules", "is slow")
BEAT = 0.5


def review(smoothness: int) -> str:
    """An honest review."""
    return ReviewRequest(
        checkpoint=1,
        context=40.0,
        self_correction=False,
        deviations="none",
        agents_remaining="0",
        proposal="N/A",
        summary="did it",
        files_modified="1",
        tests="all pass",
        smoothness=smoothness,
        reason="as planned",
        key_outputs="out.txt (created)",
    ).body()


def main() -> None:
    """Claim, live out one's fate, and be done in the end."""
    seed, folder = sys.argv[1], Path(sys.argv[2])
    with CrewWorker.launched(beat_every=BEAT) as worker:
        generation = worker.claim.generation
        chance = random.Random(f"{seed}/{worker.task_id}/{generation}")
        fate = chance.choice(TROUBLE) if generation == 1 and chance.random() < 0.5 else "well"
        if chance.random() < 0.02:
            fate = "dies"
        signal.signal(signal.SIGTERM, lambda *_: told_to_end(worker, folder, fate))
        worker.beat("began")
        live(worker, fate, chance)
        approved(worker, chance)
        worker.complete()
        with (folder / f"{worker.task_id}.done").open("a") as done:
            done.write(f"{worker.session}\n")


def live(worker: CrewWorker, fate: str, chance: random.Random) -> None:
    """The trouble, if there is any."""
    time.sleep(chance.uniform(0.1, 0.8))
    if fate == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fate == "stands still":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fate == "loops":
        for n in range(10_000):
            step = {"tool": "bash", "args": {"command": "make"}, "result": "make: *** no rule", "error": True, "i": n}
            worker.beat(json.dumps(step))
            time.sleep(0.4)
    elif fate == "errs":
        worker.error(chance.choice(("ImportError: No module named foo", "Connection reset by peer", "typo in config")))
        worker.wait_for_answer(poll=0.2)
    elif fate == "talks nonsense":
        worker.review("done!! trust me", checkpoint=1)
        worker.wait_for_answer(poll=0.2)
    elif fate == "breaks rules":
        break_rules(worker)
    elif fate == "is slow":
        for n in range(8):
            worker.beat(f"still at it, {n}")
            time.sleep(0.5)


def break_rules(worker: CrewWorker) -> None:
    """What the database refuses."""
    for wrong in (
        "UPDATE orchestration_tasks SET state = 'complete' WHERE task_id = ?",
        "UPDATE orchestration_tasks SET state = 'review_approved' WHERE task_id = ?",
        "DELETE FROM orchestration_tasks WHERE task_id = ?",
    ):
        try:
            worker.table.connection.execute(wrong, [worker.task_id])
        except IllegalTransition:
            continue
        raise SystemExit(f"was not refused: {wrong}")


def approved(worker: CrewWorker, chance: random.Random) -> None:
    """Ask for a review until it passes."""
    while True:
        worker.beat("wrote it")
        worker.review(review(chance.choice((0, 1, 2, 5, 6))), checkpoint=1)
        if worker.wait_for_answer(poll=0.2).state == "review_approved":
            return


def told_to_end(worker: CrewWorker, folder: Path, fate: str) -> Any:
    """Somebody ended us: what does the table say of that?"""
    row = worker.table.clone().task(worker.task_id)
    assert row is not None
    told: dict[str, Any] = {"task": worker.task_id, "fate": fate, "state": row.state, "note": row.note}
    told["mine"] = (row.session_id, row.generation) == (worker.session, worker.claim.generation)
    with (folder / "ended.jsonl").open("a") as file:
        file.write(json.dumps(told) + "\n")
    os._exit(143)


if __name__ == "__main__":
    main()
