"""`rung help`: shows the help of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rung.cli.help_text import epilogue
from rung.cli.usage import unknown_command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    found = _find(ctx.find_root(), ctx.params.get("path") or ())
    return found.command.shell_complete(found, incomplete) if isinstance(found.command, click.Group) else []


@click.command(epilog=epilogue(examples=("rung help run", "rung help journal export")))
@click.argument("path", nargs=-1, metavar="[COMMAND]…", shell_complete=_complete)
@click.pass_context
def command(ctx: click.Context, path: tuple[str, ...]) -> None:
    """Show the help of COMMAND, which may be a subcommand; without it, list all commands."""
    click.echo(_find(ctx.find_root(), path).get_help())


def _find(ctx: click.Context, path: tuple[str, ...]) -> click.Context:
    """Return a context of the command that the words name, as if it had been called."""
    for name in path:
        group = ctx.command
        names = group.list_commands(ctx) if isinstance(group, click.Group) else []
        found = group.get_command(ctx, name) if isinstance(group, click.Group) else None
        if found is None:
            raise (
                unknown_command(name, names, ctx)
                if names
                else click.UsageError(f"`{ctx.command_path}` has no subcommands, {name!r} is none", ctx)
            )
        ctx = found.context_class(found, info_name=name, parent=ctx, **found.context_settings)
    return ctx
