"""Writer of the content of Chat Completions messages. What the wire cannot say is replaced by a short text."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_content import ITEM, Json, audio_format, form_of, is_plain_text
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
)
from rung.wires.translation.dropped_names import name_extras

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rung.wires.translation.conversation import Part

_PDF: Final = "application/pdf"
_FETCHED: Final = ("https://", "http://", "data:image/")  # images that OpenAI can fetch
_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"})
_EXTENSIONS: Final = {
    _PDF: ".pdf", "text/plain": ".txt", "text/markdown": ".md", "text/csv": ".csv", "text/html": ".html",
    "application/json": ".json", "application/xml": ".xml",
}  # fmt: skip
_AUDIO_FORMATS: Final = frozenset({"wav", "mp3"})  # OpenAI's models hear no others


def is_seen_by_openai(mime_type: str) -> bool:
    """Return whether OpenAI's models see images of a type, or the type is not known."""
    return not mime_type.startswith("image/") or mime_type.lower() in _IMAGE_TYPES


class ChatContentWriter:
    """Writes content items. A conversation of the same family keeps the fields that only this family knows."""

    def __init__(self, *, is_own: bool) -> None:
        self.is_own = is_own
        self.dropped: set[str] = set()

    def content(self, parts: Sequence[Part]) -> str | list[Any]:
        """Return one plain text as a string, and all else as a list. Texts of other families are joined.

        Many servers with a compatible API take text only as a string.
        """
        if len(parts) == 1 and isinstance(parts[0], TextPart) and is_plain_text(parts[0]):
            return parts[0].text
        items = self.items(parts)
        if self.is_own or any(item["type"] != "text" for item in items):
            return items
        return "\n\n".join(item["text"] for item in items if item["text"])

    def items(self, parts: Iterable[Part]) -> list[Any]:
        """Return the content items of these parts."""
        items = [self.item(part) for part in parts]
        return [item for item in items if item is not None]

    def item(self, part: Part) -> Any:
        """Return one content item; None for a part that has none."""
        match part:
            case TextPart():
                return self._with_own_fields({"type": "text", "text": part.text}, part, "text")
            case RefusalPart():
                return {"type": "refusal", "refusal": part.text}
            case MediaPart():
                return self._media(part)
            case ReasoningPart() if self.is_own and "type" in part.block:
                return part.block
            case ForeignPart() if self.is_own and part.family is Family.CHAT:
                return part.block[ITEM] if part.kind == ITEM else part.block
            case ForeignPart():
                self.dropped.add(part.kind)
            case ReasoningPart():
                self.dropped.add("reasoning")
        return None

    def note_extras(self, extras: Mapping[str, Any], family: Family | None) -> None:
        """Name the fields that only another family has."""
        if extras and family is not Family.CHAT:
            name_extras(extras, self.dropped)

    def _with_own_fields(self, item: Json, part: TextPart | MediaPart, name: str) -> Json:
        if part.cache is not None and self.is_own:
            item["cache_control"] = part.cache
        elif part.cache is not None:
            self.dropped.add("cache_control")
        if self.is_own and part.family is Family.CHAT:
            item |= part.extras
            if name != "text" and (inner := form_of(part.extras)):
                item[name] = {**item[name], **inner}
        else:
            self.note_extras(part.extras, part.family)
        return item

    def _media(self, part: MediaPart) -> Json:
        match part.kind:
            case MediaKind.IMAGE if (part.data and self._can_see(part)) or self._can_fetch(part.url):
                image = {"url": _source(part)} | ({"detail": part.detail} if part.detail else {})
                return self._with_own_fields({"type": "image_url", "image_url": image}, part, "image_url")
            case MediaKind.AUDIO if part.data and self._can_hear(part):
                audio = {"data": part.data, "format": audio_format(part.mime_type)}
                return self._with_own_fields({"type": "input_audio", "input_audio": audio}, part, "input_audio")
            case MediaKind.DOCUMENT:
                return self._document(part)
            case _:
                return self._placeholder(part.kind, part)

    def _can_fetch(self, url: str) -> bool:
        return bool(url) and (self.is_own or url.startswith(_FETCHED))

    def _can_see(self, part: MediaPart) -> bool:
        return self.is_own or is_seen_by_openai(part.mime_type)

    def _can_hear(self, part: MediaPart) -> bool:
        return self.is_own or audio_format(part.mime_type) in _AUDIO_FORMATS

    def _document(self, part: MediaPart) -> Json:
        text = part.text or _decoded_text(part)
        if text and not self.is_own:
            self.note_extras(part.extras, part.family)
            titled = TextPart(text=f"{part.name}:\n\n{text}" if part.name else text, cache=part.cache)
            return self._with_own_fields({"type": "text", "text": titled.text}, titled, "text")
        if part.url and not self.is_own:
            return self._placeholder("document_url", part)
        if part.file_id and not (self.is_own and part.family is Family.CHAT):
            return self._placeholder("file_id", part)
        is_bare = self.is_own and not part.mime_type and not part.url  # as some clients send it
        file = {"file_id": part.file_id} if part.file_id else {"file_data": part.data if is_bare else _source(part)}
        name = part.name if self.is_own else file_name(part)
        return self._with_own_fields(
            {"type": "file", "file": file | ({"filename": name} if name else {})}, part, "file"
        )

    def _placeholder(self, name: str, part: MediaPart) -> Json:
        self.dropped.add(name)
        label = part.url or part.name or part.file_id
        return {
            "type": "text",
            "text": f"[{part.kind} not included: {label}]" if label else f"[{part.kind} not included]",
        }


def _source(part: MediaPart) -> str:
    if part.url:
        return part.url
    is_image = part.kind is MediaKind.IMAGE
    is_typed = part.mime_type.startswith("image/") if is_image else bool(part.mime_type)
    usual_type = "image/png" if is_image else _PDF
    return f"data:{part.mime_type if is_typed else usual_type};base64,{part.data}"


def _decoded_text(part: MediaPart) -> str:
    """Return the text of a text document. OpenAI's models take no text files, only PDFs."""
    if not part.data or not (part.mime_type.startswith("text/") or part.mime_type == "application/json"):
        return ""
    try:
        return base64.b64decode(part.data).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def file_name(part: MediaPart) -> str:
    """Return the name of a file. OpenAI knows the type of file data by the extension, and rejects a name without one."""
    extension = _EXTENSIONS.get(part.mime_type.lower() or _PDF, "")
    name = part.name or "document"
    return name if name.lower().endswith(extension) else name + extension


def join_text(parts: Iterable[Part]) -> str:
    """Join the texts of an answer. Texts that follow each other are one text; others get a blank line between them."""
    text, is_apart = "", False
    for part in parts:
        if isinstance(part, TextPart):
            text += "\n\n" + part.text if is_apart and text and part.text else part.text
            is_apart = False
        else:
            is_apart = True
    return text
