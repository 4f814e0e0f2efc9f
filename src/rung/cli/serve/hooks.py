"""`rung hooks`: notice loops and empty claims inside the coding agent you already use."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rung.core.domain.errors import ConfigError
from rung.hooks.data_dir import directory
from rung.hooks.install import AGENTS, InstallTarget, installed, settings_of
from rung.hooks.install import install as install_hooks
from rung.hooks.install import uninstall as uninstall_hooks
from rung.hooks.resident_client import PORT, reached

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.hooks.resident_server import ResidentServer

_agent = click.argument("agent", type=click.Choice(AGENTS))
_ANSWERS = {
    "restored": "its settings are as they were, to the byte",
    "removed": "our hooks are out; what was changed in its settings meanwhile stays",
    "absent": "there was nothing of ours",
}


def _where(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--user/--project", default=False, help="Install for all your projects, or for this directory (default)."
    )(function)


@click.group(short_help="Install hooks into the coding agent you use.")
def command() -> None:
    """Detect loops and unproven claims inside the coding agent you use, and tell it in its session."""


def _place(agent: str, *, user: bool, port: int = 0) -> InstallTarget:
    settings = settings_of(agent, user=user, root=Path.cwd())
    return InstallTarget(agent=agent, settings=settings, data=Path(directory()), port=port)


@command.command("install")
@_agent
@_where
@click.option("--http", is_flag=True, help="Have Claude Code post its events to `rung hooks serve` or `rung serve`.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(1, 65_535), help="Port the hooks post to.")
def install(agent: str, *, user: bool, http: bool, port: int) -> None:
    """Add the hooks to the settings of AGENT; other settings stay.

    At the third repetition it is told to plan anew, at five to use another method, at eight its calls are
    denied and it ends as partial. It finishes with evidence, or is asked for it, at most twice a session.
    """
    if http and agent != "claude-code":
        raise ConfigError(
            "--http", agent, "claude-code: the others only run commands, which ask the service by themselves"
        )
    place = _place(agent, user=user, port=port if http else 0)
    events = install_hooks(place)
    click.echo(f"{place.settings}: {', '.join(events)}")
    if agent == "codex":
        click.echo("rung: Codex runs hooks after you have looked at them: type /hooks there", err=True)
    click.echo(f"rung: undo it with: rung hooks uninstall {agent}{' --user' if user else ''}", err=True)


@command.command("uninstall")
@_agent
@_where
def uninstall(agent: str, *, user: bool) -> None:
    """Remove the hooks from the settings of AGENT."""
    place = _place(agent, user=user)
    click.echo(f"{place.settings}: {_ANSWERS[uninstall_hooks(place)]}")


@command.command("status")
def status() -> None:
    """Show where the hooks are installed, and their errors."""
    for agent in AGENTS:
        for user in (False, True):
            place = _place(agent, user=user)
            said = "installed" if installed(place) else "not installed"
            click.echo(f"{agent:<12} {'user' if user else 'project':<8} {said:<14} {place.settings}")
    there = reached(directory())
    click.echo(
        f"service      {'none: each event starts an interpreter' if there is None else f'answers at port {there[0]}'}"
    )
    log = Path(directory()) / "crash.log"
    count = len(log.read_bytes().splitlines()) if log.exists() else 0
    click.echo(f"crashes      {count} in {log}")


@command.command("serve")
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 picks a free port.",
)
def serve(*, port: int) -> None:
    """Answer hooks from a resident process until it is stopped. `rung serve` does so, too."""
    from rung.hooks.resident_server import serve as answer

    def say(server: ResidentServer) -> None:
        click.echo(f"answering hooks of {server.place} at 127.0.0.1:{server.port}; stop with Ctrl-C")

    with suppress(KeyboardInterrupt):
        answer(directory(), port, ready=say)


@command.command("sync")
@click.option("--journal", "journal_at", metavar="PATH|URL", help="Journal to write to (default: the project's).")
def sync(*, journal_at: str | None) -> None:
    """Write spooled hook events to the journal now. Hooks do so by themselves; use it after a crash."""
    from rung.hooks.spool_drain import take

    click.echo(f"{take(directory(), journal_at)} events taken to the journal")
