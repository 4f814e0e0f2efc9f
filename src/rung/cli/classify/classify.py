"""`rung classify`: classifies a failure by its text and other facts."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from rung.cli.help_text import epilogue
from rung.cli.output import format_seconds, json_option, print_json, print_row
from rung.core.classify import learned
from rung.core.classify.classifier import classify, rules
from rung.core.classify.error_types import failure_type
from rung.core.classify.evidence import evidence_of
from rung.core.domain.errors import ConfigError
from rung.engine.local_zone import local_zone

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence, Failure


@click.command(
    epilog=epilogue(
        examples=(
            'rung classify "Error: 429 Too Many Requests"',
            "rung classify --status 529 overloaded",
            "make test 2>&1 | rung classify --exit-code 2 --json",
            "rung classify --jsonl errors.jsonl > names.jsonl",
        )
    )
)
@click.argument("text", required=False)
@click.option("--status", type=click.IntRange(100, 599), metavar="N", help="HTTP status.")
@click.option("--header", "headers", multiple=True, metavar="K:V", help="Response header. May be repeated.")
@click.option("--code", default="", metavar="C", help="Provider's error code or stop reason.")
@click.option("--exception", "exceptions", multiple=True, metavar="NAME", help="Exception class. May be repeated.")
@click.option("--exit-code", type=int, metavar="N", help="Exit code of a process.")
@click.option(
    "--provider", default="", metavar="NAME", help="Provider, such as anthropic or openai (default: unknown)."
)
@click.option("--rules", "rules_file", metavar="FILE", help="Policy file whose [[rules]] are used as well.")
@click.option("--jsonl", is_flag=True, help="Read one JSON error per line, from a file (TEXT) or a pipe.")
@json_option
def command(
    text: str | None,
    rules_file: str | None,
    *,
    jsonl: bool,
    as_json: bool,
    **known: Any,
) -> None:
    """Classify a failure: its kind and error type, whether a retry can help, and the rule that matched.

    TEXT is the error's text; without it, or with "-", it is read from a pipe.
    """
    if rules_file is not None:
        from rung.wiring.files import load_rules

        load_rules(rules_file)
    if jsonl:
        from rung.cli.classify.classify_lines import classify_lines

        _reject_fact_options(known)
        classify_lines(text)
        return
    failure = classify(_evidence(text, known), time.time(), local_zone())
    if as_json:
        print_json(_json(failure))
    else:
        _print_failure(failure)


def _reject_fact_options(known: dict[str, Any]) -> None:
    options = {"headers": "header", "exceptions": "exception", "exit_code": "exit-code"}
    given = [f"--{options.get(name, name)}" for name, value in known.items() if value not in (None, "", ())]
    if given:
        raise click.UsageError(f"--jsonl reads all facts from its lines; remove {', '.join(given)}.")


def _evidence(text: str | None, known: dict[str, Any]) -> Evidence:
    has_facts = any(value not in (None, "", ()) for value in known.values())
    facts: dict[str, Any] = {
        **known,
        "message": _read_text(text, required=not has_facts),
        "headers": dict(_header(header) for header in known["headers"]),
        "form": "call" if known["exit_code"] is None else "tool",
    }
    return evidence_of(facts)._replace(exceptions=tuple(_with_base_classes(known["exceptions"])))


def _read_text(text: str | None, *, required: bool) -> str:
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        if required:
            raise click.UsageError("Nothing to classify: give TEXT, a pipe, or facts (--status, …).")
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _header(header: str) -> tuple[str, str]:
    name, colon, value = header.partition(":")
    if not colon or not name.strip():
        raise ConfigError("--header", header, "NAME:VALUE, such as retry-after:20")
    return name.strip().lower(), value.strip()


def _with_base_classes(names: tuple[str, ...]) -> list[str]:
    """Return the names with the base classes of built-in exceptions: a ConnectionResetError is a ConnectionError."""
    import builtins

    found: list[str] = []
    for name in names:
        cls = getattr(builtins, name, None)
        if isinstance(cls, type) and issubclass(cls, Exception) and cls is not Exception:
            found += [base.__name__ for base in cls.__mro__ if base not in (Exception, BaseException, object)]
        else:
            found.append(name)
    return found


def _rule_reason(failure: Failure) -> str:
    if failure.rule == learned.RULE:
        return learned.explain(failure.evidence)
    whys = {rule.id: rule.why for rule in rules()}
    return whys.get(failure.rule, "No rule matches; a ladder treats it conservatively.")


def _json(failure: Failure) -> dict[str, Any]:
    return {
        "kind": failure.kind.value,
        "error_type": failure_type(failure).value,
        "retryable": failure.retryable,
        "retry_after": failure.retry_after,
        "rule": failure.rule,
        "why": _rule_reason(failure),
        "fingerprint": failure.fingerprint,
        "message": failure.message,
        "tokens": failure.tokens and failure.tokens._asdict(),
    }


def _print_failure(failure: Failure) -> None:
    click.secho(failure.kind, bold=True, fg="yellow" if failure.retryable else "red")
    again = "yes" if failure.retryable else "no: the request must change first"
    for name, value in (
        ("error type", failure_type(failure).value),
        ("retryable", again),
        ("retry-after", "not given" if failure.retry_after is None else format_seconds(failure.retry_after)),
        ("rule", failure.rule),
        ("why", _rule_reason(failure)),
        ("fingerprint", failure.fingerprint),
    ):
        print_row(name, value)
    if failure.tokens:
        print_row("tokens", f"{failure.tokens.asked:,} requested, limit {failure.tokens.limit:,}")
