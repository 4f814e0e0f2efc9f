"""Status and headers of a response that help to classify a failure or to time its retry."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.untrusted_objects import attribute
from rung.core.domain.failures import NO_HEADERS

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_HEADERS: Final = 100


def status_of(*holders: object) -> int | None:
    """Return the HTTP status of the first object that has one."""
    for holder in holders:
        if holder is None:
            continue
        for name in ("status_code", "status", "code"):
            try:
                value = getattr(holder, name, None)
            except Exception:  # noqa: S112  # inlined `attribute()`: this runs for every exception
                continue
            if isinstance(value, int) and 100 <= value <= 599:
                return int(value)
    return None


def headers_of(*holders: object) -> Mapping[str, str]:
    """Return the diagnostic headers of the first object that has any."""
    for holder in holders:
        raw = None if holder is None else attribute(holder, "headers")
        headers = NO_HEADERS if raw is None else diagnostic_headers(raw)
        if headers:
            return headers
    return NO_HEADERS


# Headers that help to classify a failure or to time its retry. Cookies and keys must never be stored.
_is_diagnostic: Final = re.compile(
    r"retry|ratelimit|rate-limit|content-type|request-id|^date$|^server$|^x-codex-.*(?:percent|reset)|^x-quota-snapshot"
    r"|^x-amzn-errortype$"
).search


def code_in_headers(headers: Mapping[str, str]) -> str:
    """Return the error code of AWS, such as ThrottlingException: its body may only have a message."""
    code = headers.get("x-amzn-errortype", "") if headers else ""
    return code.partition(":")[0].rpartition("#")[2] if code else ""


def diagnostic_headers(headers: Any) -> Mapping[str, str]:
    """Return the diagnostic headers, with lower-case names."""
    try:
        named = ((str(name).lower(), value) for name, value in islice(headers.items(), _MAX_HEADERS))
        return {name: str(value)[:200] for name, value in named if _is_diagnostic(name)}
    except Exception:  # not a mapping, or one that raises
        return NO_HEADERS
