"""Size of media: base64 of images and documents is not counted as text."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.conversation.compaction import compact_messages, count_characters, estimate_tokens
from rung.core.conversation.media_size import media_excess

DATA = "iVBORw0KGgo" * 40_000
IMAGE_TOKENS = 1_600
PARTS: dict[str, Any] = {
    "messages": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
    "chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
    "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
    "gemini": {"inlineData": {"mimeType": "image/png", "data": DATA}},
    "gemini-snake": {"inline_data": {"mime_type": "image/png", "data": DATA}},
    "result": {"type": "tool_result", "content": [{"source": {"media_type": "image/png", "data": DATA}}]},
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_an_image_is_counted_as_one(part: dict[str, Any]) -> None:
    """An image takes about as many tokens as providers count for it, however long its base64 is."""
    talk = [{"role": "user", "content": [part, {"type": "text", "text": "What is this?"}]}]
    assert IMAGE_TOKENS <= estimate_tokens(talk) <= IMAGE_TOKENS + 100


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA}},
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{DATA}"}},
        {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
    ],
    ids=["document", "file", "audio"],
)
def test_a_document_is_counted_by_its_size(part: dict[str, Any]) -> None:
    """A document or recording takes some tokens for each kilobyte: many fewer than its base64 would as text."""
    assert len(DATA) / 100 < estimate_tokens([part]) < len(DATA) / 40


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": DATA}},
        {"type": "text", "text": DATA},
        {"type": "tool_use", "input": {"data": DATA}},
    ],
)
def test_text_is_counted_as_text(part: dict[str, Any]) -> None:
    """A document of plain text, a text, and an argument of a call that is named `data` are counted by their characters."""
    assert media_excess(part) == 0
    assert estimate_tokens([part]) > len(DATA) / 5


def test_an_image_does_not_cost_the_conversation() -> None:
    """A history that fits beside its image is not compacted because of the image's base64."""
    talk: list[dict[str, Any]] = [{"role": "user", "content": [PARTS["messages"]]}]
    talk += [*({"role": "user", "content": "word " * 100},) * 20]
    assert count_characters(talk) < 20_000
    assert compact_messages(talk, 20_000) == talk
