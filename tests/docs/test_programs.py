"""The programs in examples/ run without warnings, print what they promise, and are listed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if path.name != "__init__.py")
MAX_LINES = 60
# The line that shows the point of each program.
PROMISES = {
    "ask_a_person": "recovered: invoice 17 booked",
    "budget": "spent $0.60 of $0.50 in 2 attempts",
    "check_the_result": "recovered: Summary: fine. Risks: none.",
    "crew_plan": "sorted: ['a', 'b']",
    "detect_a_loop": "call 3: loop_detected, rule repeated-block, next: replan",
    "gateway_with_an_sdk": "word1 word2 word3 word4 word5",
    "guarded_call": "hello Ada",
    "supervise_a_command": "exit code 0: fixed app.py",
    "survive_a_kill": "numbers drawn: 1",
    "task_with_fallback": "recovered: the proof (levels (4,))",
    "with_tenacity": "401 auth_error: 1 call",
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs(program: Path, tmp_path: Path) -> None:
    """A program exits with 0, prints the line that shows its point, and leaves the user's files alone."""
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    environment.pop("RUNG_JOURNAL", None)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert PROMISES[program.stem] in done.stdout.splitlines()
    assert "limited nothing" not in done.stderr  # a budget without costs


def test_the_example_of_a_budget_ends_by_it() -> None:
    """The small budget ends the example; with the large one, the same agent makes one more attempt."""
    done = subprocess.run([sys.executable, str(EXAMPLES / "budget.py")], capture_output=True, text=True, check=True)
    small, large = done.stdout.split("spent $0.60 of $0.50 in 2 attempts")
    assert "the budget of $0.50 is spent" in small
    assert ("budget" in large, "spent $0.90 of $5.00 in 3 attempts" in large) == (False, True)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_small_and_listed(program: Path) -> None:
    """A program has a docstring, at most 60 lines, and a row in the index."""
    text = program.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= MAX_LINES
    assert f"| [{program.name}]({program.name}) |" in (EXAMPLES / "README.md").read_text()
