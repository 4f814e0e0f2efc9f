"""Errors of wrong use, in one style: `rung: what is wrong; what is allowed`, then where to read on. Exit code 2."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

# click before 8.2 has no class for it: it prints the help itself.
NO_ARGUMENTS: Final = getattr(click.exceptions, "NoArgsIsHelpError", ())
MAX_LISTED_NAMES: Final = 12
MAX_MESSAGE_CHARS: Final = 3_000
# click's messages about a value of a wrong type; the type says better what is allowed.
_REJECTED: Final = re.compile(r"'?(?P<value>.*?)'? is not (?:one of|a valid|in the range) ", re.DOTALL)
_COMMAND_METAVAR: Final = "-- COMMAND …"


class UsageError(click.ClickException):
    """Invalid input of the user: one line on stderr, and nothing runs."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on stderr, as one line."""
        text = " ".join(self.message.split())
        if len(text) > MAX_MESSAGE_CHARS:  # a long name or path that was given
            from rung.core.classify.evidence import clip

            text = clip(text, MAX_MESSAGE_CHARS)
        click.echo(f"rung: {text}", file=file, err=file is None)


class CommandFailed(UsageError):
    """A command cannot do its work, through no fault of the user: one line on stderr."""

    exit_code = 1


def show_error(error: click.ClickException) -> None:
    """Print an error of click or of ours on stderr."""
    if isinstance(error, NO_ARGUMENTS) or not type(error).__module__.startswith("click."):
        error.show()
        return
    UsageError(describe(error)).show()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        for line in _hints(error, error.ctx):
            click.echo(line, err=True)


def unknown_command(name: str, names: Iterable[str], ctx: click.Context) -> click.UsageError:
    """Return the error about a command that a group does not have."""
    allowed = list(names)
    listed = f"; must be one of {', '.join(allowed)}" if len(allowed) <= MAX_LISTED_NAMES else ""
    return click.UsageError(f"unknown command {name!r}{listed}{suggest_names(name, allowed)}", ctx)


def describe(error: click.ClickException) -> str:
    """Return the message of an error of click: what is wrong, then what is allowed."""
    match error:
        case click.NoSuchOption():
            return f"unknown option {error.option_name!r}{suggest_names(error.option_name, _option_names(error.ctx))}"
        case click.MissingParameter():
            return f"{_parameter_name(error)} is missing{_about(error.param)}"
        case click.BadParameter():
            return f"{_parameter_name(error)}: {_rejected_value(error)}"
        case click.BadOptionUsage() if "requires an argument" in error.message:
            return f"{error.option_name}: its value is missing"
    return _sentence(error.format_message())


def _hints(error: click.UsageError, ctx: click.Context) -> list[str]:
    words = ctx.command_path.split(" ", maxsplit=1)
    hints = [f"See: {' '.join([words[0], 'help', *words[1:]])}"]
    takes_command = any(param.metavar == _COMMAND_METAVAR for param in ctx.command.params)
    is_own_option = isinstance(error, click.NoSuchOption) and suggest_names(error.option_name, _option_names(ctx))
    if takes_command and isinstance(error, click.NoSuchOption) and not is_own_option:
        hints.insert(0, f"Options of COMMAND itself follow `--`: {ctx.command_path} [OPTIONS] {_COMMAND_METAVAR}")
    return hints


def suggest_names(name: str, names: Iterable[str]) -> str:
    """Return the end of a message that suggests near names. Imported late: `rung help` needs none."""
    from rung.core.domain import settings_schema

    return settings_schema.suggest_names(name, names)


def _option_names(ctx: click.Context | None) -> list[str]:
    if ctx is None:
        return []
    return [name for param in ctx.command.get_params(ctx) for name in (*param.opts, *param.secondary_opts)]


def _parameter_name(error: click.BadParameter) -> str:
    """Return the name that the user types: the long form of an option, or the placeholder of an argument."""
    param = error.param
    if param is None:
        return str(error.param_hint or "a value").strip("'\"")
    if isinstance(param, click.Option):
        return max((*param.opts, *param.secondary_opts), key=len)
    if param.metavar:
        return param.metavar.removeprefix("-- ").removesuffix(" …").strip("[]")
    return (param.name or "argument").upper()


def _about(param: click.Parameter | None) -> str:
    """Return what a parameter is that is missing: its choices, or its help."""
    choices = _choices(param)
    if choices:
        return f"; must be one of {', '.join(choices)}"
    help_text = getattr(param, "help", None)
    return f": {_sentence(help_text)}" if help_text else ""


def _rejected_value(error: click.BadParameter) -> str:
    allowed, rejected = _allowed(error.param), _REJECTED.match(error.message)
    if not allowed or not rejected:
        return _sentence(error.message)
    value = rejected["value"]
    if value == "--":
        return "its value is missing"
    return f"{value!r} is invalid; must be {allowed}{suggest_names(value, _choices(error.param))}"


def _allowed(param: click.Parameter | None) -> str:
    match getattr(param, "type", None):
        case click.Choice():
            return f"one of {', '.join(_choices(param))}"
        case click.IntRange() | click.FloatRange() as numbers:
            return f"{_number(numbers)}{_unit(param)}{_bounds(numbers)}"
        case click.types.IntParamType() | click.types.FloatParamType() as number:
            return f"{_number(number)}{_unit(param)}"
    return ""


def _choices(param: click.Parameter | None) -> list[str]:
    return [str(choice) for choice in getattr(getattr(param, "type", None), "choices", ())]


def _number(kind: object) -> str:
    return "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"


def _unit(param: click.Parameter | None) -> str:
    return " of seconds" if param is not None and param.metavar == "SECONDS" else ""


def _bounds(numbers: click.IntRange | click.FloatRange) -> str:
    low, high = (None if bound is None else f"{bound:.15g}" for bound in (numbers.min, numbers.max))
    if low is not None and high is not None:
        return f" above {low}, up to {high}" if numbers.min_open else f" from {low} to {high}"
    if low is None:
        return "" if high is None else f", {high} or less"
    return f" above {low}" if numbers.min_open else f", {low} or more"


def _sentence(text: str) -> str:
    """Return the text without its final full stop, and without a capital that only begins the sentence."""
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
