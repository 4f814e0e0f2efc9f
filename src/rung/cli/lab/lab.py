"""`rung lab`: runs a fake provider that fails on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rung.cli.command_group import CommandGroup
from rung.cli.help_text import epilogue
from rung.cli.lab.test import command as test_command
from rung.cli.numbers import COUNT, SECONDS, FiniteRange
from rung.cli.output import json_option, paragraph, pluralize, print_json

if TYPE_CHECKING:
    from rung.testing.provider import Lab

EPILOG = epilogue(
    "GET /lab/requests lists the requests, DELETE clears them, PUT /lab/script replaces the script.",
    examples=(
        "rung lab --port 8099 --script faults.toml",
        "rung lab --rate 0.3 --seed 7",
        "rung lab test -- python my_agent.py",
    ),
)


@click.group(cls=CommandGroup, invoke_without_command=True, epilog=EPILOG)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port to listen on (default: 0, which picks a free port).",
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--script", metavar="FILE", help="Script of faults and answers: TOML or JSON.")
@click.option("--rate", type=FiniteRange(0, 1), metavar="N", help="Share of requests that fail at random, 0 to 1.")
@click.option("--seed", type=int, metavar="N", help="Seed of the random faults.")
@click.option(
    "--fault", "faults", multiple=True, metavar="NAME", help="Fault that may strike at random. May be repeated."
)
@click.option("--words", type=COUNT, metavar="N", help="Words per answer (default: 40).")
@click.option("--delay", type=SECONDS, metavar="SECONDS", help="Seconds before each answer.")
@click.option("--gap", type=SECONDS, metavar="SECONDS", help="Seconds between the tokens of a stream.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run a fake Anthropic and OpenAI API that fails on purpose, to test an agent against.

    Answers are predictable (word1 word2 … word40; "count to 60 as apple" in a prompt changes them), so that lost or
    duplicated text is detected.
    """
    if ctx.invoked_subcommand is not None:
        return
    _serve(_lab(options))


command.add_command(test_command)


@command.command("faults", epilog=epilogue(examples=("rung lab faults",)))
@json_option
def faults(*, as_json: bool) -> None:
    """List the faults and their parameters."""
    from rung.testing.provider import FAULTS

    if as_json:
        print_json(
            {
                name: {
                    "about": fault.about,
                    "kind": fault.kind,
                    "repeatable": fault.repeatable,
                    "takes": dict(fault.takes),
                    "needs": fault.needs or None,
                }
                for name, fault in FAULTS.items()
            }
        )
        return
    for name, fault in FAULTS.items():
        takes = f"  ({', '.join(fault.takes)})" if fault.takes else ""
        click.echo(click.style(f"{name:<16}", bold=True) + paragraph(f"{fault.about}{takes}", indent=16)[16:])


def _lab(options: dict[str, Any]) -> Lab:
    from rung.core.domain.errors import ConfigError, FileError
    from rung.testing.provider import Lab

    random_faults = list(options.pop("faults")) or None
    host, port, script = (options.pop(key) for key in ("host", "port", "script"))
    try:
        return Lab(script, host=host, port=port, faults=random_faults, **options)
    except ConfigError as error:
        if script is None or error.key == "script":
            raise
        raise FileError(script, str(error), error.key, error.value, error.allowed) from None


def _serve(lab: Lab) -> None:
    import asyncio
    import signal

    async def serve() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        async with lab:
            click.echo(f"lab: listening on {lab.url}")
            click.echo(f"export ANTHROPIC_BASE_URL={lab.url}\nexport OPENAI_BASE_URL={lab.url}/v1")
            await stopped.wait()
        faults = ", ".join(f"{name} {times}" for name, times in lab.records.faults.most_common())
        click.echo(f"lab: {pluralize(lab.attempts, 'attempt')}{f'; {faults}' if faults else ''}")

    asyncio.run(serve())
