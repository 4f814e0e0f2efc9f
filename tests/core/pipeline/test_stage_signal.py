"""The signal in the first line of a stage's output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.pipeline.stage_signal import MAX_SIGNAL_CHARS, StageEnding, StageSignal, parse_signal, strip_signal

KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda key: key != "ref")
VALUES = st.text(max_size=20).map(lambda text: " ".join(text.replace("|", "").split()).strip("`*").strip())
SIGNALS = st.builds(
    StageSignal, status=st.sampled_from(StageEnding), facts=st.dictionaries(KEYS, VALUES, max_size=4), ref=VALUES
)


@given(SIGNALS, st.text())
def test_a_signal_is_read_as_it_was_written(signal: StageSignal, rest: str) -> None:
    """Any signal survives formatting and parsing, whatever follows it."""
    assert parse_signal(f"{signal.line()}\n{rest}") == signal
    assert strip_signal(f"{signal.line()}\n{rest}") == rest


@given(st.text())
def test_any_output_is_read(output: str) -> None:
    """Any output is parsed; without a signal it stays unchanged."""
    assert (strip_signal(output) == output) is (parse_signal(output) is None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PASS", StageSignal(status=StageEnding.PASS)),
        (
            "\n\n `pass | files: 3 | ref: out/report.md` \nmore",
            StageSignal(status=StageEnding.PASS, facts={"files": "3"}, ref="out/report.md"),
        ),
        (
            "FAIL|level:L2|missing:tests, docs",
            StageSignal(status=StageEnding.FAIL, facts={"level": "L2", "missing": "tests, docs"}),
        ),
        (
            "**BLOCKED|reason:no key: none given**",
            StageSignal(status=StageEnding.BLOCKED, facts={"reason": "no key: none given"}),
        ),
        ("PARTIAL||ref:", StageSignal(status=StageEnding.PARTIAL)),
        ("PASSED|x:1", None),
        ("PASS|it went well", None),
        ("PASS|two words:1", None),
        ("All tests pass", None),
        ("", None),
        ("PASS|x:" + "y" * MAX_SIGNAL_CHARS, None),
    ],
)
def test_what_is_a_signal(line: str, expected: StageSignal | None) -> None:
    """Case and decoration are ignored; prose is not a signal."""
    assert parse_signal(line) == expected


def test_a_value_never_breaks_the_line() -> None:
    """Bars and line breaks in a value become spaces."""
    assert StageSignal(status=StageEnding.FAIL, facts={"why": "a|b\nc"}, ref="r").line() == "FAIL|why:a b c|ref:r"
