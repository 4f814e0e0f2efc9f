"""Temporal's OpenAI Agents plugin beside ours, on the real server, before a failing provider."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import rung.testing

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv" / "temporal-openai-agents" / "bin" / "python"  # made by `make test`
DATE = {"fault": "rate_limit", "retry_after": 3600, "form": "date"}


def test_openai_agents_beside_our_plugin(temporal: str) -> None:
    """Alone, their plugin repeats after an exhausted quota, and fails to read a Retry-After that is a date.

    With ours, the quota fails the workflow at its first request, by its name, and Temporal waits until the date.
    """
    with rung.testing.lab() as spent, rung.testing.lab() as busy:
        spent.use([{"fault": "quota"}])
        busy.use([DATE])
        script = Path(__file__).with_name("temporal_openai_agents.py")
        done = subprocess.run(
            [PYTHON, script, temporal, f"{spent.url}/v1", f"{busy.url}/v1"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENAI_AGENTS_DISABLE_TRACING": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    quota_alone, quota, date_alone, date = json.loads(done.stdout)
    assert "delay" in quota_alone
    assert quota == {"kind": "quota_exhausted"}
    assert "could not convert string to float" in date_alone["said"]
    assert date_alone["delay"] <= 10
    assert 3_500 < date["delay"] <= 3_600
