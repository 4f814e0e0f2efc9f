"""Optimistic locking: a write names the version that it replaces."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Header

from rung.service.problems import ApiProblem

MAX_VERSION_DIGITS: Final = 9  # fits an integer column
IfMatch = Annotated[
    str | None, Header(description='ETag of the version to replace, such as "3"; "0" if there is none yet.')
]


def expected_version(if_match: str | None) -> int:
    """Return the version of an If-Match header; raise a problem if it is missing or no version of ours."""
    if if_match is None:
        raise ApiProblem(
            428, 'If-Match is required: send the ETag of the version to replace ("0" if there is none yet)'
        )
    version = if_match.removeprefix("W/").strip('"')
    if not version.isascii() or not version.isdigit() or len(version) > MAX_VERSION_DIGITS:
        raise ApiProblem(412, "If-Match must be the ETag of the version that was read", field="If-Match")
    return int(version)
