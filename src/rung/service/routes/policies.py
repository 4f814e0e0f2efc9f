"""Policy routes: read, validate, backtest and change policies, with optimistic locking by ETag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path, Response

from rung.core.domain.errors import ConfigError
from rung.core.policy.presets import LADDERS
from rung.core.policy.serializer import to_toml
from rung.core.policy.templates import TEMPLATE_DESCRIPTIONS, TEMPLATES, preset
from rung.core.policy.worst_case import worst_case
from rung.core.recovery.backtest import LIMITATIONS, replay, summarize
from rung.service.app_context import Admin, Context, Reader
from rung.service.if_match import IfMatch
from rung.service.policy_form import (
    DEFAULT_ID,
    check_id,
    field_name,
    field_values,
    policy_settings,
    replaced_version,
    retryable_kinds,
)
from rung.service.problems import PROBLEM_RESPONSES
from rung.service.schemas.policies import (
    BacktestDifference,
    BacktestIn,
    BacktestOut,
    EffectivePolicy,
    PolicyIn,
    PolicyOut,
    PolicyTemplate,
    PolicyValidation,
    PolicyValue,
    ProjectPolicy,
)
from rung.store.queries.incident_replay import ended_incidents
from rung.store.settings import StoredSetting, put_setting
from rung.wiring.policies import POLICY_SETTING, project_key

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy
    from rung.service.app_context import AppContext

router = APIRouter(prefix="/api", tags=["policies"], responses=PROBLEM_RESPONSES)

MAX_DIFFERENCES: Final = 100  # in a backtest response, the newest
Project = Annotated[str, Path(min_length=1, max_length=200)]


@router.get("/retry-policy")
def read_policy(context: Context, _: Reader, response: Response) -> PolicyOut:
    """The default policy, used by projects without their own settings."""
    return _read(context, "", response)


@router.put("/retry-policy")
def change_policy(
    policy: PolicyIn, context: Context, principal: Admin, response: Response, if_match: IfMatch = None
) -> PolicyOut:
    """Replace the default policy.

    The body may be what a GET returned: its `version` then protects it against a lost update, as `If-Match` does.
    """
    return _replace(context, "", policy, principal.name, if_match, response)


@router.get("/retry-policy/templates")
def templates(_: Reader, ladder: str = "task") -> list[PolicyTemplate]:
    """Policy templates for a ladder."""
    if ladder not in LADDERS:
        raise ConfigError("ladder", ladder, "one of " + ", ".join(LADDERS))
    return [
        PolicyTemplate(
            id=name,
            about=TEMPLATE_DESCRIPTIONS[name],
            policy=policy_out(
                preset(ladder, name), name, StoredSetting(name, {"ladder": ladder, "template": name}, 0, 0, "")
            ),
        )
        for name in TEMPLATES
    ]


@router.post("/retry-policy/validate")
def validate(policy: PolicyIn, context: Context, _: Reader, project: str = "") -> PolicyValidation:
    """Validate a policy; return the resulting policy, or the invalid field and the allowed values."""
    try:
        table = policy_settings(policy, context.policies, project)
        candidate = context.policies.with_stored(table, project)
    except ConfigError as error:
        return PolicyValidation(
            valid=False, field=field_name(error.key), message=f"{error.value!r} is invalid; must be {error.allowed}"
        )
    stored = context.policies.stored(project)
    return PolicyValidation(
        valid=True, policy=policy_out(candidate, project or DEFAULT_ID, stored._replace(body=table))
    )


@router.post("/backtest")
def backtest(body: BacktestIn, context: Context, principal: Reader) -> BacktestOut:
    """Replay recorded incidents against a policy and compare its decisions."""
    candidate = context.policies.with_stored(
        policy_settings(body.policy, context.policies, body.project or ""), body.project or ""
    )
    unreadable: list[str] = []
    with context.heavy.slot(principal):
        replayed = [
            replay(events, candidate)
            for events in ended_incidents(context.journal, unreadable, since=body.since, project=body.project)
        ]
    total = summarize(replayed)
    differing = [
        BacktestDifference(incident=found.incident, words=found.describe(), was=str(found.was_status or ""))
        for found in replayed
        if not found.is_same
    ]
    return BacktestOut(
        incidents=total.incidents, same=total.same, fewer=total.fewer, otherwise=total.otherwise, unknown=total.unknown,
        good_lost=total.good_lost, attempts_saved=total.attempts_saved, seconds_saved=total.seconds_saved,
        dollars_saved=total.dollars_saved, differing=differing[-MAX_DIFFERENCES:], cannot_know=list(LIMITATIONS),
    )  # fmt: skip


@router.get("/projects/retry-policies")
def project_policies(context: Context, _: Reader) -> list[ProjectPolicy]:
    """Projects with their own policy settings."""
    return [
        ProjectPolicy(project=one.name.removeprefix(POLICY_SETTING + "/"), version=one.version, at=one.at, who=one.who)
        for one in context.policies.projects()
    ]


@router.get("/projects/{project:path}/retry-policy")
def read_project_policy(project: Project, context: Context, _: Reader, response: Response) -> PolicyOut:
    """The effective policy of a project."""
    return _read(context, project, response)


@router.put("/projects/{project:path}/retry-policy")
def change_project_policy(
    project: Project, policy: PolicyIn, context: Context, principal: Admin, response: Response, if_match: IfMatch = None
) -> PolicyOut:
    """Replace a project's policy settings; omitted values come from the default policy. See the default policy's PUT."""
    return _replace(context, project, policy, principal.name, if_match, response)


@router.get("/projects/{project:path}/retry-policy/effective")
def effective(project: Project, context: Context, _: Reader) -> EffectivePolicy:
    """Every effective value of a project, with the layer that sets it."""
    values = [
        PolicyValue(key=key, value=value, origin=origin)  # type: ignore[arg-type]  # a literal of PolicyValue.origin
        for key, (value, origin) in context.policies.origins(project).items()
    ]
    out = policy_out(context.policies.effective(project), project, context.policies.stored(project))
    return EffectivePolicy(project=project, policy=out, values=values)


def _read(context: AppContext, project: str, response: Response) -> PolicyOut:
    stored = context.policies.stored(project)
    response.headers["etag"] = f'"{stored.version}"'
    return policy_out(context.policies.effective(project), project or DEFAULT_ID, stored)


def _replace(
    context: AppContext, project: str, policy: PolicyIn, principal: str, if_match: str | None, response: Response
) -> PolicyOut:
    check_id(policy, project)
    version = replaced_version(policy, if_match)
    table = policy_settings(policy, context.policies, project)
    candidate = context.policies.with_stored(table, project)
    stored = put_setting(
        context.journal, project_key(project) if project else POLICY_SETTING, table, principal, expected=version
    )
    response.headers["etag"] = f'"{stored.version}"'
    return policy_out(candidate, project or DEFAULT_ID, stored)


# -- conversion to schemas ----------------------------------------------------------------------------


def policy_out(policy: Policy, name: str, stored: StoredSetting) -> PolicyOut:
    """Return the response model of a policy."""
    fields = field_values(policy)
    worst = worst_case(policy)
    table = dict(stored.body or {})
    if "ladder" in table and not isinstance(table["ladder"], str | dict):
        table.pop("ladder")
    return PolicyOut(
        id=name,
        **fields,
        retryable_kinds=retryable_kinds(policy),
        ladder=policy.ladder.name,
        version=stored.version,
        settings=table,
        toml=to_toml(table),
        worst_attempts=worst.attempts,
        worst_seconds=worst.seconds,
        worst_dollars=worst.dollars,
        waits=[policy.backoff.ceiling(n) for n in range(1, min(fields["maxRetries"], 10) + 1)],
    )
