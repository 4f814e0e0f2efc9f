"""Suggest changes of a policy from recorded incidents: later entry rungs, and fewer tries.

A rung is left out for a kind if the upper end of its success rate's interval is below the lower end of the next rung's. Tries
of a rung are left out if a later rung surely succeeds more often, or if none of many ever succeeded. A change must pay: an incident that a left-out
try had fixed costs more later. Suggestions only leave tries out: rungs that were never tried have no data. One rung that makes
an attempt stays for each kind, and the end of the ladder always stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import Kind
from rung.core.domain.ladder import ENDING_ACTIONS, WAITING_ACTIONS
from rung.core.recovery.ladder_path import ladder_path
from rung.core.recovery.success_rate import SuccessRate, probability_higher
from rung.core.recovery.try_estimates import SavingEstimate, estimate_saving, rate_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rung.core.policy.policy import Policy
    from rung.core.recovery.rung_tries import RungTry, TriedIncident

MIN_INCIDENTS: Final = 30  # of a kind, before anything is suggested for it
HOPELESS_RATE: Final = 0.12  # tries without a success are left out if their rate is surely below this
MIN_GROUP_TRIES: Final = 10  # of a model, project or kind, before it can contradict all others

ASSUMPTIONS: Final = (
    "Rungs that were not tried have no data, and rungs were tried only after those below them had failed: nothing is suggested that the journal did not try.",
    "An incident that a left-out try had fixed is assumed to do as well on the later rungs as the incidents that reached them.",
    "Each interval holds with 95 % by itself. Of many suggestions some are chance: backtest, and suggest again after the next incidents.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """One suggested change: a later entry rung of a kind (`entry`), or fewer tries of a rung (`tries`)."""

    setting: str
    key: str  # kind, or name of the rung
    value: str | int
    was: str | int
    project: str  # empty: all
    incidents: int  # that it rests on
    left_out: SuccessRate
    instead_rung: str  # a later rung that succeeds more often; empty: none does
    instead: SuccessRate | None  # of its first tries
    sure: float | None  # probability that it succeeds more often
    saving: SavingEstimate
    models: tuple[tuple[str, SuccessRate], ...] = ()  # rate of the tries left out, by model


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Suggested changes, and what there is too little data for."""

    incidents: int  # with a failure, on the policy's ladder
    elsewhere: int  # on another ladder: not used
    changes: tuple[PolicyChange, ...]
    too_few: tuple[tuple[str, int], ...]  # kinds with fewer incidents than needed
    never_fixed: tuple[tuple[str, int, int], ...]  # kinds without a recovery: incidents, tries
    needed: int = MIN_INCIDENTS

    @property
    def is_enough(self) -> bool:
        """Whether there are enough incidents to suggest anything."""
        return self.incidents >= self.needed

    def table(self) -> dict[str, Any]:
        """Return the changes as tables of a policy file."""
        tables: dict[str, Any] = {}
        for change in self.changes:
            where = tables.setdefault("projects", {}).setdefault(change.project, {}) if change.project else None
            target = tables.setdefault("policy", {}) if where is None else where
            target.setdefault(change.setting, {})[change.key] = change.value
        return tables


def suggest(
    incidents: Iterable[TriedIncident], policy_of: Callable[[str], Policy], project: str | None = None
) -> Suggestion:
    """Suggest changes of the policies of these incidents; `policy_of` returns that of a project, "" the default.

    If all incidents are those of one `project`, the changes are made for it alone.
    """
    every = [incident for incident in incidents if incident.tries]
    usable = [one for one in every if _is_on_ladder(one, policy_of(one.project))]
    by_kind = Counter(kind for incident in usable for kind in _kinds(incident))
    return Suggestion(
        incidents=len(usable),
        elsewhere=len(every) - len(usable),
        changes=tuple(_all_changes(usable, policy_of, project) if len(usable) >= MIN_INCIDENTS else ()),
        too_few=tuple((kind.value, n) for kind, n in sorted(by_kind.items()) if n < MIN_INCIDENTS),
        never_fixed=tuple(_never_fixed(usable, by_kind)),
    )


def _all_changes(
    incidents: Sequence[TriedIncident], policy_of: Callable[[str], Policy], project: str | None
) -> list[PolicyChange]:
    """Return the changes for all projects, and those for single projects that differ."""
    changes: list[PolicyChange] = []
    if not project:
        base = policy_of("")
        changes += _changes([one for one in incidents if _is_on_ladder(one, base)], base, "")
    known = {(one.setting, one.key): one.value for one in changes}
    for name in sorted({one.project for one in incidents} - {""}):
        own = _changes([one for one in incidents if one.project == name], policy_of(name), name)
        changes += [one for one in own if known.get((one.setting, one.key)) != one.value]
    return changes


def _is_on_ladder(incident: TriedIncident, policy: Policy) -> bool:
    """Whether an incident used the policy's ladder, with the rungs that it has now."""
    names = {rung.name for rung in policy.ladder.rungs}
    return incident.ladder == policy.ladder.name and names >= {one.rung for one in incident.tries}


def _kinds(incident: TriedIncident) -> set[Kind]:
    return {one.kind for one in incident.tries}


def _never_fixed(incidents: Sequence[TriedIncident], by_kind: Counter[Kind]) -> Iterable[tuple[str, int, int]]:
    for kind, count in sorted(by_kind.items()):
        rate = rate_of(one for incident in incidents for one in incident.tries if one.kind is kind)
        if count >= MIN_INCIDENTS and not rate.succeeded:
            yield kind.value, count, rate.tried


def _changes(incidents: Sequence[TriedIncident], policy: Policy, project: str) -> list[PolicyChange]:
    """Return the changes that the incidents of one scope suggest: entries by kind, then tries by rung."""
    entries = [
        change
        for kind in Kind
        if (change := _later_entry(_with_kind(incidents, kind), policy, kind, project)) is not None
        and change.saving.pays
    ]
    moved = {Kind(change.key): str(change.value) for change in entries}
    reached = _on_path(incidents, policy, moved)
    tries = [_fewer_tries(reached, policy, index, project) for index in range(len(policy.ladder.rungs))]
    return [*entries, *(change for change in tries if change is not None and change.saving.pays)]


def _on_path(incidents: Sequence[TriedIncident], policy: Policy, moved: Mapping[Kind, str]) -> list[TriedIncident]:
    """Return the incidents with those tries alone that the policy with the moved entries would make, too."""
    paths: dict[Kind, set[str]] = {}
    for kind in Kind:
        lowest = policy.ladder.index(moved[kind]) if kind in moved else 0
        paths[kind] = {policy.ladder.rungs[index].name for index in ladder_path(policy, kind) if index >= lowest}
    kept = (one._replace(tries=tuple(each for each in one.tries if each.rung in paths[each.kind])) for one in incidents)
    return [one for one in kept if one.tries]


def _with_kind(incidents: Sequence[TriedIncident], kind: Kind) -> list[TriedIncident]:
    """Return the incidents with a try after a failure of this kind, with these tries alone."""
    kept = (one._replace(tries=tuple(each for each in one.tries if each.kind is kind)) for one in incidents)
    return [one for one in kept if one.tries]


def _later_entry(incidents: Sequence[TriedIncident], policy: Policy, kind: Kind, project: str) -> PolicyChange | None:
    """Return the change to a later entry rung of this kind, if the rungs below it succeed less often."""
    path = ladder_path(policy, kind)
    if len(incidents) < MIN_INCIDENTS or len(path) < 2 or (kind is Kind.LOOP_DETECTED and policy.ladder.loops):  # noqa: PLR2004  # a rung stays
        return None
    names = [policy.ladder.rungs[index].name for index in path]
    tries = [one for incident in incidents for one in incident.tries]
    kept = _first_kept(names, tries)
    skipped = set(names[: names.index(kept)])
    left_out, instead = _rate(tries, skipped), _first_rate(tries, kept)
    if not skipped or not left_out.tried or _contradicts(incidents, skipped, instead):
        return None
    later = set(names) - skipped
    return PolicyChange(
        setting="entry",
        key=kind.value,
        value=kept,
        was=policy.ladder.entry.get(kind, policy.ladder.default_entry),
        project=project,
        incidents=len(incidents),
        left_out=left_out,
        instead_rung=kept,
        instead=instead,
        sure=probability_higher(instead, left_out),
        saving=estimate_saving(incidents, lambda one: one.rung in skipped, lambda one: one.rung in later),
        models=_by_model(incidents, lambda one: one.rung in skipped),
    )


def _first_kept(names: Sequence[str], tries: Sequence[RungTry]) -> str:
    """Return the lowest of these rungs that stays: each below succeeds surely less often than the next that stays."""
    kept = names[-1]
    for name in reversed(names[:-1]):
        instead = _first_rate(tries, kept)
        if not (_first_rate(tries, name).is_below(instead) and _rate(tries, {name}).is_below(instead)):
            kept = name
    return kept


def _rate(tries: Iterable[RungTry], rungs: set[str]) -> SuccessRate:
    return rate_of(one for one in tries if one.rung in rungs)


def _first_rate(tries: Iterable[RungTry], rung: str) -> SuccessRate:
    return rate_of(one for one in tries if one.rung == rung and one.number == 1)


def _contradicts(incidents: Sequence[TriedIncident], skipped: set[str], instead: SuccessRate) -> bool:
    """Whether a project or a model does well with the tries that all together would leave out."""
    groups: dict[tuple[str, str], list[RungTry]] = {}
    for incident in incidents:
        for key in (("project", incident.project), ("model", incident.model)):
            groups.setdefault(key, []).extend(one for one in incident.tries if one.rung in skipped)
    return any(_does_well(rate_of(tries), instead) for tries in groups.values())


def _does_well(rate: SuccessRate, instead: SuccessRate) -> bool:
    return rate.tried >= MIN_GROUP_TRIES and rate.share >= instead.low


def _by_model(
    incidents: Sequence[TriedIncident], is_left_out: Callable[[RungTry], bool]
) -> tuple[tuple[str, SuccessRate], ...]:
    tries: dict[str, list[RungTry]] = {}
    for incident in incidents:
        tries.setdefault(incident.model, []).extend(filter(is_left_out, incident.tries))
    rates = {model: rate_of(each) for model, each in sorted(tries.items())}
    return tuple((model, rate) for model, rate in rates.items() if model and rate.tried >= MIN_GROUP_TRIES)


def _fewer_tries(incidents: Sequence[TriedIncident], policy: Policy, index: int, project: str) -> PolicyChange | None:
    """Return the change to fewer tries of a rung, if its last ones fix less than what follows, or nothing."""
    ladder, rung = policy.ladder, policy.ladder.rungs[index]
    if rung.action in ENDING_ACTIONS or rung.action in WAITING_ACTIONS:
        return None
    tries = [one for incident in incidents for one in incident.tries]
    later = {each.name for each in ladder.rungs[index + 1 :]}
    rates = {name: rate for name in later if (rate := _first_rate(tries, name)).tried}
    best = max(sorted(rates), key=lambda name: rates[name].low, default="")
    instead = rates.get(best)
    for keep in range(1, rung.tries):
        tail = [one for one in tries if one.rung == rung.name and one.number > keep]
        if _may_leave_out(tail, instead):
            break
    else:
        return None

    def is_left_out(one: RungTry) -> bool:
        return one.rung == rung.name and one.number > keep

    rests_on = sum(any(map(is_left_out, incident.tries)) for incident in incidents)
    rate = rate_of(tail)
    return PolicyChange(
        setting="tries",
        key=rung.name,
        value=keep,
        was=rung.tries,
        project=project,
        incidents=rests_on,
        left_out=rate,
        instead_rung=best,
        instead=instead,
        sure=None if instead is None else probability_higher(instead, rate),
        saving=estimate_saving(incidents, is_left_out, lambda one: one.rung in later),
        models=_by_model(incidents, is_left_out),
    )


def _may_leave_out(tail: Sequence[RungTry], instead: SuccessRate | None) -> bool:
    """Whether the last tries of a rung may be left out for every kind."""
    rate = rate_of(tail)
    if not rate.succeeded and rate.high < HOPELESS_RATE:
        return True
    if instead is None or len(tail) < MIN_INCIDENTS or not rate.is_below(instead):
        return False
    kinds = {one.kind for one in tail}
    return not any(_does_well(rate_of(one for one in tail if one.kind is kind), instead) for kind in kinds)
