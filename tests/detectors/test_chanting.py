"""Repeated text in a stream, and text that is repetitive by nature."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.detectors.loops.text_repetition import RepetitionDetector

if TYPE_CHECKING:
    from rung.detectors.finding import Finding

SENTENCE = "I will now look at the file again and see what is in it. "
ROW = "| the same cell | the same cell | the same cell | x |\n"


def heard(text: str, size: int = 7) -> list[Finding]:
    watch = RepetitionDetector()
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    return [found for found in map(watch.stream, chunks) if found is not None]


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
@pytest.mark.parametrize("text", [SENTENCE * 30, "ha " * 400, f"An answer begins well.\n{(SENTENCE + chr(10)) * 30}"])
def test_words_over_and_over(text: str, size: int) -> None:
    """Repetition is detected in chunks of any size, and is a new stage once."""
    found = heard(text, size)
    assert found
    assert [one.is_new_stage for one in found] == [True] + [False] * (len(found) - 1)
    assert found[0].rule == "chanting"
    assert found[0].count >= 10
    assert found[0].failure.kind == "loop_detected"


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is:\n```python\n{SENTENCE * 30}\n{(SENTENCE + chr(10)) * 30}```\nDone.",
        f"~~~\n{(SENTENCE + chr(10)) * 40}~~~\n",
        ROW * 60,
        f"Totals:\n\n{'-' * 400}\n{'=' * 400}\n",
        "".join(f"Step {n} was about {chr(97 + n % 26) * (n % 9 + 1)} and came to {n * 7919}. " for n in range(300)),
        SENTENCE * 8,
    ],
)
def test_text_that_may(text: str) -> None:
    """Code, tables, ruled lines and text that progresses are ignored."""
    assert heard(text) == []
    assert heard(text, 1) == []


def test_after_a_fence_it_listens_again() -> None:
    """Text after a fence is checked."""
    assert heard(f"```\ncode\n```\n{SENTENCE * 30}")


def test_a_restart_forgets() -> None:
    """A new answer may repeat the text of the previous one."""
    watch = RepetitionDetector()
    for _ in range(30):
        assert watch.stream(SENTENCE) is None
        watch.restart()


def test_off() -> None:
    """A disabled detector reports nothing."""
    assert RepetitionDetector(off=True).stream(SENTENCE * 50) is None


@given(st.text(alphabet="ab |`\n~-", max_size=400), st.text(alphabet="ab |`\n~-", max_size=400))
def test_state_in_json_and_back(before: str, after: str) -> None:
    """A detector restored in the middle of a line continues like the original."""
    watch = RepetitionDetector()
    watch.stream(before)
    restored = RepetitionDetector.from_json(json.loads(json.dumps(watch.to_json())))
    assert restored.stream(after) == watch.stream(after)
    assert restored.to_json() == watch.to_json()
