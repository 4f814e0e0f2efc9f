"""`rung hooks`: installs and serves the hooks of coding agents."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from rung.cli.command_group import CommandGroup
from rung.cli.help_text import epilogue
from rung.hooks.data_dir import default_data_dir
from rung.hooks.install import AGENTS, InstallTarget, is_installed, settings_path
from rung.hooks.install import install as install_hooks
from rung.hooks.install import uninstall as uninstall_hooks
from rung.hooks.resident_client import DEFAULT_PORT, connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.hooks.resident_server import ResidentServer

_agent_argument = click.argument("agent", type=click.Choice(AGENTS))
_UNINSTALL_RESULTS = {
    "restored": "settings restored, byte for byte",
    "removed": "hooks removed; later changes to the settings are kept",
    "absent": "no hooks were installed",
}


def _scope_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--user/--project", default=False, help="For all your projects, or for this directory (default)."
    )(function)


@click.group(cls=CommandGroup)
def command() -> None:
    """Detect loops and unproven claims inside the coding agent you use, and tell it in its session."""


def _install_target(agent: str, *, user: bool, port: int = 0) -> InstallTarget:
    settings = settings_path(agent, user=user, root=Path.cwd())
    return InstallTarget(agent=agent, settings=settings, data_dir=Path(default_data_dir()), port=port)


@command.command(
    "install", epilog=epilogue(examples=("rung hooks install claude-code", "rung hooks install codex --user"))
)
@_agent_argument
@_scope_option
@click.option("--http", is_flag=True, help="Ask `rung hooks serve --http` over loopback instead of its Unix socket.")
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(1, 65_535),
    metavar="N",
    help="Port to ask, with --http.",
)
def install(agent: str, *, user: bool, http: bool, port: int) -> None:
    """Add the hooks to the settings of AGENT; other settings stay.

    At the third repetition the agent is told to make a new plan, at the fifth to use another method; at the
    eighth its calls are denied and the session ends as partial. An agent that finishes without evidence is
    asked for it, once per prompt and at most twice a session.
    """
    place = _install_target(agent, user=user, port=port if http else 0)
    events = install_hooks(place)
    click.echo(f"{place.settings}: {', '.join(events)}")
    if agent == "codex":
        click.echo("rung: Codex runs hooks only after you approve them: type /hooks in Codex", err=True)
    click.echo(f"rung: to undo: rung hooks uninstall {agent}{' --user' if user else ''}", err=True)


@command.command("uninstall", epilog=epilogue(examples=("rung hooks uninstall claude-code",)))
@_agent_argument
@_scope_option
def uninstall(agent: str, *, user: bool) -> None:
    """Remove the hooks from the settings of AGENT."""
    place = _install_target(agent, user=user)
    click.echo(f"{place.settings}: {_UNINSTALL_RESULTS[uninstall_hooks(place)]}")


@command.command("status", epilog=epilogue(examples=("rung hooks status",)))
def status() -> None:
    """Show where the hooks are installed, and their errors."""
    for agent in AGENTS:
        for user in (False, True):
            place = _install_target(agent, user=user)
            state = "installed" if is_installed(place) else "not installed"
            line = f"{agent:<12} {'user' if user else 'project':<8} {state:<14} {place.settings}"
            # A path is not wrapped: where the line is too long, it gets one of its own.
            fits = len(line) <= get_terminal_size().columns
            click.echo(line if fits else line.replace(f" {place.settings}", f"\n  {place.settings}"))
    with connect(default_data_dir()) or nullcontext() as link:
        click.echo(f"service      {'none: each event starts an interpreter' if link is None else 'running'}")
    from rung.cli.run.run_checks import log_path
    from rung.cli.serve.trust import trust_line
    from rung.core.domain.errors import FileError
    from rung.wiring.settings_file import find, known_files

    crashes, run_crashes = Path(default_data_dir()) / "crash.log", log_path()
    click.echo(f"crashes      {_count_lines(crashes)} in {crashes}")
    click.echo(f"run hooks    {_count_lines(run_crashes)} crashes of `rung run` hooks in {run_crashes}")
    with suppress(FileError):
        find(quiet=True)  # has the file of this directory listed
    for file in known_files():
        click.echo(f"trust        {trust_line(file)}")


def _count_lines(log: Path) -> int:
    return len(log.read_bytes().splitlines()) if log.exists() else 0


@command.command("serve", epilog=epilogue(examples=("rung hooks serve", "rung hooks serve --http --port 8643")))
@click.option("--http", is_flag=True, help="Also listen on loopback, for hooks that were installed with --http.")
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Port to listen on, with --http; 0 picks a free port.",
)
def serve(*, http: bool, port: int) -> None:
    """Answer hooks from a resident process until it is stopped. `rung serve` includes this, without --http."""
    from rung.hooks.resident_server import serve as run_server

    def on_ready(server: ResidentServer) -> None:
        also = f" and at 127.0.0.1:{server.port}" if http else ""
        click.echo(f"answering hooks of {server.data_dir} over its Unix socket{also}; stop with Ctrl-C")

    with suppress(KeyboardInterrupt):
        run_server(default_data_dir(), port if http else None, ready=on_ready)


@command.command("sync", epilog=epilogue(examples=("rung hooks sync",)))
@click.option(
    "--journal",
    "journal_at",
    metavar="PATH|URL",
    help="Journal to write to; created if missing (default: the project's).",
)
def sync(*, journal_at: str | None) -> None:
    """Write spooled hook events to the journal now. Hooks do this themselves; use it after a crash."""
    from rung.hooks.spool_drain import drain

    click.echo(f"{drain(default_data_dir(), journal_at)} events written to the journal")
