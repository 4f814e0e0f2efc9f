"""Error reports, fix proposals and the check for fixes without progress."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.error_triage import ErrorReport, FixProposal, no_progress
from rung.core.domain.failures import Phase

TEXTS = st.text(max_size=60).map(str.strip)
SOME = TEXTS.filter(bool)


def test_the_message_of_a_proposal() -> None:
    """A proposal has labelled lines for cause, fix and next step, with a default for the last."""
    body = FixProposal(root_cause="a typo", fix="write it right").body(2)
    assert body.splitlines() == [
        "FIX PROPOSAL (Retry 2/5):",
        "Root cause: a typo",
        "Fix: write it right",
        "Retry: Run the failed step again, then continue.",
    ]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """Any text is parsed; without an `Error:` line the whole text is the error."""
    found = ErrorReport.parse(text)
    assert found.error or not text.strip() or "error" in text.lower()


@given(SOME, st.one_of(st.none(), st.integers(0, 100)), st.sampled_from([True, False, None]))
def test_an_error_is_read_as_it_was_written(error: str, context: float | None, corrected: bool | None) -> None:
    """An error report survives formatting and parsing."""
    report = ErrorReport(
        error=f"x {error} y",
        context=context,
        self_correction=corrected,
        tool="bash",
        exit_code=137,
        phase=Phase.TOOL,
        report="docs/e.md",
    )
    assert ErrorReport.parse(report.body(2)) == report


def test_an_error_in_a_workers_own_words() -> None:
    """The documented layout and plain text are both parsed."""
    report = ErrorReport.parse(
        """ERROR (Retry 2/5):
     Context Usage: 44%
     Self-Correction: NO
     Error: cannot import name Parser
     Report: docs/reports/task-03-error-retry-2.md
     Awaiting conductor fix proposal"""
    )
    assert report == ErrorReport(
        error="cannot import name Parser",
        context=44,
        self_correction=False,
        report="docs/reports/task-03-error-retry-2.md",
    )
    assert ErrorReport.parse(" it broke\n").error == "it broke"


def test_two_corrections_in_vain_are_no_progress() -> None:
    """The third occurrence of an error is detected, also with other errors between."""
    assert not no_progress([])
    assert not no_progress(["a", "a"])
    assert no_progress(["a", "a", "a"])
    assert no_progress(["a", "b", "a", "b", "a"])
    assert not no_progress(["a", "a", "b"])


def test_evidence_of_an_error_report() -> None:
    """Tool, exit code and phase of a report become evidence; a tool alone implies the tool phase."""
    found = ErrorReport.parse("Error: it stopped\nTool: bash\nExit Code: 137").evidence("all")
    assert (found.text, found.tool, found.exit_code, found.phase) == ("all", "bash", 137, Phase.TOOL)
    assert ErrorReport.parse("Error: x\nPhase: Limit").evidence("").phase is Phase.LIMIT
    bare = ErrorReport.parse("Error: x\nPhase: nowhere\nExit Code: 999").evidence("")
    assert (bare.phase, bare.exit_code, bare.tool) == (Phase.CALL, None, "")


def test_an_error_about_code_is_one_of_a_tool() -> None:
    """Without a stated phase, words about code and tests mean the tool phase; a provider's own words mean the call."""
    for error in (
        "WebSocket handshake code raises KeyError: 'key'",
        "test_timeout failed",
        "redis at localhost is away",
    ):
        assert ErrorReport(error=error).evidence(error).phase is Phase.TOOL
    for error in (
        "API Error: 529 Overloaded",
        "Connection error.",
        "app.py: anthropic.RateLimitError: Error code: 429",
    ):
        assert ErrorReport(error=error).evidence(error).phase is Phase.CALL
    assert ErrorReport(error="test_x failed", phase=Phase.CALL).evidence("").phase is Phase.CALL
