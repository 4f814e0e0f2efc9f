"""`rung serve`: runs the service with its dashboard, the gateway and the hook server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from rung.cli.extras import MissingPackage, needs_extra
from rung.cli.help_text import epilogue
from rung.cli.usage import UsageError
from rung.core.domain.errors import AddressUnavailable, ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from rung.cli.run.due_runs import DueRunsThread
    from rung.cli.serve.gateway import BackgroundGateway
    from rung.core.domain.request import Request
    from rung.hooks.resident_server import ResidentThread
    from rung.service.app_context import AppContext
    from rung.service.spending import Spending
    from rung.store.journal.journal import Journal
    from rung.wiring.alerts import Alerts
    from rung.wiring.settings_file import SettingsFile

DEFAULT_PORT: Final = 8642
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class SingleValue(click.types.StringParamType):
    """Path or URL; the environment variable holds one value, even if it contains spaces."""

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the variable as one value."""
        return [rv]


@click.command(epilog=epilogue(examples=("rung serve", "rung serve --port 0 --journal ./journal.db")))
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Port to listen on; 0 picks a free port.",
)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--config", "config", metavar="FILE", help="Settings file, for the gateway, too (default: ./rung.toml).")
@click.option(
    "--journal", "journal_at", metavar="PATH|URL", help="Journal to use; created if missing (default: this machine's)."
)
@click.option(
    "--token",
    metavar="T",
    envvar="RUNG_ADMIN_TOKEN",
    help="Administrator's token (default: RUNG_ADMIN_TOKEN, or created at the first start).",
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Additional host name to accept. May be repeated.")
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS",
    callback=lambda _context, _option, given: tuple(map(_proxy_address, given)),
    help="Address or network of a proxy whose X-Forwarded-For is believed. May be repeated.",
)
@click.option(
    "--allow-webhook",
    "webhook_hosts",
    multiple=True,
    metavar="HOST",
    help="Host on this machine that the notification webhook may name. May be repeated.",
)
@click.option(
    "--gateway-port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Port of the gateway; 0 picks a free port (default: from rung.toml, or 8484).",
)
@click.option("--no-gateway", is_flag=True, help="Do not start the gateway.")
@click.option(
    "--run-commands",
    is_flag=True,
    help="Let the page and the API run failed commands of `rung run` again: those of this account on this machine.",
)
@click.option(
    "--crew",
    "crews",
    type=SingleValue(),
    multiple=True,
    metavar="PATH|URL",
    envvar="RUNG_CREW",
    help="Crew database to show (default: RUNG_CREW). May be repeated.",
)
def command(**options: Any) -> None:
    """Run the service with its dashboard.

    It also runs the gateway, which adds retries, stream repair and fallback to agents that use its URL.

    By default it listens on loopback only. Every request needs the token in the printed URL.
    """
    start(**options)


class World(Protocol):
    """Scripted agents for demos; the service shows their journal and their crews."""

    journal_path: Path
    settings: dict[str, Any]
    crews: tuple[str, ...]
    notes: tuple[str, ...]  # lines below the address

    def begin(self, journal: Journal) -> None:
        """Write past incidents, then start the agents."""
        ...

    def end(self) -> None:
        """Stop the agents."""
        ...

    def clear(self) -> None:
        """Delete the journal."""
        ...

    def supports(self, request: Request) -> bool:
        """Return whether a recorded request can be replayed here."""
        ...

    def __call__(self, request: Request) -> Any:
        """Make an attempt at a recorded request."""
        ...


def start(
    *,
    port: int = DEFAULT_PORT,
    host: str = LOOPBACK[0],
    config: str | None = None,
    journal_at: str | None = None,
    token: str | None = None,
    allow_host: tuple[str, ...] = (),
    gateway_port: int | None = None,
    no_gateway: bool = False,
    crews: tuple[str, ...] = (),
    trusted_proxies: tuple[str, ...] = (),
    webhook_hosts: tuple[str, ...] = (),
    run_commands: bool = False,
    world: World | None = None,
) -> None:
    """Serve until a signal; with scripted agents if a world is given."""
    if host not in LOOPBACK and token is None:
        raise UsageError("--host is not a loopback address, so --token (or RUNG_ADMIN_TOKEN) is needed")
    with needs_extra("service", "the service"):
        from rung.service.app import make_app
        from rung.service.server import serve
    from rung.wiring.journals import journal_path
    from rung.wiring.listening_socket import listen
    from rung.wiring.settings_file import named

    file = _world_settings(world) if config is None else named(config)
    if world is None:
        journal_at = journal_path(journal_at, file)
    listening = listen("--port", host, port)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listening.getsockname()[1]}/"
    try:
        context, admin = _build_context(journal_at, token, crews, world, file, run_commands=run_commands)
    except BaseException:
        listening.close()
        raise
    with ExitStack() as ending:  # in reverse order
        ending.callback(listening.close)
        if world is not None:
            ending.callback(world.clear)
        ending.callback(context.journal.close)
        if world is not None:
            ending.callback(world.end)
        context = context._replace(webhook_hosts=frozenset(map(str.lower, webhook_hosts)))
        context = context._replace(alerts=_alerts(context, address, file), untrusted=_untrusted(file))
        gateway = None
        if world is None:
            gateway = None if no_gateway else _start_gateway(context, gateway_port, config, any_port=port == 0)
            context = _start_beside(context, gateway, journal_at, ending)
        if context.alerts is not None:
            ending.enter_context(context.alerts)
        hosts = {*LOOPBACK, host, *allow_host}
        app = make_app(context, hosts=hosts, address=address, allow_ip_hosts=host not in LOOPBACK)
        _print_banner(address, admin, context, gateway, () if world is None else world.notes)
        serve(app, context.stream, listening, trusted_proxies, journal=context.journal)


def _start_beside(
    context: AppContext, gateway: BackgroundGateway | None, journal_at: str | None, ending: ExitStack
) -> AppContext:
    """Start the hook server and the taking up of parked runs, which end with the service, as the gateway does."""
    if gateway is not None:
        ending.callback(gateway.stop)
        context = context._replace(gateway=f"http://127.0.0.1:{gateway.served.port}")
    ending.callback(_start_hook_server().stop)
    ending.callback(_start_due_runs(context, journal_at).stop)
    return context


def _world_settings(world: World | None) -> SettingsFile | None:
    """Return the settings of the scripted agents; None without any."""
    from pathlib import Path

    from rung.wiring.settings_file import SettingsFile

    return None if world is None else SettingsFile(path=Path("demo.toml"), table=world.settings)


def _build_context(
    journal_at: str | None,
    token: str | None,
    crews: tuple[str, ...],
    world: World | None,
    file: SettingsFile | None,
    *,
    run_commands: bool,
) -> tuple[AppContext, str]:
    from pathlib import Path

    from rung.adapters.system.provider_client import from_environment
    from rung.cli.run.recorded_command import BackgroundCommands
    from rung.service.app_context import AppContext
    from rung.service.auth import Authenticator
    from rung.service.crew_tables import CrewTables
    from rung.service.replay import Replayers
    from rung.service.routes.stream import EventBroadcaster
    from rung.service.token_file import admin_token
    from rung.store import open_journal
    from rung.wiring.journals import absolute_path, default_path, is_url, journal_path
    from rung.wiring.policies import PolicyStore, file_book

    place = journal_path(journal_at) if world is None else str(world.journal_path)
    journal = open_journal(place, on_warning=lambda text: click.echo(f"rung: {text}", err=True))
    beside = default_path() if is_url(place) else Path(place).expanduser()
    admin = admin_token(token, beside.with_name(beside.stem + ".token"))
    policies = PolicyStore(journal, file_book(file))
    runner = BackgroundCommands(journal, absolute_path(journal_at)) if run_commands else None
    replayers = Replayers(journal, from_environment(), spending_of(journal, file) if world is None else None, runner)
    if world is not None:
        world.begin(journal)
        replayers.replayers.insert(0, world)
    shown = CrewTables(crews if world is None else world.crews)
    return AppContext(
        journal=journal,
        auth=Authenticator(journal, admin),
        stream=EventBroadcaster(journal),
        policies=policies,
        replayers=replayers,
        journal_location=journal.backend.url,
        demo=world is not None,
        crews=shown,
    ), admin


def _alerts(context: AppContext, address: str, file: SettingsFile | None) -> Alerts | None:
    """Return the alerts of the file, or of the rung.toml here; None if there are none."""
    from rung.wiring.alerts import alerts_beside

    return alerts_beside(
        context.journal,
        file=file,
        dashboard=address,
        allowed_hosts=context.webhook_hosts,
        warn=lambda text: click.echo(f"rung: {text}", err=True),
    )


def _untrusted(file: SettingsFile | None) -> SettingsFile | None:
    from rung.wiring.alerts import untrusted_alerts

    return untrusted_alerts() if file is None else None


def spending_of(journal: Journal, file: SettingsFile | None = None) -> Spending | None:
    """Return the limits and prices of the file's gateway, which replays have too; None without a valid file."""
    from rung.cli.serve.gateway import load_settings
    from rung.service.spending import Spending

    try:
        settings = load_settings({} if file is None else {"file": file.path})
    except (ConfigError, MissingPackage):  # told when the gateway starts
        return None
    keys = {key.hash: key.dollars for key in settings.keys if key.dollars is not None}
    return Spending(journal, settings.budgets, settings.prices, keys)


def _start_gateway(
    context: AppContext, port: int | None, config: str | None, *, any_port: bool
) -> BackgroundGateway | None:
    """Start the gateway beside the service; if it cannot start, warn and continue without it."""
    from rung.cli.serve.gateway import BackgroundGateway, load_settings

    try:
        options = {"file": config, "port": 0 if any_port and port is None else port}
        gateway = BackgroundGateway(load_settings(options), context.journal)
        gateway.start()
    except (ConfigError, MissingPackage) as error:
        reason = _reason(error)
        if port is not None:
            raise UsageError(reason) from None
        click.echo(f"rung: no gateway: {reason}", err=True)
        return None
    return gateway


def _reason(error: Exception) -> str:
    from rung.cli.serve.taken_port import describe_unavailable

    return describe_unavailable(error, "--gateway-port") if isinstance(error, AddressUnavailable) else str(error)


def _start_hook_server() -> ResidentThread:
    """Start the server that answers hooks of coding agents."""
    from rung.hooks.data_dir import default_data_dir
    from rung.hooks.resident_server import ResidentThread

    return ResidentThread(default_data_dir())


def _start_due_runs(context: AppContext, journal_at: str | None) -> DueRunsThread:
    """Start to take up parked runs of this account in the journal when their limits reopen."""
    from rung.cli.run.due_runs import DueRunsThread
    from rung.wiring.journals import absolute_path

    due = DueRunsThread(context.journal, absolute_path(journal_at), lambda text: click.echo(text, err=True))
    due.start()
    return due


def _proxy_address(given: str) -> str:
    """Return the address or network as uvicorn expects it; names are not resolved, and `*` would believe anybody."""
    from ipaddress import ip_network

    try:
        network = ip_network(given)
    except ValueError:
        raise ConfigError(
            "--trusted-proxy", given, "an IP address or network, such as 10.0.0.5 or 10.0.0.0/24"
        ) from None
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def _print_banner(
    address: str, token: str, context: AppContext, gateway: BackgroundGateway | None, notes: tuple[str, ...]
) -> None:
    click.echo(f"Rung is running: {click.style(f'{address}?token={token}', bold=True)}")
    for note in notes:
        click.echo(f"  {note}")
    if not context.demo:
        click.echo(f"  journal: {context.journal_location}")
        for crew in context.crews.names:
            click.echo(f"  crew {crew}: {context.crews.location(crew)}")
    if gateway is not None:
        from rung.cli.serve.gateway import agent_environment

        settings = agent_environment("127.0.0.1", gateway.served.port)
        click.echo("  gateway: " + "  ".join(f"{name}={value}" for name, value in settings.items()))
    click.echo("  Press Ctrl-C to stop.")
