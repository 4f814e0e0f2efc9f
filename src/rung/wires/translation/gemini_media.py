"""Media of other wires as parts of Gemini's contents."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import Family, MediaKind
from rung.wires.translation.dropped_names import name_extras
from rung.wires.translation.gemini_parts import guessed_type

if TYPE_CHECKING:
    from rung.wires.translation.conversation import MediaPart

# Gemini needs a media type. These stand for a type that the other wire does not say.
_USUAL_TYPES: Final = {
    MediaKind.IMAGE: "image/jpeg",
    MediaKind.DOCUMENT: "application/pdf",
    MediaKind.AUDIO: "audio/wav",
    MediaKind.VIDEO: "video/mp4",
}
# Gemini rejects a request with data of other types.
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_TAKEN: Final = ("application/pdf", "text/", "audio/", "video/")
_TEXT_TYPES: Final = frozenset({"application/json", "application/xml", "image/svg+xml"})
_ALIASES: Final = {"image/jpg": "image/jpeg"}


def written_media(part: MediaPart, dropped: set[str]) -> dict[str, Any]:
    """Write a media part. What Gemini cannot fetch becomes a text that says so, and is named in `dropped`."""
    if part.detail not in ("", "auto"):
        dropped.add("detail")
    if part.family is not Family.GEMINI:
        name_extras(part.extras, dropped)
    if part.text:
        return {"text": f"{part.name}\n\n{part.text}" if part.name else part.text}
    if part.name:
        dropped.add("filename")  # only Vertex has a name for a file
    if part.data:
        return _inline(part, part.mime_type, part.data, dropped)
    if part.url.startswith("data:"):
        head, _, data = part.url.removeprefix("data:").partition(",")
        return _inline(part, head.partition(";")[0], data, dropped)
    if part.url.startswith(("https://", "gs://")):
        mime = part.mime_type or guessed_type(part.url) or _USUAL_TYPES[part.kind]
        return {"fileData": {"mimeType": mime, "fileUri": part.url}}
    dropped.add("file_id" if part.file_id else f"{part.kind}_url")
    return {"text": placeholder(part)}


def _inline(part: MediaPart, mime_type: str, data: str, dropped: set[str]) -> dict[str, Any]:
    """Write data of a type that Gemini takes; texts of other types as text, and a placeholder for the rest."""
    mime = mime_type.lower() or _USUAL_TYPES[part.kind]
    mime = _ALIASES.get(mime, mime)
    is_taken = mime in _IMAGE_TYPES if mime.startswith("image/") else mime.startswith(_TAKEN)
    if is_taken or part.kind in (MediaKind.AUDIO, MediaKind.VIDEO):
        return {"inlineData": {"mimeType": mime, "data": data}}
    text = _decoded(data) if mime in _TEXT_TYPES else ""
    if text:
        return {"text": f"{part.name}\n\n{text}" if part.name else text}
    dropped.add(part.kind.value)
    return {"text": f"[{part.kind} was left out: {mime}]"}


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def placeholder(part: MediaPart) -> str:
    """Return a text in place of a media part that cannot be sent."""
    return f"[{part.kind}: {part.text or part.url or part.name or 'not available'}]"
