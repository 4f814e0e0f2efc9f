"""`rung gateway`: runs the gateway, runs one command behind it, shows its status, creates keys."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.agent_endpoints import endpoint_variables, point_command
from rung.cli.command_group import CommandGroup
from rung.cli.extras import needs_extra
from rung.cli.help_text import epilogue
from rung.cli.serve.gateway_status import status
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.gateway.gateway import Gateway
    from rung.gateway.settings import GatewaySettings
    from rung.store.journal.journal import Journal
    from rung.wiring.followed_alerts import FollowedAlerts

DEFAULT_FILE: Final = "rung.toml"
UNUSED: Final = (
    "no requests: the command does not use ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL, and nothing was"
    " recovered"
)
EPILOG = epilogue(
    "Agents need no change: set ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL to the address of the "
    "gateway. Settings come from the [gateway] table of rung.toml; options override it.",
    examples=(
        "rung gateway --models claude-haiku,claude-opus",
        'rung gateway run -- claude -p "fix the failing test"',
        'eval "$(rung gateway --print-env)"',
        "rung gateway status",
    ),
)


def _options(port: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of a gateway; `port` is the default one, as the help names it."""
    return partial(_with_options, port)


def _with_options(port: str, function: Any) -> Any:
    for option in reversed(
        (
            click.option(
                "--config",
                "file",
                metavar="FILE",
                help=f"Policy file with a [gateway] table (default: ./{DEFAULT_FILE}).",
            ),
            click.option(
                "--port",
                type=click.IntRange(0, 65_535),
                metavar="N",
                help=f"Port to listen on; 0 picks a free port (default: {port}).",
            ),
            click.option("--host", metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1)."),
            click.option("--anthropic", metavar="URL", help="Base URL of the Anthropic API (default: its own)."),
            click.option(
                "--openai", metavar="URL", help="Base URL of the OpenAI API, or of a compatible one (default: its own)."
            ),
            click.option("--gemini", metavar="URL", help="Base URL of the Gemini API (default: its own)."),
            click.option(
                "--models", metavar="A,B", help="Fallback models, cheapest first (default: those of the policy)."
            ),
            click.option(
                "--journal",
                metavar="PATH|URL",
                help="Journal to write to; created if missing (default: this machine's).",
            ),
            click.option("--no-journal", is_flag=True, help="Write no journal."),
        )
    ):
        function = option(function)
    return function


@click.group(cls=CommandGroup, invoke_without_command=True, epilog=EPILOG)
@_options(port="8484")
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
    from rung.cli.serve.gateway_log import log_to_standard_error
    from rung.gateway.serve import serve

    log_to_standard_error()
    path = _settings_path(options)
    journal = _open_journal(options)
    with alerts_of(options, journal) as alerts:

        def reload() -> GatewaySettings:
            changed = load_settings(options, quiet=True)
            alerts.reload()
            return changed

        serve(settings, journal, reload=None if path is None else reload, file=path)


@command.command(
    context_settings={"allow_interspersed_args": False},  # options after the first word are those of COMMAND
    short_help="Run a command behind its own gateway.",
    epilog=epilogue(
        "Exit code: that of COMMAND. Stopped by Ctrl-C, SIGTERM or SIGHUP, it ends COMMAND and exits with 130, 143 or 129.",
        examples=(
            'rung gateway run -- claude -p "fix the test"',
            "rung gateway run --models haiku,opus -- my-agent",
        ),
    ),
)
@click.argument("command_line", nargs=-1, required=True, metavar="-- COMMAND …")
@_options(port="a free one")
@click.pass_context
def run(ctx: click.Context, /, command_line: tuple[str, ...], **own: Any) -> None:
    """Run COMMAND behind its own gateway; at the end, print what the gateway recovered.

    Environment variables name the gateway. Codex, opencode, pi, cline and qwen are pointed at it by their own settings.
    """
    options = {**ctx.obj, **{name: value for name, value in own.items() if value not in (None, False)}}
    from tempfile import TemporaryDirectory

    from rung.adapters.system.attached_process import run_attached
    from rung.adapters.system.command_line import require_program
    from rung.cli.run.ending_signals import ending_signals, exit_code_of

    require_program("COMMAND", command_line)
    settings = load_settings({**options, "port": options.get("port") or 0})
    journal = _open_journal(options)
    served = BackgroundGateway(settings, journal)
    alerts = alerts_of(options, journal)
    port = served.start()
    try:
        with TemporaryDirectory(prefix="rung-agent-") as scratch:
            pointed = point_command(command_line, f"http://127.0.0.1:{port}", os.environ, Path(scratch))
            env = {**os.environ, **agent_environment("127.0.0.1", port), **pointed.env}
            with alerts, ending_signals():
                code = run_attached(pointed.words, env)
    except KeyboardInterrupt as stop:
        code = exit_code_of(stop)
    except OSError as error:
        raise ConfigError("COMMAND", command_line[0], f"a program that can be run ({error.strerror})") from None
    finally:
        served.stop()
    click.echo(served.summary(), err=True)
    sys.exit(code if code >= 0 else 128 - code)


@command.command("new-key", epilog=epilogue(examples=("rung gateway new-key --project web --name ann",)))
@click.option("--project", metavar="NAME", default="", help="Project of the calls with this key (default: none).")
@click.option("--name", metavar="NAME", default="", help="Owner of the key (default: none).")
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
    with needs_extra("gateway", "the gateway"):
        from rung.gateway.settings import settings_from
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


def alerts_of(options: dict[str, Any], journal: Journal | None) -> FollowedAlerts:
    """Return the alerts of the settings file, which run inside a `with` block; it may have none."""
    from rung.wiring.followed_alerts import FollowedAlerts
    from rung.wiring.settings_file import named

    path = options.get("file")
    return FollowedAlerts(
        journal,
        lambda: named(path) if path else None,
        lambda text: click.echo(f"rung gateway: {text}", err=True),
    )


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
    from rung.wiring.journals import journal, journal_path
    from rung.wiring.settings_file import named

    file = named(options["file"]) if options.get("file") else None
    try:
        return journal(journal_path(options.get("journal"), file))
    except StoreError as error:
        if options.get("journal"):
            raise
        click.echo(f"rung: no journal is written: {error}", err=True)
        return None


def summary_of(gateway: Gateway) -> str:
    """Return how the requests ended, those that got no answer included, and the failures."""
    if not gateway.received_requests:
        return UNUSED
    counts = gateway.metrics.counts
    total: dict[str, float] = {}
    for (name, labels), number in counts.items():
        if name == "rung_requests_total":
            outcome = labels.rpartition("outcome=")[2].strip('"')
            total[outcome] = total.get(outcome, 0) + number
    calls = sum(total.values())
    recovered = total.pop("recovered", 0)
    parts = [f"recovered {recovered:g} of {calls:g} call{'s' * (calls != 1)}"] if recovered else []
    parts += [f"{number:g} {outcome}" for outcome, number in sorted(total.items())]
    left, waiting = counts["rung_cancelled_total", ""], gateway.stopped_requests + gateway.active_requests
    parts += [f"{left:g} left by the client before the answer"] if left else []
    parts += [f"{waiting} still waiting when the gateway stopped"] if waiting else []
    failures = {labels: number for (name, labels), number in counts.items() if name == "rung_failures_total"}
    kinds = ", ".join(f"{number:g}x {labels[6:-1]}" for labels, number in sorted(failures.items()))
    requests = (
        f"{gateway.received_requests} request{'s' * (gateway.received_requests != 1)}, no model call was answered"
    )
    return (", ".join(parts) or requests) + (f" (failures: {kinds})" if kinds else "")


class BackgroundGateway:
    """Gateway in a thread, beside another command."""

    def __init__(self, settings: GatewaySettings, journal: Journal | None) -> None:
        with needs_extra("gateway", "the gateway"):
            import uvloop

            from rung.gateway.serve import RunningGateway

        self._run_loop = uvloop.run
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
        return f"rung gateway: {UNUSED if self.served.app is None else summary_of(self.served.app.gateway)}"

    def _on_listening(self, _: str) -> None:
        self._started.set()

    def _serve(self) -> None:
        try:
            self._run_loop(self.served.run())
        except BaseException as error:  # noqa: BLE001  # raised in `start`
            self._error = error
        finally:
            self._started.set()
