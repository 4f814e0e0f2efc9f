"""What coding agents print when they end: Claude Code, Codex (`exec --json`) and gemini-cli, as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from rung.core.evidence import text_of, whole
from rung.core.failures import Evidence, Phase

_STATUS: Final = re.compile(r"\bstatus:? (\d{3})\b")
_INNER_CODE: Final = re.compile(r'"code": ?(\d{3})\b')
_INNER_STATUS: Final = re.compile(r'"status": ?"([A-Z_]{3,40})"')
_HTTP_ERRORS: Final = range(400, 600)


def read_result(result: Mapping[str, Any]) -> Evidence | None:
    """What a result, or one event of a stream of them, says went wrong; None where nothing did."""
    kind = result.get("type")
    if kind == "result" and "is_error" in result:
        return _claude_code(result)
    if kind == "turn.failed" or (kind == "error" and "severity" not in result):
        return _codex(result)
    if kind is None or kind == "result":
        return _gemini(result)
    if kind == "error" and result.get("severity") == "error":
        return _gemini({"error": result})
    return None


def _claude_code(result: Mapping[str, Any]) -> Evidence | None:
    """`subtype` alone is not to be trusted: it says success of a run that an API error ended."""
    subtype = str(result.get("subtype") or "")
    if result.get("is_error") is not True and not subtype.startswith("error"):
        return None
    status = whole(result.get("api_error_status"))
    reason = result.get("terminal_reason")
    errors = result.get("errors")
    said = result.get("result") or ("\n".join(map(text_of, islice(errors, 20))) if isinstance(errors, list) else "")
    return Evidence(
        text=text_of(said or reason or subtype),
        status=status,
        code=_words(result.get("api_error_type"), reason, subtype if subtype != "success" else ""),
        provider="anthropic" if status is not None else "",
        phase=Phase.CALL if status is not None or reason == "api_error" else Phase.RESULT,
    )


def _codex(event: Mapping[str, Any]) -> Evidence | None:
    """A message alone; a status is in its words. While it still tries, it reports `Reconnecting... 2/5`."""
    error = event.get("error")
    said = text_of((error if isinstance(error, Mapping) else event).get("message") or error or "turn failed")
    if event.get("type") == "error" and said.startswith("Reconnecting"):
        return None
    status = _STATUS.search(said)
    evidence = Evidence(text=said, status=int(status[1]) if status and int(status[1]) in _HTTP_ERRORS else None)
    return evidence._replace(phase=Phase.STREAM) if said.startswith("stream disconnected") else evidence


def _gemini(result: Mapping[str, Any]) -> Evidence | None:
    """`error` with a type, a message (often the API's JSON) and a code: a status, an exit code or a word."""
    error = result.get("error")
    if not isinstance(error, Mapping):
        return Evidence(text="status: error") if result.get("status") == "error" else None
    kind, code = _words(error.get("type")), error.get("code")
    number = whole(code)
    text = text_of(error.get("message") or error)
    inner, name = _INNER_CODE.search(text), _INNER_STATUS.search(text)
    return Evidence(
        text=text,
        status=next((status for status in (number, int(inner[1]) if inner else 0) if status in _HTTP_ERRORS), None),
        exit_code=number if number is not None and 0 < number < 256 else None,  # noqa: PLR2004
        code=_words(kind if kind not in {"Error", "error", "unknown"} else "", code, name[1] if name else ""),
        provider="google",
    )


def _words(*values: object) -> str:
    return " ".join(dict.fromkeys(value[:200] for value in values if isinstance(value, str) and value))
