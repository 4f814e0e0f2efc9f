"""Media of other wires as parts of Gemini's contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import MediaKind
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


def written_media(part: MediaPart, dropped: set[str]) -> dict[str, Any]:
    """Write a media part. What Gemini cannot fetch becomes a text that says so, and is named in `dropped`."""
    if part.detail not in ("", "auto"):
        dropped.add("detail")
    if part.text:
        return {"text": f"{part.name}\n\n{part.text}" if part.name else part.text}
    if part.name:
        dropped.add("filename")  # only Vertex has a name for a file
    if part.data:
        return _inline(part.mime_type or _USUAL_TYPES[part.kind], part.data)
    if part.url.startswith("data:"):
        head, _, data = part.url.removeprefix("data:").partition(",")
        return _inline(head.partition(";")[0] or _USUAL_TYPES[part.kind], data)
    if part.url.startswith(("https://", "gs://")):
        mime = part.mime_type or guessed_type(part.url) or _USUAL_TYPES[part.kind]
        return {"fileData": {"mimeType": mime, "fileUri": part.url}}
    dropped.add("file_id" if part.file_id else f"{part.kind}_url")
    return {"text": placeholder(part)}


def _inline(mime_type: str, data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime_type, "data": data}}


def placeholder(part: MediaPart) -> str:
    """Return a text in place of a media part that cannot be sent."""
    return f"[{part.kind}: {part.text or part.url or part.name or 'not available'}]"
