"""Service over the demo world: `python -m examples.demo_world`, or `make run`."""

from __future__ import annotations

import logging
import secrets
from contextlib import nullcontext

import click

from examples.demo_world.running import recorded, running_address
from examples.demo_world.world import World
from rung.cli.serve.service import DEFAULT_PORT, start
from rung.errors import ConfigError

OTHER_PORT = "`make run PORT=0` picks a free port"


@click.command()
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65_535), help="0 picks a free port."
)
@click.option("--token", metavar="T", help="Administrator's token (default: a new one).")
def main(*, port: int, token: str | None) -> None:
    """Start the service over scripted agents, in a journal that is deleted at the end."""
    other = running_address(port)
    if other:
        click.echo(f"rung: another `make run` is up: {other}\n  {OTHER_PORT}", err=True)
        raise SystemExit(2)
    token = token or secrets.token_urlsafe(24)
    logging.getLogger("rung").setLevel(logging.CRITICAL)  # its agents fail all the time; the page shows it
    world = World()
    try:
        with recorded(port, f"http://127.0.0.1:{port}/?token={token}") if port else nullcontext():
            start(port=port, token=token, world=world)
    except ConfigError as error:
        click.echo(f"rung: {error}; {OTHER_PORT}" if error.key == "--port" else f"rung: {error}", err=True)
        raise SystemExit(2) from None
    finally:
        world.clear()


if __name__ == "__main__":
    main()
