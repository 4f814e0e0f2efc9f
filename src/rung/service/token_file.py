"""The administrator's token: given, or generated at the first start and stored where only its owner can read it."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

MIN_TOKEN_CHARS: Final = 16
MAX_FILE_BYTES: Final = 1_000
# Neither a link to another file nor a pipe that blocks; Windows has no such flags.
_SAFE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def admin_token(given: str | None, path: Path) -> str:
    """Return the admin token: the given one, or the one stored in `path` (mode 0600), generated at the first start."""
    if given is not None:
        if not _is_token(given):
            raise ConfigError(
                "token", "…", f"{MIN_TOKEN_CHARS} or more ASCII characters without spaces; omit it to generate one"
            )
        return given
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            return _create(path)
        return _read(path)
    except OSError as error:
        raise StoreError(
            f"{path}: the token cannot be stored there: {error.strerror}; choose one with --token"
        ) from None


def _create(path: Path) -> str:
    token = secrets.token_urlsafe(24)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _read(path: Path) -> str:
    """Return the stored token; raise StoreError if somebody else wrote the file, or may have."""
    with os.fdopen(os.open(path, os.O_RDONLY | _SAFE), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{path}: is not a regular file")
        if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
            raise StoreError(
                f"{path}: must belong to you alone (it belongs to user {found.st_uid}, mode {found.st_mode & 0o777:04o}):"
                " whoever wrote it knows the token; delete it to get a new one, or choose one with --token"
            )
        stored = file.read(MAX_FILE_BYTES).decode("ascii", "replace").strip()
    if not _is_token(stored):
        raise StoreError(f"{path}: holds no token; delete it to get a new one, or choose one with --token")
    return stored


def _is_token(text: str) -> bool:
    return len(text) >= MIN_TOKEN_CHARS and text.isascii() and text.isprintable() and " " not in text
