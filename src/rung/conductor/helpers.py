"""A conductor's own helpers: asked up to three times, each failure answered in its own way, and then somebody else."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rung.adapters.process import Started
from rung.core.classify import classify
from rung.core.errors import AttemptError, ConfigError
from rung.core.evidence import clip
from rung.core.failures import Kind, Phase
from rung.core.helping import Escalation, HelperMove, Resort, after_helper, helper_trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rung.core.failures import Failure

T = TypeVar("T")
SECONDS: Final = 900.0
PAUSE: Final = 1.0  # before what passes by itself is tried again; twice as long the next time
PROMPT: Final = "{prompt}"
_SAID: Final = 300  # characters of an error in a written escalation


@dataclass(frozen=True, slots=True, kw_only=True)
class Helped(Generic[T]):
    """What came of it: a value, after so many tries, and who had to step in (None: the helper did it).

    `escalation` is the written account of a helper that failed for good; with no value it is a person's turn.
    """

    value: T | None
    tries: int
    resort: Resort | None = None
    escalation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A helper that is a command: its prompt on standard input, or where {prompt} stands; its answer on standard output."""

    words: Sequence[str]
    seconds: float = SECONDS
    workdir: Path | None = None
    environment: Mapping[str, str] | None = None

    def __call__(self, prompt: str) -> str:
        """One answer, or an AttemptError that says why there is none. Nothing it started stays behind."""
        in_place = any(PROMPT in word for word in self.words)
        words = [word.replace(PROMPT, prompt) for word in self.words]
        environment = None if self.environment is None else dict(self.environment)
        started = Started(words, "" if in_place else prompt, cwd=self.workdir, env=environment)
        return started.result(self.seconds)


def noted(prompt: str, failure: Failure) -> str:
    """The prompt with what was wrong the last time."""
    said = clip(failure.message.strip() or failure.kind.value, 2_000)
    missing = f" Missing: {', '.join(failure.evidence.missing)}." if failure.evidence.missing else ""
    return f"{prompt}\n\nThe last answer to this could not be used ({failure.kind}): {said}{missing} Put that right."


def looked_up(prompt: str, failure: Failure) -> str:
    """The prompt with what it names wrongly."""
    said = clip(failure.message.strip() or failure.kind.value, 2_000)
    return f"{prompt}\n\nThe last try ended with ({failure.kind}): {said} What is named there is wrong: look for what is there."


def get_help(
    what: str,
    prompt: str,
    helper: Callable[[str], str],
    read: Callable[[str], T],
    *,
    fix_prompt: Callable[[str, Failure], str] = looked_up,
    add_correction: Callable[[str, Failure], str] = noted,
    workaround: Callable[[], T | None] | None = None,
    replanner: Callable[[str], T | None] | None = None,
    report: Path | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> Helped[T]:
    """Ask a helper; `read` makes a value of its answer, or raises.

    Transient trouble: the same prompt. Configuration: the prompt is put right first, and where that changes
    nothing it is not asked again. Logic: the correction is added. Systemic, or three tries: the escalation is
    written, and the workaround, the replanner and at last a person come to it.
    """
    errors: list[str] = []
    seen: set[str] = set()
    pause = PAUSE
    while True:
        try:
            return Helped(value=read(helper(prompt)), tries=len(errors) + 1)
        except Exception as error:  # noqa: BLE001  # whatever a helper raises is a failure like any other
            failure = classify(error)
        errors.append(f"{failure.kind}: {clip(failure.message.strip(), _SAID)}")
        trouble = helper_trouble(failure, same_as_before=failure.fingerprint in seen)
        move = after_helper(trouble, len(errors))
        if move is HelperMove.SAME:
            sleep(pause)
            pause *= 2
            continue
        seen.add(failure.fingerprint)
        before = prompt
        if move is HelperMove.FIX_PROMPT:
            prompt = fix_prompt(prompt, failure)
        elif move is HelperMove.ADD_CORRECTION:
            prompt = add_correction(prompt, failure)
        if prompt == before:  # to be escalated, or asked in a way that has failed
            break

    def written(resort: Resort) -> str:
        return Escalation(what=what, errors=tuple(errors), trouble=trouble, resort=resort).body()

    return _escalated(written, len(errors), workaround, replanner, report)


def _escalated(
    written: Callable[[Resort], str],
    tries: int,
    workaround: Callable[[], T | None] | None,
    replanner: Callable[[str], T | None] | None,
    report: Path | None,
) -> Helped[T]:
    """Whoever is there and knows what to do, in order; the account says who, and is kept."""
    value: T | None = None
    resort = Resort.PERSON
    if workaround is not None:
        value, resort = workaround(), Resort.WORKAROUND
    if value is None and replanner is not None:
        value, resort = replanner(written(Resort.REPLANNER)), Resort.REPLANNER
    if value is None:
        resort = Resort.PERSON
    text = written(resort)
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
        with report.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    return Helped(value=value, tries=tries, resort=resort, escalation=text)


def ask(
    command: Sequence[str],
    question: Mapping[str, Any],
    *,
    seconds: float = SECONDS,
    report: Path | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> dict[str, Any] | None:
    """A question as JSON to a command, its answer as a JSON object; None when it failed for good."""
    if not command:
        raise ConfigError("command", list(command), "a list of texts, the program first")
    helped = get_help(
        f"the question {question.get('question', '')!r} to {command[0]}",
        json.dumps(question),
        Command(words=command, seconds=seconds),
        json_in,
        fix_prompt=_in_json("look_up"),
        add_correction=_in_json("correction"),
        report=report,
        sleep=sleep,
    )
    return helped.value


def json_in(answer: str) -> dict[str, Any]:
    """The JSON object an answer is, or ends with: all of it, or what stands from its first brace to its last."""
    text = answer.strip()
    for candidate in (text, text[text.find("{") : text.rfind("}") + 1], text.rsplit("\n", 1)[-1]):
        try:
            found = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    raise AttemptError(
        "the answer is not a JSON object", finding=Kind.MALFORMED_OUTPUT, phase=Phase.RESULT, output=clip(answer, 4_096)
    )


def _in_json(key: str) -> Callable[[str, Failure], str]:
    """A note that leaves a question in JSON what it is."""

    def change(prompt: str, failure: Failure) -> str:
        return json.dumps({**json.loads(prompt), key: f"{failure.kind}: {clip(failure.message.strip(), 2_000)}"})

    return change
