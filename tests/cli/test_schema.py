"""The JSON Schemas are valid, and match what Rung writes and reads."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from rung import schemas
from rung.cli.group import root
from rung.core.domain.event_codec import to_json
from rung.core.domain.events import Status
from rung.core.domain.failures import GROUPS, Kind
from rung.core.domain.ladder import Action, Rung, RungScope
from rung.core.domain.level_record import level_records
from rung.core.domain.request import Request
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.parser import FILE_KEYS, POLICY_KEYS
from rung.core.policy.policy import Confirm, Model, Sticky
from rung.core.policy.presets import LADDERS
from rung.core.policy.prompts import PROMPTS
from rung.core.policy.serializer import policy_table
from rung.core.policy.templates import TEMPLATES, preset
from rung.engine.recover import recover_sync
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from rung.core.domain.outcome import Outcome

NAMES = ["alert", "doctor", "event", "hook", "level-record", "outcome", "partial", "pipeline-failure", "policy"]


def schema(name: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(schemas.text(name))
    return table


def validate(name: str, value: object) -> None:
    Draft202012Validator(schema(name)).validate(json.loads(json.dumps(value)))


def outcomes() -> list[Outcome[Any]]:
    """Return one outcome of each status, from real recoveries."""
    good, flaky = Script("fine"), Script(HttpError(529), "fine")
    down, no_key = Script(HttpError(529)), Script(HttpError(401))
    ran = [
        recover_sync(script, Request(prompt="x"), policy=preset(ladder).replace(report=""), clock=FakeClock())
        for script, ladder in ((good, "task"), (flaky, "task"), (down, "task"), (no_key, "pipeline"), (down, "call"))
    ]
    assert {outcome.status for outcome in ran} == set(Status)
    return ran


def test_the_list() -> None:
    """`rung schema` lists every schema with what it is for."""
    out = CliRunner().invoke(root, ["schema"]).output
    assert all(name in out for name in NAMES)
    listed = json.loads(CliRunner().invoke(root, ["schema", "--json"]).output)["schemas"]
    assert list(listed) == schemas.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one(name: str) -> None:
    """`rung schema NAME` prints a valid JSON Schema, 2020-12."""
    table = json.loads(CliRunner().invoke(root, ["schema", name]).output)
    Draft202012Validator.check_schema(table)
    assert table["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_outcomes_fulfil_theirs() -> None:
    """Every outcome matches the outcome schema, and the partial one also that of a forced end."""
    for outcome in outcomes():
        validate("outcome", outcome.to_dict())
        if outcome.status is Status.PARTIAL:
            validate("partial", outcome.to_dict())
        if not outcome.ok:
            validate("pipeline-failure", outcome.pipeline_failure())
        for record in level_records(outcome.events, LADDERS[outcome.ladder]):
            validate("level-record", record)
            if record["status"] == "in_progress":
                assert datetime.fromisoformat(record["enteredAt"]).tzinfo is not None
        for event in outcome.events:
            validate("event", to_json(event))


@pytest.mark.parametrize(
    "key", ["status", "completedSteps", "failedAt", "failureReason", "escalationPath", "recommendation"]
)
def test_the_forced_end_needs_all_of_it(key: str) -> None:
    """A partial result without one of its six fields is rejected; additional fields are allowed."""
    partial: dict[str, Any] = {
        "status": "partial",
        "completedSteps": [],
        "failedAt": "attempt 3",
        "failureReason": "timeout",
        "escalationPath": [1, 5],
        "recommendation": "Run it again.",
        "more": True,
    }
    validate("partial", partial)
    del partial[key]
    with pytest.raises(ValidationError):
        validate("partial", partial)


def test_a_failed_outcome_needs_its_reason() -> None:
    """A failed outcome without a reason is rejected."""
    contract = next(outcome for outcome in outcomes() if not outcome.ok).to_dict()
    with pytest.raises(ValidationError):
        validate("outcome", {**contract, "recommendation": None})


@pytest.mark.parametrize("ladder", LADDERS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_policies_fulfil_theirs(ladder: str, template: str) -> None:
    """Every built-in policy, serialized in full, matches the policy schema."""
    validate("policy", {"policy": policy_table(preset(ladder, template))})


def test_the_policy_schema_knows_every_key() -> None:
    """The policy schema and the parser have the same keys and choices."""
    assert set(schema("policy")["properties"]) == set(FILE_KEYS)
    defs = schema("policy")["$defs"]
    policy, ladder, rung = defs["policy"]["properties"], defs["ladder"]["properties"], defs["rung"]["properties"]
    assert set(policy) == set(POLICY_KEYS)
    assert set(ladder) == {"name", "rungs", "entry", "default_entry", "loops", "sizes", "base_level", "about"}
    for table, cls in (
        (rung, Rung),
        (defs["model"]["properties"], Model),
        (policy["backoff"]["properties"], Backoff),
        (policy["budget"]["properties"], Budget),
    ):
        assert set(table) == {field.name for field in fields(cls) if field.init}
    for choices, enum in (
        (rung["action"], Action),
        (rung["scope"], RungScope),
        (policy["confirm"], Confirm),
        (policy["sticky"], Sticky),
        (policy["template"], TEMPLATES),
        (policy["ladder"]["anyOf"][0], LADDERS),
        (defs["kind_or_group"], [*Kind, *GROUPS]),
    ):
        assert choices["enum"] == list(enum)
    assert set(policy["prompts"]["properties"]) == set(PROMPTS)


@pytest.mark.parametrize(
    "text", ["[polic]\n", "[policy]\natempts = 3\n", "[policy]\nseconds = -1\n", "[ladder]\nrungs = []\n"]
)
def test_the_policy_schema_refuses(text: str) -> None:
    """The schema rejects what the parser rejects."""
    with pytest.raises(ValidationError):
        validate("policy", tomllib.loads(text))
