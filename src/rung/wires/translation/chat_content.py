"""Reader of the content of Chat Completions messages: text, images, audio and files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import (
    NOTHING,
    Family,
    ForeignPart,
    MediaKind,
    MediaPart,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
)
from rung.wires.wire_json import object_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Json = dict[str, Any]

NO_FORM: Final[Mapping[str, Any]] = {}
ITEM: Final = "item"  # kind of a content item that is no object; its block has it under this name
_MAX_DATA_URL_HEADER: Final = 128
_MIME_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+").fullmatch
_AUDIO_MIME_TYPES: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_FORMATS: Final = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-mp3": "mp3"}


class ChatFields(dict[str, Any]):
    """Other fields of an object. `form` says how the wire wrote those that the neutral shape has, where it has a choice.

    The form is no content: other wires do not see it, and do not name it as dropped.
    """

    __slots__ = ("form",)

    def __init__(self, fields: Mapping[str, Any], form: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.form = form


def form_of(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the form that the reader of this wire noted."""
    return extras.form if isinstance(extras, ChatFields) else NO_FORM


def read_content(content: object) -> tuple[Part, ...]:
    """Return the parts of a message's content. Empty text has no part."""
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    return tuple(map(_read_item, content)) if isinstance(content, list) else ()


def is_usual_form(content: object) -> bool:
    """Return whether the writer gives this content for its parts: one plain text as a string, all else as a list."""
    if isinstance(content, str):
        return bool(content)
    if not isinstance(content, list) or not content:
        return False
    is_plain = isinstance(content[0], dict) and len(content[0]) == 2 and content[0].get("type") == "text"  # noqa: PLR2004
    return len(content) > 1 or not is_plain


def is_plain_text(part: Part) -> bool:
    """Return whether a part is text without further fields."""
    return isinstance(part, TextPart) and part.cache is None and part.family is None


def other_fields(item: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    """Return the fields of an object without the known ones."""
    return {key: value for key, value in item.items() if key not in known} or NOTHING


def split_data_url(url: str) -> tuple[str, str]:
    """Return the MIME type and the base64 text of a data: URL; two empty strings if it is not one."""
    if not url.startswith("data:"):
        return "", ""
    end = url.find(";base64,", 5, _MAX_DATA_URL_HEADER)
    mime_type = url[5:end] if end > 0 else ""
    return (mime_type, url[end + 8 :]) if _MIME_TYPE(mime_type) else ("", "")


def audio_format(mime_type: str) -> str:
    """Return the name by which the wire knows the format of an audio MIME type, such as wav or mp3."""
    name = mime_type.removeprefix("audio/")
    return _AUDIO_FORMATS.get(name, name)


def cache_of(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the cache breakpoint that OpenRouter and LiteLLM accept."""
    cache = item.get("cache_control")
    return cache if isinstance(cache, dict) else None


def _read_item(item: object) -> Part:
    if not isinstance(item, dict):
        return ForeignPart(family=Family.CHAT, kind=ITEM, block={ITEM: item})
    kind = item.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    part = reader(item) if reader is not None else None
    return part or ForeignPart(family=Family.CHAT, kind=str(kind), block=item)


def _read_text(item: Json) -> TextPart | None:
    text = item.get("text")
    if not isinstance(text, str):
        return None
    if len(item) == 2:  # noqa: PLR2004  # type and text
        return TextPart(text=text)
    cache, extras = _fields(item, "text")
    return TextPart(text=text, cache=cache, extras=extras, family=Family.CHAT if extras else None)


def _read_refusal(item: Json) -> RefusalPart | None:
    text = item.get("refusal")
    return RefusalPart(text=text) if isinstance(text, str) else None


def _read_thinking(item: Json) -> ReasoningPart:
    """Read the reasoning of Mistral's models, which is a list of text items."""
    texts = object_list(item, "thinking")
    return ReasoningPart(family=Family.CHAT, block=item, text="".join(str(text.get("text") or "") for text in texts))


def _read_image(item: Json) -> MediaPart | None:
    image = item.get("image_url")
    image = {"url": image} if isinstance(image, str) else image  # some clients write the URL alone
    url = image.get("url") if isinstance(image, dict) else None
    if not isinstance(image, dict) or not isinstance(url, str) or not url:
        return None
    detail = image.get("detail")
    detail = detail if isinstance(detail, str) else ""
    mime_type, data = split_data_url(url)
    rest = other_fields(image, "url", "detail") if detail else other_fields(image, "url")
    cache, extras = _fields(item, "image_url", rest)
    return MediaPart(
        kind=MediaKind.IMAGE,
        mime_type=mime_type,
        data=data,
        url="" if data else url,
        detail=detail,
        cache=cache,
        extras=extras,
        family=Family.CHAT,
    )


def _read_audio(item: Json) -> MediaPart | None:
    audio = item.get("input_audio")
    data = audio.get("data") if isinstance(audio, dict) else None
    name = audio.get("format") if isinstance(audio, dict) else None
    if not isinstance(audio, dict) or not isinstance(data, str) or not data or not isinstance(name, str):
        return None
    mime_type = _AUDIO_MIME_TYPES.get(name, f"audio/{name}")
    rest = other_fields(audio, "data", "format") if audio_format(mime_type) == name else other_fields(audio, "data")
    cache, extras = _fields(item, "input_audio", rest)
    return MediaPart(
        kind=MediaKind.AUDIO, mime_type=mime_type, data=data, cache=cache, extras=extras, family=Family.CHAT
    )


def _read_file(item: Json) -> MediaPart | None:
    """Read a file. Its data is a data: URL or bare base64; OpenRouter also takes a URL."""
    file = item.get("file")
    fields = {key: value for key, value in file.items() if isinstance(value, str)} if isinstance(file, dict) else {}
    source, file_id, name = fields.get("file_data", ""), fields.get("file_id", ""), fields.get("filename", "")
    mime_type, data = split_data_url(source)
    url = source if source.startswith(("https:", "http:", "data:")) and not data else ""
    known = [key for key, value in (("file_data", source), ("filename", name)) if value]
    if not source and file_id:
        known.append("file_id")
    elif not source:
        return None
    if source and not data and not url:
        mime_type, data = ("application/pdf" if name.lower().endswith(".pdf") else ""), source
        known.remove("file_data")  # it is written back as it came
    cache, extras = _fields(item, "file", other_fields(item["file"], *known))
    return MediaPart(
        kind=MediaKind.DOCUMENT,
        mime_type=mime_type,
        data=data,
        url=url,
        file_id="" if source else file_id,
        name=name,
        cache=cache,
        extras=extras,
        family=Family.CHAT,
    )


def _fields(
    item: Json, name: str, inner: Mapping[str, Any] = NOTHING
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
    """Return the cache breakpoint of a content item, and its other fields. Those of its inner object are the form."""
    cache = cache_of(item)
    outer = other_fields(item, "type", name) if cache is None else other_fields(item, "type", name, "cache_control")
    return cache, (ChatFields(outer, inner) if inner else outer)


_READERS: Final[Mapping[str, Callable[[Json], Part | None]]] = {
    "text": _read_text,
    "refusal": _read_refusal,
    "thinking": _read_thinking,
    "image_url": _read_image,
    "input_audio": _read_audio,
    "file": _read_file,
}
