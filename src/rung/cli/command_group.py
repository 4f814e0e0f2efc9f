"""Groups of commands: whole summaries in the help, suggestions for unknown names, commands imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from rung.cli.usage import unknown_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from click.shell_completion import CompletionItem


class CommandGroup(click.Group):
    """Group whose help wraps the summaries of its commands instead of cutting them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is an error that names the known ones."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise unknown_command(name, [known for known, _ in self.summaries(ctx)], ctx)
        return super().resolve_command(ctx, args)

    def summaries(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        """Yield the name and the summary of each command that the help lists."""
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                yield name, command.short_help or first_sentence(command.help or "")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        rows = list(self.summaries(ctx))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


class LazyGroup(CommandGroup):
    """Group that imports a command when it is used. Its table gives each command a module and a summary."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the command names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """Import a command."""
        if cmd_name not in self.table:
            return None
        module, summary = self.table[cmd_name]
        command: click.Command = import_module(f"rung.cli.{module}").command
        command.name, command.short_help = cmd_name, summary
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name is rejected without importing anything."""
        if not args[0].startswith("-") and not ctx.resilient_parsing and args[0] not in self.table:
            raise unknown_command(args[0], self.table, ctx)
        return super().resolve_command(ctx, args)

    def summaries(self, ctx: click.Context) -> Iterator[tuple[str, str]]:  # noqa: ARG002  # as its base
        """Yield the names and summaries of the table; no command is imported."""
        for name, (_, summary) in self.table.items():
            yield name, summary

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, and the options; no command is imported."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=summary) for name, summary in self.summaries(ctx) if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text, on one line."""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    head, stop, _ = paragraph.partition(". ")
    return head + stop.strip()
