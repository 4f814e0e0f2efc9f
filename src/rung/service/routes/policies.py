"""Policies over HTTP: read, checked whole, changed only by whoever has seen the version they change."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Response

from rung.core.domain.errors import ConfigError
from rung.core.domain.ladder import Action
from rung.core.policy.policy import ABOUT, TEMPLATES, preset, worst_case
from rung.core.policy.presets import LADDERS
from rung.core.policy.serializer import policy_table, to_toml
from rung.core.recovery.backtest import CANNOT_KNOW, replay, summary
from rung.service.app_context import Admin, Context, Reader
from rung.service.problems import PROBLEM_RESPONSES, ApiProblem
from rung.service.schemas.policies import (
    BacktestIn,
    BacktestOut,
    BacktestDifference,
    EffectivePolicy,
    PolicyIn,
    PolicyOut,
    ProjectPolicy,
    PolicyTemplate,
    PolicyValidation,
    PolicyValue,
)
from rung.store.queries.incident_replay import ended_incidents
from rung.store.settings import StoredSetting, put_setting
from rung.wiring.policies import POLICY_SETTING, project_key

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy
    from rung.service.app_context import AppContext

router = APIRouter(prefix="/api", tags=["policies"], responses=PROBLEM_RESPONSES)

SHOWN: Final = 100  # of the incidents that would have gone otherwise
Project = Annotated[str, Path(min_length=1, max_length=200)]
IfMatch = Annotated[str | None, Header(description='The version that is changed, as its ETag: "3"; "0" for none yet.')]


@router.get("/retry-policy")
def read_policy(hub: Context, _: Reader, response: Response) -> PolicyOut:
    """The policy in force where a project has none of its own."""
    return _shown(hub, "", response)


@router.put("/retry-policy")
def change_policy(policy: PolicyIn, hub: Context, who: Admin, response: Response, if_match: IfMatch = None) -> PolicyOut:
    """Set it, whole."""
    return _changed(hub, "", policy, who.name, if_match, response)


@router.get("/retry-policy/templates")
def templates(_: Reader, ladder: str = "task") -> list[PolicyTemplate]:
    """Policies to begin with, on a ladder."""
    if ladder not in LADDERS:
        raise ConfigError("ladder", ladder, "one of " + ", ".join(LADDERS))
    return [
        PolicyTemplate(
            id=name,
            about=ABOUT[name],
            policy=policy_out(
                preset(ladder, name), name, StoredSetting(name, {"ladder": ladder, "template": name}, 0, 0, "")
            ),
        )
        for name in TEMPLATES
    ]


@router.post("/retry-policy/validate")
def validate(policy: PolicyIn, hub: Context, _: Reader, project: str = "") -> PolicyValidation:
    """What would be in force; or what is wrong with it, and what is allowed."""
    try:
        table = policy_settings(policy)
        made = hub.policies.with_stored(table, project)
    except ConfigError as error:
        return PolicyValidation(
            valid=False, field=_short(error.key), message=f"{error.value!r} is invalid; must be {error.allowed}"
        )
    stored = hub.policies.stored(project)
    return PolicyValidation(valid=True, policy=policy_out(made, project or "default", stored._replace(body=table)))


@router.post("/backtest")
def backtest(asked: BacktestIn, hub: Context, _: Reader) -> BacktestOut:
    """What would this policy have done about the recorded incidents?"""
    made = hub.policies.with_stored(policy_settings(asked.policy), asked.project or "")
    unreadable: list[str] = []
    replayed = [
        replay(events, made)
        for events in ended_incidents(hub.journal, unreadable, since=asked.since, project=asked.project)
    ]
    total = summary(replayed)
    differing = [
        BacktestDifference(incident=found.incident, words=found.words(), was=str(found.was_status or ""))
        for found in replayed
        if not found.same
    ]
    return BacktestOut(
        incidents=total.incidents, same=total.same, fewer=total.fewer, otherwise=total.otherwise, unknown=total.unknown,
        good_lost=total.good_lost, attempts_saved=total.attempts_saved, seconds_saved=total.seconds_saved,
        dollars_saved=total.dollars_saved, differing=differing[-SHOWN:], cannot_know=list(CANNOT_KNOW),
    )  # fmt: skip


@router.get("/projects/retry-policies")
def project_policies(hub: Context, _: Reader) -> list[ProjectPolicy]:
    """The projects that have settings of their own."""
    return [
        ProjectPolicy(project=one.name.removeprefix(POLICY_SETTING + "/"), version=one.version, at=one.at, who=one.who)
        for one in hub.policies.projects()
    ]


@router.get("/projects/{project:path}/retry-policy")
def read_project_policy(project: Project, hub: Context, _: Reader, response: Response) -> PolicyOut:
    """The policy in force for a project."""
    return _shown(hub, project, response)


@router.put("/projects/{project:path}/retry-policy")
def change_project_policy(
    project: Project, policy: PolicyIn, hub: Context, who: Admin, response: Response, if_match: IfMatch = None
) -> PolicyOut:
    """Set a project's own, whole; what it leaves out it has from the default."""
    return _changed(hub, project, policy, who.name, if_match, response)


@router.get("/projects/{project:path}/retry-policy/effective")
def effective(project: Project, hub: Context, _: Reader) -> EffectivePolicy:
    """Every value in force for a project, and where it comes from."""
    values = [
        PolicyValue(key=key, value=value, origin=origin)  # type: ignore[arg-type]  # our own words
        for key, (value, origin) in hub.policies.origins(project).items()
    ]
    out = policy_out(hub.policies.effective(project), project, hub.policies.stored(project))
    return EffectivePolicy(project=project, policy=out, values=values)


def _shown(hub: AppContext, project: str, response: Response) -> PolicyOut:
    stored = hub.policies.stored(project)
    response.headers["etag"] = f'"{stored.version}"'
    return policy_out(hub.policies.effective(project), project or "default", stored)


def _changed(
    hub: AppContext, project: str, policy: PolicyIn, who: str, if_match: str | None, response: Response
) -> PolicyOut:
    if if_match is None:
        raise ApiProblem(428, 'say which version you change: the header If-Match with its ETag ("0" for none yet)')
    version = if_match.removeprefix("W/").strip('"')
    if not version.isascii() or not version.isdigit() or len(version) > 9:  # noqa: PLR2004  # no version is that long
        raise ApiProblem(412, "the header If-Match must have the ETag that was read", field="If-Match")
    table = policy_settings(policy)
    made = hub.policies.with_stored(table, project)
    stored = put_setting(hub.journal, project_key(project) if project else POLICY_SETTING, table, who, expected=int(version))
    response.headers["etag"] = f'"{stored.version}"'
    return policy_out(made, project or "default", stored)


# -- between the wire and our own tables --------------------------------------------------------------

SHORT: Final = {
    "maxRetries": "retries",
    "backoffBase": "backoff.base",
    "backoffMultiplier": "backoff.multiplier",
    "maxBackoff": "backoff.cap",
    "retryableErrors": "retry",
    "autoEscalate": "auto_escalate",
    "escalateAfterRetries": "escalate_after",
    "name": "name",
}


def policy_settings(policy: PolicyIn) -> dict[str, Any]:
    """What is set: the TOML or the settings, and the short names over them."""
    if policy.toml is not None and policy.settings is not None:
        raise ApiProblem(422, "give `toml` or `settings`, not both", field="toml")
    table = _parsed(policy.toml) if policy.toml is not None else dict(policy.settings or {})
    told = policy.model_dump(by_alias=True, exclude_none=True)
    for short, key in SHORT.items():
        if short not in told:
            continue
        outer, _, inner = key.partition(".")
        if inner:
            within = table.get(outer, {})
            if not isinstance(within, dict):
                raise ConfigError(outer, within, "a table")
            table[outer] = {**within, inner: told[short]}
        else:
            table[outer] = told[short]
    return table


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ApiProblem(422, f"toml: is not TOML: {error}", field="toml") from None


def _short(key: str) -> str:
    """The name on the wire of one of our keys, where it has one."""
    own = key.removeprefix("policy.")
    return next((short for short, one in SHORT.items() if one == own), own)


def policy_out(policy: Policy, name: str, stored: StoredSetting) -> PolicyOut:
    """A policy as it is sent."""
    retries = sum(rung.tries for rung in policy.ladder.rungs if rung.action is Action.RETRY)
    most = worst_case(policy)
    table = dict(stored.body or {})
    if "ladder" in table and not isinstance(table["ladder"], str | dict):
        table.pop("ladder")
    full = policy_table(policy)
    return PolicyOut(
        id=name,
        name=policy.name,
        max_retries=retries,
        backoff_base=policy.backoff.base,
        backoff_multiplier=policy.backoff.multiplier,
        max_backoff=policy.backoff.cap,
        retryable_errors=full["retry"],
        auto_escalate=policy.auto_escalate,
        escalate_after_retries=policy.escalate_after,
        ladder=policy.ladder.name,
        version=stored.version,
        settings=table,
        toml=to_toml(table),
        worst_attempts=most.attempts,
        worst_seconds=most.seconds,
        worst_dollars=most.dollars,
        waits=[policy.backoff.ceiling(n) for n in range(1, min(retries, 10) + 1)],
    )
