"""`rung gateway`: runs the gateway, runs one command behind it, shows its status, creates keys."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.agent_endpoints import endpoint_variables, point_command
from rung.cli.serve.gateway_status import status
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from rung.gateway.settings import GatewaySettings
    from rung.store.journal.journal import Journal

DEFAULT_FILE: Final = "rung.toml"
UNUSED: Final = (
    "no requests: the command does not use ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL, and nothing was"
    " recovered"
)
EPILOG = """\b
Agents need no change: set ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL to the address of the gateway.

\b
  rung gateway --models claude-haiku,claude-opus
  rung gateway run -- claude -p "fix the failing test"
  eval "$(rung gateway --print-env)"
  rung gateway status

\b
Settings: the [gateway] table of rung.toml; options override it. `run` exits with the code of the command; stopped by
Ctrl-C, SIGTERM or SIGHUP, it ends the command and exits with 130, 143 or 129."""


def _options(function: Any) -> Any:
    for option in reversed(
        (
            click.option(
                "--config",
                "file",
                metavar="FILE",
                help=f"Policy file with a [gateway] table (default: ./{DEFAULT_FILE}).",
            ),
            click.option("--port", type=int, help="Port to listen on (default: 8484)."),
            click.option("--host", help="Address to listen on (default: 127.0.0.1)."),
            click.option("--anthropic", metavar="URL", help="Base URL of the Anthropic API."),
            click.option("--openai", metavar="URL", help="Base URL of the OpenAI API, or of a compatible one."),
            click.option("--gemini", metavar="URL", help="Base URL of the Gemini API."),
            click.option("--models", metavar="A,B", help="Fallback models, cheapest first."),
            click.option("--journal", metavar="PATH|URL", help="Journal to write to (default: this machine's)."),
            click.option("--no-journal", is_flag=True, help="Write no journal."),
        )
    ):
        function = option(function)
    return function


@click.group(invoke_without_command=True, epilog=EPILOG)
@_options
@click.option(
    "--print-env", is_flag=True, help="Print the environment variables that point agents at the gateway, and exit."
)
@click.pass_context
def command(ctx: click.Context, /, print_env: bool, **options: Any) -> None:  # noqa: FBT001  # click passes it by position
    """Run the gateway: agents that use its address get retries, stream repair and fallback."""
    ctx.obj = options
    if ctx.invoked_subcommand is not None:
        return
    settings = load_settings(options)
    if print_env:
        for name, value in agent_environment(settings.host, settings.port).items():
            click.echo(f"export {name}={shlex.quote(value)}")
        return
    from rung.gateway.serve import serve

    path = _settings_path(options)
    reload = (lambda: load_settings(options, quiet=True)) if path is not None else None
    serve(settings, _open_journal(options), reload=reload, file=path)


@command.command(context_settings={"ignore_unknown_options": True}, short_help="Run a command behind its own gateway.")
@click.argument("command_line", nargs=-1, required=True, metavar="-- COMMAND …")
@click.pass_context
def run(ctx: click.Context, command_line: tuple[str, ...]) -> None:
    """Run COMMAND behind its own gateway; at the end, print what the gateway recovered.

    Environment variables name the gateway. Codex, opencode, pi, cline and qwen are pointed at it by their own settings.
    """
    from tempfile import TemporaryDirectory

    from rung.adapters.system.attached_process import run_attached
    from rung.adapters.system.command_line import require_program
    from rung.cli.run.ending_signals import ending_signals, exit_code_of

    require_program("COMMAND", command_line)
    settings = load_settings({**ctx.obj, "port": ctx.obj.get("port") or 0})
    served = BackgroundGateway(settings, _open_journal(ctx.obj))
    port = served.start()
    try:
        with TemporaryDirectory(prefix="rung-agent-") as scratch:
            pointed = point_command(command_line, f"http://127.0.0.1:{port}", os.environ, Path(scratch))
            env = {**os.environ, **agent_environment("127.0.0.1", port), **pointed.env}
            with ending_signals():
                code = run_attached(pointed.words, env)
    except KeyboardInterrupt as stop:
        code = exit_code_of(stop)
    except OSError as error:
        raise ConfigError("COMMAND", command_line[0], f"a program that can be run ({error.strerror})") from None
    finally:
        served.stop()
    click.echo(served.summary(), err=True)
    sys.exit(code if code >= 0 else 128 - code)


@command.command("new-key")
@click.option("--project", default="", help="Project of the key.")
@click.option("--name", default="", help="Key owner.")
def new_key(project: str, name: str) -> None:
    """Create a key, and print its entry for rung.toml."""
    from rung.gateway.keys import new_key as make

    key, digest = make()
    click.echo(f'{key}\n\n[[gateway.keys]]\nhash = "{digest}"\nname = "{name}"\nproject = "{project}"')


command.add_command(status)


def agent_environment(host: str, port: int) -> dict[str, str]:
    """Return the environment variables that point agents at the gateway."""
    url = f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port}"  # noqa: S104  # clients connect to loopback
    return {**endpoint_variables(url), **_proxy_exemption()}


def _proxy_exemption() -> dict[str, str]:
    """Return variables that keep requests to the gateway from going through a proxy, if the environment names one."""
    from urllib.request import getproxies_environment

    proxies = getproxies_environment()
    if not proxies.keys() & {"http", "all"}:
        return {}
    exempt = ",".join([*filter(None, [proxies.get("no")]), "127.0.0.1", "localhost"])
    return {"NO_PROXY": exempt, "no_proxy": exempt}


def load_settings(options: dict[str, Any], *, quiet: bool = False) -> GatewaySettings:
    """Return the settings of the policy file, overridden by the options; `quiet` asks nobody about an untrusted file."""
    try:
        from rung.gateway.settings import settings_from
    except ModuleNotFoundError as error:
        raise ConfigError("gateway", error.name, "installed: pip install 'rung[gateway]'") from None
    from rung.core.classify.classifier import use_rules
    from rung.core.policy.parser import parse_policy_file
    from rung.wiring.settings_file import find, named

    # A gateway without the keys and budgets that its file sets would be another one.
    file = named(options["file"]) if options.get("file") else find(needs=("gateway",), quiet=quiet)
    names = [name.strip() for name in (options.get("models") or "").split(",") if name.strip()]
    own = {"models": names} if names else {}
    flags = {name: options.get(name) for name in ("port", "host", "anthropic", "openai", "gemini")}
    book = parse_policy_file({"policy": own}) if file is None else file.book(**own)
    table = {} if file is None else file.table
    with nullcontext() if file is None else file.errors():
        settings = settings_from(
            table.get("gateway"), book, loops=table.get("loops"), recording=table.get("recording"), **flags
        )
    use_rules(*book.rules)
    return settings


def _settings_path(options: dict[str, Any]) -> Path | None:
    path = options.get("file")
    if path:
        return Path(path)
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None


def _open_journal(options: dict[str, Any]) -> Any:
    """Open the requested journal; or this machine's, or none if that is unavailable."""
    if options.get("no_journal"):
        return None
    from rung.core.domain.errors import StoreError
    from rung.wiring.journals import journal

    try:
        return journal(options.get("journal"))
    except StoreError as error:
        if options.get("journal"):
            raise
        click.echo(f"rung: no journal is written: {error}", err=True)
        return None


class BackgroundGateway:
    """Gateway in a thread, beside another command."""

    def __init__(self, settings: GatewaySettings, journal: Journal | None) -> None:
        from rung.gateway.serve import RunningGateway

        self._started = threading.Event()
        self.served = RunningGateway(settings, journal, self._on_listening)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._error: BaseException | None = None

    def start(self) -> int:
        """Start the gateway, and return the port it listens on."""
        self._thread.start()
        self._started.wait(10)
        if isinstance(self._error, ConfigError):
            raise self._error
        if not self.served.port:
            raise ConfigError("port", self.served.settings.port, f"a free port ({self._error or 'start timed out'})")
        return self.served.port

    def stop(self) -> None:
        """Drain requests in flight, then stop."""
        self.served.stop()
        self._thread.join(15)

    def summary(self) -> str:
        """Return one line about the requests and failures."""
        counts = self.served.app.gateway.metrics.counts if self.served.app is not None else {}
        total: dict[str, float] = {}
        for (name, labels), number in counts.items():
            if name == "rung_requests_total":
                outcome = labels.rpartition("outcome=")[2].strip('"')
                total[outcome] = total.get(outcome, 0) + number
        failures = {labels: number for (name, labels), number in counts.items() if name == "rung_failures_total"}
        kinds = ", ".join(f"{number:g}x {labels[6:-1]}" for labels, number in sorted(failures.items()))
        outcomes = ", ".join(f"{number:g} {outcome}" for outcome, number in sorted(total.items())) or UNUSED
        saved = f"recovered {total['recovered']:g} of {sum(total.values()):g} calls: " if total.get("recovered") else ""
        return f"rung gateway: {saved}{outcomes}" + (f" (failures: {kinds})" if kinds else "")

    def _on_listening(self, _: str) -> None:
        self._started.set()

    def _serve(self) -> None:
        import uvloop

        try:
            uvloop.run(self.served.run())
        except BaseException as error:  # noqa: BLE001  # raised in `start`
            self._error = error
        finally:
            self._started.set()
