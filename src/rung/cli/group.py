"""Root of the command line: a table of commands, each imported from its module when it is used."""

from __future__ import annotations

import os
import sys
from errno import ENAMETOOLONG, EPIPE
from typing import TYPE_CHECKING, Any, Final

import click

import rung
from rung.cli.command_group import LazyGroup
from rung.cli.usage import CommandFailed, UsageError, show_error
from rung.core.domain.errors import AddressUnavailable, ConfigError, RungError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.wiring.settings_file import SettingsFile
    from rung.wiring.trust import Decision

# Command name: the module below `rung.cli` that defines it, and its line in the help.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("demo.demo", "Watch five agents fail and recover in this terminal."),
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
    "alerts": ("serve.alerts", "Check, list, test and silence alerts."),
    "token": ("serve.token", "Add, list and revoke access tokens of the service."),
    "schema": ("policy.schema", "Print a JSON Schema of what Rung writes and reads."),
    "lab": ("lab.lab", "Run a fake provider that fails on purpose, to test agents."),
    "doctor": ("doctor.command", "Check the installation, and print what fixes it."),
    "completion": ("completion", "Print the completion script of a shell."),
    "help": ("help", "Show the help of a command."),
}
MAX_VALUE_CHARS: Final = 200  # keeps the message readable when a whole table is given as a value


# A path that the user named cannot be used; other errors of the system are no wrong use.
WRONG_PATHS: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


class Commands(LazyGroup):
    """Root group: all errors of wrong use have one style."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002  # click's signature
        **extra: Any,
    ) -> Any:
        """Run the command line; in standalone mode, print errors and exit."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            show_error(error)
            sys.exit(error.exit_code)
        except click.Abort as stop:
            from rung.cli.exit_codes import INTERRUPTED

            click.echo("rung: stopped", err=True)
            sys.exit(INTERRUPTED if isinstance(stop.__cause__, KeyboardInterrupt) else 1)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; invalid settings, store errors and missing packages become a `UsageError`."""
        try:
            return super().invoke(ctx)
        except AddressUnavailable as error:
            from rung.cli.serve.taken_port import describe_unavailable

            raise UsageError(describe_unavailable(error)) from None
        except ConfigError as error:
            from rung.core.classify.evidence import clip

            value = repr(error.value)
            raise UsageError(str(error).replace(value, clip(value, MAX_VALUE_CHARS))) from None
        except RungError as error:
            from rung.core.domain.errors import StoreError

            raise (UsageError if isinstance(error, StoreError) else CommandFailed)(str(error)) from None
        except OSError as error:
            if error.errno == EPIPE:  # nobody reads standard output any more: `| head`
                from rung.adapters.system.command_output import OutputClosed
                from rung.cli.run.run_output import discard_output

                discard_output()
                ctx.exit(OutputClosed.exit_code)
            where = f"{error.filename}: " if error.filename else ""
            wrong = isinstance(error, WRONG_PATHS) or error.errno == ENAMETOOLONG
            raise (UsageError if wrong else CommandFailed)(f"{where}{error.strerror or error}") from None
        except ImportError as error:
            from rung.cli.extras import missing_package

            missing = missing_package(error, ctx.invoked_subcommand)
            if missing is None:
                raise
            raise missing from None


@click.group(
    cls=Commands,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`rung help COMMAND` shows the help of a command, `rung completion bash` prints its completion script.",
)
@click.version_option(rung.__version__, "-V", "--version", message="rung %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Recover AI agents from failures.

    Rung classifies a failure, takes the cheapest rung of a ladder that can still help, and always ends with an
    honest outcome.
    """
    from rung.wiring.trust import use_terminal

    if os.environ.get("NO_COLOR"):
        ctx.color = False
    use_terminal(_ask_about, lambda text: click.echo(f"rung: {text}", err=True))


def _ask_about(file: SettingsFile) -> Decision | None:
    from rung.cli.serve.trust import ask_on_terminal

    return ask_on_terminal(file)
