"""`rung pipeline`: runs the stages of a pipeline file, each recovered on its own."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rung.cli.command_group import CommandGroup
from rung.cli.exit_codes import EXIT_CODES, TRY_LATER
from rung.cli.help_text import epilogue
from rung.cli.output import json_option, json_text, print_json
from rung.cli.run.park_options import park_options

if TYPE_CHECKING:
    from rung.core.domain.incident import Incident
    from rung.core.pipeline.spec import Pipeline
    from rung.core.policy.policy import Policy
    from rung.pipeline.result import PipelineResult
    from rung.pipeline.runner import PipelineRun
    from rung.store.journal.journal import Journal

EPILOG = epilogue(
    "Each stage is a command: it gets its prompt on standard input or in place of {prompt}, and writes its answer to "
    "standard output, with a first line like PASS|files:3|ref:docs/plan.md. The id of the run is printed first; "
    "--resume ID resumes it, and a stage that has passed never runs again.",
    "Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 partial, 4 blocked, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by "
    "SIGHUP, 75 parked until a limit reopens (--park exit; rung resume --due continues).",
    examples=("rung pipeline run build.toml", "rung pipeline run build.toml --resume ID"),
)


@click.group(cls=CommandGroup)
def command() -> None:
    """Run a pipeline of agents, each stage recovered on its own."""


@command.command("run", epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@click.option(
    "--project", metavar="NAME", default="", help="Project whose policy in the service applies (default: none)."
)
@click.option("--run-id", metavar="ID", help="Id of the run; the same id resumes it.")
@click.option("--resume", metavar="ID", help="Id of an interrupted or stopped run to resume.")
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File for the report of a run that stops (default: tasks/pipeline-blocked.md beside FILE.toml).",
)
@click.option("--ask/--no-ask", default=None, help="Ask on the terminal (default: when there is one).")
@click.option(
    "--ask-service", is_flag=True, help="Ask the operators of the service (rung serve), and wait for an answer."
)
@click.option(
    "--notes", metavar="DIR", help="Folder of the project's notes on failures (default: `notes` of rung.toml)."
)
@click.option("--no-notes", is_flag=True, help="Neither read nor write notes.")
@click.option(
    "--resume-session/--no-resume-session",
    "resume_session",
    default=None,
    help="Let a known agent that failed continue its own session (default), or start it afresh.",
)
@park_options
@click.option(
    "--journal", metavar="PATH|URL", help="Journal to write to; created if missing (default: this machine's)."
)
@click.option("--no-journal", is_flag=True, help="Write no journal; the run cannot be resumed.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines; the last one is the outcome.")
def run(file: Path, **options: Any) -> None:
    """Run the pipeline in FILE.toml."""
    import asyncio

    from rung.adapters.system.command_output import OutputClosed
    from rung.cli.run.ending_signals import ending_signals, exit_code_of
    from rung.cli.run.park_options import policy_with_park
    from rung.cli.run.parked_call import resumed_options
    from rung.cli.run.pipeline_retry import ports_of_order, record_failed_stages
    from rung.cli.run.recorded_command import ordered_retry
    from rung.cli.run.run_checks import recording_of_run
    from rung.cli.run.run_output import discard_output

    options = resumed_options(options, has_own_id=True)
    pipeline, policy = _load(file)
    journal = _open_journal(options)
    try:
        order = ordered_retry(journal)
        policy = _effective_policy(file, policy, journal, options["project"])
        policy = policy_with_park(policy, options, has_journal=journal is not None, has_terminal=sys.stderr.isatty())
        work = _build_run(file, pipeline, policy, journal, options)
        work.load_prompts()
        if order is not None and journal is not None:
            work.ports_of_run = ports_of_order(journal, order)
        if work.run_id and not options["as_json"]:
            click.echo(f"run {work.run_id}", err=True)
        for note in pipeline.restructured:
            _print_line("restructured", note, as_json=options["as_json"])
        try:
            with ending_signals():
                result = asyncio.run(work.run())
            code = EXIT_CODES[result.status]
            if journal is not None:
                record_failed_stages(work, journal, options, recording_of_run())
        except KeyboardInterrupt as stop:
            result, code = work.stopped_result(), exit_code_of(stop)
            state = "parked" if code == TRY_LATER else "stopped"
            click.echo(f"rung: {state}; use --resume to continue", err=True)
    finally:
        if journal is not None:
            journal.close()
    try:
        _print_result(result, work.run_id, as_json=options["as_json"])
    except BrokenPipeError:
        discard_output()
        code = code or OutputClosed.exit_code
    sys.exit(code)


@command.command("check", epilog=epilogue(examples=("rung pipeline check build.toml",)))
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@json_option
def check(file: Path, *, as_json: bool) -> None:
    """Print the stages in the order they would run, without running them."""
    from rung.core.crew.dependencies import parallel_groups

    pipeline, _ = _load(file)
    turns = parallel_groups(pipeline.dependencies)
    if as_json:
        print_json({"pipeline": pipeline.name, "turns": turns, "restructured": list(pipeline.restructured)})
        return
    for number, turn in enumerate(turns, 1):
        click.echo(f"{number}. {', '.join(turn)}")
    for note in pipeline.restructured:
        _print_line("restructured", note, as_json=False)


def _load(file: Path) -> tuple[Pipeline, Policy]:
    from rung.core.domain.errors import ConfigError, FileError
    from rung.pipeline.runner import load
    from rung.wiring.toml_reader import read_table

    table = read_table(file)
    try:
        return load(table)
    except ConfigError as error:
        raise FileError(file, str(error), error.key, error.value, error.allowed) from None


def _effective_policy(file: Path, policy: Policy, journal: Journal | None, project: str) -> Policy:
    """Return the policy of the file, with the changes made in the service and the `[tools]` of rung.toml."""
    from rung.core.policy.parser import PolicyBook
    from rung.pipeline.runner import policy_settings
    from rung.wiring.policies import PolicyStore, file_book
    from rung.wiring.toml_reader import read_table

    found = file_book()
    book = PolicyBook(default=policy, settings=policy_settings(read_table(file)), tools=found.tools)
    if found.limits is not None:  # nobody has trusted rung.toml: its tools raise nothing
        book = replace(book, limits=book.settings)
    if journal is None:
        return book.limit(policy)
    return PolicyStore(journal, book, keep_ladder=True).pick(project)


def _open_journal(options: dict[str, Any]) -> Journal | None:
    from rung.cli.usage import UsageError
    from rung.wiring.journals import journal

    if options["run_id"] and options["resume"]:
        raise UsageError("--run-id cannot be combined with --resume")
    if not options["no_journal"]:
        return journal(options["journal"], project=options["project"])
    if options["journal"] or options["run_id"] or options["resume"]:
        raise UsageError("--no-journal cannot be combined with --journal, --run-id or --resume")
    return None


def _build_run(
    file: Path, pipeline: Pipeline, policy: Policy, journal: Journal | None, options: dict[str, Any]
) -> PipelineRun:
    from rung.core.policy.policy import BLOCKED_REPORT
    from rung.pipeline.runner import PipelineRun
    from rung.wiring.agents import agent_sessions
    from rung.wiring.notes import project_notes

    if options["resume_session"] is not None:
        policy = policy.replace(resume_sessions=options["resume_session"])
    ask = options["ask"] if options["ask"] is not None else sys.stdin.isatty() and sys.stderr.isatty()
    asks = None
    if options["ask_service"] and journal is not None:
        asks = _service_asker(journal)
    elif ask and not policy.unattended:
        asks = _terminal_asker()
    folder = file.resolve().parent
    work = PipelineRun(
        pipeline=pipeline,
        policy=policy,
        folder=folder,
        journal=journal,
        run_id=_run_id(pipeline, journal, options),
        ask=asks,
        listen=_listener(policy, as_json=options["as_json"]),
        report=options["report"] or folder / (policy.report or BLOCKED_REPORT),
        notes=project_notes(options["notes"], off=options["no_notes"]),
        sessions=agent_sessions(lambda text: None if options["as_json"] else click.echo(f"rung: {text}", err=True)),
    )
    if journal is not None:
        work.on_park = _keep_parked(work, journal, options)
    return work


def _keep_parked(work: PipelineRun, journal: Journal, options: dict[str, Any]) -> Any:
    """Return a function that keeps a parked stage for another process, and leaves once every running stage is parked."""
    from rung.cli.run.park_options import EXIT
    from rung.cli.run.parking import LeaveParked
    from rung.cli.run.pipeline_retry import resuming_call
    from rung.engine.durable.parking import keep_parked_run
    from rung.store.messages import incidents_with_intervention

    parked: dict[str, Incident] = {}

    def keep(stage: str, incident: Incident) -> None:
        call = resuming_call(work.run_id, options)
        keep_parked_run(call.sealed(journal, incident.id), journal.runs.claim)
        parked[stage] = incident
        is_woken = incident.id in incidents_with_intervention(journal)
        if (
            options["park"] == EXIT
            and not is_woken
            and all(name in parked and parked[name].parked_until is not None for name in work.running_stages)
        ):
            raise LeaveParked

    return keep


def _service_asker(journal: Journal) -> Any:
    """Return a function that asks the operators of the service; stages may ask concurrently."""
    ask = journal.operator_prompt()
    return lambda _, question, incident: ask(question, incident)


def _terminal_asker() -> Any:
    """Return a function that asks on the terminal, one question at a time, with the name of the stage."""
    from threading import Lock

    from rung.cli.event_printer import terminal_asker

    lock, ask = Lock(), terminal_asker()

    def ask_for_stage(stage: str, question: Any, incident: Any) -> Any:
        with lock:
            _print_line(stage, question.question, as_json=False)
            return ask(question, incident)

    return ask_for_stage


def _run_id(pipeline: Pipeline, journal: Journal | None, options: dict[str, Any]) -> str:
    from rung.core.domain.errors import ConfigError

    if journal is None:
        return ""
    resumed = options["resume"]
    if resumed is not None and not journal.runs.ids_below(resumed):
        raise ConfigError("--resume", resumed, "the id of a run in this journal")
    if resumed or options["run_id"]:
        return str(resumed or options["run_id"])
    from secrets import token_hex

    return f"{pipeline.name}-{token_hex(4)}"


def _listener(policy: Policy, *, as_json: bool) -> Any:
    """Return a listener that prints events with the name of their stage."""
    from rung.cli.event_printer import ladder_info, print_json_line
    from rung.core.domain.event_codec import to_json
    from rung.core.domain.level_record import LevelRecorder
    from rung.core.text.progress_line import progress_line
    from rung.engine.local_zone import local_zone

    recorders: dict[str, LevelRecorder] = {}
    ladder = ladder_info(policy)

    def on_event(stage: str, event: Any, incident: Any) -> None:
        if as_json:
            print_json_line({"stage": stage, **to_json(event)})
            record = recorders.setdefault(stage, LevelRecorder(policy.ladder)).add(event, incident)
            if record is not None:
                print_json_line({"stage": stage, "name": "level", **record})
            return
        line = progress_line(event, incident, ladder, local_zone())
        if line is not None:
            _, subject, rest = line
            _print_line(stage, f"{subject}: {rest}", as_json=False)

    return on_event


def _print_line(subject: str, rest: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text({"name": subject, "text": rest}))
    else:
        click.echo(f"{click.style(subject, bold=True)}  {rest}", err=True)


def _print_result(result: PipelineResult, run_id: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_text({"name": "outcome", "run": run_id, **result.to_dict()}))
        return
    for stage in result.pipeline.stages:
        click.echo(f"{stage.id}  {result.signal_line(stage.id)}")
    if result.report:
        click.echo(f"rung: {result.status.value}: see the report in {result.report}", err=True)
