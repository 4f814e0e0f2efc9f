"""`rung run --park`: what happens when a run is parked until a limit reopens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rung.cli.exit_codes import PARKED
from rung.cli.run.named_run import TASK, describe_call
from rung.cli.run.park_options import EXIT
from rung.cli.run.parked_call import MAX_INPUT_BYTES, ParkedCall
from rung.core.text.moments import rfc3339
from rung.engine.durable.parking import keep_parked_run
from rung.store.messages import incidents_with_intervention

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.adapters.system.command_input import CommandInput
    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.engine.durable.recovery import DurableRecovery
    from rung.engine.ports import RunLease
    from rung.store.journal.journal import Journal

INPUT_END_SECONDS: Final = 5.0


class LeaveParked(KeyboardInterrupt):
    """Stops a run that is parked, as Ctrl-C does; it stays open."""

    exit_code = PARKED


class RunParking:
    """Keeps a parked run for another process, and leaves it if `--park exit` says so. It is the run's `on_park`."""

    def __init__(
        self, mode: str, journal: Journal | None, agents: Mapping[str, Sequence[str]], given: CommandInput
    ) -> None:
        self._mode = mode
        self._journal = journal
        self._agents = agents
        self._given = given
        self._lease: RunLease | None = None
        self._durable: DurableRecovery | None = None
        self.kept_id = ""  # of the run that another process can take up
        self.until: float | None = None

    def __call__(self, incident: Incident) -> None:
        """Keep the run, and say how it goes on."""
        self.until = incident.parked_until
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
        click.echo(f"rung: Ctrl-C leaves it parked; wake it with: rung resume {incident.id} --now", err=True)

    def _claim(self, run: str) -> RunLease:
        assert self._journal is not None  # noqa: S101  # a kept run has a journal
        self._lease = self._journal.runs.claim(run, TASK, describe_call(self._agents, self._given))
        return self._lease.__enter__()

    def finish(self, outcome: Outcome[str]) -> None:
        """Record the outcome of a run that became durable when it was parked."""
        self.until = None
        if self._durable is not None:
            self._durable.finish(outcome)

    def __enter__(self) -> RunParking:
        return self

    def __exit__(self, *error: object) -> None:
        if self._lease is not None:
            self._lease.__exit__(*error)

    def contract(self) -> dict[str, str]:
        """Return what the contract of a run says that was left parked."""
        if self.until is None or not self.kept_id:
            return {}
        until = rfc3339(self.until)
        return {"parked_until": until, "run": self.kept_id, "continue": f"rung resume {self.kept_id}"}
