"""`rung journal`: where the journal is, whether it is sound, what is in it for other programs, and keeping it small."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

import click

from rung.cli.journal.option import journal_option, moment, opened
from rung.cli.output import as_json, count, print_json
from rung.core.text.units import size

if TYPE_CHECKING:
    from collections.abc import Iterator

WHAT: Final = ("attempts", "incidents", "events")
FORMS: Final = ("csv", "jsonl", "parquet")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}


@click.group(short_help="Locate, check, export and prune the journal.")
def command() -> None:
    """Locate, check, export, prune and rebuild the journal."""


@command.command("where")
@journal_option
@as_json
def where(*, journal_at: str | None, as_json: bool) -> None:
    """Print which journal is used, and which setting chose it."""
    from rung.wiring.journals import exists, is_url, locate

    at, chosen_by = locate(journal_at)
    there = exists(at)
    shown = _without_password(at) if is_url(at) else at
    if as_json:
        print_json({"journal": shown, "chosen_by": chosen_by, "exists": None if is_url(at) else there})
        return
    click.echo(shown)
    click.secho(f"chosen by {chosen_by}{'' if there else '; there is none yet'}", dim=True, err=True)


@command.command("check")
@journal_option
@as_json
def check(*, journal_at: str | None, as_json: bool) -> None:
    """Check that the journal is sound and its counts add up; exit code 1 when not."""
    from rung.store.journal.retention import check as look

    with opened(journal_at) as journal:
        found = look(journal)
        at, amount = journal.backend.url, journal.backend.size()
    good = all(finding.ok for finding in found)
    if as_json:
        print_json({"ok": good, "journal": at, "bytes": amount, "findings": [f._asdict() for f in found]})
    else:
        click.echo(f"{at}  {size(amount)}")
        for what, ok, seen in found:
            mark = click.style("ok ", fg="green") if ok else click.style("BAD", fg="red", bold=True)
            click.echo(f"  {mark}  {what:<10}{seen}")
        if not good:
            click.echo("Make what is read off the events again with: rung journal rebuild", err=True)
    sys.exit(0 if good else 1)


@command.command("vacuum")
@journal_option
def vacuum(*, journal_at: str | None) -> None:
    """Return the space of deleted events to the file system."""
    from rung.store.journal import retention

    with opened(journal_at) as journal:
        before, after = retention.vacuum(journal)
    click.echo(f"{size(before)} before, {size(after)} now")


@command.command("export")
@click.argument("what", type=click.Choice(WHAT), default="attempts")
@click.option(
    "--format", "form", type=click.Choice(FORMS), help="Format (default: by the file name's ending, else csv)."
)
@click.option("--out", "-o", default="-", metavar="FILE", help="Output file; - is standard output.  [default: -]")
@click.option(
    "--since",
    callback=moment,
    metavar="WHEN",
    help="Start of the time range: 7d, 12h, or a date such as 2026-11-01 (UTC).",
)
@click.option("--until", callback=moment, metavar="WHEN", help="End of the time range.")
@click.option("--project", help="Only this project.")
@journal_option
def export(
    what: str, *, form: str | None, out: str, since: float | None, until: float | None, project: str | None,
    journal_at: str | None,
) -> None:  # fmt: skip
    """Write attempts, incidents or events to a file: CSV, JSON lines or Parquet."""
    from rung.store.journal import export as ex
    from rung.store.queries.reports_sql import ReportFilter

    ending = out.rpartition(".")[2].lower()
    chosen = ex.ExportFormat(form or (ending if ending in FORMS else "csv"))
    if out == "-" and chosen is ex.ExportFormat.PARQUET and sys.stdout.isatty():
        raise click.UsageError("Parquet is nothing for a terminal: give a file with --out")
    with opened(journal_at) as journal, _target(out) as file:
        rows = ex.export(
            journal, ex.ExportSubject(what), chosen, file, ReportFilter(since=since, until=until, project=project)
        )
    if out != "-":
        click.echo(f"{count(rows, 'row')} of {what} in {out}", err=True)


@command.command("rebuild")
@click.option("--forget-pruned", is_flag=True, help="Rebuild even if the counts of pruned incidents are lost.")
@journal_option
def rebuild(*, forget_pruned: bool, journal_at: str | None) -> None:
    """Rebuild the read models from the events."""
    from rung.core.domain.errors import StoreError
    from rung.store.journal.retention import was_pruned

    with opened(journal_at) as journal:
        if not forget_pruned and was_pruned(journal):
            raise StoreError(
                f"{journal.backend.url}: its counts know of attempts whose events are gone (pruned, or counted twice);"
                " a rebuild forgets them: --forget-pruned if that is wanted"
            )
        events = journal.rebuild()
    click.echo(f"made again from {count(events, 'event')}")


@command.command("prune")
@click.option(
    "--older-than", callback=moment, metavar="AGE", help="Delete closed incidents unchanged for this long: 90d."
)
@click.option(
    "--max-size", metavar="SIZE", help="Delete the oldest closed incidents until the journal is this small: 500MB."
)
@click.option("--project", help="Only this project.")
@click.option(
    "--vacuum/--no-vacuum",
    "shrink",
    default=True,
    help="Return the space to the file system (default), or keep it for reuse.",
)
@journal_option
@as_json
def prune(
    *, older_than: float | None, max_size: str | None, project: str | None, shrink: bool, journal_at: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Delete closed incidents with all their events. Counts stay; open incidents are never touched."""
    from rung.store.journal import retention

    if older_than is None and max_size is None:
        raise click.UsageError("say what may go: --older-than 90d, --max-size 500MB, or both")
    most = None if max_size is None else _bytes(max_size)
    with opened(journal_at) as journal:
        before = journal.backend.size()
        gone = retention.prune(journal, older_than=older_than, max_bytes=most, project=project)
        if shrink and gone.incidents:
            retention.vacuum(journal)
        after = journal.backend.size()
    if as_json:
        print_json({**gone._asdict(), "bytes_before": before, "bytes_after": after})
        return
    click.echo(
        f"{count(gone.incidents, 'incident')} with {count(gone.events, 'event')} deleted; {size(before)} → {size(after)}"
    )
    if most is not None and after > most:
        click.echo("What is left is open, counts, or another project's.", err=True)


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is invalid; must be a size: 500MB, 2GB", param_hint="--max-size")
    return int(float(found[1]) * _UNITS[(found[2] or "").lower()])


@contextmanager
def _target(out: str) -> Iterator[IO[bytes]]:
    """The file, for its owner alone, in its place only when it is whole; or standard output."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    import os
    from pathlib import Path

    from rung.core.domain.errors import StoreError

    path = Path(out)
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


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:…@", url)
