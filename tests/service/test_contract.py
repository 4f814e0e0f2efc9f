"""The API keeps its word: whatever is sent, no fault of ours, and no answer that the document does not have."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import schemathesis

from rung.service.app import make_api
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.conftest import Running

EXAMPLES = int(os.environ.get("RUNG_EXAMPLES", "6"))
NOT_ASKED = ("ignored_auth", "positive_data_acceptance", "use_after_free", "ensure_resource_availability")
LEFT_OUT = ("/api/events",)  # it does not end


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    """A crew with a task in it."""
    at = str(tmp_path / "crew.db")
    with CrewTable.open(at, create=True) as table:
        table.add_task(NewTask(task_id="0", instruction="do it", title="a task that is found by whoever guesses"))
    return [at]


def test_whatever_is_sent(service: Running, past: None) -> None:
    """Every operation, with what fits its schema and what does not."""
    schema = schemathesis.openapi.from_dict(make_api().openapi()).exclude(path=list(LEFT_OUT))
    schema.config.update(base_url=service.url)
    excluded: list[Any] = [schemathesis.checks.CHECKS.get_one(name) for name in NOT_ASKED]
    asked = 0
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # a document of ours has no errors

        @hypothesis.settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            case.headers = {**(case.headers or {}), "authorization": service.admin.headers["authorization"]}
            nonlocal asked
            asked += 1
            answer = case.call()
            assert answer.status_code < 500, answer.text
            case.validate_response(answer, excluded_checks=excluded)

        ask()
    assert asked > 100


def test_the_document() -> None:
    """The document is OpenAPI 3.1, names every operation once, and every problem is a problem."""
    document = make_api().openapi()
    assert document["openapi"].startswith("3.1")
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))
    assert "FieldError" in document["components"]["schemas"]
    assert "prefixItems" not in json.dumps(document)
