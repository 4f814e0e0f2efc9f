"""Run a crew from a plan: two tasks, the second waits for the first, and each is approved on the evidence of its check."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

WORKER = f'"{sys.executable}", "-m", "rung", "worker", "run", "--poll-interval", "0.2"'
PLAN = rf"""
[crew]
name = "letters"
workers = 2
poll = 0.2  # short intervals for the example; leave them out in production
beat = 1
stale_after = 20
grace = 1

[[task]]
id = "write"
title = "Write the letters down"
instruction = "Write b and a into the file letters."
command = [{WORKER}, "--check", "test -s letters", "--", "sh", "-c", "printf 'b\\na\\n' > letters"]
writes = ["letters"]

[[task]]
id = "sort"
title = "Sort them"
instruction = "Sort the file letters into the file sorted."
command = [{WORKER}, "--check", "sort -c sorted", "--", "sh", "-c", "sort letters > sorted"]
depends_on = ["write"]
writes = ["sorted"]
"""


def main() -> None:
    """Run the crew in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "plan.toml").write_text(PLAN)
        environment = {**os.environ, "RUNG_JOURNAL": str(Path(folder) / "journal.db"), "NO_COLOR": "1"}
        rung = [sys.executable, "-m", "rung", "crew"]
        subprocess.run([*rung, "run", "plan.toml"], cwd=folder, env=environment, check=True)
        print("sorted:", (Path(folder) / "sorted").read_text().split())


if __name__ == "__main__":
    main()
