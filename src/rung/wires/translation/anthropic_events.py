"""Event streams of Anthropic's Messages API: their reader and their writer."""

from __future__ import annotations

from rung.wires.translation.anthropic_event_reader import AnthropicStreamReader
from rung.wires.translation.anthropic_event_writer import AnthropicStreamWriter

__all__ = ["AnthropicStreamReader", "AnthropicStreamWriter"]
