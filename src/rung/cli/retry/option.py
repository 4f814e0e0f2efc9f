"""Options, estimates and exit codes that `rung retry` and `rung escalate` share."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import click

from rung.cli.output import print_json
from rung.core.domain.dollars import format_dollars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REFUSED: Final = 4  # nothing was done: it is not possible, a budget forbids it, or nobody confirmed it
NOT_FOUND: Final = 404
USAGE_STATUSES: Final = (NOT_FOUND, 422)  # of a problem that is wrong usage here
_OPTION_OF_FIELD: Final = {"apiKey": "--api-key-env"}  # fields of the API that are options with other names


class Refusal(click.ClickException):
    """Nothing was done; one line on stderr says why."""

    exit_code = REFUSED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the reason on stderr."""
        click.echo(f"rung: {self.message}", file=file, err=file is None)


service_option = click.option(
    "--service", metavar="URL", envvar="RUNG_SERVICE", help="Act through this service instead of the journal."
)
token_option = click.option(
    "--token", metavar="T", envvar="RUNG_TOKEN", help="Token of the service, with the role act (default: RUNG_TOKEN)."
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Accept the estimate without being asked.")


def describe_estimate(found: Mapping[str, Any]) -> str:
    """Return the estimate of a call as one line: total, difference, basis, and what is left of the budget."""
    model, total, difference = found["to_model"] or "its model", found["cost_estimate"], found["cost_difference"]
    if total is None:
        line = f"{model}: cost unknown ({found['estimate_basis']})"
    else:
        more = "" if not difference else f", {_signed(difference)} than on {found['from_model'] or 'the current model'}"
        line = f"{model}: about {format_dollars(total)} per call{more} ({found['estimate_basis']})"
    left = found["budget_left"]
    return line if left is None else f"{line}; {format_dollars(left)} left in the budget"


def _signed(difference: float) -> str:
    return f"{format_dollars(abs(difference))} {'more' if difference > 0 else 'less'}"


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal whether to go on; without one, or with another answer, end with nothing done."""
    if yes:
        return
    if not (sys.stdin is not None and sys.stdin.isatty()):
        refuse("a person must confirm the estimate: repeat the command with --yes")
    if not click.confirm(f"rung: {question}", err=True):
        refuse("nothing was done")


def refuse(reason: str, field: str | None = None) -> NoReturn:
    """End with nothing done. `field` is the field of the API that the reason is about; its option is named."""
    option = _OPTION_OF_FIELD.get(field or "")
    raise Refusal(f"{option}: {reason}" if option else reason)


@contextmanager
def refusals_printed(session: str, options: Mapping[str, Any], **result: object) -> Iterator[None]:
    """With --json, print a refusal as one object as well: the session, this result, and the reason."""
    try:
        yield
    except Refusal as refusal:
        if options["as_json"]:
            print_json({"session": session, **result, "reason": refusal.message})
        raise
