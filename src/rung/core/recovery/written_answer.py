"""Answers in words: a person resolves an ambiguity with one of the readings the case names, or with a text of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rung.core.domain.events import Option
from rung.core.text.quoted_data import on_one_line

if TYPE_CHECKING:
    from rung.core.domain.events import Ask
    from rung.core.domain.failures import Failure

WORDS_OPTION: Final = Option("answer", "Answer in your own words")
MAX_CHARACTERS: Final = 4_000
_PREFIX: Final = "answer:"
_MAX_CHOICES: Final = 3
_MAX_CHOICE_CHARACTERS: Final = 120
_LISTED: Final = re.compile(r"\boptions?\s*[:=]\s*([^\n]+)", re.IGNORECASE)
_SIMPLEST: Final = "Take the simplest reading of the task, and say which one you took"


def is_written_answer(answer: str) -> bool:
    """Whether an answer is a text for the agent."""
    return answer.startswith(_PREFIX) and bool(answer_text(answer))


def answers(question: Ask, answer: str) -> bool:
    """Return whether this is an answer to the question: one of its options, or a text where it takes one."""
    offered = {option.id for option in question.options}
    if answer == WORDS_OPTION.id or answer not in offered:
        return WORDS_OPTION.id in offered and is_written_answer(answer)
    return True


def answer_text(answer: str) -> str:
    """Return the text of a written answer."""
    return answer.removeprefix(_PREFIX).strip()[:MAX_CHARACTERS]


def written_answer(text: str) -> str:
    """Return the answer that hands this text to the agent."""
    return _PREFIX + text.strip()[:MAX_CHARACTERS]


def ambiguity_options(failure: Failure) -> tuple[Option, ...]:
    """Return the options of a question about an ambiguity: the readings that the case names, words, and an end.

    A case names its readings as `options: one; two`.
    """
    listed = _LISTED.search(failure.message)
    parts = re.split(r"\s*[;|]\s*" if listed and ";" in listed[1] else r"\s*[,|]\s*", listed[1]) if listed else []
    choices = [on_one_line(part).rstrip(".")[:_MAX_CHOICE_CHARACTERS] for part in parts if part.strip(" .")]
    readings = list(dict.fromkeys(choices))[:_MAX_CHOICES] or [_SIMPLEST]
    return (
        *(Option(written_answer(reading), reading) for reading in readings),
        WORDS_OPTION,
        Option("stop", "Stop and keep the results so far"),
    )
