"""Seals texts of a journal that contain secrets, under a key that is not in the journal.

The key is a file of this account, made when it is first needed, or the environment variable RUNG_JOURNAL_KEY where
several machines share a journal. A sealed text is `sealed:1:KEY ID:BASE64`, which is no JSON: 16 random bytes, the text
encrypted with the SHAKE-256 key stream of the key and these bytes, and an HMAC-SHA-256 tag over all of it and over the
place of the text. A changed, truncated or moved text is rejected.
"""

from __future__ import annotations

import hmac
import os
from binascii import a2b_base64, b2a_base64
from functools import cached_property
from hashlib import sha256, shake_256
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.redaction import redacted
from rung.core.domain.errors import ConfigError, SealedElsewhere, StoreDamaged, StoreError
from rung.store.user_data import user_data_dir

if TYPE_CHECKING:
    from pathlib import Path

KEY_VARIABLE: Final = "RUNG_JOURNAL_KEY"
MIN_KEY_CHARS: Final = 16
PREFIX: Final = "sealed:1:"
_NONCE_BYTES: Final = 16
_TAG_BYTES: Final = 32


class _Keys(NamedTuple):
    """Keys derived from the secret, and the name by which a sealed text tells which secret it needs."""

    id: str
    encryption: bytes
    authentication: bytes


class JournalKey:
    """Key of this account for sealed texts. It is read, or made, when the first text needs it."""

    def protect(self, text: str, place: str) -> str:
        """Return the text as it may be stored: sealed if it contains a secret that redaction recognizes."""
        return text if redacted(text) is text else self.seal(text, place)

    def reveal(self, stored: str, place: str) -> str:
        """Return the text of a stored one; raise SealedElsewhere if it was sealed under another key."""
        return self.unseal(stored, place) if stored.startswith(PREFIX) else stored

    def seal(self, text: str, place: str) -> str:
        """Seal a text for one place, such as a step of a run."""
        keys = self._own_keys
        nonce = os.urandom(_NONCE_BYTES)
        secret = nonce + _encrypted(text.encode("utf-8", "surrogatepass"), keys, nonce)
        data = b2a_base64(secret + _tag(keys, place, secret), newline=False).decode()
        return f"{PREFIX}{keys.id}:{data}"

    def unseal(self, sealed: str, place: str) -> str:
        """Return the text of a sealed one."""
        key_id, _, encoded = sealed.removeprefix(PREFIX).partition(":")
        keys = self._existing_keys
        if keys is None or keys.id != key_id:
            raise SealedElsewhere(place, str(key_file()), KEY_VARIABLE)
        try:
            data = a2b_base64(encoded)
        except ValueError:  # no base64
            data = b""
        secret, tag = data[:-_TAG_BYTES], data[-_TAG_BYTES:]
        if not hmac.compare_digest(tag, _tag(keys, place, secret)):
            raise StoreDamaged(f"{place}: the sealed text was changed, or moved from another place")
        nonce = secret[:_NONCE_BYTES]
        return _encrypted(secret[_NONCE_BYTES:], keys, nonce).decode("utf-8", "surrogatepass")

    @cached_property
    def _own_keys(self) -> _Keys:
        return _derive(_from_environment() or _read() or _create())

    @property
    def _existing_keys(self) -> _Keys | None:
        if "_own_keys" not in self.__dict__ and not (_from_environment() or _read()):
            return None
        return self._own_keys


def key_file() -> Path:
    """Return the file of this account's key."""
    return user_data_dir() / "journal.key"


def _derive(secret: str) -> _Keys:
    parts = (hmac.digest(secret.encode(), f"rung journal {use}".encode(), "sha256") for use in ("id", "data", "tag"))
    name, encryption, authentication = parts
    return _Keys(name.hex()[:16], encryption, authentication)


def _encrypted(data: bytes, keys: _Keys, nonce: bytes) -> bytes:
    """Return the data combined with the key stream, which encrypts and decrypts."""
    stream = shake_256(keys.encryption + nonce).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))


def _tag(keys: _Keys, place: str, secret: bytes) -> bytes:
    return hmac.digest(keys.authentication, sha256(place.encode("utf-8", "surrogatepass")).digest() + secret, "sha256")


def _from_environment() -> str:
    secret = os.environ.get(KEY_VARIABLE, "")
    if secret and len(secret) < MIN_KEY_CHARS:
        raise ConfigError(KEY_VARIABLE, "…", f"at least {MIN_KEY_CHARS} random characters")
    return secret


def _read() -> str:
    """Return the secret in the key file; empty if there is none. One that others can read is an error."""
    file = key_file()
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            secret = opened.read(1_000).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"{file}: the journal's key cannot be read: {error.strerror}; or set {KEY_VARIABLE}") from None
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
        raise StoreError(f"{file}: the journal's key must belong to this account, and nobody else may read it (0600)")
    if len(secret) < MIN_KEY_CHARS:
        raise StoreError(f"{file}: the journal's key is damaged: restore it, or remove it to make a new one")
    return secret


def _create() -> str:
    """Make the key file and return its secret. If another process makes it at the same time, one secret counts."""
    import secrets
    from contextlib import suppress

    file = key_file()
    new = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(f"{secrets.token_urlsafe(32)}\n")
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(new, file)  # unlike a rename, it never replaces a key that is in use
        new.unlink()
    except OSError as error:
        raise StoreError(
            f"{file}: the journal's key cannot be stored: {error.strerror}; or set {KEY_VARIABLE}"
        ) from None
    return _read()
