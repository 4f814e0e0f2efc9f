"""TOML documents from untrusted sources: parsed within limits on size, nesting and numbers.

The standard parser takes quadratic time for long dotted keys, recurses into arrays and inline tables, and reads
integers of any size.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

MAX_TOML_BYTES: Final = 1_000_000
MAX_TOML_DEPTH: Final = 32  # of tables and arrays, and of a dotted key
# Every alternative matches wherever it begins, closed or not, so that the scan takes linear time.
_STRING_OR_COMMENT: Final = re.compile(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+(?:""")?|"(?:[^"\\\n]++|\\.)*+"?|'''
    r"""'''(?:[^']++|'(?!''))*+(?:''')?|'[^'\n]*+'?|#[^\n]*+""",
    re.DOTALL,
)
_KEY_ENDS: Final = re.compile(r"[\n=\[\]{},]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BLANKS: Final = str.maketrans("", "", " \t")


class TomlError(ValueError):
    """A document is no TOML, or exceeds a limit; the message says where or which."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML document; raise TomlError."""
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_TOML_BYTES:
        raise TomlError(f"it has {size:,} bytes; the limit is {MAX_TOML_BYTES:,}")
    without_strings = _STRING_OR_COMMENT.sub("k", text).translate(_BLANKS)
    if any(key.count(".") >= MAX_TOML_DEPTH for key in _KEY_ENDS.split(without_strings)):
        raise TomlError(_TOO_DEEP)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise TomlError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from None
    except ValueError:  # Python converts no integer of thousands of digits
        raise TomlError(_TOO_LARGE) from None
    check_document(table)
    return table


_TOO_DEEP: Final = f"it is nested too deeply; the limit is {MAX_TOML_DEPTH} levels"
_TOO_LARGE: Final = "an integer does not fit into 64 bits"


def check_document(table: dict[str, Any]) -> None:
    """Reject what a TOML document cannot hold or we do not accept, also in tables from JSON.

    These are deep nesting, integers beyond 64 bits, and texts with half a surrogate pair.
    """
    level: list[Any] = [table]
    for _ in range(MAX_TOML_DEPTH + 1):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value)
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise TomlError(_TOO_LARGE)
            elif isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
                raise TomlError("a text is not valid Unicode")
        level = inner
    if level:
        raise TomlError(_TOO_DEEP)
