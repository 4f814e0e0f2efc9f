"""Secrets in files of the user's: made once, readable by nobody else. Imports little, because hooks read one too."""

from __future__ import annotations

import os


def read_secret(path: str) -> str:
    """Return the secret in a file; empty if there is none that belongs to this user and only this user can read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # pathlib costs milliseconds
            status = os.fstat(file.fileno())
            if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
                return ""
            return file.read(1_000).decode("ascii", "replace").strip()
    except OSError:
        return ""


def load_secret(path: str) -> str:
    """Return the secret in a file; a new one, in a new file, if there is none that only this user can read."""
    secret = read_secret(path)
    if not secret:
        from secrets import token_urlsafe

        secret, new = token_urlsafe(32), f"{path}.{os.getpid()}"
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        if os.path.lexists(new):
            os.unlink(new)  # noqa: PTH108
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secret)
        os.replace(new, path)  # noqa: PTH105
    return secret
