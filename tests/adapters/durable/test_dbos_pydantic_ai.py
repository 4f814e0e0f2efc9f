"""Our capability in a Pydantic AI agent inside a workflow of DBOS: every wait is DBOS's durable sleep."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import rung.testing

if TYPE_CHECKING:
    from pathlib import Path


def test_our_capability_waits_by_dbos(tmp_path: Path) -> None:
    """Two overloads are waited out by two recorded sleeps, and the time of each failure is a recorded step."""
    with rung.testing.lab(script=[{"fault": "overloaded", "request": "1-2"}]) as lab:
        done = subprocess.run(
            [sys.executable, "-m", "tests.adapters.durable.dbos_agent", str(tmp_path / "dbos.db"), f"{lab.url}/v1"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["answer"] == rung.testing.words(5)
    assert found["steps"].count("DBOS.sleep") == 2
    assert found["steps"].count("counter.run_start_time") >= 2
