"""`rung run --park`: what happens when a run is parked until a limit reopens."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import click

from rung.cli.exit_codes import TRY_LATER
from rung.cli.run.named_run import TASK, describe_call
from rung.cli.run.park_options import EXIT
from rung.cli.run.parked_call import MAX_INPUT_BYTES, ParkedCall
from rung.core.domain.events import Unparked
from rung.core.text.moments import rfc3339
from rung.engine.durable.parking import keep_parked_run
from rung.store.messages import incidents_with_intervention

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.adapters.system.command_input import CommandInput
    from rung.core.domain.events import Event
    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.engine.durable.attempt_replay import DurableRecovery
    from rung.engine.ports.durable_runs import RunLease
    from rung.store.journal.journal import Journal

INPUT_END_SECONDS: Final = 5.0


class LeaveParked(KeyboardInterrupt):
    """Stops a run that is parked, as Ctrl-C does; it stays open."""

    exit_code = TRY_LATER

    def __init__(self) -> None:
        super().__init__("--park exit")


class RunParking:
    """Keeps a parked run for another process, and leaves it if `--park exit` says so. It is the run's `on_park`."""

    def __init__(
        self,
        journal: Journal | None,
        agents: Mapping[str, Sequence[str]],
        given: CommandInput,
        *,
        mode: str,
        journal_option: str | None,
    ) -> None:
        self._journal = journal
        self._mode = mode
        self._journal_option = journal_option
        self._agents = agents
        self._given = given
        self._lease: RunLease | None = None
        self._durable: DurableRecovery | None = None
        self.kept_id = ""  # of the run that another process can take up
        self._until: float | None = None

    def __call__(self, incident: Incident) -> None:
        """Keep the run, and say how it goes on."""
        self._until = incident.parked_until
        if self._journal is None:
            return
        if not self._given.wait_for_end(INPUT_END_SECONDS) or self._given.size > MAX_INPUT_BYTES:
            click.echo("rung: the standard input cannot be kept: the run ends with this process", err=True)
            return
        self._journal.flush()
        call = ParkedCall.of_this_process(b"".join(self._given.chunks()))
        durable = keep_parked_run(call.sealed(self._journal, incident.id), self._claim)
        self._durable = durable or self._durable
        self.kept_id = incident.id
        if self._mode == EXIT:
            if incident.id in incidents_with_intervention(self._journal):
                return  # a person wakes it
            raise LeaveParked
        click.echo(f"rung: Ctrl-C leaves it parked; wake it with: {self._resume_command} --now", err=True)

    def listen(self, event: Event, _: Incident) -> None:
        """Note that the run is taken up again. To be called for each event."""
        if isinstance(event, Unparked):
            self._until = None

    @property
    def _resume_command(self) -> str:
        journal = () if self._journal_option is None else ("--journal", self._journal_option)
        return shlex.join(["rung", "resume", *journal, self.kept_id])

    def _claim(self, run: str) -> RunLease:
        assert self._journal is not None  # noqa: S101  # a kept run has a journal
        self._lease = self._journal.runs.claim(run, TASK, describe_call(self._agents, self._given))
        return self._lease.__enter__()

    def finish(self, outcome: Outcome[str]) -> None:
        """Record the outcome of a run that became durable when it was parked."""
        if self._durable is not None:
            self._durable.finish(outcome)

    def __enter__(self) -> RunParking:
        return self

    def __exit__(self, *error: object) -> None:
        if self._lease is not None:
            self._lease.__exit__(*error)

    def contract(self) -> dict[str, str]:
        """Return what the contract of a run says that was parked and is left open."""
        if not self.kept_id:
            return {}
        until = {} if self._until is None else {"parked_until": rfc3339(self._until)}
        advice = f"Continue it with `{self._resume_command}`."
        return {**until, "run": self.kept_id, "continue": self._resume_command, "recommendation": advice}
