"""What validators raise: pydantic, json and jsonschema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pydantic
import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence

HUGE = "do not repeat me " * 20_000


class Address(pydantic.BaseModel):
    street: str


class Person(pydantic.BaseModel):
    name: str
    age: int
    homes: list[Address]


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    evidence = evidence_of(error)
    assert evidence.phase is Phase.RESULT
    assert "do not repeat me do not repeat me" * 10 not in evidence.text
    assert len(evidence.text) < 8_000
    return evidence


def test_each_place_that_does_not_fit() -> None:
    """The model's name, then place, expectation and type of each error; never the input."""
    given = {"age": HUGE, "homes": [{"street": HUGE}, {"street": 5}]}
    evidence = seen(raised_by(lambda: Person.model_validate(given)))
    lines = evidence.text.splitlines()
    assert lines[0] == "3 validation errors for Person"
    assert lines[1] == "name: Field required [missing]"
    assert lines[2].startswith("age: Input should be a valid integer")
    assert lines[3] == "homes.1.street: Input should be a valid string [string_type]"
    assert "do not repeat me" not in evidence.text
    assert "pydantic_core._pydantic_core.ValidationError" in evidence.exceptions


def test_many_errors_are_counted_and_some_are_shown() -> None:
    """Of a thousand places twenty are enough."""
    evidence = seen(raised_by(lambda: Person.model_validate({"name": "x", "age": 1, "homes": [{}] * 1_000})))
    assert evidence.text.startswith("1000 validation errors for Person")
    assert len(evidence.text.splitlines()) == 21


def test_one_error_is_one() -> None:
    """A message counts as people do, and text that is no JSON at all is an error of the whole."""
    evidence = seen(raised_by(lambda: Address.model_validate_json(HUGE)))
    assert evidence.text.startswith("1 validation error for Address\n: Invalid JSON")


@pytest.mark.parametrize("document", ["", "{", HUGE, '{"a": ' + HUGE])
def test_json_that_breaks_off(document: str) -> None:
    """Where it broke, without the document."""
    evidence = seen(raised_by(lambda: json.loads(document)))
    assert "line 1 column" in evidence.text
    assert evidence.exceptions[0] == "json.decoder.JSONDecodeError"
    assert evidence.code == ""


def test_a_schema_that_is_not_met() -> None:
    """Place, rule and the start and end of the message; neither schema nor instance in full."""
    schema = {"type": "object", "properties": {"ages": {"type": "array", "items": {"type": "integer"}}}}
    evidence = seen(raised_by(lambda: jsonschema.validate({"ages": [1, HUGE]}, schema)))
    assert evidence.text.startswith("$.ages[1]: ")
    assert evidence.text.endswith("is not of type 'integer' [type]")


def test_a_mistake_in_the_model_is_not_an_answer() -> None:
    """What pydantic says about a class is no validation error."""
    wrong: Any = (object(), ...)
    error = raised_by(lambda: pydantic.create_model("Wrong", field=wrong))
    assert evidence_of(error).phase is Phase.CALL
