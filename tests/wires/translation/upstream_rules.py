"""Rules by which providers reject a request, as far as the request alone shows it."""

from __future__ import annotations

from typing import Any

from rung.testing.provider import gemini
from tests.wires.translation import anthropic_rules, chat_rules, responses_rules


def check_request(wire: str, body: dict[str, Any]) -> None:
    """Fail if the provider of this wire would reject the request."""
    if wire == "gemini":
        gemini.parse_request(body, "/v1beta/models/gemini-3-pro:generateContent")
    else:
        {"messages": anthropic_rules, "chat": chat_rules, "responses": responses_rules}[wire].check(body)
