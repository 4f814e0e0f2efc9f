"""Questions to a helper command: JSON in, JSON out, recovered on the `helper` ladder."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.placeholders import fill_placeholders, uses_placeholder
from rung.adapters.system.process import RunningProcess
from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError, ConfigError
from rung.core.domain.failures import GROUPS, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.domain.outcome import report_text
from rung.core.domain.request import Request
from rung.core.policy.policy import preset
from rung.core.policy.presets import HELPER
from rung.core.text.json_in_text import find_json_object
from rung.engine.recover import recover_sync

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rung.core.domain.incident import Incident

TIMEOUT_SECONDS: Final = 900.0
PROMPT_PLACEHOLDER: Final = "{prompt}"
NOT_RUNNABLE_EXIT_CODES: Final = (126, 127)  # of a shell: program not executable, program not found
MAX_NOTE_CHARS: Final = 2_000  # of an error that is added to the question


def ask_command(
    command: Sequence[str],
    question: Mapping[str, Any],
    *,
    seconds: float = TIMEOUT_SECONDS,
    report: Path | None = None,
    **ports: Any,
) -> dict[str, Any] | None:
    """Ask a command a question. Return its answer, or None when the ladder is exhausted.

    A transient failure is retried unchanged, with backoff. Any other error is added to the question; an error that
    was already added is not retried. A question without an answer is appended to `report`. `ports` are those of
    `recover`.
    """
    if not command:
        raise ConfigError("command", list(command), "a list of texts, the program first")
    policy = preset(HELPER, "helper").replace(report="")
    outcome = recover_sync(
        lambda request: _run_command(command, request.prompt, seconds),
        Request(prompt=json.dumps(question)),
        policy=policy,
        rung_handlers={Action.FIX.value: add_correction},
        **ports,
    )
    if not outcome.ok and report is not None:
        heading = f"The question {question.get('question', '')!r} to {command[0]} was not answered.\n\n"
        report.parent.mkdir(parents=True, exist_ok=True)
        with report.open("a", encoding="utf-8") as file:
            file.write(heading + report_text(outcome, policy.ladder))
    return outcome.value if outcome.ok else None


def add_correction(request: Request, incident: Incident) -> Request:
    """Add the last error to the question.

    The request stays unchanged, so that the rung is skipped, if the question already has this error or if the
    command cannot be run at all.
    """
    *earlier, failure = incident.failures
    is_runnable = failure.evidence.exit_code not in NOT_RUNNABLE_EXIT_CODES
    if not is_runnable or any(failure.fingerprint == one.fingerprint for one in earlier):
        return request
    note = f"{failure.kind}: {clip(failure.message.strip(), MAX_NOTE_CHARS)}"
    key = "look_up" if failure.kind in GROUPS["request"] else "correction"
    return request.replace(prompt=json.dumps({**json.loads(request.prompt), key: note}))


def _run_command(command: Sequence[str], prompt: str, seconds: float) -> dict[str, Any]:
    """Run the command once, with the prompt on standard input or in place of `{prompt}`."""
    is_argument = uses_placeholder(command, PROMPT_PLACEHOLDER)
    arguments, variables = fill_placeholders(command, {PROMPT_PLACEHOLDER: prompt})
    process = RunningProcess(arguments, "" if is_argument else prompt, env={**os.environ, **variables})
    output = process.result(seconds)
    answer = find_json_object(output)
    if answer is None:
        raise AttemptError(
            "the answer is not a JSON object",
            finding=Kind.MALFORMED_OUTPUT,
            phase=Phase.RESULT,
            output=clip(output, 4_096),
        )
    return answer
