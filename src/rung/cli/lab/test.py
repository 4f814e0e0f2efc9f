"""`rung lab test -- COMMAND …`: runs a command once per fault and reports which it survives."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.help_text import epilogue
from rung.cli.lab.subject import Subject
from rung.cli.numbers import COUNT, SOME_SECONDS
from rung.cli.output import json_option, pluralize, print_json
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import suggest_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.testing.provider import Lab
    from rung.testing.provider.fault_report import FaultReport, FaultRun

EPILOG = epilogue(
    "Result of each fault:",
    table=(
        "survived  complete answer, as without the fault",
        "told      an error was reported; no retry could help",
        "unmet     the fault needs a stream, or tools",
        "failed    an error was reported; a retry could help",
        "hung      killed after --max-seconds",
        "wrong     exit code 0, but the answer is wrong",
    ),
    examples=(
        "rung lab test -- python my_agent.py",
        "rung lab test --fault cut:after=10 --repeat 2 \\",
        '  -- my-agent --print "say something"',
        'rung lab test --reset "rm -f out" \\',
        "  --check 'test \"$(cat out)\" = one' \\",
        '  -- my-agent "write one to out"',
    ),
)
COLOURS: Final = {"survived": "green", "told": "green", "failed": "yellow", "hung": "red", "wrong": "red"}


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
    type=COUNT,
    default=1,
    show_default=True,
    metavar="N",
    help="How often a fault occurs in one run.",
)
@click.option(
    "--max-seconds",
    "seconds",
    type=SOME_SECONDS,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of one run, in seconds.",
)
@click.option(
    "--expect",
    default="",
    metavar="TEXT",
    help="Text that a complete answer contains (default: the answer without faults).",
)
@click.option(
    "--check",
    default="",
    metavar="COMMAND",
    help="Shell command that exits 0 if the effects of a run are right. It gets the output on stdin, and replaces the comparison of answers.",
)
@click.option(
    "--reset", default="", metavar="COMMAND", help="Shell command that restores the starting state before each run."
)
@click.option("--script", metavar="FILE", help="Lab script with answers, models and limits; its faults are ignored.")
@click.option("--strict", is_flag=True, help="Exit 1 unless every fault was survived, told or unmet.")
@json_option
def command(command_line: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND once without faults, then once per fault, and print which it survives.

    ANTHROPIC_BASE_URL, OPENAI_BASE_URL and dummy keys are set for it. Codex, opencode, pi, cline and qwen are pointed
    at the lab by their own settings. Standard output is the answer; with --check, the effects are what counts.
    """
    from rung.adapters.system.command_line import require_program
    from rung.cli.run.ending_signals import ending_signals, exit_code_of
    from rung.testing.provider import Lab
    from rung.testing.provider.fault_report import ACCEPTABLE_VERDICTS, TESTED_FAULTS, judge, rule_for
    from rung.testing.provider.faults import FAULTS
    from rung.testing.provider.script import read_script

    require_program("COMMAND", command_line)
    base = read_script(options["script"]) if options["script"] else {}
    base = {key: value for key, value in base.items() if key not in {"rules", "rate"}}
    picked = [_parse_fault(words, FAULTS) for words in options["faults"]] or [(name, {}) for name in TESTED_FAULTS]
    rules = [rule_for(name, given, options["times"]) for name, given in picked]
    given = "" if sys.stdin.isatty() else sys.stdin.read()
    rows: list[FaultReport] = []
    stopped: int | None = None
    try:
        with ending_signals(), Lab(base) as lab, TemporaryDirectory(prefix="rung-lab-") as scratch:
            subject = Subject.of(command_line, lab, given, Path(scratch), options)
            for rule in rules:
                lab.use({**base, "rules": [rule]})  # checks all rules before anything runs
            lab.use(base)
            usual = _baseline_run(subject, lab, options)
            if not options["as_json"]:
                _print_head(usual, lab)
            for rule in rules:
                lab.use({**base, "rules": [rule]})
                run = subject.run()
                fault = FAULTS[rule["fault"]]
                triggered = bool(lab.records.faults)
                row = judge(fault, run, usual, triggered=triggered, attempts=lab.attempts, expect=options["expect"])
                rows.append(row)
                if not options["as_json"]:
                    _print_row(row)
    except KeyboardInterrupt as stop:
        stopped = exit_code_of(stop)
    _print_summary(command_line, rows, is_stopped=stopped is not None, as_json=options["as_json"])
    if stopped is not None:
        sys.exit(stopped)
    if options["strict"] and any(row.verdict not in ACCEPTABLE_VERDICTS for row in rows):
        sys.exit(1)


def _print_summary(words: Sequence[str], rows: Sequence[FaultReport], *, is_stopped: bool, as_json: bool) -> None:
    if as_json:
        found = {"command": list(words), "faults": [row.to_dict() for row in rows]}
        print_json({**found, "stopped": True} if is_stopped else found)
        return
    click.echo(", ".join([f"{verdict} {count}" for verdict, count in _totals(rows)] + ["stopped"] * is_stopped))


def _parse_fault(words: str, known: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Parse a fault with its parameters: cut:after=10,how=reset."""
    name, _, rest = words.partition(":")
    if name not in known:
        raise ConfigError("--fault", name, "one of " + ", ".join(known) + suggest_names(name, known))
    parameters: dict[str, Any] = {}
    for pair in rest.split(",") if rest else ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError("--fault", words, f"{name}:KEY=VALUE,…")
        try:
            parameters[key] = json.loads(value)
        except ValueError:
            parameters[key] = value
    return name, parameters


def _baseline_run(subject: Subject, lab: Lab, options: dict[str, Any]) -> FaultRun:
    """Run the command without faults. It must succeed: other runs are compared with it."""
    run = subject.run()
    words = shlex.join(subject.given_words)
    if run.exit_code is None:
        raise ConfigError("--max-seconds", options["seconds"], "enough for the command without faults")
    if run.exit_code != 0 or (options["expect"] and options["expect"] not in run.output):
        why = f"it exits {run.exit_code}" if run.exit_code else f"it does not print {options['expect']!r}"
        raise ConfigError("command", words, f"a command that succeeds without faults; {why}")
    if not lab.attempts:
        raise ConfigError("command", words, "a command that calls ANTHROPIC_BASE_URL or OPENAI_BASE_URL")
    if run.is_checked is False:
        raise ConfigError("--check", options["check"], "a check that passes after a run without faults")
    return run


def _print_head(usual: FaultRun, lab: Lab) -> None:
    click.echo(f"without faults: {pluralize(lab.attempts, 'attempt')}, {usual.seconds:.1f} s")
    click.echo(f"{'fault':<16} {'verdict':<9} {'exit':>4}  {'answer':<16} {'attempts':>8} {'seconds':>8}")


def _print_row(row: FaultReport) -> None:
    verdict = click.style(f"{row.verdict:<14}", fg=COLOURS.get(row.verdict))
    code = "-" if row.exit_code is None else row.exit_code
    click.echo(f"{row.fault:<16} {verdict} {code:>4}  {row.answer:<16} {row.attempts:>8} {row.seconds:>8.1f}")


def _totals(rows: Sequence[FaultReport]) -> list[tuple[str, int]]:
    from rung.testing.provider.fault_report import FaultVerdict

    found = Counter(row.verdict for row in rows)
    return [(verdict.value, found[verdict]) for verdict in FaultVerdict if found[verdict]]
