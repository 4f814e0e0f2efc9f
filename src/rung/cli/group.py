"""Root of the command line: a table of commands, each imported from its module when it is used."""

from __future__ import annotations

import os
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Final

import click

import rung
from rung.core.domain.errors import ConfigError, RungError
from rung.wiring.trust import use_terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.wiring.settings_file import SettingsFile
    from rung.wiring.trust import Decision

# Command name: the module below `rung.cli` that defines it, and its line in the help.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "run": ("run.run", "Run a command and recover it when it fails."),
    "pipeline": ("run.pipeline", "Run a pipeline of agents, each stage recovered on its own."),
    "gateway": ("serve.gateway", "Run the gateway: recovery for any agent, by changing one URL."),
    "resume": ("journal.resume", "Resume runs that a crash interrupted."),
    "retry": ("retry.retry", "Retry a session that failed, with its error as context."),
    "escalate": ("retry.escalate", "Switch a session to a more capable model."),
    "classify": ("classify.classify", "Classify a failure: its kind, and whether a retry can help."),
    "detect": ("classify.detect", "Detect loops, stalls and bad outputs."),
    "hooks": ("serve.hooks", "Install hooks into the coding agent you use."),
    "crew": ("crew.group", "Run and control a crew of agents."),
    "worker": ("crew.worker", "Work for a crew: claim a task, report, get replies."),
    "fleet": ("fleet.group", "Run a fleet: prepare, work, watch, drain."),
    "trust": ("serve.trust", "Trust the rung.toml of a directory."),
    "mcp": ("serve.mcp", "Run an MCP server that recommends recovery steps."),
    "explain": ("policy.explain", "Explain a kind of failure: causes, fixes, entry rungs."),
    "ladder": ("policy.ladder", "List, draw and check ladders."),
    "policy": ("policy.policy", "Show and check policies, with the worst case they allow."),
    "report": ("journal.report", "Report what fails, how often, and which rungs fix it."),
    "log": ("journal.log", "Print events, one per line; -f follows."),
    "show": ("journal.show", "Show one incident from first failure to end."),
    "journal": ("journal.journal", "Locate, check, back up, export and prune the journal."),
    "backtest": ("journal.backtest", "Try another policy on recorded incidents."),
    "serve": ("serve.service", "Run the service with its dashboard."),
    "token": ("serve.token", "Add, list and revoke access tokens of the service."),
    "schema": ("policy.schema", "Print a JSON Schema of what Rung writes and reads."),
    "lab": ("lab.lab", "Run a fake provider that fails on purpose, to test agents."),
}
MAX_VALUE_CHARS: Final = 200  # keeps the message readable when a whole table is given as a value


class UsageError(click.ClickException):
    """Invalid input of the user: one line on stderr, and nothing runs."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on stderr, as one line."""
        click.echo(f"rung: {' '.join(self.message.split())}", file=file, err=file is None)


class Commands(click.Group):
    """Group that imports a command when it is used; `--help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the command names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"rung.cli.{COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; invalid settings and store errors become a `UsageError`."""
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            from rung.core.classify.evidence import clip

            value = repr(error.value)
            raise UsageError(str(error).replace(value, clip(value, MAX_VALUE_CHARS))) from None
        except RungError as error:
            from rung.core.domain.errors import StoreError

            if not isinstance(error, StoreError):
                raise
            raise UsageError(str(error)) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(rung.__version__, message="rung %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Recover AI agents from failures.

    Rung classifies a failure, takes the cheapest rung of a ladder that can still help, and always ends with an
    honest outcome.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    use_terminal(_ask_about, lambda text: click.echo(f"rung: {text}", err=True))


def _ask_about(file: SettingsFile) -> Decision | None:
    from rung.cli.serve.trust import ask_on_terminal

    return ask_on_terminal(file)
