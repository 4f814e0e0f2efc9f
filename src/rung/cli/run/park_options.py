"""Options of commands that park their work until a limit reopens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.numbers import SECONDS
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.policy.policy import Policy

WAIT: Final = "wait"
EXIT: Final = "exit"
OFF: Final = "off"


def park_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--park` and `--park-max` to a command."""
    command = click.option("--park-max", type=SECONDS, metavar="SECONDS", help="Longest time parked, in seconds.")(
        command
    )
    return click.option(
        "--park",
        type=click.Choice((WAIT, EXIT, OFF)),
        help="At a limit that reopens at a known time: wait for it (default), exit with code 75, or off: give up.",
    )(command)


def policy_with_park(policy: Policy, options: Mapping[str, Any], *, has_journal: bool, has_terminal: bool) -> Policy:
    """Return the policy with the longest time parked that the options ask for.

    Without a journal nobody can see or wake a parked run, and it ends with its process: there it is parked if somebody sees it.
    """
    from rung.core.policy.templates import PARK_SECONDS

    mode, longest = options["park"], options["park_max"]
    if mode == EXIT and not has_journal:
        raise ConfigError("--park", mode, "wait or off without a journal")
    if mode == OFF or (mode is None and not (has_journal or has_terminal)):
        return policy.replace(park=0.0)
    if longest is not None:
        return policy.replace(park=longest)
    return policy if mode is None or policy.park else policy.replace(park=PARK_SECONDS)
