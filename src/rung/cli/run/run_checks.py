"""Hooks and completion checks of `rung run`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from rung.adapters.system.command_line import require_program, split_command
from rung.adapters.system.user_hooks import CommandHook
from rung.core.domain.errors import ConfigError
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rung.adapters.system.project_notes import ProjectNotes
    from rung.core.policy.policy import Policy
    from rung.engine.recovery_arguments import RunPorts
    from rung.wiring.recording import RecordingSettings

LOG_NAME: Final = "user-hooks.jsonl"


def load_stop_and_hooks(options: dict[str, Any]) -> tuple[dict[str, Any], list[CommandHook]]:
    """Return the `[stop]` table and the hooks of the policy file, extended by the options."""
    from rung.wiring.settings_file import find, named

    name = options["policy_name"]
    guards = ("hooks", "stop.judge")  # without them a run would succeed that should not
    file = find(needs=guards) if name is None else None if name in LADDERS else named(name)
    stop, hooks = ({}, ()) if file is None else (file.stop(), file.hooks())
    for number, hook in enumerate(hooks):
        if isinstance(hook.run, str):
            require_program(f"hooks[{number}].run", hook.run)
    if options["judge"] is not None:
        split_command("--judge", options["judge"])
        stop = {**stop, "judge": options["judge"]}
    return stop, [*hooks, *(_parse_hook(words) for words in options["hooks"])]


def recording_of_run(name: str | None = None) -> RecordingSettings:
    """Return what is recorded of a failed run, by the named policy file (default: the project's) and the environment."""
    from rung.wiring.recording import recording_settings
    from rung.wiring.settings_file import find, named

    file = find(quiet=True) if name is None else None if name in LADDERS else named(name)
    return recording_settings() if file is None else file.recording()


def find_notes(options: dict[str, Any]) -> ProjectNotes | None:
    """Return the project's notes: of `--notes`, or of the policy file; none with `--no-notes`."""
    from rung.wiring.notes import project_notes
    from rung.wiring.settings_file import named

    name = options["policy_name"]
    file = named(name) if name is not None and name not in LADDERS else None
    return project_notes(options["notes"], file, off=options["no_notes"])


def _parse_hook(words: str) -> CommandHook:
    when, separator, run = words.partition("=")
    if not separator:
        raise ConfigError("--hook", words, "WHEN=COMMAND, such as attempt.pre='notify --json'")
    require_program("--hook", run)
    return CommandHook(when=when.strip(), run=run)


def required_programs(
    command_line: Sequence[str], stop: dict[str, Any], options: dict[str, Any]
) -> dict[str, Sequence[str]]:
    """Return the command line of each agent, the first one without a name. All programs of the run must exist."""
    agents: dict[str, Sequence[str]] = {"": require_program("COMMAND", command_line)}
    for number, words in enumerate(options["fallback"], 1):
        agents[f"fallback {number}"] = require_program("--fallback", words)
    if options["check_command"] is not None:
        require_program("--check", options["check_command"])
    if stop.get("judge"):
        require_program("--judge" if options["judge"] else "stop.judge", stop["judge"])
    return agents


def planning_ports(options: dict[str, Any], policy: Policy) -> RunPorts:
    """Return the planner and the investigator of a run, as ports."""
    from rung.adapters.system.planner import CommandInvestigator, CommandPlanner

    ports: RunPorts = {}
    if options["planner"] is not None:
        planner = CommandPlanner(require_program("--planner", options["planner"]), prompts=policy.prompts)
        ports["rung_handlers"] = {"replan": planner}
    if options["investigate"] is not None:
        ports["investigate"] = CommandInvestigator(require_program("--investigate", options["investigate"]))
    return ports


def log_path() -> Path:
    """Return the log of failed hooks, beside this machine's journal."""
    from rung.wiring.journals import default_path

    return default_path().with_name(LOG_NAME)


def show_hook_crashes() -> None:
    """Print one line about the hooks of earlier runs that failed since the last run; hooks fail open, and so unseen."""
    import json

    from rung.hooks.crash_log import unread_lines

    path = log_path()
    with suppress(OSError, ValueError, KeyError, TypeError):  # an unreadable log must not prevent the run
        lines = unread_lines(str(path))
        if lines:
            last = json.loads(lines[-1])
            times = "once" if len(lines) == 1 else f"{len(lines)} times"
            what = f"{last['when']} {last['hook']}: {last['error']}"
            click.echo(f"rung: a hook failed {times} in earlier runs. Last: {what}. Log: {path}", err=True)


def command_check(words: str | None) -> Callable[[str], Any] | None:
    """Return a check that runs a command: its failure is a failed test. None if there is no command."""
    if words is None:
        return None

    def check(_: str) -> Any:
        from rung.adapters.system.process import run_command
        from rung.core.classify.evidence import clip
        from rung.core.domain.failures import Evidence, Kind, Phase

        done = run_command(words)
        if done.code == 0:
            return None
        output = clip((done.output + done.errors).strip(), 4_096)
        text = f"`{words}` exited {done.code}"
        return Evidence(text=text, output=output, exit_code=done.code, finding=Kind.TEST_FAILURE, phase=Phase.RESULT)

    return check


def combine_checks(*checks: Callable[[str], Any] | None) -> Callable[[str], Any] | None:
    """Combine checks into one that returns the first finding; None if there are no checks."""
    given = [check for check in checks if check is not None]

    def check(value: str) -> Any:
        return next((found for found in (one(value) for one in given) if found is not None), None)

    return check if given else None
