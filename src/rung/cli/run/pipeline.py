"""`rung pipeline`: stages of agents, each recovered on its own, from one file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rung.cli.exit_codes import EXITS, INTERRUPTED
from rung.cli.output import as_json, print_json

if TYPE_CHECKING:
    from rung.core.pipeline.spec import Pipeline
    from rung.core.policy.policy import Policy
    from rung.pipeline.result import PipelineResult
    from rung.pipeline.runner import PipelineRun

EPILOG = """\b
Each stage is a command: its prompt on standard input or where {prompt} stands, its answer on standard output, with
a first line like PASS|files:3|ref:docs/plan.md. Every run has an id, printed first; --resume ID goes on with it,
and a stage that has passed never runs again.

\b
Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 partial, 4 blocked, 130 stopped by Ctrl-C."""


@click.group(short_help="Run stages of agents.")
def command() -> None:
    """Run a pipeline of agents, each stage recovered on its own."""


@command.command("run", epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@click.option("--run-id", metavar="ID", help="Id of the run; the same id resumes it.")
@click.option("--resume", metavar="ID", help="Id of an interrupted or stopped run to resume.")
@click.option("--report", type=click.Path(path_type=Path), help="File for the report of a run that stops.")
@click.option("--ask/--no-ask", default=None, help="Ask on the terminal (default: when there is one).")
@click.option(
    "--ask-service", is_flag=True, help="Ask the operators of the service (rung serve), and wait for an answer."
)
@click.option("--journal", metavar="PATH|URL", help="Journal to write to (default: this machine's).")
@click.option("--no-journal", is_flag=True, help="Write no journal; the run cannot be resumed.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines; the last one is the outcome.")
def run(file: Path, **options: Any) -> None:
    """Run the pipeline in FILE.toml."""
    import asyncio

    pipeline, policy = _load(file)
    journal = _journal(options)
    try:
        work = _work(file, pipeline, policy, journal, options)
        work.load_prompts()
        if work.run_id and not options["as_json"]:
            click.echo(f"run {work.run_id}", err=True)
        for note in pipeline.restructured:
            _say("restructured", note, as_json=options["as_json"])
        ran = asyncio.run(work.run())
    except KeyboardInterrupt:
        click.echo("rung: stopped; --resume goes on with it", err=True)
        sys.exit(INTERRUPTED)
    finally:
        if journal is not None:
            journal.close()
    _print(ran, work.run_id, as_json=options["as_json"])
    sys.exit(EXITS[ran.status])


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@as_json
def check(file: Path, *, as_json: bool) -> None:
    """Print what would run, in which order, without running anything."""
    from rung.core.crew.dependencies import parallel_groups

    pipeline, _ = _load(file)
    turns = parallel_groups(pipeline.dependencies)
    if as_json:
        print_json({"pipeline": pipeline.name, "turns": turns, "restructured": list(pipeline.restructured)})
        return
    for number, turn in enumerate(turns, 1):
        click.echo(f"{number}. {', '.join(turn)}")
    for note in pipeline.restructured:
        _say("restructured", note, as_json=False)


def _load(file: Path) -> tuple[Pipeline, Policy]:
    from rung.core.domain.errors import ConfigError, FileError
    from rung.pipeline.runner import load
    from rung.wiring.files import read_table

    table = read_table(file)
    try:
        return load(table)
    except ConfigError as error:
        raise FileError(file, str(error), error.key, error.value, error.allowed) from None


def _journal(options: dict[str, Any]) -> Any:
    from rung.core.domain.errors import ConfigError
    from rung.wiring.journals import journal

    if options["run_id"] and options["resume"]:
        raise ConfigError("--run-id", options["run_id"], "left out when --resume names the run")
    if not options["no_journal"]:
        return journal(options["journal"])
    if options["journal"] or options["run_id"] or options["resume"]:
        raise ConfigError("--no-journal", True, "left out when a journal or a run is named")
    return None


def _work(file: Path, pipeline: Pipeline, policy: Policy, journal: Any, options: dict[str, Any]) -> PipelineRun:
    from rung.core.policy.policy import BLOCKED_REPORT
    from rung.pipeline.runner import PipelineRun

    ask = options["ask"] if options["ask"] is not None else sys.stdin.isatty() and sys.stderr.isatty()
    asks = None
    if options["ask_service"] and journal is not None:
        asks = _of_service(journal)
    elif ask and not policy.unattended:
        asks = _of_terminal()
    folder = file.resolve().parent
    return PipelineRun(
        pipeline=pipeline,
        policy=policy,
        folder=folder,
        journal=journal,
        run_id=_run_id(pipeline, journal, options),
        ask=asks,
        listen=_listener(policy, as_json=options["as_json"]),
        report=options["report"] or folder / (policy.report or BLOCKED_REPORT),
    )


def _of_service(journal: Any) -> Any:
    """Whoever looks at the service answers; any number of stages may wait for that."""
    asker = journal.operator_prompt()
    return lambda _, question, incident: asker(question, incident)


def _of_terminal() -> Any:
    """One question at a time, with the stage that asks it."""
    from threading import Lock

    from rung.cli.event_printer import asker

    alone, ask = Lock(), asker()

    def put(stage: str, question: Any, incident: Any) -> Any:
        with alone:
            _say(stage, question.question, as_json=False)
            return ask(question, incident)

    return put


def _run_id(pipeline: Pipeline, journal: Any, options: dict[str, Any]) -> str:
    from rung.core.domain.errors import ConfigError

    if journal is None:
        return ""
    named = options["resume"]
    if named is not None and not journal.runs.below(named):
        raise ConfigError("--resume", named, "the id of a run this journal has begun")
    if named or options["run_id"]:
        return str(named or options["run_id"])
    from secrets import token_hex

    return f"{pipeline.name}-{token_hex(4)}"


def _listener(policy: Policy, *, as_json: bool) -> Any:
    """Tell what happens, with the stage it happens in."""
    from rung.cli.event_printer import words
    from rung.core.domain.event_codec import to_json

    def tell(stage: str, event: Any, incident: Any) -> None:
        if as_json:
            sys.stdout.write(json.dumps({"stage": stage, **to_json(event)}) + "\n")
            sys.stdout.flush()
            return
        line = words(event, incident, policy)
        if line is not None:
            _, subject, rest = line
            _say(stage, f"{subject}: {rest}", as_json=False)

    return tell


def _say(subject: str, rest: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"name": subject, "text": rest}))
    else:
        click.echo(f"{click.style(subject, bold=True)}  {rest}", err=True)


def _print(ran: PipelineResult, run_id: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"name": "outcome", "run": run_id, **ran.to_dict()}))
        return
    for stage in ran.pipeline.stages:
        click.echo(f"{stage.id}  {ran.signal_line(stage.id)}")
    if ran.report:
        click.echo(f"rung: {ran.status.value}: the report is in {ran.report}", err=True)
