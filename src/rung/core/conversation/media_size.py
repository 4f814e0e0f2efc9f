"""Size of images and documents in a conversation: models do not read their base64 as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CHARACTERS_PER_TOKEN: Final = 4
_IMAGE_CHARACTERS: Final = 1_600 * CHARACTERS_PER_TOKEN  # the most tokens that providers count for an image, roughly
# Of base64 for one token of a document, a recording or a video. PDF files: about 2,000 tokens for a page of 100 KB.
_BASE64_PER_TOKEN: Final = 50
_MIN_BASE64: Final = 256
_URL_HEAD: Final = 200  # characters of a data URL within which its data begins
_TYPE_NAMES: Final = ("media_type", "mimeType", "mime_type", "format")


def media_excess(value: Any) -> int:
    """Return how many characters the media in a JSON value have beyond the text that takes as many tokens."""
    if isinstance(value, str):
        return _excess_of_url(value)
    if isinstance(value, Mapping):
        kind = next((str(value[name]) for name in _TYPE_NAMES if isinstance(value.get(name), str)), "")
        return sum(
            _excess(item, kind) if name == "data" and isinstance(item, str) and kind else media_excess(item)
            for name, item in value.items()
        )
    return sum(map(media_excess, value)) if isinstance(value, list | tuple) else 0


def _excess_of_url(text: str) -> int:
    if not text.startswith("data:") or ";base64," not in text[:_URL_HEAD]:
        return 0
    return _excess(text, text[len("data:") : _URL_HEAD])


def _excess(data: str, kind: str) -> int:
    """Return the excess of base64 of this media type. What is a text is counted as one."""
    if kind.startswith("text/") or len(data) < _MIN_BASE64:
        return 0
    if kind.startswith("image/"):
        return max(0, len(data) - _IMAGE_CHARACTERS)
    return len(data) - CHARACTERS_PER_TOKEN * len(data) // _BASE64_PER_TOKEN
