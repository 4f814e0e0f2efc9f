"""Registry of the translators, by the name of their wire format. Each is loaded when it is first used."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rung.wires.translation.format import WireTranslator

TRANSLATED_WIRES: Final = ("messages", "chat", "responses", "gemini")


@cache
def translator_of(wire: str) -> WireTranslator:
    """Return the translator of a wire format. A gateway that never translates does not load any: they are large."""
    match wire:
        case "messages":
            from rung.wires.translation.anthropic import ANTHROPIC_TRANSLATOR

            return ANTHROPIC_TRANSLATOR
        case "chat":
            from rung.wires.translation.chat import CHAT_TRANSLATOR

            return CHAT_TRANSLATOR
        case "responses":
            from rung.wires.translation.responses import RESPONSES_TRANSLATOR

            return RESPONSES_TRANSLATOR
        case "gemini":
            from rung.wires.translation.gemini import GEMINI_TRANSLATOR

            return GEMINI_TRANSLATOR
    raise LookupError(f"no translator of the wire format {wire!r}")
