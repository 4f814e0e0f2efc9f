"""Content parts of the Responses API: texts, refusals, images, files and audio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.chat_content_writer import file_name, is_seen_by_openai
from rung.wires.translation.conversation import (
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    RefusalPart,
    TextPart,
)
from rung.wires.translation.dropped_names import name_extras
from rung.wires.wire_json import object_field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ContentPart = TextPart | RefusalPart | MediaPart | ForeignPart

CONTENT_PREFIX: Final = "content."  # of the kind of an unknown part, to tell it from an unknown item
_BREAKPOINT: Final = "prompt_cache_breakpoint"
_FETCHED: Final = ("https://", "http://", "data:image/")
_TEXT_TYPES: Final = frozenset({"input_text", "output_text", "text"})
_AUDIO_TYPES: Final = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_AUDIO_FORMATS: Final = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}
_FILE_TYPES: Final = {".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv"}


def read_content(content: object) -> list[ContentPart]:
    """Read the content of a message: a text, or a list of parts."""
    if isinstance(content, str):
        return [TextPart(text=content)]
    return [read_part(part) for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def read_part(part: Mapping[str, Any]) -> ContentPart:
    """Read one part. A part of an unknown type is kept as it is."""
    kind = str(part.get("type"))
    if kind in _TEXT_TYPES and isinstance(part.get("text"), str):
        return _read_text(part)
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return RefusalPart(text=part["refusal"])
    read = _MEDIA_READERS.get(kind)
    found = read(part) if read is not None else None
    return found or ForeignPart(family=Family.RESPONSES, block=part, kind=f"{CONTENT_PREFIX}{kind}")


def _read_text(part: Mapping[str, Any]) -> TextPart:
    if len(part) == 2:  # noqa: PLR2004  # type and text, as nearly always
        return TextPart(text=part["text"])
    extras = {name: part[name] for name in ("annotations", "logprobs") if part.get(name)}
    cache = part.get(_BREAKPOINT)
    if not extras and cache is None:
        return TextPart(text=part["text"])
    return TextPart(text=part["text"], extras=extras, cache=cache, family=Family.RESPONSES)


def _read_image(part: Mapping[str, Any]) -> MediaPart | None:
    url, file_id = part.get("image_url"), part.get("file_id")
    if isinstance(url, str) and url:
        mime_type, data = split_data_url(url)
        return _media(part, MediaKind.IMAGE, mime_type=mime_type, data=data, url="" if data else url)
    return _media(part, MediaKind.IMAGE, file_id=file_id) if isinstance(file_id, str) and file_id else None


def _read_file(part: Mapping[str, Any]) -> MediaPart | None:
    name = part.get("filename")
    name = name if isinstance(name, str) else ""
    data, url, file_id = part.get("file_data"), part.get("file_url"), part.get("file_id")
    if isinstance(data, str) and data:
        mime_type, found = split_data_url(data)
        guess = _FILE_TYPES.get(name[name.rfind(".") :].lower(), "") if "." in name else ""
        return _media(part, MediaKind.DOCUMENT, mime_type=mime_type or guess, data=found or data, name=name)
    if isinstance(url, str) and url:
        return _media(part, MediaKind.DOCUMENT, url=url, name=name)
    return (
        _media(part, MediaKind.DOCUMENT, file_id=file_id, name=name) if isinstance(file_id, str) and file_id else None
    )


def _read_audio(part: Mapping[str, Any]) -> MediaPart | None:
    audio = object_field(part, "input_audio")
    data, form = audio.get("data"), audio.get("format")
    if not isinstance(data, str) or not data or not isinstance(form, str):
        return None
    return _media(part, MediaKind.AUDIO, mime_type=_AUDIO_TYPES.get(form, f"audio/{form}"), data=data)


_MEDIA_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], MediaPart | None]]] = {
    "input_image": _read_image,
    "input_file": _read_file,
    "input_audio": _read_audio,
}


def _media(part: Mapping[str, Any], kind: MediaKind, **fields: Any) -> MediaPart:
    detail = part.get("detail")
    return MediaPart(
        kind=kind,
        detail=detail if isinstance(detail, str) else "",
        cache=part.get(_BREAKPOINT),
        family=Family.RESPONSES,
        **fields,
    )


def split_data_url(url: str) -> tuple[str, str]:
    """Return the type and the base64 data of a data URL, or two empty strings for anything else."""
    if not url.startswith("data:"):
        return "", ""
    head, _, data = url.partition(",")
    mime_type, _, encoding = head[5:].rpartition(";")
    return (mime_type, data) if encoding == "base64" else ("", "")


def write_part(part: ContentPart, dropped: set[str], *, is_own: bool, is_output: bool = False) -> dict[str, Any] | None:
    """Write one part, or name in `dropped` what it cannot say; `is_output` is a part of the assistant's message."""
    if isinstance(part, RefusalPart):
        return {"type": "refusal", "refusal": part.text}
    if isinstance(part, ForeignPart):
        if is_own and part.family is Family.RESPONSES:
            return dict(part.block)
        dropped.add(part.kind)
        return None
    if isinstance(part, TextPart):
        found = _text(part.text, is_output=is_output)
    else:
        found = _write_media(part, is_output) or left_out(part, dropped, is_output=is_output)
    if part.extras or part.cache is not None:
        _add_own_fields(found, part, dropped, is_own=is_own)
    return found


def _add_own_fields(found: dict[str, Any], part: TextPart | MediaPart, dropped: set[str], *, is_own: bool) -> None:
    if part.cache is not None:
        if is_own:
            found[_BREAKPOINT] = part.cache
        else:
            dropped.add("cache_control")
    if part.family is Family.RESPONSES:
        found.update(part.extras)
    else:
        name_extras(part.extras, dropped)


def left_out(part: MediaPart, dropped: set[str], *, is_output: bool = False) -> dict[str, Any]:
    """Return the text that stands for media that cannot be said, and name them."""
    dropped.add("file_id" if part.file_id else part.kind.value)
    name = f" {part.name}" if part.name else ""
    return _text(f"[{part.kind.value}{name} was left out]", is_output=is_output)


def _text(text: str, *, is_output: bool) -> dict[str, Any]:
    return {"type": "output_text" if is_output else "input_text", "text": text}


def _write_media(part: MediaPart, is_output: bool) -> dict[str, Any] | None:  # noqa: FBT001  # one caller
    if part.text:
        return _text(f"{part.name}\n{part.text}" if part.name else part.text, is_output=is_output)
    if is_output or (part.file_id and part.family is not Family.RESPONSES):
        return None
    if part.kind is MediaKind.IMAGE:
        return _write_image(part) if _can_show(part) else None
    if part.kind is MediaKind.DOCUMENT:
        return _write_file(part) if part.file_id or part.url or part.data else None
    form = _AUDIO_FORMATS.get(part.mime_type)
    if part.kind is not MediaKind.AUDIO or form is None or not part.data:
        return None
    return {"type": "input_audio", "input_audio": {"data": part.data, "format": form}}


def _can_show(part: MediaPart) -> bool:
    """Return whether the provider can fetch and see an image. A request of this wire is left to it."""
    if part.family is Family.RESPONSES:
        return True
    return is_seen_by_openai(part.mime_type) if part.data else part.url.startswith(_FETCHED)


def _write_image(part: MediaPart) -> dict[str, Any]:
    mime_type = part.mime_type if part.mime_type.startswith("image/") else "image/png"
    source = (
        {"file_id": part.file_id}
        if part.file_id
        else {"image_url": f"data:{mime_type};base64,{part.data}" if part.data else part.url}
    )
    return {"type": "input_image", **source} | ({"detail": part.detail} if part.detail else {})


def _write_file(part: MediaPart) -> dict[str, Any]:
    name = {"filename": part.name} if part.name else {}
    detail = {"detail": part.detail} if part.detail else {}
    if part.file_id:
        return {"type": "input_file", "file_id": part.file_id, **name, **detail}
    if part.url:
        return {"type": "input_file", "file_url": part.url, **detail}
    is_bare = not part.mime_type and part.family is Family.RESPONSES  # as some clients send it
    data = part.data if is_bare else f"data:{part.mime_type or 'application/pdf'};base64,{part.data}"
    file = part.name if part.name and part.family is Family.RESPONSES else file_name(part)
    return {"type": "input_file", "filename": file, "file_data": data, **detail}
