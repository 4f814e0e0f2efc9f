"""Result of a command: JSON that reports an error or a cost, exit code and signal become evidence."""

from __future__ import annotations

import signal
from typing import Any, Final

from rung.adapters.system.error_line import error_text, number_of_error_line
from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError, is_number
from rung.core.domain.failures import Kind, Phase
from rung.core.text.json_in_text import parse_json_object
from rung.engine.attempt_api import report_cost

_OUTSIDE_SIGNALS: Final = (
    signal.SIGTERM,
    *(getattr(signal, name) for name in ("SIGKILL", "SIGHUP") if hasattr(signal, name)),
)


def output_or_raise(exit_code: int, output: str, errors: str) -> str:
    """Return the output of a successful run, or raise AttemptError."""
    result = _json_result(output)
    facts = _error_facts(result) if result is not None else None
    if facts is None and exit_code == 0:
        return output
    facts = facts or _killed_facts(-exit_code)
    facts = facts or {"text": clip(error_text(errors, output, exit_code) or f"exit code {exit_code}", 4_096)}
    error = AttemptError(
        facts.pop("text"),
        exit_code=exit_code if exit_code > 0 else None,
        signal=-exit_code if exit_code < 0 else None,
        output=clip(output),
        **facts,
    )
    error.evidence = error.evidence._replace(line=number_of_error_line(error.evidence))
    raise error


def report_cost_in(output: str) -> None:
    """Report the cost of an attempt: the sum of `total_cost_usd`, as Claude Code prints it, of the JSON results in its output."""
    costs = (result.get("total_cost_usd") for result in _json_results(output))
    known = [cost for cost in costs if cost is not None and is_number(cost)]
    if known:
        report_cost(sum(known))


def _json_results(output: str) -> list[dict[str, Any]]:
    """Return the JSON object that is the whole output, or those that are one of its lines."""
    whole = parse_json_object(output)
    if whole is not None:
        return [whole]
    return [found for line in output.splitlines() if (found := parse_json_object(line)) is not None]


def _json_result(output: str) -> dict[str, Any] | None:
    """Return the JSON object that is the whole output, or its last line."""
    text = output.strip()
    return parse_json_object(text) or parse_json_object(text.rsplit("\n", 1)[-1])


def _killed_facts(number: int) -> dict[str, Any] | None:
    """Return the facts of a process that was killed from outside: what it wrote before does not say why."""
    if number not in _OUTSIDE_SIGNALS:
        return None
    return {"text": f"killed by {signal.Signals(number).name}", "finding": Kind.WORKER_DEAD}


def _error_facts(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error facts in a JSON result, or None if it reports no error. `subtype` is unreliable."""
    error = result.get("error")
    bad = result.get("is_error") is True or error or result.get("status") in ("error", "failed")
    if not bad:
        return None
    inner = error if isinstance(error, dict) else {}
    message = inner.get("message") or (error if isinstance(error, str) else "") or result.get("result")
    message = message or result.get("errors") or "is_error"
    code = inner.get("type") or result.get("terminal_reason") or ""
    status = result.get("api_error_status")
    return {
        "text": clip(str(message), 4_096),
        "code": str(code),
        "status": status if isinstance(status, int) else None,
        "phase": Phase.RESULT if status is None else Phase.CALL,
    }
