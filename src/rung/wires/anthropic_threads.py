"""Threads of Anthropic's Messages API: a conversation that the provider holds, so that a request has its last turn only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# Code of an error by which Anthropic's SDKs send the whole conversation again, under a new thread.
THREAD_NOT_FOUND: Final = "thread_not_found"


def continues_thread(body: Mapping[str, Any]) -> bool:
    """Return whether the earlier turns of a request are at its provider. One that begins a thread has all turns."""
    thread = body.get("thread")
    return isinstance(thread, dict) and thread.get("type") != "create"
