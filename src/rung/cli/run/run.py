"""`rung run -- COMMAND …`: supervises any command as an agent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from rung.cli.complete_names import complete_ladder, complete_model, complete_template
from rung.cli.exit_codes import CLAIM_BLOCKED, LEASE_EXPIRED, USAGE
from rung.cli.help_text import epilogue
from rung.cli.run.park_options import park_options
from rung.core.domain.errors import LeaseLost, RunNotResumable, RunOwnedElsewhere
from rung.core.policy.templates import TEMPLATES

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

SEPARATOR = "--"  # between the options and COMMAND; an option without its value takes it as one
EPILOG = epilogue(
    "The command gets your standard input. When it fails, the ladder decides how to run it again. The recovery prompt "
    "precedes the task on its standard input, or replaces {recovery} in the command, which is empty in the first attempt. "
    "{model} is replaced by the model. A fallback is another command that takes over. No shell reads these commands: for "
    "`a && b` write sh -c 'a && b'.",
    "Standard output gets the output of a successful run; otherwise the output contract, as JSON.",
    "Exit codes: 0 succeeded or recovered, 1 failed, 2 wrong usage, 3 partial, 4 blocked, 130 stopped by Ctrl-C, 143 by "
    "SIGTERM, 129 by SIGHUP, 5 another process runs this --run-id, 6 another process has taken it over, 75 parked until a "
    "limit reopens (--park exit; rung resume --due continues).",
    examples=(
        "rung run -- claude -p --output-format json < task.md",
        'rung run --fallback "codex exec -" \\',
        '  --check "make test" \\',
        '  -- my-agent --prompt "Fix the tests. {recovery}"',
    ),
)


@click.command(epilog=EPILOG, context_settings={"ignore_unknown_options": False})
@click.argument("command_line", nargs=-1, required=True, metavar="-- COMMAND …")
@click.option(
    "--policy",
    "policy_name",
    metavar="LADDER|FILE",
    shell_complete=complete_ladder,
    help="Ladder or policy file (default: ./rung.toml, and changes made in the service).",
)
@click.option(
    "--template",
    metavar="NAME",
    shell_complete=complete_template,
    help=f"Template of the policy: {', '.join(TEMPLATES)}.",
)
@click.option("--project", metavar="NAME", default="", help="Project whose policy applies (default: none).")
@click.option(
    "--fallback",
    multiple=True,
    metavar="COMMAND",
    help="Command that takes over if COMMAND cannot go on. May be repeated.",
)
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_model,
    help="Model of the model ladder, cheapest first. May be repeated.",
)
@click.option(
    "--check",
    "check_command",
    metavar="COMMAND",
    help="Command that must exit 0 after a run, or the run has failed. Not read by a shell.",
)
@click.option(
    "--judge", metavar="COMMAND", help="Command that scores finished work: reads a case as JSON, writes a verdict."
)
@click.option(
    "--hook",
    "hooks",
    multiple=True,
    metavar="WHEN=COMMAND",
    help="Command to run around attempts or rungs: attempt.pre, attempt.post, rung.pre, rung.post. May be repeated.",
)
@click.option(
    "--planner", metavar="COMMAND", help="Command that makes a new plan: reads a case as JSON, writes the plan as text."
)
@click.option(
    "--investigate",
    metavar="COMMAND",
    help="Command that finds the root cause before a new plan or a handover: reads a case, writes the cause.",
)
@click.option("--retries", type=int, metavar="N", help="Tries of the retry rung (default: by the policy).")
@click.option(
    "--escalate-after",
    type=int,
    metavar="N",
    help="Retries after which a --fallback or another model takes over; 0: at once (default: by the policy).",
)
@click.option(
    "--max-attempts", "attempts", type=int, metavar="N", help="Maximum number of attempts (default: by the policy)."
)
@click.option(
    "--max-seconds",
    "seconds",
    type=float,
    metavar="SECONDS",
    help="Maximum total time, in seconds (default: by the policy).",
)
@click.option(
    "--dollars",
    type=float,
    metavar="N",
    help="Maximum cost, in US dollars, of commands that print theirs (default: by the policy).",
)
@click.option(
    "--patience",
    type=float,
    metavar="SECONDS",
    help="Longest wait for a failing service, in seconds; 0: none (default: by the policy, 300).",
)
@click.option(
    "--attempt-seconds",
    type=float,
    metavar="SECONDS",
    help="Time limit of one attempt, in seconds (default: by the policy).",
)
@park_options
@click.option("--checkpoint", is_flag=True, help="Save the git work tree before replan and higher rungs.")
@click.option(
    "--report", metavar="FILE", help="File for the report of a blocked run (default: tasks/pipeline-blocked.md)."
)
@click.option(
    "--notes", metavar="DIR", help="Folder of the project's notes on failures (default: `notes` of the policy file)."
)
@click.option("--no-notes", is_flag=True, help="Neither read nor write notes.")
@click.option(
    "--journal", metavar="PATH|URL", help="Journal to write to; created if missing (default: this machine's)."
)
@click.option("--no-journal", is_flag=True, help="Write no journal.")
@click.option(
    "--run-id", metavar="ID", help="Id of a durable run: after a crash, the same command with the same id resumes it."
)
@click.option(
    "--idempotent/--not-idempotent",
    default=None,
    help="Whether the command may run again after an attempt that was cut off (default: with --check or --judge).",
)
@click.option(
    "--resume-session/--no-resume-session",
    "resume_session",
    default=None,
    help="Let a known agent that failed continue its own session (default), or start it afresh.",
)
@click.option("--ask/--no-ask", default=None, help="Ask on the terminal (default: when there is one).")
@click.option(
    "--ask-service", is_flag=True, help="Ask the operators of the service (rung serve), and wait for an answer."
)
@click.option(
    "--stream/--buffer", default=None, help="Show output as it arrives, or at the end (default: stream on a terminal)."
)
@click.option(
    "--guard/--no-guard", default=True, help="End the command if rung itself is killed (default), or let it continue."
)
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines; the last one is the outcome.")
def command(command_line: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND, and recover it when it fails."""
    from rung.cli.run.ending_signals import EndRequested, ending_signals
    from rung.cli.run.run_checks import show_hook_crashes

    for param in click.get_current_context().command.params:
        if options.get(param.name or "") == SEPARATOR:
            raise click.BadOptionUsage(param.opts[0], f"Option {param.opts[0]!r} requires an argument.")
    try:
        with ending_signals():
            show_hook_crashes()
            _run(command_line, options)
    except EndRequested as end:  # before the run started, or after its end
        sys.exit(end.exit_code)
    except (RunOwnedElsewhere, RunNotResumable) as error:
        click.echo(f"rung: {error}", err=True)
        sys.exit(CLAIM_BLOCKED if isinstance(error, RunOwnedElsewhere) else USAGE)
    except LeaseLost:
        click.echo(f"rung: run {options['run_id']!r} was taken over by another process", err=True)
        sys.exit(LEASE_EXPIRED)


def _run(command_line: tuple[str, ...], options: dict[str, Any]) -> None:
    from rung.adapters.system.command_output import OutputClosed
    from rung.cli.run.parked_call import resumed_options
    from rung.cli.run.recorded_command import ordered_retry
    from rung.cli.run.run_checks import load_stop_and_hooks, recording_of_run, required_programs
    from rung.cli.run.run_output import RunOutput
    from rung.cli.run.run_policy import policy_of_run
    from rung.cli.run.supervised_run import SupervisedRun

    options = resumed_options(options)
    stop, hooks = load_stop_and_hooks(options)
    agents = required_programs(command_line, stop, options)
    output = RunOutput(as_json=options["as_json"], stream=options["stream"])
    journal = _open_journal(options)
    try:
        order = ordered_retry(journal)
        if order is not None:
            options["run_id"] = None  # a retry is a run of its own
        policy = policy_of_run(options, journal, agents)
        run = SupervisedRun(
            agents=agents, policy=policy, journal=journal, stop=stop, hooks=hooks, output=output, options=options,
            recording=recording_of_run(options["policy_name"]), order=order,
        )  # fmt: skip
        outcome, code = run.recover()
    finally:
        if journal is not None:
            journal.close()
    try:
        output.print_outcome(outcome)
    except OutputClosed as closed:
        code = code or closed.exit_code
    sys.exit(code)


def _open_journal(options: dict[str, Any]) -> Journal | None:
    """Open the requested journal; or this machine's, or none if that is unavailable."""
    from rung.cli.usage import UsageError

    if options["no_journal"]:
        if options["journal"] or options["run_id"]:
            raise UsageError("--no-journal cannot be combined with --journal or --run-id")
        return None
    from rung.core.domain.errors import StoreError
    from rung.wiring.journals import journal

    try:
        return journal(options["journal"], project=options["project"])
    except StoreError as error:
        if options["journal"] or options["run_id"]:
            raise
        click.echo(f"rung: no journal is written: {error}", err=True)
        return None
