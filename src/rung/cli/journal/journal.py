"""`rung journal`: locates, checks, backs up, exports, prunes and rebuilds the journal."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

import click

from rung.cli.command_group import CommandGroup
from rung.cli.help_text import epilogue
from rung.cli.journal.backup import backup
from rung.cli.journal.option import (
    existing_journal,
    journal_option,
    parse_time,
    project_option,
    since_option,
    until_option,
)
from rung.cli.output import json_option, paragraph, pluralize, print_json
from rung.core.text.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPORT_SUBJECTS: Final = ("attempts", "incidents", "events")
EXPORT_FORMATS: Final = ("csv", "jsonl", "parquet")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}


@click.group(cls=CommandGroup)
def command() -> None:
    """Locate, check, back up, export, prune and rebuild the journal."""


command.add_command(backup)


@command.command("where", epilog=epilogue(examples=("rung journal where",)))
@journal_option
@json_option
def where(*, journal_at: str | None, as_json: bool) -> None:
    """Print which journal is used, and which setting chose it."""
    from rung.wiring.journals import exists, is_url, locate, shown_location

    at, chosen_by = locate(journal_at)
    there = exists(at)
    shown = shown_location(at)
    if as_json:
        print_json({"journal": shown, "chosen_by": chosen_by, "exists": None if is_url(at) else there})
        return
    click.echo(shown)
    click.secho(f"chosen by {chosen_by}{'' if there else '; it does not exist yet'}", dim=True, err=True)


@command.command(
    "check", short_help="Check the journal's integrity.", epilog=epilogue(examples=("rung journal check",))
)
@journal_option
@json_option
def check(*, journal_at: str | None, as_json: bool) -> None:
    """Check the journal's integrity and its counts; exit code 1 if a check_integrity fails."""
    from rung.store.journal.lost_writes import lost_writes
    from rung.store.journal.retention import check_integrity as run_checks

    with existing_journal(journal_at) as journal:
        findings = run_checks(journal)
        at, amount, lost = journal.backend.url, journal.backend.size(), lost_writes(journal)
    good = all(finding.ok for finding in findings)
    if as_json:
        print_json(
            {
                "ok": good,
                "journal": at,
                "bytes": amount,
                "findings": [f._asdict() for f in findings],
                "lost": lost._asdict(),
            }
        )
    else:
        click.echo(f"{at}  {format_bytes(amount)}")
        for what, ok, seen in findings:
            mark = click.style("ok ", fg="green") if ok else click.style("BAD", fg="red", bold=True)
            click.echo(f"  {mark}  {what:<10}{paragraph(seen, indent=17)[17:]}")
        if any(lost):
            click.echo(f"Never written: {lost.successful_calls} successful calls, {lost.writes} other writes.")
        if not good:
            click.echo("Rebuild the read models with: rung journal rebuild", err=True)
    sys.exit(0 if good else 1)


@command.command("vacuum", epilog=epilogue(examples=("rung journal vacuum",)))
@journal_option
def vacuum(*, journal_at: str | None) -> None:
    """Return the space of deleted events to the file system."""
    from rung.store.journal import retention

    with existing_journal(journal_at) as journal:
        before, after = retention.vacuum(journal)
    click.echo(f"{format_bytes(before)} before, {format_bytes(after)} now")


@command.command(
    "export",
    short_help="Export as CSV, JSON lines or Parquet.",
    epilog=epilogue(
        examples=("rung journal export events -o events.jsonl", "rung journal export --since 7d -o attempts.csv")
    ),
)
@click.argument("what", type=click.Choice(EXPORT_SUBJECTS), default="attempts")
@click.option(
    "--format", "form", type=click.Choice(EXPORT_FORMATS), help="Format (default: by the file name's ending, else csv)."
)
@click.option("--out", "-o", default="-", metavar="FILE", help="Output file; - is standard output.  [default: -]")
@since_option
@until_option
@project_option
@journal_option
def export(
    what: str, *, form: str | None, out: str, since: float | None, until: float | None, project: str | None,
    journal_at: str | None,
) -> None:  # fmt: skip
    """Write attempts, incidents or events to a file: CSV, JSON lines or Parquet."""
    from rung.store.journal import export as ex
    from rung.store.queries.reports_sql import ReportFilter

    chosen = ex.ExportFormat(form or _format_by_name(out))
    if out == "-" and chosen is ex.ExportFormat.PARQUET and sys.stdout.isatty():
        raise click.UsageError("Parquet is binary: name a file with --out")
    with existing_journal(journal_at) as journal, _open_output(out) as file:
        rows = ex.export(
            journal, ex.ExportSubject(what), chosen, file, ReportFilter(since=since, until=until, project=project)
        )
    if out != "-":
        click.echo(f"{pluralize(rows, 'row')} of {what} in {out}", err=True)


@command.command("rebuild", epilog=epilogue(examples=("rung journal rebuild",)))
@click.option("--forget-pruned", is_flag=True, help="Rebuild even if the counts of pruned incidents are lost.")
@journal_option
def rebuild(*, forget_pruned: bool, journal_at: str | None) -> None:
    """Rebuild the read models from the events."""
    from rung.core.domain.errors import StoreError
    from rung.store.journal.retention import was_pruned

    with existing_journal(journal_at) as journal:
        if not forget_pruned and was_pruned(journal):
            raise StoreError(
                f"{journal.backend.url}: its counts include attempts whose events were deleted (pruned, or counted twice);"
                " a rebuild loses them; use --forget-pruned to rebuild anyway"
            )
        events = journal.rebuild()
    click.echo(f"rebuilt from {pluralize(events, 'event')}")


@command.command("prune", epilog=epilogue(examples=("rung journal prune --older-than 90d --max-size 500MB",)))
@click.option(
    "--older-than", callback=parse_time, metavar="AGE", help="Delete closed incidents unchanged for this long: 90d."
)
@click.option(
    "--max-size", metavar="SIZE", help="Delete the oldest closed incidents until the journal is this small: 500MB."
)
@project_option
@click.option(
    "--vacuum/--no-vacuum",
    "shrink",
    default=True,
    help="Return the space to the file system (default), or keep it for reuse.",
)
@journal_option
@json_option
def prune(
    *, older_than: float | None, max_size: str | None, project: str | None, shrink: bool, journal_at: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Delete closed incidents with all their events. Counts stay; open incidents are never touched."""
    from rung.store.journal import retention

    if older_than is None and max_size is None:
        raise click.UsageError("--older-than, --max-size or both are required")
    max_bytes = None if max_size is None else _parse_size(max_size)
    with existing_journal(journal_at) as journal:
        before = journal.backend.size()
        pruned = retention.prune(journal, older_than=older_than, max_bytes=max_bytes, project=project)
        if shrink and pruned.incidents:
            retention.vacuum(journal)
        after = journal.backend.size()
    if as_json:
        print_json({**pruned._asdict(), "bytes_before": before, "bytes_after": after})
        return
    click.echo(
        f"{pluralize(pruned.incidents, 'incident')} with {pluralize(pruned.events, 'event')} deleted; {format_bytes(before)} → {format_bytes(after)}"
    )
    if max_bytes is not None and after > max_bytes:
        click.echo("The rest cannot be pruned: open incidents, counts, other projects.", err=True)


def _format_by_name(out: str) -> str:
    """Return the format that a file name's ending says; csv for standard output and for a name without an ending."""
    from pathlib import Path

    from rung.core.domain.errors import ConfigError

    ending = Path(out).suffix.lower().removeprefix(".")
    if ending and ending not in EXPORT_FORMATS:
        endings = ", ".join(f".{one}" for one in EXPORT_FORMATS)
        raise ConfigError("--out", out, f"a name that ends in one of {endings}, or given with --format")
    return ending or "csv"


def _parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is invalid; must be a size: 500MB, 2GB", param_hint="--max-size")
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])


@contextmanager
def _open_output(out: str) -> Iterator[IO[bytes]]:
    """Open standard output, or a file that is private to its owner and replaced atomically."""
    if out == "-":
        from io import BytesIO

        shown = BytesIO() if sys.stdout.isatty() else None  # a terminal gets text without control sequences
        yield sys.stdout.buffer if shown is None else shown
        sys.stdout.write(shown.getvalue().decode() if shown is not None else "")
        sys.stdout.flush()
        return
    import os
    from pathlib import Path

    from rung.core.domain.errors import ConfigError, StoreError

    path = Path(out)
    if not path.name or os.path.isdir(path):  # noqa: PTH112  # is_dir raises for a long name
        raise ConfigError("--out", out, "a file, or - for standard output")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        file = os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
    except OSError as error:
        raise StoreError(f"{out}: cannot be written: {error.strerror}") from None
    try:
        with file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
