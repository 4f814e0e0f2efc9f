"""`rung lab test -- COMMAND …`: runs a command once for each fault and says what it survived."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.output import as_json, count, print_json
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.testing.provider import Lab
    from rung.testing.provider.fault_report import FaultReport, FaultRun

EPILOG = """\b
  rung lab test -- python my_agent.py
  rung lab test --fault cut:after=10 --fault overloaded --repeat 2 -- my-agent --print "say something"

\b
survived        complete answer, as without the fault
reported        no answer, reported as an error; no recovery was possible
not_triggered   the fault needs a stream or tools, and the command used none
failed          no answer, reported as an error; a retry would have helped
hung            killed after --max-seconds
silently_wrong  successful exit code with an incomplete answer"""
OTHER_KEYS: Final = ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")  # would go before the lab's own
COLOURS: Final = {"survived": "green", "reported": "green", "failed": "yellow", "hung": "red", "silently_wrong": "red"}
GRACE: Final = 5.0  # seconds for what a killed command still holds


@click.command("test", epilog=EPILOG, short_help="Test which faults a command survives.")
@click.argument("command_line", nargs=-1, required=True, metavar="-- COMMAND …")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:KEY=VALUE,…]",
    help="Fault to test (default: all). May be repeated.",
)
@click.option(
    "--repeat",
    "times",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How often a fault strikes in one run.",
)
@click.option(
    "--max-seconds",
    "seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Time limit of one run, in seconds.",
)
@click.option(
    "--expect",
    default="",
    metavar="TEXT",
    help="Text that a complete answer contains (default: the answer without faults).",
)
@click.option("--script", metavar="FILE", help="Lab script with answers, models and limits; its faults are ignored.")
@click.option("--strict", is_flag=True, help="Exit 1 unless every fault was survived, reported or not_triggered.")
@as_json
def command(command_line: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND once without faults, then once for each, and print what it survived.

    ANTHROPIC_BASE_URL, OPENAI_BASE_URL and dummy keys are set for it; the answer is what it writes to its standard
    output.
    """
    from rung.testing.provider import Lab
    from rung.testing.provider.fault_report import ACCEPTABLE_VERDICTS, TESTED_FAULTS, judge, rule_for
    from rung.testing.provider.faults import FAULTS
    from rung.testing.provider.script import read_script

    base = read_script(options["script"]) if options["script"] else {}
    base = {key: value for key, value in base.items() if key not in {"rules", "rate"}}
    picked = [_picked(words, FAULTS) for words in options["faults"]] or [(name, {}) for name in TESTED_FAULTS]
    rules = [rule_for(name, given, options["times"]) for name, given in picked]
    given = "" if sys.stdin.isatty() else sys.stdin.read()
    rows = []
    with Lab(base) as lab:
        for rule in rules:
            lab.use({**base, "rules": [rule]})  # all are checked before anything is run
        lab.use(base)
        usual = _usual(command_line, lab, given, options)
        if not options["as_json"]:
            _print_head(usual, lab)
        for rule in rules:
            lab.use({**base, "rules": [rule]})
            run = _run(command_line, lab, given, options["seconds"])
            fault = FAULTS[rule["fault"]]
            triggered = bool(lab.records.faults)
            row = judge(fault, run, usual, triggered=triggered, attempts=lab.attempts, expect=options["expect"])
            rows.append(row)
            if not options["as_json"]:
                _print_row(row)
    if options["as_json"]:
        print_json({"command": list(command_line), "faults": [row.to_dict() for row in rows]})
    else:
        click.echo(", ".join(f"{verdict} {count}" for verdict, count in _totals(rows)))
    if options["strict"] and any(row.verdict not in ACCEPTABLE_VERDICTS for row in rows):
        sys.exit(1)


def _picked(words: str, known: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A fault and what it is told: cut:after=10,how=reset."""
    name, _, rest = words.partition(":")
    if name not in known:
        raise ConfigError("--fault", name, "one of " + ", ".join(known) + suggestion(name, known))
    told: dict[str, Any] = {}
    for pair in rest.split(",") if rest else ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError("--fault", words, f"{name}:KEY=VALUE,…")
        try:
            told[key] = json.loads(value)
        except ValueError:
            told[key] = value
    return name, told


def _usual(words: Sequence[str], lab: Lab, given: str, options: dict[str, Any]) -> FaultRun:
    """The run without faults, which must succeed: everything else is measured by it."""
    run = _run(words, lab, given, options["seconds"])
    if run.exit_code is None:
        raise ConfigError("--max-seconds", options["seconds"], "enough for the command when nothing fails")
    if run.exit_code != 0 or (options["expect"] and options["expect"] not in run.output):
        why = f"it exits {run.exit_code}" if run.exit_code else f"it does not print {options['expect']!r}"
        raise ConfigError("command", shlex.join(words), f"one that succeeds when nothing fails; {why}")
    if not lab.attempts:
        raise ConfigError(
            "command", shlex.join(words), "one that asks a model at ANTHROPIC_BASE_URL or OPENAI_BASE_URL"
        )
    return run


def _run(words: Sequence[str], lab: Lab, given: str, limit: float) -> FaultRun:
    from rung.testing.provider.fault_report import FaultRun

    env = {key: value for key, value in os.environ.items() if key not in OTHER_KEYS}
    env |= lab.env | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    began = time.monotonic()
    try:
        child = subprocess.Popen(  # noqa: S603  # the user's own command
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigError("command", shlex.join(words), f"a command that can be run ({error.strerror})") from None
    with child:
        try:
            output, _ = child.communicate(given.encode(), timeout=limit)
            code: int | None = child.returncode
        except subprocess.TimeoutExpired:
            output, code = _ended(child), None
        except BaseException:
            _ended(child)
            raise
    return FaultRun(exit_code=code, output=output.decode(errors="replace"), seconds=time.monotonic() - began)


def _ended(child: subprocess.Popen[bytes]) -> bytes:
    """End a command and all it started; what it had printed."""
    os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=GRACE)[0]
    except subprocess.TimeoutExpired:
        return b""


def _print_head(usual: FaultRun, lab: Lab) -> None:
    click.echo(f"without faults: {count(lab.attempts, 'attempt')}, {usual.seconds:.1f} s")
    click.echo(f"{'fault':<16} {'verdict':<14} {'exit':>4}  {'answer':<16} {'attempts':>8} {'seconds':>8}")


def _print_row(row: FaultReport) -> None:
    verdict = click.style(f"{row.verdict:<14}", fg=COLOURS.get(row.verdict))
    code = "-" if row.exit_code is None else row.exit_code
    click.echo(f"{row.fault:<16} {verdict} {code:>4}  {row.answer:<16} {row.attempts:>8} {row.seconds:>8.1f}")


def _totals(rows: Sequence[FaultReport]) -> list[tuple[str, int]]:
    from rung.testing.provider.fault_report import FaultVerdict

    found = Counter(row.verdict for row in rows)
    return [(verdict.value, found[verdict]) for verdict in FaultVerdict if found[verdict]]
