"""Crash matrix of `rung run --run-id`: killed before or after any write, the same command makes the same next request."""

from __future__ import annotations

import subprocess
import sys
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import pytest

from rung.adapters.system.command_input import CommandInput
from rung.cli.run.run import command
from rung.cli.run.run_output import RunOutput
from rung.cli.run.run_policy import policy_of_run
from rung.cli.run.supervised_run import SupervisedRun
from rung.store import open_journal
from rung.testing import FakeClock
from rung.wiring.recording import RecordingSettings
from tests.store.durable_runs import killed_rung
from tests.store.durable_runs.conftest import memory_directory, postgres_server, postgres_url
from tests.store.durable_runs.crash_matrix import NAMES, Made, Scenario, crash
from tests.store.durable_runs.mortal import Death, MortalJournal, batches, name_of, places

if TYPE_CHECKING:
    from pathlib import Path

    import rung
    from rung.engine.recovery_arguments import RunPorts
    from rung.store.journal.journal import Journal

__all__ = ["memory_directory", "postgres_server", "postgres_url"]

# Every option that the command has, so that a new one is none of those that are given.
OPTIONS: dict[str, Any] = {str(option.name): None for option in command.params} | {
    "models": ("small", "large"), "no_notes": True, "project": "", "idempotent": True, "ask_service": False,
    "checkpoint": False, "guard": True, "as_json": True, "report": "",
}  # fmt: skip
AGENTS = {"": ["agent", "{model}"], "fallback 1": ["other", "{recovery}"]}


class MortalRun(SupervisedRun):
    """Run of `rung run` with a scripted command, on a clock of its own."""

    scenario: CommandScenario
    made: Made

    def __post_init__(self) -> None:
        self._has_terminal = False
        with TemporaryFile() as file:
            file.write(self.scenario.task.encode())
            file.seek(0)
            self._given = CommandInput(file.fileno())
            self._text = self._given.text(None)

    def _attempt(self, _: object) -> Any:
        return self.scenario.attempts(self.made)

    def _ports(self) -> RunPorts:
        ports = super()._ports()
        ports |= {"clock": FakeClock(), "jitter": lambda: 0.0, "retry_budget": None, "breakers": None, "listeners": []}
        if self.scenario.has_operator:
            ports["ask"] = self.scenario.answer
        return ports


class CommandScenario(Scenario):
    """One call of `rung run --run-id`."""

    @property
    def task(self) -> str:
        """Standard input of the call."""
        return self.request.prompt or "Do it."

    def run(self, journal: Journal, run_id: str, made: Made, death: Death) -> rung.Outcome[Any]:
        """Run the command in one process."""
        options = {**OPTIONS, "policy_name": NAMES[self.seed % len(NAMES)], "run_id": run_id}
        mortal: Any = MortalJournal(journal, death)
        policy = policy_of_run(options, mortal, AGENTS)

        class Run(MortalRun):
            scenario = self

        Run.made = made
        run = Run(
            agents=AGENTS, policy=policy, journal=mortal, stop={}, hooks=[], output=RunOutput(as_json=True, stream=None),
            options=options, recording=RecordingSettings(requests=False),  # which writes after the end of the run
        )  # fmt: skip
        outcome, _ = run.recover()
        return outcome

    def is_final(self, outcome: rung.Outcome[Any]) -> bool:
        """A run that ended badly starts again under the next number."""
        return outcome.ok


@pytest.mark.parametrize("seeds", batches(20), ids=name_of)
def test_killed_at_any_write(memory_directory: Path, seeds: range) -> None:
    """The resumed run is given the same requests as an undisturbed one, and ends the same way."""
    with open_journal(memory_directory / "journal.db") as journal:
        for seed in seeds:
            crash(journal, CommandScenario(seed))


@pytest.mark.parametrize("seeds", batches(10, 0.2), ids=name_of)
def test_killed_at_any_write_in_postgres(postgres_url: str, seeds: range) -> None:
    """The same holds in PostgreSQL."""
    with open_journal(postgres_url) as journal:
        for seed in seeds:
            crash(journal, CommandScenario(seed))


# Fails as often as it gets another request, and succeeds with the sixth one: what it does depends on the requests alone.
AGENT = """
text=$(cat)
printf '%s %s\\n' "$1" "$(printf %s "$text" | cksum)" >> requests
case $(sort -u requests | wc -l) in
  6) echo read >> "$RUNG_STEPS"; echo done ;;
  *) echo "No such file: config.toml (404 not found)" >&2; exit 1 ;;
esac
"""
WORDS = [
    "run", "--run-id", "r-1", "--journal", "j.db", "--policy", "p.toml", "--idempotent", "--model", "small",
    "--fallback", "sh agent.sh other", "--", "sh", "agent.sh", "{model}",
]  # fmt: skip


def killed(folder: Path, place: int, moment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with a kill at a write."""
    folder.mkdir(exist_ok=True)
    (folder / "agent.sh").write_text(AGENT)
    (folder / "p.toml").write_text('[policy]\nladder = "task"\nbackoff = { base = 0.0 }\n')
    return subprocess.run(
        [sys.executable, killed_rung.__file__, str(place), moment, *WORDS], cwd=folder, input="Do it.",
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def requests_of(folder: Path) -> list[str]:
    """Requests of a run, without those that an attempt repeated."""
    lines = (folder / "requests").read_text().splitlines()
    return [line for number, line in enumerate(lines) if number == 0 or lines[number - 1] != line]


def test_a_real_kill(tmp_path: Path) -> None:
    """After SIGKILL at a write, the same command makes the same requests as an undisturbed run, and prints the same."""
    still = killed(tmp_path / "still", -1, "before")
    assert (still.returncode, still.stdout) == (0, "done\n"), still.stderr
    expected = requests_of(tmp_path / "still")
    assert len(expected) == 6
    for place, moment in places(int((tmp_path / "still" / "writes").read_text())):
        folder = tmp_path / f"{place} {moment}"
        assert killed(folder, place, moment).returncode == -9, (place, moment)
        done = killed(folder, -1, "before")
        assert (done.returncode, done.stdout) == (0, "done\n"), (place, moment, done.stderr)
        assert requests_of(folder) == expected, (place, moment)
