"""Policies as the API writes them: from named fields, settings or TOML to a table of settings, and which version it replaces.

A body may be the whole policy that a GET returned. It then carries `version`, settings and values that only a GET
computes. A named field beside settings counts if it differs from what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.classify.error_types import ErrorType, with_covered
from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import Kind
from rung.core.policy.serializer import to_toml
from rung.core.text.toml_document import TomlError, check_document, parse_toml
from rung.service.if_match import expected_version
from rung.service.problems import ApiProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.policy.policy import Policy
    from rung.service.schemas.policies import PolicyIn
    from rung.wiring.policies import PolicyStore

T = TypeVar("T")

DEFAULT_ID: Final = "default"
FIELD_NAMES: Final = {
    "maxRetries": "retries",
    "backoffBase": "backoff.base",
    "backoffMultiplier": "backoff.multiplier",
    "maxBackoff": "backoff.cap",
    "retryableErrors": "retry",
    "autoEscalate": "auto_escalate",
    "escalateAfterRetries": "escalate_after",
    "name": "name",
}
# Fields that the API adds to those of a retry policy.
MORE_FIELD_NAMES: Final = {"jitter": "backoff.jitter", "attemptSeconds": "attempt_seconds"}
_ALL_FIELD_NAMES: Final = {**FIELD_NAMES, **MORE_FIELD_NAMES}


def field_values(policy: Policy) -> dict[str, Any]:
    """Return the named fields of a policy. An error type is listed if the policy lists the kind of its name."""
    retries = policy.retries
    return {
        "name": policy.name,
        "maxRetries": retries,
        "backoffBase": policy.backoff.base,
        "backoffMultiplier": policy.backoff.multiplier,
        "maxBackoff": policy.backoff.cap,
        "retryableErrors": [each.value for each in ErrorType if Kind(each) in policy.retry],
        "autoEscalate": policy.auto_escalate,
        "escalateAfterRetries": retries if policy.escalate_after is None else policy.escalate_after,
        "jitter": policy.backoff.jitter,
        "attemptSeconds": policy.attempt_seconds,
    }


def retryable_kinds(policy: Policy) -> list[str]:
    """Return the kinds that a policy retries, with those that an error type covers."""
    return sorted(with_covered(policy.retry))


def policy_settings(policy: PolicyIn, policies: PolicyStore, project: str = "") -> dict[str, Any]:
    """Return the settings of a body: its TOML or settings, and the named fields that say something else."""
    table = _written_settings(policy)
    fields = policy.model_dump(by_alias=True, exclude_none=True)
    has_settings = policy.toml is not None or policy.settings is not None
    said = field_values(policies.with_stored(table, project)) if has_settings else {}
    shown = field_values(policies.effective(project))["retryableErrors"]
    for name, key in _ALL_FIELD_NAMES.items():
        if name not in fields or fields[name] == said.get(name):
            continue
        if name == "retryableErrors" and not has_settings and fields[name] == shown:
            _keep_kinds(table, policies.stored(project).body or {})
        else:
            _set(table, key, fields[name])
    _check_ladder(policy, policies, table, project)
    return table


def _keep_kinds(table: dict[str, Any], stored: dict[str, Any]) -> None:
    """Keep the kinds that are stored: the error types that a GET showed stand for them."""
    if "retry" in stored:
        table["retry"] = stored["retry"]


def _check_ladder(policy: PolicyIn, policies: PolicyStore, table: dict[str, Any], project: str) -> None:
    """Raise a problem if the body names another ladder than the one that its settings choose."""
    if policy.ladder is None:
        return
    name = policies.with_stored(table, project).ladder.name
    if policy.ladder != name:
        raise ApiProblem(
            422, f"ladder: {policy.ladder!r} is not {name!r}; set `settings.ladder` instead", field="ladder"
        )


def _written_settings(policy: PolicyIn) -> dict[str, Any]:
    """Return the settings of a body without its named fields; TOML and settings must say the same."""
    settings = dict(policy.settings or {})
    _check("settings", lambda: check_document(settings))
    if policy.toml is None:
        return settings
    toml = policy.toml
    table: dict[str, Any] = _check("toml", lambda: parse_toml(toml))
    _check("toml", lambda: check_document(table))
    if policy.settings is not None and parse_toml(to_toml(settings)) != table:
        raise ApiProblem(422, "`toml` and `settings` contradict each other: send one of them", field="toml")
    return table


def _check(field: str, read: Callable[[], T]) -> T:
    """Return what a function reads from a field; raise a problem that names the field."""
    try:
        return read()
    except TomlError as error:
        raise ApiProblem(422, f"{field}: {error}", field=field) from None


def _set(table: dict[str, Any], key: str, value: Any) -> None:
    outer, _, inner = key.partition(".")
    if not inner:
        table[outer] = value
        return
    within = table.get(outer, {})
    if not isinstance(within, dict):
        raise ConfigError(outer, within, "a table")
    table[outer] = {**within, inner: value}


def replaced_version(policy: PolicyIn, if_match: str | None) -> int | None:
    """Return the version that a body replaces; None: whichever there is.

    If-Match names it, else the body's `version`. Only a body with all named fields and nothing else may name none.
    """
    if if_match is not None:
        return expected_version(if_match)
    if policy.version is not None:
        return policy.version
    fields = policy.model_dump(by_alias=True, exclude_none=True)
    is_whole = all(name in fields for name in FIELD_NAMES) and policy.toml is None and policy.settings is None
    return None if is_whole else expected_version(None)


def check_id(policy: PolicyIn, project: str) -> None:
    """Raise a problem if the body's id is not that of the path."""
    expected = project or DEFAULT_ID
    if policy.id is not None and policy.id != expected:
        raise ApiProblem(422, f"id: {policy.id!r} contradicts the path; must be {expected!r} or left out", field="id")


def field_name(key: str) -> str:
    """Return the API's field name of a settings key, if it has one."""
    own = key.removeprefix("policy.")
    return next((field for field, one in _ALL_FIELD_NAMES.items() if one == own), own)
