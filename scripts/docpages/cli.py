"""Generate the reference of the command line from the commands themselves: an index, and a page per command."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

from docpages.markdown import code, fence, page, table
from rung.cli.exit_codes import EXIT_CODES, INTERRUPTED, TRY_LATER, USAGE
from rung.cli.group import COMMANDS, root

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WIDTH = 100


def pages() -> dict[str, str]:
    """Return the path and text of each page."""
    top = click.Context(root, info_name="rung", **root.context_settings)
    found = {name: command for name in root.list_commands(top) if (command := root.get_command(top, name))}
    shown = {name: command for name, command in found.items() if not command.hidden}
    return {"cli/README.md": _index(shown), **{f"cli/{name}.md": _page(name, shown[name], top) for name in shown}}


def _index(commands: Mapping[str, click.Command]) -> str:
    rows = [
        (f"[`rung {name}`]({name}.md)", COMMANDS[name][1] if name in COMMANDS else command.get_short_help_str(WIDTH))
        for name, command in commands.items()
    ]
    return page(
        "Command line",
        "`rung COMMAND --help` prints the same text. Every command checks its arguments before it does anything.",
        table(("command", "what it does"), rows),
        "## Exit codes",
        "Commands that recover something end with one of these codes. A command with other codes says so on its page.",
        table(("code", "meaning"), _exit_codes()),
    )


def _exit_codes() -> Iterator[tuple[str, str]]:
    by_code: dict[int, list[str]] = {}
    for status, number in EXIT_CODES.items():
        by_code.setdefault(number, []).append(str(status))
    by_code.setdefault(USAGE, []).append("wrong usage; nothing ran")
    by_code.setdefault(TRY_LATER, []).append("parked until a limit reopens, with `--park exit`")
    by_code.setdefault(INTERRUPTED, []).append("stopped by Ctrl-C")
    for number, meanings in sorted(by_code.items()):
        yield code(number), ", ".join(meanings)


def _page(name: str, command: click.Command, parent: click.Context) -> str:
    context = _context(name, command, parent)
    return page(code(f"rung {name}"), *_parts(command, context), *_subcommands(command, context))


def _context(name: str, command: click.Command, parent: click.Context) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH)


def _subcommands(command: click.Command, context: click.Context) -> Iterator[str]:
    """Return a section per command of a group, and of the groups in it."""
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            own = _context(name, inner, context)
            yield f"## {code(own.command_path)}"
            yield from _parts(inner, own)
            yield from _subcommands(inner, own)


def _parts(command: click.Command, context: click.Context) -> Iterator[str]:
    """Return usage, help, options and epilogue of one command."""
    yield fence(" ".join([context.command_path, *command.collect_usage_pieces(context)]))
    yield from _paragraphs(command.help or "")
    if command.deprecated:
        yield "This command is deprecated."
    options = [record for param in command.params if (record := _record(param, context))]
    if options:
        yield table(("option", "meaning"), options)
    yield from _paragraphs(command.epilog or "")


def _record(param: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    record = param.get_help_record(context)
    return (code(record[0]), _prose(record[1])) if record and record[1] else None


def _paragraphs(text: str) -> Iterator[str]:
    """Return the paragraphs of a help text; those that click does not wrap become code blocks."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield fence(
                inspect.cleandoc(paragraph.removeprefix("\b").strip("\n")), "sh" if "rung " in paragraph else "text"
            )
        elif paragraph:
            yield _prose(" ".join(paragraph.split()))


def _prose(text: str) -> str:
    """Return a text whose characters Markdown would interpret are escaped, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts)
