"""A worker process with a random fault, run by the storm test: `python stormy_worker.py SEED FOLDER`."""

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

FAULTS = ("dies", "stands still", "loops", "errs", "talks nonsense", "breaks rules", "is slow")
BEAT = 0.5


def review(smoothness: int) -> str:
    """Return a complete review request."""
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
    """Claim the task, act out the fault, and complete the task if it survives."""
    seed, folder = sys.argv[1], Path(sys.argv[2])
    with CrewWorker.launched(beat_every=BEAT) as worker:
        generation = worker.claim.generation
        rng = random.Random(f"{seed}/{worker.task_id}/{generation}")
        fault = rng.choice(FAULTS) if generation == 1 and rng.random() < 0.5 else "well"
        if rng.random() < 0.02:
            fault = "dies"
        signal.signal(signal.SIGTERM, lambda *_: record_end(worker, folder, fault))
        worker.beat("began")
        act_out(worker, fault, rng)
        get_approval(worker, rng)
        worker.complete()
        with (folder / f"{worker.task_id}.done").open("a") as done:
            done.write(f"{worker.session}\n")


def act_out(worker: CrewWorker, fault: str, rng: random.Random) -> None:
    """Act out the fault."""
    time.sleep(rng.uniform(0.1, 0.8))
    if fault == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "stands still":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault == "loops":
        for n in range(10_000):
            step = {"tool": "bash", "args": {"command": "make"}, "result": "make: *** no rule", "error": True, "i": n}
            worker.beat(json.dumps(step))
            time.sleep(0.4)
    elif fault == "errs":
        worker.error(rng.choice(("ImportError: No module named foo", "Connection reset by peer", "typo in config")))
        worker.wait_for_answer(poll=0.2)
    elif fault == "talks nonsense":
        worker.review("done!! trust me", checkpoint=1)
        worker.wait_for_answer(poll=0.2)
    elif fault == "breaks rules":
        break_rules(worker)
    elif fault == "is slow":
        for n in range(8):
            worker.beat(f"still at it, {n}")
            time.sleep(0.5)


def break_rules(worker: CrewWorker) -> None:
    """Try writes that the database must reject."""
    for wrong in (
        "UPDATE orchestration_tasks SET state = 'complete' WHERE task_id = ?",
        "UPDATE orchestration_tasks SET state = 'review_approved' WHERE task_id = ?",
        "DELETE FROM orchestration_tasks WHERE task_id = ?",
    ):
        try:
            worker.table.connection.execute(wrong, [worker.task_id])
        except IllegalTransition:
            continue
        raise SystemExit(f"was not rejected: {wrong}")


def get_approval(worker: CrewWorker, rng: random.Random) -> None:
    """Request reviews until one approves the work."""
    while True:
        worker.beat("wrote it")
        worker.review(review(rng.choice((0, 1, 2, 5, 6))), checkpoint=1)
        if worker.wait_for_answer(poll=0.2).state == "review_approved":
            return


def record_end(worker: CrewWorker, folder: Path, fault: str) -> Any:
    """Record the task's state when the worker is signalled."""
    row = worker.table.clone().task(worker.task_id)
    assert row is not None
    record: dict[str, Any] = {"task": worker.task_id, "fault": fault, "state": row.state, "note": row.note}
    record["mine"] = (row.session_id, row.generation) == (worker.session, worker.claim.generation)
    with (folder / "ended.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    os._exit(143)


if __name__ == "__main__":
    main()
