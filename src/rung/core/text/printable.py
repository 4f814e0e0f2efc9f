r"""Make text from elsewhere safe to show on a terminal or to put into a prompt: remove its control sequences.

    text                              result
    plain text, tabs and line breaks  unchanged, the same object
    \x1b[2J, \x1b]52;c;…\x07           removed: a complete sequence (clear the screen, set the clipboard)
    \x1b, \x07, \r without \n, \x9b    shown as \u001b, \u0007, \u000d, \u009b
    U+202E (text from right to left)  shown as \u202e

The shown form is also valid inside a JSON string.
"""

from __future__ import annotations

import re
from typing import Final

# A complete CSI, OSC, DCS, SOS, PM, APC or two-character sequence; of an unterminated string only its introducer.
_SEQUENCE: Final = r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[ -/]*+[0-~])"
# All other control characters but tab and line break, and those that reorder the text around them.
_CONTROL: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069]|\r(?!\n)"
_UNSAFE: Final = re.compile(f"{_SEQUENCE}|{_CONTROL}")
# Visible styles: reset, bold, dim, italic, underlined, their ends, and colours other than black and white.
_CODE: Final = r"(?:[01234]|2[234]|3[1-69]|9[1-6])?"
_STYLE: Final = re.compile(rf"\x1b\[{_CODE}(?:;{_CODE})*m")


def printable(text: str) -> str:
    """Return the text without control sequences; the same object if it has none."""
    return _UNSAFE.sub(_shown, text)


def printable_with_styles(text: str) -> str:
    """Return the text without control sequences other than visible styles, such as bold and red."""
    return _UNSAFE.sub(lambda found: found[0] if _STYLE.fullmatch(found[0]) else _shown(found), text)


def _shown(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}" if len(found[0]) == 1 else ""
