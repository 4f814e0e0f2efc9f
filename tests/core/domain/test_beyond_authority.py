"""Reports that say the fix is beyond the reporter, and ordinary errors that share a word with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.classifier import classify
from rung.core.crew.error_triage import ErrorReport
from rung.core.domain.beyond_authority import is_beyond_authority
from rung.core.policy.presets import LADDERS

BEYOND = [
    "requires cross-phase changes",
    "we would have to change phase 2 and phase 3 as well",
    "this needs to rework phases 1 and 4",
    "change phase 2 and phase 3 as well",
    "this needs phase 2 and phase 3 to be changed",
    "phases 2 and 3 must be changed too",
    "the interface of phase 1 would have to be rewritten too",
    "the plan is wrong: the order of the tasks must change",
    "the fix required a cross-phase change",
    "this is a cross-phase problem: it needs cross phase modifications",
    "needs architectural decisions",
    "needs an architectural decision",
    "an architecture decision is required here",
    "It would require architectural changes to the store.",
    "The architecture has to be changed for this to work",
    "fixing it means changing the architecture",
    "a change to the architecture is needed",
    "this implies a redesign of the architecture",
    "modification of items with mandatory authority in the Arranger plan",
    "requires modifying items with mandatory authority in the Arranger plan",
    "the item has mandatory authority in the Arranger plan and would have to be modified",
    "items with mandatory authority must be changed",
    "I would have to modify a mandatory item",
    "mandatory items of the plan need to be modified",
    "a mandatory item has to be removed",
    "the fix would alter mandatory requirements of the plan",
    "out of scope for this phase",
    "The change is out of scope.",
    "this is an out-of-scope change",
    "outside the scope of this task",
    "beyond the scope of my task",
    "outside this phase's scope",
    "not in scope for task-03",
    "it exceeds intra-phase authority",
    "exceeds my authority",
    "it is beyond the conductor\u2019s authority",
    "this is beyond the conductor's authority",
    "outside of its authority",
    "I have no authority to change the interface",
    "lacks the authority to make that decision",
    "the fix belongs to another phase",
    "requires changes in an earlier phase",
    "changes across phases are necessary",
    "it spans several phases",
    "it touches another task's files",
    "the error is in other tasks' work",
    "contradicts the plan",
    "the plan must be changed",
    "this needs a revision of the plan",
    "deviates from the plan",
    "needs a person's decision",
    "cannot be fixed without cross-phase changes",
    "There is no fix without an architectural decision.",
    "I cannot make architectural decisions",
    "ERROR (Retry 1/5):\n     Context Usage: 40%\n     Error: the schema is fixed; requires architectural\n     decisions\n     Report: r.md",
]
ORDINARY = [
    "AssertionError: phase 2 and phase 3 of the rollout did not change state",
    "the fix does not change phase 2 and phase 3",
    "phase 2 and phase 3 tests failed: 3 errors",
    'File "src/architecture.py", line 3: SyntaxError: invalid syntax',
    "error in architecture.py: decision_tree is undefined",
    "docs/architecture/decisions/0001.md: No such file or directory",
    "unsupported architecture: arm64",
    "wrong architecture (x86_64) in libfoo.so",
    "AssertionError in test_cross_phase_changes",
    "tests/test_cross-phase.py::test_changes FAILED",
    "cross-phase voltage measurement out of range",
    "mandatory field missing: name",
    "missing mandatory argument 'path'",
    "400: mandatory parameter 'id' was not given",
    "mandatory items cannot be empty (422)",
    "phase 2 test failed",
    "two-phase commit failed: prepare timed out",
    "the build phase failed with exit code 2",
    "error in phase 3 of 4: linking",
    "HTTP 403: insufficient authority",
    "x509: certificate signed by unknown authority",
    "unable to get local issuer certificate authority",
    "the :authority header is missing",
    "ReferenceError: variable x is out of scope",
    "error[E0597]: `x` dropped here while still borrowed: it goes out of scope",
    "'foo' is out of scope here",
    "identifier used out of scope",
    "Main.hs:3:1: error: Variable not in scope: foo",
    "// If current model not in scope, start from first",
    "token scope is not sufficient: repo:write is needed",
    "OAuth scope missing: chat:write",
    "query plan changed: index scan became seq scan",
    "terraform plan failed: 3 to change",
    "cannot change the plan to pro: payment required",
    "npm ERR! engine unsupported; architecture mismatch",
    "a typo; no architectural decisions needed",
    "this does not require cross-phase changes",
    "it can be fixed without changing the plan",
    "the fix is simple and needs no change to the architecture",
    "it isn't an architectural decision, just a typo",
    "decision tree training failed: scope variable undefined",
    "port 8080 is used by another task",
    "the lock is held by another process",
    "ImportError: cannot import name 'Phase' from 'plan'",
    "planner.py: change of state not allowed",
    "KeyError: 'mandatory'",
    "json schema: /plan/items is required",
    "permission denied: you are not allowed to modify protected files",
    "ArchitecturalDecision.__init__() missing 1 required argument",
    "authority_check returned False",
    "Test phase_scope_test.go:14: want 3, got 4",
]


@pytest.mark.parametrize("text", BEYOND)
def test_a_report_that_needs_more_authority(text: str) -> None:
    """The report goes to the replanner at once, whatever its wording, number or voice."""
    assert is_beyond_authority(text)
    ladder = LADDERS["crew"]
    failure = classify(ErrorReport.parse(text).evidence(text))
    assert ladder.rungs[ladder.entry_index(failure)].name == "replan"


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_error_with_a_word_in_common(text: str) -> None:
    """An ordinary error is fixed or investigated: names of files, fields and variables are no statements."""
    assert not is_beyond_authority(text)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """No text stops the reader."""
    assert is_beyond_authority(text) in (True, False)
