"""Service over the demo world: `python -m examples.demo_world`, or `make run`."""

from __future__ import annotations

import click

from examples.demo_world.world import World
from rung.cli.serve.service import DEFAULT_PORT, start


@click.command()
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65_535), help="0 picks a free port."
)
@click.option("--token", metavar="T", help="Administrator's token (default: a new one).")
def main(*, port: int, token: str | None) -> None:
    """Start the service over scripted agents, in a journal that is deleted at the end."""
    start(port=port, token=token, world=World())


if __name__ == "__main__":
    main()
