"""What a tool returned as data is no report of a failure, whatever words are in it."""

from __future__ import annotations

import pytest

from rung.core.classify.classifier import classify
from rung.core.classify.status_text import exit_code_in
from rung.core.domain.failures import Evidence, Kind, Phase


def kind_of(text: str, exit_code: int | None = None) -> Kind:
    """Return the kind of a tool's output."""
    return classify(Evidence(text=text, phase=Phase.TOOL, exit_code=exit_code)).kind


DATA = [
    '{"order": "A1", "payment_method": "gift card", "seats": [{"row": 3, "denied": false}]}',
    "12:\tdef read_missing_file():\n13:\t    # raises when permission is denied\n14:\t    return open(path)",
    "436:\t\tthis.ui.start();",
    "export class Loader {\n  private timeout = 30;\n  private retries = 3;\n  load(name: string) {\n    return this.read(name);\n  }\n}",
    "# Login\n\nA missing key is answered with 401.\n\n- `token`: is required\n- `limit`: must be positive",
    "running 9 tests\ntest missing_file_is_an_error ... ok\n\ntest result: ok. 9 passed; 0 failed; 0 ignored",
    "tests/test_a.py::test_permission_denied PASSED  [100%]\n\n1 passed in 0.02s",
    "Tests run: 4, Failures: 0, Errors: 0",
    "All checks passed!",
    "A history of space flight\n"
    + "It began with small rockets. " * 12
    + "\nOf that time: "
    + "a failed launch and its causes. " * 20,
]


@pytest.mark.parametrize("text", DATA)
def test_data_is_no_failure(text: str) -> None:
    """A record, a listing, source code, a document and a passed run hold words of failures and report none."""
    assert kind_of(text) is Kind.UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        "ERROR_LEVEL=3\nON_FAILURE=retry",
        "If it says `Permission denied`, call the owner.",
        '+    raise ValueError("connection refused")',
        "#define ENOSPC 28 /* No space left on device */\n#define EMFILE 24 /* Too many open files */",
    ],
)
def test_a_mention_in_the_output_of_a_success_is_no_failure(text: str) -> None:
    """A command that succeeded prints a setting, a document, a change or a header with the words of a failure."""
    assert kind_of(text, 0) is Kind.UNKNOWN


REPORTS = [
    (
        "Error: reading a.ts went wrong\nimport { a } from './a';\nexport const b = a;\nexport default b;\n",
        Kind.TOOL_ERROR,
    ),
    ('{"error": "the file a.txt was not found"}', Kind.NOT_FOUND),
    ("1\tTraceback (most recent call last):\nNameError: name 'a' is not defined", Kind.TOOL_ERROR),
    ("test a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed", Kind.TEST_FAILURE),
    ("Tests run: 4, Failures: 1, Errors: 0", Kind.TEST_FAILURE),
    ("A long page of text. " * 60 + "\nerror: No space left on device", Kind.RESOURCE_EXHAUSTED),
]


@pytest.mark.parametrize(("text", "kind"), REPORTS)
def test_a_report_among_data_is_read(text: str, kind: Kind) -> None:
    """An error at the start or the end of an output counts, and so does a test that failed among others."""
    assert kind_of(text) is kind


@pytest.mark.parametrize(
    ("text", "is_success", "code"),
    [("handled, exit 1", True, None), ("exit=124", True, 124), ("exit code: 3", True, 3), ("exit 1", False, 1)],
)
def test_an_exit_code_in_a_sentence_of_success_does_not_count(text: str, is_success: bool, code: int | None) -> None:
    """Where the caller says that a command succeeded, only an exit code that the output states contradicts it."""
    assert exit_code_in(text, is_success=is_success) == code
