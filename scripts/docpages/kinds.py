"""A page for each kind of failure, and their index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docpages.markdown import code, codes, numbered, page, table
from rung.core.classify import RULES, classify
from rung.core.failures import GROUPS, NEVER_RETRYABLE, NO_HEADERS, SERVICE_TROUBLE, Evidence, Failure, Kind
from rung.core.guide import GUIDES
from rung.core.ladder import Action
from rung.core.policy import DEFAULT_RETRY
from rung.core.presets import LADDERS
from rung.core.rules import Rule, asked_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.ladder import Ladder


def pages() -> dict[str, str]:
    """Path and text of each page."""
    made = {f"kinds/{kind}.md": _page(kind) for kind in Kind}
    return {"kinds/README.md": _index(), **made}


def repeatable(kind: Kind) -> bool:
    """Whether a failure of this kind can be repeated unchanged under the default policy."""
    return kind in DEFAULT_RETRY and (_finding(kind) or any(rule.retryable for rule in _rules(kind)))


def entries(ladder: Ladder, kind: Kind) -> Iterator[tuple[str, int]]:
    """Where the kind enters the ladder; a detected loop once for each number of repeats that matters."""
    counts = [n for n, _ in ladder.loops] if kind is Kind.LOOP_DETECTED else []
    if not counts or min(counts) > 1:
        counts.insert(0, 0)
    last = None
    for repeats in counts:
        index = ladder.enter(Failure(kind=kind, retryable=False, rule="", evidence=Evidence(repeats=repeats)))
        if index != last:
            yield (f"from {repeats} repeats on" if repeats else "", index)
        last = index


def _index() -> str:
    parts = []
    for group, kinds in GROUPS.items():
        rows = [(f"[{code(kind)}]({kind}.md)", GUIDES[kind].summary, _short_answer(kind)) for kind in kinds]
        parts += [f"## {group}", table(("kind", "what it is", "same request again?"), rows)]
    intro = (
        f"A failure has one of {len(Kind)} names. The first rule that matches the evidence gives it; "
        f"whoever already knows the name (a detector, a check, an attempt) gives it as a finding. "
        f"Where no rule matches, it is [{code(Kind.UNKNOWN)}]({Kind.UNKNOWN}.md)."
    )
    return page("Kinds", intro, *parts)


def _page(kind: Kind) -> str:
    guide = GUIDES[kind]
    group = next(name for name, kinds in GROUPS.items() if kind in kinds)
    return page(
        code(kind),
        guide.summary,
        f"Group: {group}. All kinds: [index](README.md).",
        "## How it looks",
        guide.looks,
        "## What finds it",
        _found_by(kind),
        "## Where it enters",
        table(("ladder", "level", "rung", "the way up from there"), _entry_rows(kind)),
        _persists(kind),
        "## May the same request be repeated?",
        _answer(kind),
        "## What helps",
        numbered(guide.helps),
        "## What not to do",
        guide.avoid,
    )


def _rules(kind: Kind) -> list[Rule]:
    return [rule for rule in RULES if rule.kind is kind]


def _finding(kind: Kind) -> bool:
    return classify(Evidence(finding=kind)).retryable


def _found_by(kind: Kind) -> str:
    rows = [(code(rule.id), rule.why, _facts(rule.example), "yes" if rule.retryable else "no") for rule in _rules(kind)]
    by_name = "A detector, a check or the attempt itself may say it: `AttemptError(…, finding="
    finding = f"{by_name}{kind.value!r})`. The rule is then called `finding`."
    if not rows:
        what = "What no rule matches gets this name." if kind is Kind.UNKNOWN else "No rule reads it off an error."
        return f"{what} {finding}"
    return "\n\n".join((table(("rule", "why", "example", "retryable"), rows), finding, *map(_signs, _rules(kind))))


def _signs(rule: Rule) -> str:
    """What the rule looks for, to be searched for by somebody who has the words before them."""
    asked = "; ".join(f"{name} {codes(values)}" for name, values in asked_by(rule).items())
    return f"**{code(rule.id)}** asks for: {asked}."


def _facts(evidence: Evidence) -> str:
    """The facts an example gives, without those it leaves at their defaults."""
    blank = Evidence()
    facts = [
        f"{name}={_plain(getattr(evidence, name))}"
        for name in Evidence._fields
        if getattr(evidence, name) != getattr(blank, name) and getattr(evidence, name) is not NO_HEADERS
    ]
    return code(", ".join(facts))


def _plain(value: object) -> str:
    return repr(str(value)) if isinstance(value, str) else repr(value)


def _entry_rows(kind: Kind) -> Iterator[tuple[str, ...]]:
    for ladder in LADDERS.values():
        for when, index in entries(ladder, kind):
            name = f"[{ladder.name}](../ladders/{ladder.name}.md)" + (f", {when}" if when else "")
            yield name, str(ladder.level(index)), code(ladder.rungs[index].name), _way(ladder, kind, index)


def _way(ladder: Ladder, kind: Kind, start: int) -> str:
    """The rungs from there on that can do something about the kind."""
    usable = [
        rung.name
        for rung in ladder.rungs[start:]
        if (rung.applies_to is None or kind in rung.applies_to)
        and (rung.action is not Action.RETRY or repeatable(kind))
    ]
    last = ladder.rungs[-1].name
    return " → ".join(usable if last in usable else [*usable, f"end ({last} without a further turn)"])


def _persists(kind: Kind) -> str:
    if kind not in SERVICE_TROUBLE:
        return ""
    places = [
        f"{code(ladder.entry[Kind.SERVICE_DOWN])} ({ladder.name})"
        for ladder in LADDERS.values()
        if Kind.SERVICE_DOWN in ladder.entry and any(rung.action is Action.RETRY for rung in ladder.rungs)
    ]
    return (
        f"When the tries of `retry` are spent and the trouble is still there, the service counts as down, and the "
        f"ladder goes on where [{code(Kind.SERVICE_DOWN)}]({Kind.SERVICE_DOWN}.md) enters: {', '.join(places)}."
    )


def _short_answer(kind: Kind) -> str:
    if kind in NEVER_RETRYABLE:
        return "never"
    return "yes" if repeatable(kind) else "no"


def _answer(kind: Kind) -> str:
    if kind in NEVER_RETRYABLE:
        return "Never. A policy that lists it under `retry` is turned down: somebody must change something first."
    ways = [*[rule.id for rule in _rules(kind) if rule.retryable], *(["finding"] if _finding(kind) else [])]
    if repeatable(kind):
        return (
            f"Yes, where it was named by {codes(ways)}, as long as a replay is safe: after output or a side effect "
            "only if the request is marked idempotent. A policy can take it out of `retry`."
        )
    if ways:
        return f"Not by default. A policy may add it to `retry`; it is retryable where named by {codes(ways)}."
    listed = " The default `retry` lists it all the same." if kind in DEFAULT_RETRY else ""
    return f"No. Nothing that names it calls it retryable: the request has to be changed first.{listed}"
