"""`rung journal backup`: copies a SQLite journal to a new file while processes write to it."""

from __future__ import annotations

from pathlib import Path

import click

from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option
from rung.core.text.units import format_bytes


@click.command(
    "backup",
    short_help="Copy the journal to a new file.",
    epilog=epilogue(examples=("rung journal backup journal-2026-11-17.db",)),
)
@click.argument("file", type=click.Path(path_type=Path))
@journal_option
def backup(file: Path, *, journal_at: str | None) -> None:
    """Copy a SQLite journal to a new FILE, while processes write to it. What was acknowledged before is in it.

    A PostgreSQL journal is backed up with pg_dump. Sealed texts need the journal's key: keep it, too, in another place.
    """
    from rung.store.journal.backup import backup as write_backup
    from rung.store.sealing import KEY_VARIABLE, key_file

    with existing_journal(journal_at) as journal:
        size = write_backup(journal, file)
    click.echo(f"{file}  {format_bytes(size)}")
    click.echo(f"Sealed texts need the journal's key: {KEY_VARIABLE}, or {key_file()}", err=True)
