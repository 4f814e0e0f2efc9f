"""Root cause of a session: the step that first went wrong, and why the later failures follow from it.

A pure function over recorded steps. It abstains unless one failure explains the others: what links two failures is the same
call, the same error, a name that both mention, a fallback that the first one led to, or a finding about the first one's call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.failures import Kind
from rung.core.recovery.session_step import fact_of, likeness, masked_fact, names_in, subjects_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.recovery.session_step import SessionStep

MAX_FAILURES: Final = 200  # the first ones
MIN_CONFIDENCE: Final = 0.6
_SAME_CALL: Final = 0.7  # share of equal words of two calls that count as the same one
# Findings about earlier steps; the failures that they are about come before them.
_FINDINGS: Final = frozenset({Kind.LOOP_DETECTED, Kind.STALLED, Kind.UNVERIFIED, Kind.GAVE_UP, Kind.TURNS_EXHAUSTED})
_ENDED_WELL: Final = frozenset({"succeeded", "recovered", "resolved"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A later failure, and what links it to the cause or to an earlier follow-up."""

    step: int
    link: str
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """The answer: `step` is None if no single cause is certain. `confidence` is the share of failures that it explains."""

    step: int | None
    kind: Kind | None
    sentence: str
    chain: tuple[FollowUp, ...] = ()
    confidence: float = 0.0
    where: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {
            "step": self.step,
            "kind": None if self.kind is None else self.kind.value,
            "sentence": self.sentence,
            "chain": [{"step": one.step, "link": one.link, "where": one.where} for one in self.chain],
            "confidence": self.confidence,
            "where": self.where,
        }


def root_cause(steps: Sequence[SessionStep], outcome: str = "") -> RootCause:
    """Return the step that first went wrong, or an answer without a step. `outcome` is how the session ended, if known."""
    failures = [index for index, step in enumerate(steps) if step.failed][:MAX_FAILURES]
    if not failures:
        return _abstain("no failure is recorded")
    if len(failures) == 1:
        return _only_failure(steps, failures[0], outcome)
    links = {index: _first_link(steps, failures, index) for index in failures}
    origins = {index: _origin(links, index) for index in failures}
    best = max(dict.fromkeys(origins.values()), key=lambda index: sum(one == index for one in origins.values()))
    chain = [index for index in failures if origins[index] == best and index != best]
    confidence = round((1 + len(chain)) / len(failures), 2)
    if not chain:
        return _abstain(f"{len(failures)} failures are not linked")
    if confidence < MIN_CONFIDENCE:
        return _abstain(f"the failures have {len(set(origins.values()))} separate beginnings")
    if any(index < best and not _is_overcome(steps, index, best) for index in failures):
        return _abstain(f"a failure before step {steps[best].number} was never overcome")
    follow_ups = tuple(
        FollowUp(step=steps[index].number, link=_link_text(link, best, steps), where=steps[index].where)
        for index in chain
        if (link := links[index]) is not None
    )
    return _answer(steps[best], follow_ups, confidence)


def _only_failure(steps: Sequence[SessionStep], index: int, outcome: str) -> RootCause:
    """Answer for a single failure: it is the cause if it is a whole attempt, breaks the task's rules, or ends the session."""
    step = steps[index]
    ends = index == len(steps) - 1 and outcome not in _ENDED_WELL and step.kind is not Kind.UNKNOWN
    if step.is_attempt or step.kind is Kind.GOAL_MISALIGNED or ends:
        return _answer(step, (), 1.0 if step.is_attempt or ends else 0.8)
    return _abstain("the only failure did not end the work, or its kind is unknown")


def _abstain(why: str) -> RootCause:
    return RootCause(step=None, kind=None, sentence=f"No single cause is certain: {why}.")


def _answer(step: SessionStep, chain: tuple[FollowUp, ...], confidence: float) -> RootCause:
    subject = f"Attempt {step.number} of the session" if step.is_attempt else f"Step {step.number} ({step.action})"
    later = (
        f"; {len(chain)} later failure{'s' if len(chain) > 1 else ''} follow{'' if len(chain) > 1 else 's'} from it"
        if chain
        else ""
    )
    said = fact_of(step)
    sentence = f"{subject} went wrong first, {step.kind}{f': {said}' if said else ''}{later}."
    return RootCause(
        step=step.number, kind=step.kind, sentence=sentence, chain=chain, confidence=confidence, where=step.where
    )


Link = tuple[int, str]  # index of the earlier failure, and what links the later one to it


def _first_link(steps: Sequence[SessionStep], failures: Sequence[int], index: int) -> Link | None:
    """Return the earliest failure that explains this one, and how."""
    for earlier in failures[: failures.index(index)]:
        why = _repetition(steps[earlier], steps[index])
        if why and not _is_overcome(steps, earlier, index):
            return earlier, why
        why = _named_again(steps, earlier, index)
        if why:
            return earlier, why
    return None


def _repetition(cause: SessionStep, later: SessionStep) -> str:
    """Return what links a later failure to an earlier one whose call failed; empty if nothing does surely."""
    if later.origin is not None and later.origin == cause.number:
        return "it ran on the fallback that was taken because of it"
    if cause.action == later.action and cause.kind is later.kind:
        if likeness(cause.call, later.call) >= _SAME_CALL:
            return "the same call failed in the same way"
        if masked_fact(cause) == masked_fact(later):
            return "the same action failed with the same error"
    if cause.is_attempt and later.is_attempt and cause.kind is later.kind:
        return f"the same kind of failure again, {later.kind}"
    if later.kind in _FINDINGS and cause.kind not in _FINDINGS and cause.action and cause.action in later.text:
        return f"it is about the same call, {cause.action}"
    if cause.changes and later.kind is Kind.TEST_FAILURE:
        edited = names_in(cause.call) & names_in(later.text)
        return f"the test fails on {max(sorted(edited), key=len)}, whose edit failed" if edited else ""
    return ""


def _named_again(steps: Sequence[SessionStep], earlier: int, later: int) -> str:
    """Return which name of the earlier error the later one mentions again; a name that was installed between does not count."""
    cause, after = steps[earlier], steps[later]
    shared = subjects_of(cause) & (subjects_of(after) | names_in(fact_of(after)))
    between = [step.call for step in steps[earlier + 1 : later] if not step.failed and step.changes]
    left = [name for name in sorted(shared) if not any(name in call for call in between)]
    return f"it names {max(left, key=len)} again" if left else ""


def _is_overcome(steps: Sequence[SessionStep], earlier: int, later: int) -> bool:
    """Return whether the earlier failure's call succeeded between the two."""
    cause = steps[earlier]
    return any(
        not step.failed and step.action == cause.action and likeness(step.call, cause.call) >= _SAME_CALL
        for step in steps[earlier + 1 : later]
    )


def _origin(links: dict[int, Link | None], index: int) -> int:
    """Return the first failure of the chain that a failure belongs to."""
    link = links[index]
    while link is not None:
        index = link[0]
        link = links[index]
    return index


def _link_text(link: Link, cause: int, steps: Sequence[SessionStep]) -> str:
    return link[1] if link[0] == cause else f"{link[1]} (as step {steps[link[0]].number})"
