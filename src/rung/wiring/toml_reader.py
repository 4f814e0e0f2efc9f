"""TOML files: read and parsed; each error is one line that names the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from rung.core.domain.errors import FileError


def read_table(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; raise FileError if it cannot be read or parsed."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    return parse_table(path, content)


def parse_table(path: str | Path, content: bytes) -> dict[str, Any]:
    """Parse the content of a TOML file; raise FileError if it is not valid."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}") from None
    except RecursionError:
        raise FileError(path, "is nested too deeply") from None
    except ValueError as error:  # also an integer with too many digits
        raise FileError(path, f"is not TOML: {error}") from None
