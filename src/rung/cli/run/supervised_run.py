"""One supervised command: its agents, ports and request, and the recovery that runs it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rung.adapters.system.command_input import CommandInput
from rung.adapters.system.foreground import is_foreground
from rung.adapters.system.process import RECOVERY_PLACEHOLDER, STDIN, AgentCommand
from rung.adapters.system.step_file import StepFile
from rung.adapters.system.user_hooks import hooked
from rung.cli.event_printer import listener, terminal_asker
from rung.cli.exit_codes import EXIT_CODES
from rung.cli.run.ending_signals import exit_code_of
from rung.cli.run.named_run import RunProcess, claimable_id, describe_call, has_session
from rung.cli.run.park_options import WAIT, policy_with_park
from rung.cli.run.parking import RunParking
from rung.cli.run.recorded_command import prompt_of_order, record_command
from rung.cli.run.run_checks import combine_checks, command_check, find_notes, log_path, planning_ports
from rung.core.domain.dollars import format_dollars
from rung.core.domain.errors import StoreError
from rung.core.domain.failures import is_limit
from rung.core.domain.incident import Incident
from rung.core.domain.request import Request
from rung.core.recovery.rung_conditions import UNREAD_INPUT
from rung.core.text.moments import format_span
from rung.engine.durable import recovery
from rung.engine.recover import recover_sync
from rung.engine.session import Session
from rung.wiring.agents import agent_sessions
from rung.wiring.completion_checks import output_check
from rung.wiring.recording import RecordingSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.adapters.system.user_hooks import CommandHook
    from rung.cli.run.run_output import RunOutput
    from rung.core.domain.outcome import Outcome
    from rung.core.policy.policy import Policy
    from rung.engine.recovery_arguments import RunPorts
    from rung.store.journal.journal import Journal
    from rung.store.replay_orders import ReplayOrder

MAX_TASK_CHARS: Final = 240  # of the command, which names the kind of task
INPUT_SECONDS: Final = 0.25  # wait for the end of standard input, before the command is started without it


@dataclass(kw_only=True)
class SupervisedRun:
    """A command to supervise, with the options of the command line."""

    agents: Mapping[str, Sequence[str]]
    policy: Policy
    journal: Journal | None
    stop: dict[str, Any]
    hooks: Sequence[CommandHook]
    output: RunOutput
    options: dict[str, Any]
    recording: RecordingSettings = field(default_factory=RecordingSettings)
    order: ReplayOrder | None = None  # by which this run makes an earlier one again

    def __post_init__(self) -> None:
        self._has_terminal = sys.stdin is not None and sys.stdin.isatty()
        self.policy = policy_with_park(
            self.policy, self.options, has_journal=self.journal is not None, has_terminal=sys.stderr.isatty()
        )
        self._given = CommandInput(None if sys.stdin is None or self._has_terminal else STDIN)
        # A durable run is known by its input; any other starts while its input still arrives.
        self._text = self._given.text(INPUT_SECONDS if self.options["run_id"] is None else None)
        if not self._text and RECOVERY_PLACEHOLDER in self.agents[""]:
            self._print_note(
                f'{RECOVERY_PLACEHOLDER} is empty in the first attempt; write the task beside it: "Do X. {{recovery}}"'
            )

    def recover(self) -> tuple[Outcome[str], int]:
        """Run the command to its end. Return the outcome and the exit code."""
        ports = self._ports()
        parking = ports["on_park"] = RunParking(
            self.journal,
            self.agents,
            self._given,
            mode=self.options["park"] or WAIT,
            journal_option=self.options["journal"],
        )
        ports["listeners"] = [*ports["listeners"], parking.listen]
        if self.order is not None and self.journal is not None:
            prompt = prompt_of_order(self.journal, self.order, self._text)
            ports["incident_id"] = self.order.id
            ports["session"] = Session(id=self.order.session)
            ports["intervention"] = self.order.intervention._replace(prompt=prompt)
        run_id, process = self._claim("ask" in ports)
        model = self.policy.models[0].name if self.policy.models else ""
        request = Request(
            prompt=self._text,
            model=model,
            params={"stdin": self._text},
            agent="",
            idempotent=self._is_idempotent,
            task=shlex.join(self.agents[""])[:MAX_TASK_CHARS],
        )
        attempt: Any = self._attempt(process)
        attempt = hooked(attempt, self.hooks, log=log_path()) if self.hooks else attempt
        try:
            with parking:
                if self.journal is None or process is None:
                    outcome = recover_sync(attempt, request, policy=self.policy, journal=self.journal, **ports)
                else:
                    outcome = recovery.recover_sync(
                        attempt, request, policy=self.policy, journal=self.journal, run_id=run_id, **ports
                    )
                parking.finish(outcome)
                self._record(outcome)
                self._explain_no_park(outcome)
                self._explain_no_cost(outcome)
                self._explain_unread(outcome)
        except KeyboardInterrupt as stop:
            code = exit_code_of(stop)
            if "__rung_outcome__" not in stop.__dict__:  # interrupted before the run started
                sys.exit(code)
            self.output.more = parking.contract()
            if self.output.more:
                state = "parked" if "parked_until" in self.output.more else "open"
                click.echo(f"rung: run {parking.kept_id!r} stays {state}: {self.output.more['continue']}", err=True)
            elif process is not None:
                goes_on = self._is_idempotent or has_session(stop.__dict__["__rung_outcome__"])
                how = "" if goes_on else " with --idempotent"
                click.echo(f"rung: run {run_id!r} stays open: the same command{how} continues it", err=True)
            return stop.__dict__["__rung_outcome__"], code
        finally:
            if process is not None:
                process.end()
        return outcome, EXIT_CODES[outcome.status]

    def _record(self, outcome: Outcome[str]) -> None:
        """Record the command of a run that has failed, so that it can be retried."""
        if outcome.ok or self.journal is None:
            return
        session = Incident.of(outcome.events).terms.session
        try:
            record_command(self.journal, session, outcome.id, self._given, self.recording)
        except StoreError as error:
            self._print_note(f"the run cannot be retried from the service: {error}")

    @property
    def _is_idempotent(self) -> bool:
        """Whether the command may run again after an attempt that was cut off. A check decides about its result."""
        if self.options["idempotent"] is not None:
            return bool(self.options["idempotent"])
        return self.options["check_command"] is not None or bool(self.stop.get("judge"))

    def _claim(self, attended: bool) -> tuple[str, RunProcess | None]:  # noqa: FBT001  # one caller
        """Return the id of a named run, and its process, after the process of an earlier call was ended."""
        if self.options["run_id"] is None or self.journal is None:  # a run with an id has a journal
            return "", None
        call = describe_call(self.agents, self._given)
        run_id = claimable_id(
            self.journal,
            self.options["run_id"],
            call,
            may_repeat=self._is_idempotent or attended,
            resumes_sessions=self.policy.resume_sessions,
        )
        process = RunProcess(run_id)
        process.end()
        return run_id, process

    def _attempt(self, process: RunProcess | None) -> AgentCommand:
        return AgentCommand(
            by_agent=self.agents,
            show_output=self.output.show_output,
            show_errors=self.output.show_errors,
            given=self._given,
            given_text=self._text,
            terminal=self._has_terminal and is_foreground(STDIN),
            guard=self.options["guard"],
            keep_output=self.output.keep,
            steps=StepFile(),
            sessions=agent_sessions(self._print_note, self.options["policy_name"]),
            launch=None if process is None else process.launcher,
        )

    def _explain_no_park(self, outcome: Outcome[str]) -> None:
        """Say why a run at a limit that reopens was not parked, if nobody chose so."""
        failure = outcome.failure
        is_chosen = self.options["park"] is not None or self.policy.park or self.journal is not None
        if is_chosen or outcome.ok or failure is None or not is_limit(failure):
            return
        if failure.retry_after is not None:
            span = format_span(failure.retry_after)
            self._print_note(
                f"the limit reopens in {span}; without a journal and a terminal, only --park wait waits for it"
            )

    def _explain_unread(self, outcome: Outcome[str]) -> None:
        """Say how a command that does not read its input is told its error, if a rung was skipped for that."""
        if not outcome.ok and any(reason == UNREAD_INPUT for _, reason in outcome.skipped):
            self._print_note(
                f"the command did not read its input: write {RECOVERY_PLACEHOLDER} where it takes the error"
            )

    def _explain_no_cost(self, outcome: Outcome[str]) -> None:
        """Say that a dollar limit has limited nothing, because no attempt told its cost."""
        limit = self.policy.budget.dollars
        if limit is not None and outcome.attempts and not outcome.dollars:
            known = "`total_cost_usd` in the JSON that it prints"
            self._print_note(
                f"the limit of {format_dollars(limit)} limited nothing: the command told no cost ({known})"
            )

    def _print_note(self, text: str) -> None:
        if not self.options["as_json"]:
            click.echo(f"rung: {text}", err=True)

    def _ports(self) -> RunPorts:
        options = self.options
        ports: RunPorts = {
            "listeners": [listener(self.policy, as_json=options["as_json"])],
            "notes": find_notes(options),
            **planning_ports(options, self.policy),
        }
        ports["check"] = combine_checks(
            command_check(options["check_command"]), output_check(self.stop, self._text, Path.cwd())
        )
        asks = options["ask"] if options["ask"] is not None else self._has_terminal and sys.stderr.isatty()
        if options["ask_service"] and self.journal is not None:
            ports["ask"] = self.journal.operator_prompt()
        elif asks and not self.policy.unattended:
            ports["ask"] = terminal_asker()
        if options["checkpoint"]:
            from rung.adapters.system.git import GitCheckpoint

            ports["checkpoint"] = GitCheckpoint()
        return ports
