"""Generate a page for each failure kind, and their index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docpages.markdown import code, codes, numbered, page, table
from rung.core.classify.classifier import RULES, classify
from rung.core.classify.guide.work import GUIDES
from rung.core.classify.rule_index import ClassifyRule, describe_conditions
from rung.core.domain.failures import GROUPS, NEVER_RETRYABLE, NO_HEADERS, PROVIDER_KINDS, Evidence, Failure, Kind
from rung.core.domain.ladder import Action
from rung.core.policy.policy import DEFAULT_RETRY
from rung.core.policy.presets import LADDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.domain.ladder import Ladder


def pages() -> dict[str, str]:
    """Return the path and text of each page."""
    kind_pages = {f"kinds/{kind}.md": _page(kind) for kind in Kind}
    return {"kinds/README.md": _index(), **kind_pages}


def is_retried_by_default(kind: Kind) -> bool:
    """Return whether the default policy may retry a failure of this kind unchanged."""
    return kind in DEFAULT_RETRY and (_finding_is_retryable(kind) or any(rule.retryable for rule in _rules(kind)))


def entries(ladder: Ladder, kind: Kind) -> Iterator[tuple[str, int]]:
    """Yield the entry rungs of a kind; a detected loop has one per repeat threshold."""
    counts = [n for n, _ in ladder.loops] if kind is Kind.LOOP_DETECTED else []
    if not counts or min(counts) > 1:
        counts.insert(0, 0)
    last = None
    for repeats in counts:
        index = ladder.entry_index(Failure(kind=kind, retryable=False, rule="", evidence=Evidence(repeats=repeats)))
        if index != last:
            yield (f"{repeats} or more repeats" if repeats else "", index)
        last = index


def _index() -> str:
    parts = []
    for group, kinds in GROUPS.items():
        rows = [(f"[{code(kind)}]({kind}.md)", GUIDES[kind].summary, _retry_label(kind)) for kind in kinds]
        parts += [f"## {group}", table(("kind", "description", "retried unchanged"), rows)]
    intro = (
        f"Every failure has one of {len(Kind)} kinds. The classifier assigns the kind of the first rule that matches "
        f"the evidence. A detector, a check or an attempt that already knows the kind reports it as a finding. "
        f"If no rule matches, the kind is [{code(Kind.UNKNOWN)}]({Kind.UNKNOWN}.md)."
    )
    return page("Kinds", intro, *parts)


def _page(kind: Kind) -> str:
    guide = GUIDES[kind]
    group = next(name for name, kinds in GROUPS.items() if kind in kinds)
    return page(
        code(kind),
        guide.summary,
        f"Group: {group}. See [all kinds](README.md).",
        "## Symptoms",
        guide.looks,
        "## Classification",
        _classification(kind),
        "## Entry rungs",
        table(("ladder", "level", "entry rung", "escalation path"), _entry_rows(kind)),
        _persistence_note(kind),
        "## Is the request retried unchanged?",
        _retry_text(kind),
        "## Remedies",
        numbered(guide.helps),
        "## What to avoid",
        guide.avoid,
    )


def _rules(kind: Kind) -> list[ClassifyRule]:
    return [rule for rule in RULES if rule.kind is kind]


def _finding_is_retryable(kind: Kind) -> bool:
    return classify(Evidence(finding=kind)).retryable


def _classification(kind: Kind) -> str:
    rows = [(code(rule.id), rule.why, _facts(rule.example), "yes" if rule.retryable else "no") for rule in _rules(kind)]
    finding = (
        "A detector, a check or the attempt can also report this kind directly: "
        f"`AttemptError(…, finding={kind.value!r})`. The recorded rule is then `finding`."
    )
    if not rows:
        unmatched = "Evidence that matches no rule gets this kind."
        return f"{unmatched if kind is Kind.UNKNOWN else 'No rule assigns this kind.'} {finding}"
    conditions = map(_conditions, _rules(kind))
    return "\n\n".join((table(("rule", "reason", "example", "retryable"), rows), finding, *conditions))


def _conditions(rule: ClassifyRule) -> str:
    """Return the conditions of a rule, so that readers can search the page for an error's text."""
    conditions = "; ".join(f"{name} {codes(values)}" for name, values in describe_conditions(rule).items())
    return f"**{code(rule.id)}** matches on: {conditions}."


def _facts(evidence: Evidence) -> str:
    """Return the fields of an example that differ from their defaults."""
    defaults = Evidence()
    facts = [
        f"{name}={_literal(getattr(evidence, name))}"
        for name in Evidence._fields
        if getattr(evidence, name) != getattr(defaults, name) and getattr(evidence, name) is not NO_HEADERS
    ]
    return code(", ".join(facts))


def _literal(value: object) -> str:
    return repr(str(value)) if isinstance(value, str) else repr(value)


def _entry_rows(kind: Kind) -> Iterator[tuple[str, ...]]:
    for ladder in LADDERS.values():
        for when, index in entries(ladder, kind):
            name = f"[{ladder.name}](../ladders/{ladder.name}.md)" + (f", {when}" if when else "")
            yield name, str(ladder.level(index)), code(ladder.rungs[index].name), _escalation_path(ladder, kind, index)


def _escalation_path(ladder: Ladder, kind: Kind, start: int) -> str:
    """Return the rungs from `start` upwards that apply to the kind."""
    usable = [
        rung.name
        for rung in ladder.rungs[start:]
        if (rung.applies_to is None or kind in rung.applies_to)
        and (rung.action is not Action.RETRY or is_retried_by_default(kind))
    ]
    last = ladder.rungs[-1].name
    return " → ".join(usable if last in usable else [*usable, f"end ({last}, without another attempt)"])


def _persistence_note(kind: Kind) -> str:
    if kind not in PROVIDER_KINDS:
        return ""
    entries_when_down = [
        f"{code(ladder.entry[Kind.SERVICE_DOWN])} ({ladder.name})"
        for ladder in LADDERS.values()
        if Kind.SERVICE_DOWN in ladder.entry and any(rung.action is Action.RETRY for rung in ladder.rungs)
    ]
    return (
        f"If the failure persists after all tries of `retry`, the service is considered down, and recovery continues "
        f"at the entry rung of [{code(Kind.SERVICE_DOWN)}]({Kind.SERVICE_DOWN}.md): {', '.join(entries_when_down)}."
    )


def _retry_label(kind: Kind) -> str:
    if kind in NEVER_RETRYABLE:
        return "never"
    return "yes" if is_retried_by_default(kind) else "no"


def _retry_text(kind: Kind) -> str:
    if kind in NEVER_RETRYABLE:
        return "Never: the request cannot succeed unless something changes. A policy that lists this kind under `retry` is rejected."
    retryable_rules = [
        *[rule.id for rule in _rules(kind) if rule.retryable],
        *(["finding"] if _finding_is_retryable(kind) else []),
    ]
    if is_retried_by_default(kind):
        return (
            f"Yes, if it was classified by {codes(retryable_rules)} and a retry is safe: after output or a side effect, "
            "only a request marked idempotent is retried. A policy can remove this kind from `retry`."
        )
    if retryable_rules:
        return f"Not by default. A policy can add it to `retry`; it is retryable if classified by {codes(retryable_rules)}."
    listed = " It is nevertheless part of the default `retry` list." if kind in DEFAULT_RETRY else ""
    return f"No. No rule marks it as retryable: the request must change first.{listed}"
