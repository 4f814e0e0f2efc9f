"""Questions to a helper command: JSON in, JSON out, recovered on the `helper` ladder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

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

SECONDS: Final = 900.0
PROMPT: Final = "{prompt}"
NOT_RUNNABLE: Final = (126, 127)  # exit codes of a shell: the program cannot be run, or is not there
MAX_NOTE: Final = 2_000  # characters of an error in the next question


def ask(
    command: Sequence[str],
    question: Mapping[str, Any],
    *,
    seconds: float = SECONDS,
    report: Path | None = None,
    **ports: Any,
) -> dict[str, Any] | None:
    """Put a question to a command; its answer, or None when the ladder is spent, which the report then says.

    Transient trouble is asked again unchanged, after a pause. Any other error is added to the question; an error
    that was already added is not answered by asking again. `ports` are those of `recover`.
    """
    if not command:
        raise ConfigError("command", list(command), "a list of texts, the program first")
    policy = preset(HELPER, "helper").replace(report="")
    outcome = recover_sync(
        lambda request: _answer(command, request.prompt, seconds),
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
    """The question with what was wrong the last time; unchanged where it already says so, or no question helps."""
    *earlier, failure = incident.failures
    if failure.evidence.exit_code in NOT_RUNNABLE or any(failure.fingerprint == one.fingerprint for one in earlier):
        return request
    note = f"{failure.kind}: {clip(failure.message.strip(), MAX_NOTE)}"
    key = "look_up" if failure.kind in GROUPS["request"] else "correction"
    return request.replace(prompt=json.dumps({**json.loads(request.prompt), key: note}))


def _answer(command: Sequence[str], prompt: str, seconds: float) -> dict[str, Any]:
    """Run the command once. The prompt is on its standard input, or where {prompt} stands."""
    in_place = any(PROMPT in word for word in command)
    words = [word.replace(PROMPT, prompt) for word in command]
    output = RunningProcess(words, "" if in_place else prompt).result(seconds)
    found = find_json_object(output)
    if found is None:
        what, output = "the answer is not a JSON object", clip(output, 4_096)
        raise AttemptError(what, finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT, output=output)
    return found
