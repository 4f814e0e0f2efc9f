"""Checks of an agent's answer."""

from __future__ import annotations

import pytest

from rung.core.policy.presets import LADDERS
from rung.detectors.claims import ClaimCheck
from rung.detectors.output import OutputSpec, check_output

JSON = OutputSpec(json=True)
REPORT = OutputSpec(sections=("Summary", "Tests"))
PROVEN = OutputSpec(evidence=True)


@pytest.mark.parametrize(
    ("answer", "contract", "rule", "kind"),
    [
        ("", None, "empty", "malformed_output"),
        (" \n", None, "empty", "malformed_output"),
        ("<thinking>I wonder", None, "empty", "malformed_output"),
        ("<think>all of it</think>  ", None, "empty", "malformed_output"),
        ("Sure! {}", JSON, "malformed", "malformed_output"),
        ('{"a": 1', JSON, "cut", "output_limit"),
        ('{"a": "b', JSON, "cut", "output_limit"),
        ("[" * 100_000, JSON, "malformed", "malformed_output"),
        ("Here:\n```python\nprint(1)", None, "cut", "partial_output"),
        ("# Summary\nAll of it.", REPORT, "sections", "partial_output"),
        ("# Summary\n# Tests\nThey ran.", REPORT, "sections", "partial_output"),
        ("def run():\n    # ... rest of the code\n", None, "placeholder", "partial_output"),
        ("I was unable to complete the task, since the server is gone.", None, "gave-up", "gave_up"),
        ("Half of it works. You will have to do the migration yourself.", None, "gave-up", "gave_up"),
        ("All done! The feature is implemented.", PROVEN, "done-unproven", "unverified"),
    ],
)
def test_what_is_wrong(answer: str, contract: OutputSpec | None, rule: str, kind: str) -> None:
    """Each problem has its rule and kind, and the evidence contains the answer."""
    found = check_output(answer, contract)
    assert found is not None
    assert (found.rule, found.kind) == (rule, kind)
    assert found.failure.kind == kind
    assert found.failure.rule == "finding"
    assert found.evidence.output == found.output


@pytest.mark.parametrize(
    ("answer", "contract"),
    [
        ("An answer.", None),
        ("An answer.", OutputSpec()),
        ('{"a": 1}', JSON),
        ('```json\n{"a": [1, 2]}\n```', JSON),
        ("<think>no</think>\n[1]", JSON),
        ("## 1. Summary\nAll of it.\n\n**Tests:** they ran.", REPORT),
        ("summary: short\ntests: run", REPORT),
        ("```python\nprint(1)\n```\nThat is it.", None),
        ("I fixed the parser; it could not read empty lines before.", None),
        ("The task is still open: tests fail.", PROVEN),
    ],
)
def test_what_is_right(answer: str, contract: OutputSpec | None) -> None:
    """A valid answer gives no finding."""
    assert check_output(answer, contract) is None


def test_sections_of_json() -> None:
    """Missing or empty keys are named, and reach the rung that requests only them."""
    found = check_output('{"summary": "x", "tests": []}', OutputSpec(json=True, sections=("summary", "tests", "docs")))
    assert found is not None
    assert found.missing == ("tests", "docs")
    ladder = LADDERS["pipeline"]
    assert ladder.rungs[ladder.entry_index(found.failure)].name == "nudge"


def test_cut_by_the_service() -> None:
    """The provider's stop reason takes precedence over the text."""
    found = check_output("A whole sentence.", stop_reason="max_tokens")
    assert found is not None
    assert found.kind == "output_limit"
    assert check_output("A whole sentence.", stop_reason="end_turn") is None


def test_done_with_something_to_show() -> None:
    """A check or a call counts as evidence; a claim alone does not."""
    check = ClaimCheck(claim="tests pass", holds=True, seen="exit code 0")
    assert check_output("Task complete.", PROVEN, checks=[check]) is None
    assert check_output("Task complete.", PROVEN, acted=True) is None
    assert check_output("Task complete.", PROVEN, checks=[], acted=False) is not None
