"""The first line of an agent's output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.pipeline.stage_signal import LONGEST, StageEnding, StageSignal, parse, without_signal

KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda key: key != "ref")
VALUES = st.text(max_size=20).map(lambda text: " ".join(text.replace("|", "").split()).strip("`*").strip())
SIGNALS = st.builds(
    StageSignal, status=st.sampled_from(StageEnding), facts=st.dictionaries(KEYS, VALUES, max_size=4), ref=VALUES
)


@given(SIGNALS, st.text())
def test_a_signal_is_read_as_it_was_written(signal: StageSignal, rest: str) -> None:
    """Status, facts and reference come back, whatever follows in the output."""
    assert parse(f"{signal.line()}\n{rest}") == signal
    assert without_signal(f"{signal.line()}\n{rest}") == rest


@given(st.text())
def test_any_output_is_read(output: str) -> None:
    """No output stops the reader; what has no signal stays whole."""
    assert (without_signal(output) == output) is (parse(output) is None)


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
        ("PASS|x:" + "y" * LONGEST, None),
    ],
)
def test_what_is_a_signal(line: str, expected: StageSignal | None) -> None:
    """Case and decoration are forgiven; prose is no signal."""
    assert parse(line) == expected


def test_a_value_never_breaks_the_line() -> None:
    """Bars and line ends in a value become blanks."""
    assert StageSignal(status=StageEnding.FAIL, facts={"why": "a|b\nc"}, ref="r").line() == "FAIL|why:a b c|ref:r"
