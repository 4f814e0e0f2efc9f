"""Which fault a request meets: the first rule that fits and is not spent, else chance."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.testing.provider.parsed_request import ParsedRequest
    from rung.testing.provider.script import LabRule, LabScript


@dataclass(slots=True)
class _FaultUse:
    """What became of a rule so far."""

    fitted: int = 0
    struck: int = 0
    since: float | None = None
    window: int | None = None


@dataclass(slots=True)
class FaultSelector:
    """A script's rules at work."""

    script: LabScript
    began: float
    uses: dict[int, _FaultUse] = field(default_factory=dict)

    def choose(self, number: int, asked: ParsedRequest, headers: Mapping[str, str], now: float) -> LabRule | None:
        """The rule this request meets."""
        for place, rule in enumerate(self.script.rules):
            if _fits(rule, number, asked, headers):
                found = self._struck(place, rule, asked, now)
                if found is not None:
                    return found
        return self._by_chance(number, asked)

    def _struck(self, place: int, rule: LabRule, asked: ParsedRequest, now: float) -> LabRule | None:
        use = self.uses.setdefault(place, _FaultUse())
        if rule.times is not None and use.struck >= rule.times:
            return None
        if not self._in_time(rule, use, now):
            return None
        use.fitted += 1
        if (use.fitted - 1) % rule.every:
            return None
        if rule.fault.name == "overflow":
            given = _overflow(rule, use, asked)
            if given is None:
                return None
            rule = replace(rule, given=given)
        use.struck += 1
        return rule

    def _in_time(self, rule: LabRule, use: _FaultUse, now: float) -> bool:
        """From its start, else from the first request it fits, for as long as it lasts."""
        if rule.start is not None:
            use.since = self.began + rule.start
        elif use.since is None:
            use.since = now
        return use.since <= now and (rule.lasts is None or now < use.since + rule.lasts)

    def _by_chance(self, number: int, asked: ParsedRequest) -> LabRule | None:
        script = self.script
        if not script.rate:
            return None
        dice = blake2b(f"{script.seed}/{number}".encode(), digest_size=16).digest()  # same seed, same faults
        if int.from_bytes(dice[:8]) >= script.rate * 2**64:
            return None
        rules = [rule for rule in script.faults if _fits(rule, number, asked, {})]
        return rules[int.from_bytes(dice[8:]) % len(rules)] if rules else None


def _overflow(rule: LabRule, use: _FaultUse, asked: ParsedRequest) -> dict[str, int] | None:
    """The window, where this request is too much for it; one that nobody told is set by the first request."""
    window = rule.given["window"]
    limit = asked.limit or 0
    if window is None:
        use.window = use.window or max(asked.tokens * 3 // 4, 1)
        window, limit = use.window, 0
    return {"window": window} if asked.tokens + limit > window else None


def _fits(rule: LabRule, number: int, asked: ParsedRequest, headers: Mapping[str, str]) -> bool:
    if rule.request and not any(first <= number <= last for first, last in rule.request):
        return False
    if rule.fault.needs == "stream" and not asked.stream:
        return False
    if (rule.fault.needs == "tools" or rule.tools) and not asked.tools:
        return False
    if rule.tools is False and asked.tools:
        return False
    if rule.stream is not None and rule.stream != asked.stream:
        return False
    if rule.wire and rule.wire != asked.wire:
        return False
    if rule.model and not fnmatchcase(asked.model, rule.model):
        return False
    if any(headers.get(name.lower()) != value for name, value in rule.header.items()):
        return False
    return not rule.contains or any(rule.contains in turn.text for turn in asked.turns)
