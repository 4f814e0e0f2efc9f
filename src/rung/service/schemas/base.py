"""Base model, shared field types and the response shared by all write routes.

Names are camelCase on the wire; times are UTC seconds; unknown fields are rejected.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from rung.core.text.when import ALLOWED, parse_when


class ApiModel(BaseModel):
    """Base of all request and response models; rejects unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", allow_inf_nan=False)


def _check_integer(value: Any) -> Any:
    """Reject booleans and strings, which pydantic would coerce; 3.0 still counts as the integer 3."""
    if isinstance(value, bool | str):
        raise ValueError("must be a whole number")  # noqa: TRY004  # pydantic turns ValueError into a validation error
    return value


def _check_number(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("must be a number")  # noqa: TRY004  # pydantic turns ValueError into a validation error
    return value


def _read_moment(value: Any) -> Any:
    """Read a time that is no number: an age, a date or an ISO 8601 time."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return float(value)
    try:
        return parse_when(value, time.time())
    except ValueError:
        raise ValueError(f"must be {ALLOWED}") from None


StrictInteger = Annotated[int, BeforeValidator(_check_integer), WithJsonSchema({"type": "integer"})]
StrictNumber = Annotated[float, BeforeValidator(_check_number), WithJsonSchema({"type": "number"})]
Moment = Annotated[  # as a query parameter
    float | None,
    Field(ge=0, le=1e11, allow_inf_nan=False, description=f"{ALLOWED[0].upper()}{ALLOWED[1:]}."),
    BeforeValidator(_read_moment),
    WithJsonSchema({"type": ["number", "string", "null"]}),
]
ShortText = Annotated[str, Field(max_length=200)]
LongText = Annotated[str, Field(max_length=200_000)]


class ActionResult(ApiModel):
    """Result of a write request."""

    how: Literal["ordered", "replayed", "estimated", "answered", "switched", "said"]
    incident: str | None = None
    note: str = ""
