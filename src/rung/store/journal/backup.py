"""Backup of a SQLite journal while processes write to it: one consistent snapshot in a new file."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rung.core.domain.errors import StoreError, StoreUnavailable
from rung.store.backends.sqlite import SqliteBackend

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.journal.journal import Journal


def backup(journal: Journal, path: Path) -> int:
    """Write a snapshot of the journal to a new file that only its owner can read; return its size in bytes.

    What was acknowledged before the call is in it. Writers are not blocked. The file appears when it is complete and on disk.
    """
    if not isinstance(journal.backend, SqliteBackend):
        raise StoreError(
            f"{journal.backend.url}: a PostgreSQL journal is backed up with pg_dump, not with this command"
        )
    if any("\ud800" <= character <= "\udfff" for character in str(path)):
        raise StoreError(f"{str(path)!r}: SQLite needs a path in UTF-8")
    if os.path.lexists(path):
        raise StoreError(f"{path}: exists already; name a new file")
    journal.flush()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _copy(journal.backend, part)
        _sync(part)
        os.link(part, path)  # unlike a rename, it never replaces a file that has appeared meanwhile
        part.unlink()
        _sync(path.parent)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return path.stat().st_size


def _copy(backend: SqliteBackend, target: Path) -> None:
    connection = backend.connect(write=True)
    try:
        connection.execute("VACUUM INTO ?", (str(target),))  # reads one snapshot of the WAL
    except StoreUnavailable as error:
        raise StoreError(f"{target.parent}: the backup cannot be written: {error}") from None
    finally:
        connection.close()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
