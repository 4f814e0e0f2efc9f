"""`bench.loops` counts right, says what is wrong with a file, and can be held against needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
STUCK = [{"i": n, "tool": "bash", "args": "make", "result": "no rule to make it", "error": True} for n in range(6)]
FINE = [
    {"i": n, "tool": "read", "args": {"path": f"{n}"}, "result": f"{'x' * n} {n}", "error": False} for n in range(9)
]
POLL = [{"i": n, "tool": "get_job", "args": {"id": 1}, "result": f"{n} percent", "error": False} for n in range(9)]
ROWS: list[dict[str, Any]] = [
    {"id": "stuck", "steps": STUCK, "loop": True, "loop_at": 2},
    {"id": "missed", "steps": FINE, "loop": True, "loop_at": 4},
    {"id": "fine", "steps": FINE, "loop": False, "loop_at": None},
    {"id": "poll", "steps": POLL, "loop": False, "loop_at": None},
    {"id": "unclear", "steps": STUCK, "loop": None, "loop_at": None},
]


def score(tmp_path: Path, rows: list[dict[str, Any]], *options: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "bench.loops", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_the_sums(tmp_path: Path) -> None:
    """Precision, recall and lateness of ours and of the others are what a hand count gives."""
    out = tmp_path / "out.json"
    done = score(tmp_path, ROWS, "--json", str(out), "--wrong")
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["rung"] == {"precision": 1.0, "recall": 0.5, "late": [0], "false": [], "missed": ["missed"]}
    assert found["OpenHands-like"]["late"] == [0]  # three errors of one action
    assert found["gemini-cli-like"]["false"] == ["poll"]
    assert found["gemini-cli-like"]["late"] == [2]
    assert found["same call, 3 in a row"]["precision"] == 0.5
    assert found["same call and result, 3 times"]["false"] == []
    assert "4 trajectories, 2 of them loops" in done.stdout


def test_needs(tmp_path: Path) -> None:
    """What is needed and not reached ends with exit code 1."""
    assert score(tmp_path, ROWS, "--need", "95,50").returncode == 0
    assert score(tmp_path, ROWS, "--need", "95,60").returncode == 1


def test_a_bad_file(tmp_path: Path) -> None:
    """A line that is no trajectory is named; exit code 2."""
    done = score(tmp_path, [*ROWS, {"id": "x", "steps": [{"tool": 3}], "loop": True}])
    assert done.returncode == 2
    assert "line 6" in done.stderr


def test_the_table_of_behaviour(tmp_path: Path) -> None:
    """Each rule about behaviour is counted by the label of the trajectory; a report on a clean one is quoted."""
    edit = {"i": 0, "tool": "edit", "args": {"path": "a.py"}, "result": "edited", "error": False}
    task = "Fix the bug. Do not edit `a.py`."
    rows: list[dict[str, Any]] = [
        {"id": "bad", "steps": [edit], "loop": True, "loop_at": 0, "task": task},
        {"id": "alarm", "steps": [edit], "loop": False, "loop_at": None, "task": task, "answer": ""},
        {"id": "hard", "steps": FINE, "loop": False, "kind": "clean_hard"},
        {"id": "asked", "steps": [{"tool": "final_answer", "args": {"answer": "42"}, "result": ""}], "loop": None},
    ]
    out = tmp_path / "out.json"
    done = score(tmp_path, rows, "--json", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["behaviour"]
    assert found["constraint-violated"] == {"loop": 1, "clean": 1}
    assert found["no-answer"] == {"clean": 1}
    assert found["wasted-calls"] == {}
    assert "2 of 4 have a task, 2 an answer" in done.stdout
    assert "on a clean one: alarm at 0, constraint-violated: the task says" in done.stdout


def test_the_score_of_root_causes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are compared with labels: right, defensible, wrong, and silent; without labels it says so."""
    monkeypatch.setenv("RUNG_ROOT_CAUSES", str(tmp_path / "none.jsonl"))
    assert "root cause: not measured" in score(tmp_path, ROWS).stdout
    labels = tmp_path / "labels.jsonl"
    rows = [{**ROWS[0], "id": name} for name in ("right", "near", "off")] + [
        {**ROWS[2], "id": name} for name in ("silent", "kept")
    ]
    steps = {
        "right": (0, []),
        "near": (3, [0]),
        "off": (5, []),
        "silent": (4, []),
        "kept": (None, []),
        "unknown": (1, []),
    }
    labels.write_text(
        "".join(json.dumps({"id": name, "step": at, "also": also}) + "\n" for name, (at, also) in steps.items())
    )
    monkeypatch.setenv("RUNG_ROOT_CAUSES", str(labels))
    out = score(tmp_path, rows, "--wrong").stdout
    assert "root cause of 5 failed trajectories, 4 with a labelled step" in out
    assert "answered 3 (60%); abstained rightly 1 of 1" in out
    assert "exact step of those with a label: 25%" in out
    assert "exact 33%, or a step that can be defended 67%" in out
    assert "wrong: off: labelled 5, answered 0" in out
    assert "silent: silent: labelled 4" in out
