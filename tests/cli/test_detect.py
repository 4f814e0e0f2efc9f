"""`rung detect loops` and `rung detect behaviour`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result

from rung.cli.group import root

if TYPE_CHECKING:
    from pathlib import Path

STUCK = [
    {"i": 10 + n, "tool": "bash", "args": {"command": "make"}, "result": "no rule", "error": True} for n in range(5)
]
FINE = [
    {"i": n, "tool": "read", "args": {"path": f"{n}.py"}, "result": f"{'x' * n} {n}", "error": False} for n in range(9)
]


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(root, ("detect", "loops", *arguments), input=given)


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_one_answer_a_line(tmp_path: Path) -> None:
    """Each trajectory gets its answer, with the step at which the loop was detected."""
    text = lines({"id": "a", "steps": STUCK}, {"id": "b", "steps": FINE}, {"id": "c", "steps": []})
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    for done in (run("--jsonl", given=text), run("--jsonl", "-", given=text), run("--jsonl", str(path))):
        assert done.exit_code == 0, done.output
        assert [json.loads(line) for line in done.output.splitlines()] == [
            {"id": "a", "loop": True, "at": 12, "rule": "repeated-block"},
            {"id": "b", "loop": False, "at": None, "rule": None},
            {"id": "c", "loop": False, "at": None, "rule": None},
        ]


def test_every_finding() -> None:
    """With --all every later finding is included, with count, stage and text."""
    answer = json.loads(run("--jsonl", "--all", given=lines({"id": "a", "steps": STUCK})).output)
    assert [(one["at"], one["repeats"], one["stage"], one["news"]) for one in answer["findings"]] == [
        (12, 3, "replan", True),
        (13, 4, "replan", False),
        (14, 5, "explore", True),
    ]
    assert "bash:make was called 3 times" in answer["findings"][0]["text"]


def test_settings_of_a_policy_file(tmp_path: Path) -> None:
    """The [loops] table of a policy file is used, and checked."""
    path = tmp_path / "p.toml"
    path.write_text('[loops]\nreplan = 4\n[policy]\nladder = "task"\n')
    given = lines({"id": "a", "steps": STUCK})
    assert json.loads(run("--jsonl", "--policy", str(path), given=given).output)["at"] == 13
    path.write_text("[loops]\nreplan = 0\n")
    done = run("--jsonl", "--policy", str(path), given=given)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "loops.replan: 0" in done.stderr


def test_what_cannot_be_read() -> None:
    """An invalid line is named by its number, after the earlier answers; exit code 2."""
    for bad, word in (
        ("{", "not JSON"),
        ("[]", "steps"),
        ('{"id": 1}', "steps"),
        ('{"id": 1, "steps": [{"tool": 3}]}', "step 0: step.tool: 3"),
        ('{"id": 1, "steps": [7]}', "step 0: step: 7"),
    ):
        done = run("--jsonl", given=lines({"id": "a", "steps": []}) + bad + "\n")
        assert done.exit_code == 2
        assert len(done.stdout.splitlines()) == 1
        assert "line 2" in done.stderr
        assert word in done.stderr
    assert run("--jsonl", "/no/such/file").exit_code == 2
    assert "--jsonl" in run(given="").stderr


def behaviour(*arguments: str, given: str) -> Result:
    return CliRunner().invoke(root, ("detect", "behaviour", "--jsonl", *arguments), input=given)


def test_behaviour() -> None:
    """Each trajectory gets its findings: the step's own number, or null for the answer."""
    edited = {"i": 7, "tool": "edit", "args": {"path": "/app/a.py"}, "result": "edited", "error": False}
    failed = {"tool": "bash", "args": {"command": "pytest"}, "result": "2 failed", "error": True}
    row = {"id": "a", "task": "Fix it. Do not edit `a.py`.", "steps": [edited, failed], "answer": "All tests pass."}
    done = behaviour("--root", "/app", given=lines(row, {"id": "b", "steps": [edited, failed]}))
    assert done.exit_code == 0, done.output
    first, second = map(json.loads, done.output.splitlines())
    assert [(one["at"], one["rule"], one["kind"]) for one in first["findings"]] == [
        (7, "constraint-violated", "goal_misaligned"),
        (None, "claim-against-tests", "unverified"),
    ]
    assert second == {"id": "b", "findings": []}


def test_behaviour_of_what_cannot_be_read() -> None:
    """A task that is no text is named with its line; exit code 2."""
    done = behaviour(given=lines({"id": "a", "task": 3, "steps": []}))
    assert done.exit_code == 2
    assert "line 1: task: 3 is invalid" in done.stderr
