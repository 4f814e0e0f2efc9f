"""`rung serve`: the service and its dashboard, on this machine, with nothing to configure."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from rung.cli.serve.gateway import BackgroundGateway
    from rung.core.domain.request import Request
    from rung.hooks.resident_server import ResidentThread
    from rung.service.app_context import AppContext
    from rung.store.journal.journal import Journal

PORT: Final = 8642
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class SingleInstance(click.types.StringParamType):
    """A path or URL; an environment variable names one, whatever blanks it has."""

    def split_envvar_value(self, rv: str) -> list[str]:
        """All of it is one."""
        return [rv]


@click.command(short_help="The service and its dashboard.")
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 picks a free port.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--journal", "journal_at", metavar="PATH|URL", help="Journal to use; created if missing.")
@click.option("--token", metavar="T", help="Administrator's token (default: created at the first start).")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Additional host name to accept. May be repeated.")
@click.option(
    "--gateway-port", type=click.IntRange(0, 65_535), help="The gateway's port (default: as rung.toml says, or 8484)."
)
@click.option("--no-gateway", is_flag=True, help="Do not start the gateway.")
@click.option(
    "--crew",
    "crews",
    type=SingleInstance(),
    multiple=True,
    metavar="PATH|URL",
    envvar="RUNG_CREW",
    help="Crew database to show (default: RUNG_CREW). May be repeated.",
)
def command(**options: Any) -> None:
    """Run the service with its dashboard.

    The gateway comes with it: an agent whose base URL is the gateway's survives what it would have died of.

    It listens on this machine only, and answers to whoever has the token that its address carries.
    """
    start(**options)


class World(Protocol):
    """Scripted agents that replace the real ones; the service shows their journal and their crews."""

    place: Path
    settings: dict[str, Any]
    crews: tuple[str, ...]

    def begin(self, journal: Journal) -> None:
        """Write the past, then start the agents."""
        ...

    def end(self) -> None:
        """Stop the agents."""
        ...

    def clear(self) -> None:
        """Delete the journal."""
        ...

    def supports(self, request: Request) -> bool:
        """Whether a recorded request can be made again here."""
        ...

    def __call__(self, request: Request) -> Any:
        """Make an attempt at a recorded request."""
        ...


def start(
    *,
    port: int = PORT,
    host: str = LOOPBACK[0],
    journal_at: str | None = None,
    token: str | None = None,
    allow_host: tuple[str, ...] = (),
    gateway_port: int | None = None,
    no_gateway: bool = False,
    crews: tuple[str, ...] = (),
    world: World | None = None,
) -> None:
    """Serve until a signal; over a world of scripted agents where one is given."""
    if host not in LOOPBACK and token is None:
        raise ConfigError("--token", None, "given when the service listens on more than this machine: choose one")
    try:
        from rung.service.app import make_app
        from rung.service.server import serve
    except ImportError as error:
        click.echo(f"rung: the service needs more packages ({error.name}): pip install 'rung[service]'", err=True)
        raise SystemExit(2) from None
    listening = _listen(host, port)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listening.getsockname()[1]}/"
    context, admin = _parts(journal_at, token, crews, world)
    hosts = {*LOOPBACK, host, *allow_host}
    app = make_app(context, hosts=hosts, address=address, allow_ip_hosts=host not in LOOPBACK)
    gateway = None if world is not None or no_gateway else _gateway(context, gateway_port, any_port=port == 0)
    hooks = None if world is not None else _hooks()
    _greet(address, admin, context, gateway)
    try:
        serve(app, context.stream, listening)
    finally:
        if hooks is not None:
            hooks.stop()
        if gateway is not None:
            gateway.stop()
        if world is not None:
            world.end()
        context.journal.close()
        if world is not None:
            world.clear()


def _parts(
    journal_at: str | None, token: str | None, crews: tuple[str, ...], world: World | None
) -> tuple[AppContext, str]:
    from pathlib import Path

    from rung.adapters.system.provider_client import from_environment
    from rung.core.policy.parser import book_from
    from rung.service.app_context import AppContext
    from rung.service.auth import Authenticator, admin_token
    from rung.service.crew_tables import CrewTables
    from rung.service.replay import Replayers
    from rung.service.routes.stream import EventBroadcaster
    from rung.store import open_journal
    from rung.wiring.journals import default_path, is_url, journal_path
    from rung.wiring.policies import PolicyStore, file_book

    place = journal_path(journal_at) if world is None else str(world.place)
    journal = open_journal(place, tell=lambda text: click.echo(f"rung: {text}", err=True))
    beside = default_path() if is_url(place) else Path(place).expanduser()
    admin = admin_token(token, beside.with_name(beside.stem + ".token"))
    policies = PolicyStore(journal, file_book() if world is None else book_from(world.settings))
    replayers = Replayers(journal, from_environment())
    if world is not None:
        world.begin(journal)
        replayers.replayers.insert(0, world)
    shown = CrewTables(crews if world is None else world.crews)
    demo = world is not None
    return AppContext(
        journal, Authenticator(journal, admin), EventBroadcaster(journal), policies, replayers, place, demo, shown
    ), admin


def _gateway(context: AppContext, port: int | None, *, any_port: bool) -> BackgroundGateway | None:
    """The gateway beside the service; where it cannot be, that is said, and the service goes on without."""
    from rung.cli.serve.gateway import BackgroundGateway, read

    try:
        made = BackgroundGateway(read({"port": 0 if any_port and port is None else port}), context.journal)
        made.start()
    except ConfigError as error:
        if port is not None:
            raise
        click.echo(f"rung: no gateway: {error}", err=True)
        return None
    return made


def _hooks() -> ResidentThread:
    """Hooks of coding agents are answered here, too: in a millisecond, where a command of their own takes tens."""
    from rung.hooks.data_dir import directory
    from rung.hooks.resident_server import ResidentThread

    return ResidentThread(directory())


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise ConfigError("--port", port, f"one that is free on {host} ({reason}); 0 takes any") from None
    listening.listen(1_024)
    return listening


def _greet(address: str, token: str, context: AppContext, gateway: BackgroundGateway | None) -> None:
    click.echo(f"Rung is up: {click.style(f'{address}?token={token}', bold=True)}")
    if context.demo:
        click.echo("  a demo: scripted agents fail and recover, in a journal that is thrown away")
        click.echo("  in earnest: `rung serve`, and run agents with `rung run -- AGENT` or `journal=rung.journal()`")
    else:
        click.echo(f"  journal: {context.journal_location}")
        for crew in context.crews.names:
            click.echo(f"  crew {crew}: {context.crews.location(crew)}")
    if gateway is not None:
        from rung.cli.serve.gateway import environment

        settings = environment("127.0.0.1", gateway.served.port)
        click.echo("  gateway: " + "  ".join(f"{name}={value}" for name, value in settings.items()))
    click.echo("  Ctrl-C ends it.")
