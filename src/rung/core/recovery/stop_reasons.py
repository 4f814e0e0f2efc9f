"""Stop reasons of providers and compatible servers: which ones end an answer, and which ones show a defect. Pure."""

from __future__ import annotations

from typing import Final

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence, Kind, Phase

# The model has ended its text. Servers with a compatible API have names of their own; their case does not matter.
_ENDS_OF_TEXT: Final = frozenset(
    {
        "stop", "end_turn", "completed", "complete", "eos", "eos_token", "eot", "end", "end_of_turn", "end_of_text",
        "done", "finish", "finished", "normal", "success", "stop_token",
        "model_length",  # the window is full: no continuation would fit into it
    }
)  # fmt: skip
_OTHER_ENDS: Final = frozenset(
    {
        "tool_use", "tool_calls", "tool_call", "function_call", "stop_sequence", "stop_str", "pause_turn", "compaction",
        "continuation",  # the client asks Gemini for the rest by a token
        "language", "other", "too_many_tool_calls", "no_image", "image_other",
    }
)  # fmt: skip
# The server gave up in the middle of the answer.
_INTERRUPTED: Final = frozenset({"abort", "aborted", "error", "network_error", "insufficient_system_resource"})
# The model made a mistake that its provider noticed, so that there is no call to reject (Gemini).
_MISTAKES: Final = frozenset({"malformed_function_call", "malformed_response", "unexpected_tool_call"})


def ends_text(reason: str) -> bool:
    """Whether the model ended its text by itself, so that the answer must have output."""
    return reason.lower() in _ENDS_OF_TEXT


def stop_defect(reason: str) -> Evidence | None:
    """Return evidence of the defect that a stop reason shows; None if it ends a complete answer.

    A reason that nobody knows is an ending: the provider says that it has finished.
    """
    name = reason.lower()
    if name in _ENDS_OF_TEXT or name in _OTHER_ENDS:
        return None
    text = f"the response ended with {reason or 'nothing'}"
    if name in _INTERRUPTED:
        return Evidence(text=text, code=reason, finding=Kind.STREAM_INTERRUPTED, phase=Phase.RESULT)
    if name in _MISTAKES:
        return Evidence(text=text, code=reason, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT)
    defect = Evidence(text=text, code=reason, phase=Phase.RESULT)
    return None if reason and classify(defect).kind is Kind.UNKNOWN else defect
