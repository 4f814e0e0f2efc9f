"""TOML files: read and parsed within limits; each error is one line that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rung.core.domain.errors import FileError
from rung.core.text.toml_document import MAX_TOML_BYTES, TomlError, parse_toml


def read_table(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; raise FileError if it cannot be read or parsed."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_TOML_BYTES + 1)
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    return parse_table(path, content)


def parse_table(path: str | Path, content: bytes) -> dict[str, Any]:
    """Parse the content of a TOML file; raise FileError if it is not valid."""
    if len(content) > MAX_TOML_BYTES:
        raise FileError(path, f"is too large; the limit is {MAX_TOML_BYTES:,} bytes")
    try:
        return parse_toml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}") from None
    except TomlError as error:
        raise FileError(path, f"is not TOML: {error}") from None
