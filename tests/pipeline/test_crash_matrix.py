"""Crash matrix of pipelines: killed before or after any write, the resumed run makes the same next requests."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.domain.failures import PROCESS_DEATH_RULE, Kind
from rung.engine.loop.run import CURRENT
from rung.errors import AttemptError
from rung.pipeline.runner import PipelineRun, load
from rung.store import open_journal
from rung.testing import reset_process_state
from tests.store.durable_runs import killed_rung
from tests.store.durable_runs.conftest import memory_directory, postgres_server, postgres_url
from tests.store.durable_runs.crash_matrix import API_KEY, TOKEN, Made
from tests.store.durable_runs.mortal import Death, MortalJournal, batches, killed_and_resumed, name_of, places

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rung.pipeline.result import PipelineResult
    from rung.store.journal.journal import Journal

__all__ = ["memory_directory", "postgres_server", "postgres_url"]

WHOLE = "PASS|files:1\n## Plan\nyes\n## Tests\nfine\n"
CONFLICT = "FAIL|kind:scope_conflict|reason:two hands|files:src/api.py|with:{other}"
OUTPUTS = (
    "PASS\n## Plan\nhalf of it\n", f"PASS\n## Plan\nwith {TOKEN}\n", "PASS\n",
    "PARTIAL|missing:Tests\n## Plan\nyes\n", "BLOCKED|reason:which of two?|options:one, two",
    "FAIL|kind:turns_exhausted|reason:no turns left", "no signal at all", CONFLICT, CONFLICT,
)  # fmt: skip


class ScriptedRun(PipelineRun):
    """Run of a pipeline whose agents answer from a script."""

    scenario: Scenario
    made: Made

    async def _run_command(
        self, arguments: Sequence[str], stdin: str, environment: dict[str, str], command: object = None
    ) -> str:
        return self.scenario.reply(environment["RUNG_STAGE"], f"{environment['RUNG_TURNS']} {stdin}", self.made)


class Scenario:
    """One pipeline: its stages, and what their agents come to."""

    def __init__(self, seed: int, folder: Path) -> None:
        chance = random.Random(seed)
        self.seed, self.folder = seed, folder
        names = ["one", "two", "three"][: chance.randrange(1, 4)]
        self.is_parallel = chance.random() < 0.3
        self.has_operator = chance.random() < 0.5
        self.choice = chance.randrange(3)
        self.fates = {name: [self._fate(chance, name, names) for _ in range(chance.randrange(6))] for name in names}
        stages = [
            {
                "id": name, "prompt": f"Do {name} with {TOKEN}.", "command": ["true"], "turns": 5,
                "sections": ["Plan", "Tests"], "writes": ["src/api.py"] if name == "two" and not self.is_parallel else [],
                "depends_on": names[:number] if chance.random() < 0.5 else [], "signal": chance.random() < 0.5,
            }
            for number, name in enumerate(names)
        ]  # fmt: skip
        self.table = {
            "pipeline": {"name": "p", "workers": 3 if self.is_parallel else 1},
            "stage": stages,
            "policy": {"backoff": {"base": 0.0}, "unattended": chance.random() < 0.3, "attempts": 60},
        }

    def _fate(self, chance: random.Random, name: str, names: list[str]) -> Exception | str:
        if chance.random() < 0.5:
            other = chance.choice([other for other in names if other != name] or [name])
            return chance.choice(OUTPUTS[:-2] if self.is_parallel else OUTPUTS).format(other=other)
        kind = chance.choice([*Kind, Kind.TIMEOUT, Kind.SCOPE_CONFLICT])
        if self.is_parallel and kind in {Kind.SCOPE_CONFLICT, Kind.CLAIM_BLOCKED}:
            kind = Kind.TIMEOUT  # the new partition depends on the stages that run at this moment
        return AttemptError(
            f"it failed with {API_KEY}", finding=kind, output=chance.choice(["", f"half, with {TOKEN}"])
        )

    def reply(self, stage: str, seen: str, made: Made) -> str:
        """Return what the agent of a stage writes, or raise its error."""
        run = CURRENT.get()
        assert run is not None
        number = sum(failure.rule != PROCESS_DEATH_RULE for failure in run.incident.failures)
        made.requests.setdefault((stage, number), set()).add(seen)
        made.calls += 1
        fate = self.fates[stage][number] if number < len(self.fates[stage]) else WHOLE
        if isinstance(fate, Exception):
            raise fate.with_traceback(None)
        return fate

    def run(self, journal: Journal, run_id: str, made: Made, death: Death) -> PipelineResult:
        """Run the pipeline in one process."""
        reset_process_state()
        pipeline, policy = load(self.table)
        mortal: Any = MortalJournal(journal, death)
        folder = self.folder / run_id
        folder.mkdir(exist_ok=True)

        def answer(_: str, question: Any, __: object) -> str:
            return str(question.options[self.choice % len(question.options)].id)

        work = ScriptedRun(
            pipeline=pipeline, policy=policy, folder=folder, journal=mortal, run_id=run_id,
            ask=answer if self.has_operator else None,
        )  # fmt: skip
        work.scenario, work.made = self, made
        return asyncio.run(work.run())


def crash(journal: Journal, scenario: Scenario) -> None:
    """Compare a pipeline that is killed at one or two writes with the same pipeline undisturbed."""
    where, run_id = f"seed {scenario.seed}", str(scenario.seed)
    expected, made, still = Made(), Made(), Death()
    undisturbed = scenario.run(journal, run_id, expected, still)
    ended_well = undisturbed.status in {"succeeded", "recovered"}
    result, killed = killed_and_resumed(
        lambda death: scenario.run(journal, f"{run_id} killed", made, death),
        still.writes,
        random.Random(-scenario.seed - 1),
        is_final=ended_well,
    )
    assert result.status == undisturbed.status or ended_well, where
    if scenario.is_parallel and not ended_well:  # a stage may have started before another one failed
        common = made.requests.keys() & expected.requests.keys()
        assert {key: made.requests[key] for key in common} == {key: expected.requests[key] for key in common}, where
        return
    assert made.requests == expected.requests, where
    assert made.calls <= expected.calls + killed * (3 if scenario.is_parallel else 1), where
    assert ending_of(result) == ending_of(undisturbed), where
    assert files_of(scenario, f"{run_id} killed") == files_of(scenario, run_id), where


def files_of(scenario: Scenario, run_id: str) -> dict[str, str]:
    """Outputs of a run, by their names."""
    return {path.name: path.read_text() for path in (scenario.folder / run_id / "tasks" / "p").glob("*.md")}


def ending_of(result: PipelineResult) -> dict[str, Any]:
    """How each stage ended."""
    return {name: (outcome.ok, outcome.value, outcome.steps) for name, outcome in result.outcomes.items()}


@pytest.mark.parametrize("seeds", batches(20), ids=name_of)
def test_killed_at_any_write(memory_directory: Path, seeds: range) -> None:
    """Every stage of the resumed run is given the same requests as in an undisturbed one, and ends the same way."""
    with open_journal(memory_directory / "journal.db") as journal:
        for seed in seeds:
            crash(journal, Scenario(seed, memory_directory))


@pytest.mark.parametrize("seeds", batches(10, 0.2), ids=name_of)
def test_killed_at_any_write_in_postgres(postgres_url: str, memory_directory: Path, seeds: range) -> None:
    """The same holds in PostgreSQL."""
    with open_journal(postgres_url) as journal:
        for seed in seeds:
            crash(journal, Scenario(seed, memory_directory))


# What the agent of a stage does depends on the number of different requests it got.
AGENT = """
text=$(cat)
printf '%s %s\\n' "$RUNG_TURNS" "$(printf %s "$text" | cksum)" >> "requests.$RUNG_STAGE"
case $RUNG_STAGE$(sort -u "requests.$RUNG_STAGE" | wc -l) in
  one1) printf 'PASS\\n## Plan\\nyes\\n' ;;
  two1) echo "FAIL|kind:turns_exhausted|reason:no turns left" ;;
  two2) echo "FAIL|kind:scope_conflict|reason:two hands|files:a.py|with:one" ;;
  *) printf 'PASS\\n## Plan\\nyes\\n## Tests\\nfine\\n' ;;
esac
"""
FILE = """
[pipeline]
name = "p"
command = ["sh", "agent.sh"]
[policy]
backoff = { base = 0.0 }
[[stage]]
id = "one"
prompt = "Do one."
sections = ["Plan", "Tests"]
turns = 5
[[stage]]
id = "two"
prompt = "Do two."
depends_on = ["one"]
turns = 5
"""


def killed(folder: Path, place: int, moment: str) -> subprocess.CompletedProcess[str]:
    """Run the pipeline in a folder, with a kill at a write."""
    folder.mkdir(exist_ok=True)
    (folder / "agent.sh").write_text(AGENT)
    (folder / "p.toml").write_text(FILE)
    words = ["pipeline", "run", "--journal", "j.db", "--run-id", "r-1", "--json", "p.toml"]
    return subprocess.run(
        [sys.executable, killed_rung.__file__, str(place), moment, *words], cwd=folder, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def requests_of(folder: Path) -> dict[str, list[str]]:
    """Requests of each stage, without those that an attempt repeated."""
    found = {path.name: path.read_text().splitlines() for path in folder.glob("requests.*")}
    return {
        name: [line for n, line in enumerate(lines) if lines[n - 1] != line or n == 0] for name, lines in found.items()
    }


def test_a_real_kill(tmp_path: Path) -> None:
    """After SIGKILL at a write, the resumed run makes the same requests as an undisturbed one, and ends the same way."""
    still = killed(tmp_path / "still", -1, "before")
    assert still.returncode == 0, still.stderr
    expected = requests_of(tmp_path / "still")
    assert [len(lines) for _, lines in sorted(expected.items())] == [2, 3]
    for place, moment in places(int((tmp_path / "still" / "writes").read_text())):
        folder = tmp_path / f"{place} {moment}"
        assert killed(folder, place, moment).returncode == -9, (place, moment)
        done = killed(folder, -1, "before")
        assert done.returncode == 0, (place, moment, done.stderr)
        assert requests_of(folder) == expected, (place, moment)
        assert paths_in(done.stdout) == paths_in(still.stdout)


def paths_in(printed: str) -> dict[str, str]:
    """Output file of each stage, in the outcome."""
    return {name: stage["path"] for name, stage in json.loads(printed.splitlines()[-1])["stages"].items()}
