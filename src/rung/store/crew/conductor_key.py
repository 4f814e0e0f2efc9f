"""The key of a crew: who has it acts as its conductor or as a person; a worker has none.

The database holds the digest of the key. The key itself is a file of this account, in the user data directory and named
by the digest, or the environment variable RUNG_CREW_KEY where a conductor runs on another machine.
"""

from __future__ import annotations

import os
import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError, StoreError
from rung.store.crew.sql_sha256 import KEY_CHARS
from rung.store.crew.trigger_conditions import KEY_DIGEST_FACT
from rung.store.user_data import user_data_dir

if TYPE_CHECKING:
    from pathlib import Path

    from rung.store.crew.connection import CrewConnection

KEY_VARIABLE: Final = "RUNG_CREW_KEY"
WORKER_VARIABLE: Final = "RUNG_WORKER_OF"  # in a launched worker: the digest of the key that it must not use
_KEY: Final = re.compile(f"[0-9a-f]{{{KEY_CHARS}}}")


def create_key() -> str:
    """Make the key of a new crew, or take that of the environment; store it for this account and return its digest."""
    key = _from_environment() or secrets.token_hex(KEY_CHARS // 2)
    digest = _digest(key)
    file = key_file(digest)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(f"{key}\n")
    except OSError as error:
        raise StoreError(f"{file}: the crew's key cannot be stored: {error.strerror}; or set {KEY_VARIABLE}") from None
    return digest


def load_key(connection: CrewConnection) -> str:
    """Return the key of this crew; raises StoreError if this process has none."""
    ((digest,),) = connection.execute("SELECT value FROM crew_facts WHERE name = ?", [KEY_DIGEST_FACT])
    if os.environ.get(WORKER_VARIABLE) == digest:
        raise StoreError(f"{connection.url}: a worker of this crew does not act as its conductor or as a person")
    file = key_file(digest)
    try:
        key = _from_environment() or file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        key = ""
    if not key or _digest(key) != digest:
        raise StoreError(
            f"{connection.url}: only its conductor and its operator may do this: the crew's key is neither in {file} nor in"
            f" {KEY_VARIABLE}"
        )
    return key


def key_file(digest: str) -> Path:
    """Return the file of the key with this digest."""
    return user_data_dir() / "crews" / f"{digest[:32]}.key"


def _from_environment() -> str:
    key = os.environ.get(KEY_VARIABLE, "")
    if key and not _KEY.fullmatch(key):
        raise ConfigError(KEY_VARIABLE, "…", f"{KEY_CHARS} hexadecimal digits")
    return key


def _digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()
