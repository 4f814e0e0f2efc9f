"""Judge, reviewer and replanner of a storm: slow, failing, talking nonsense, or right. `python stormy_helper.py SEED FOLDER`."""

from __future__ import annotations

import json
import os
import random
import sys
import time
import tomllib
from pathlib import Path

SLOW_SECONDS = 2.0


def main() -> int:
    """Answer the question on standard input."""
    seed, folder = sys.argv[1], Path(sys.argv[2])
    text = sys.stdin.read()
    question = json.loads(text)
    kind, task = question.get("question", "review"), question.get("task", "")
    asking = folder / "asking" / f"{kind}.{task}.{os.getpid()}"
    asking.write_text(text)
    rng = random.Random(f"{seed}/{kind}/{task}/{len(list((folder / 'asking').glob(f'{kind}.{task}.*')))}")
    manner = rng.choices(("right", "slow", "nonsense", "fails"), (7, 2, 1, 1))[0]
    if manner == "slow" or kind == "replan":
        time.sleep(SLOW_SECONDS)
    if manner == "nonsense":
        sys.stdout.write("As I see it, all is well.")
        return 0
    if manner == "fails":
        sys.stderr.write("Connection reset by peer\n")
        return 1
    sys.stdout.write(json.dumps(answer(kind, task, folder)))
    return 0


def answer(kind: str, task: str, folder: Path) -> dict[str, object]:
    """Return the right answer."""
    if kind == "review":
        out, word = folder / "out" / task, (folder / "words" / task).read_text()
        is_done = out.exists() and word in out.read_text()
        return {"approve": is_done, "reason": "" if is_done else "the word is not in the file"}
    if kind == "replan":
        return {"plan": revised(task, folder)}
    return {"root_cause": "the door was locked", "fix": "open the door", "afterwards": "go on"}


def revised(task: str, folder: Path) -> dict[str, object]:
    """Return the plan with more text for the task that is blocked."""
    plan = tomllib.loads((folder / "plan.toml").read_text())
    plan["crew"]["revision"] = int(time.time())  # later than the one before
    for row in plan["task"]:
        if row["id"] == task:
            text = row.pop("instruction_path", None)
            whole = (folder / text).read_text() if text else row["instruction"]
            row["instruction"] = f"{whole}\nREVISED: leave the door open."
            row["mark"] = "REVISED"
    return plan


if __name__ == "__main__":
    sys.exit(main())
