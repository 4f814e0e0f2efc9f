"""Media of any wire, written as Anthropic's image and document blocks. What the API does not take becomes a short text."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

from rung.wires.translation.anthropic_block_writer import write_block
from rung.wires.translation.conversation import Family, MediaKind, MediaPart

if TYPE_CHECKING:
    from collections.abc import Mapping

_IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF: Final = "application/pdf"
_MAX_TITLE: Final = 500  # characters
# The first characters of base64 data show its type. The API rejects an image that has another type than it says.
_SIGNATURES: Final = {
    "/9j/": "image/jpeg",
    "iVBORw": "image/png",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi": _PDF,
}


def write_media(part: MediaPart, dropped: set[str]) -> Mapping[str, Any]:
    """Write an image or a document; a text in its place if the API does not take it."""
    if part.family is Family.ANTHROPIC:
        return write_block(part)
    if part.detail in ("low", "high"):
        dropped.add("detail")
    block = _write(part if part.data else _with_inline_data(part))
    return block if block is not None else left_out(part, dropped)


def left_out(part: MediaPart, dropped: set[str]) -> Mapping[str, Any]:
    """Return a text in the place of media, so that the turn is not empty and the model knows of it."""
    dropped.add(part.kind.value)
    return {"type": "text", "text": f"[{part.kind.value} was left out]"}


def _with_inline_data(part: MediaPart) -> MediaPart:
    """Return the part with the data of its data: URL, if it has one."""
    if not part.url.startswith("data:"):
        return part
    head, _, data = part.url[len("data:") :].partition(",")
    mime, *options = head.split(";")
    if "base64" not in options:
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    return MediaPart(kind=part.kind, mime_type=mime or part.mime_type, data=data, name=part.name)


def _write(part: MediaPart) -> dict[str, Any] | None:
    source = {MediaKind.IMAGE: _image_source, MediaKind.DOCUMENT: _document_source}.get(part.kind, _no_source)(part)
    if source is None:
        return None
    block: dict[str, Any] = {"type": part.kind.value, "source": source}
    if part.kind is MediaKind.DOCUMENT and part.name.strip():
        block["title"] = part.name[:_MAX_TITLE]
    return block


def _no_source(part: MediaPart) -> dict[str, Any] | None:  # noqa: ARG001  # the API takes neither audio nor video
    return None


def _image_source(part: MediaPart) -> dict[str, Any] | None:
    if part.data:
        mime = _found_type(part)
        return {"type": "base64", "media_type": mime, "data": part.data} if mime in _IMAGE_TYPES else None
    return _url_source(part)


def _document_source(part: MediaPart) -> dict[str, Any] | None:
    if part.data and _found_type(part) == _PDF:
        return {"type": "base64", "media_type": _PDF, "data": part.data}
    text = _decoded_text(part) if part.data else part.text
    if text.strip():
        return {"type": "text", "media_type": "text/plain", "data": text}
    return _url_source(part)


def _url_source(part: MediaPart) -> dict[str, Any] | None:
    """Write a URL. The API fetches https URLs only: no gs:// URLs, and no files of other providers."""
    return {"type": "url", "url": part.url} if part.url.startswith("https://") else None


def _found_type(part: MediaPart) -> str:
    found = (mime for start, mime in _SIGNATURES.items() if part.data.startswith(start))
    return next(found, part.mime_type.lower())


def _decoded_text(part: MediaPart) -> str:
    """Return the text of a text file; empty if it is another file."""
    if not part.mime_type.startswith("text/") and part.mime_type != "application/json":
        return ""
    try:
        return base64.b64decode(part.data).decode()
    except (binascii.Error, ValueError):
        return ""
