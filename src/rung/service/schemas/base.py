"""Base model, shared field types and the response shared by all write routes.

Names are camelCase on the wire; times are UTC seconds; unknown fields are rejected.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """What is sent and taken; a field that does not exist is refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", allow_inf_nan=False)


def _whole(value: Any) -> Any:
    """JSON knows one kind of number: 3.0 is 3; but true is none, and neither is a text."""
    if isinstance(value, bool | str):
        raise ValueError("a whole number is wanted")  # noqa: TRY004  # pydantic's way
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("a number is wanted")  # noqa: TRY004  # pydantic's way
    return value


StrictInteger = Annotated[int, BeforeValidator(_whole), WithJsonSchema({"type": "integer"})]
StrictNumber = Annotated[float, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
ShortText = Annotated[str, Field(max_length=200)]
LongText = Annotated[str, Field(max_length=200_000)]


class ActionResult(ApiModel):
    """What came of an act."""

    how: Literal["ordered", "replayed", "answered", "switched", "said"]
    incident: str | None = None
    note: str = ""
