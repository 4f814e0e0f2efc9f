"""Selects the fault of a request: the first matching rule that is not exhausted, else a random fault."""

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
    """State of one rule."""

    matched: int = 0
    triggered: int = 0
    active_since: float | None = None
    window: int | None = None


@dataclass(slots=True)
class FaultSelector:
    """Selects faults by a script's rules and its random rate."""

    script: LabScript
    started_at: float
    uses: dict[int, _FaultUse] = field(default_factory=dict)

    def select(self, number: int, request: ParsedRequest, headers: Mapping[str, str], now: float) -> LabRule | None:
        """Return the rule that applies to a request; None if there is no fault."""
        for index, rule in enumerate(self.script.rules):
            if _matches(rule, number, request, headers):
                selected = self._trigger(index, rule, request, now)
                if selected is not None:
                    return selected
        return self._random_fault(number, request)

    def _trigger(self, index: int, rule: LabRule, request: ParsedRequest, now: float) -> LabRule | None:
        use = self.uses.setdefault(index, _FaultUse())
        if rule.times is not None and use.triggered >= rule.times:
            return None
        if not self._is_active(rule, use, now):
            return None
        use.matched += 1
        if (use.matched - 1) % rule.every:
            return None
        if rule.fault.name == "overflow":
            parameters = _overflow_window(rule, use, request)
            if parameters is None:
                return None
            rule = replace(rule, parameters=parameters)
        use.triggered += 1
        return rule

    def _is_active(self, rule: LabRule, use: _FaultUse, now: float) -> bool:
        """Return whether a rule is active: from its start, or its first match, for `lasts` seconds."""
        if rule.start is not None:
            use.active_since = self.started_at + rule.start
        elif use.active_since is None:
            use.active_since = now
        return use.active_since <= now and (rule.lasts is None or now < use.active_since + rule.lasts)

    def _random_fault(self, number: int, request: ParsedRequest) -> LabRule | None:
        script = self.script
        if not script.rate:
            return None
        digest = blake2b(f"{script.seed}/{number}".encode(), digest_size=16).digest()  # deterministic per seed
        if int.from_bytes(digest[:8]) >= script.rate * 2**64:
            return None
        rules = [rule for rule in script.faults if _matches(rule, number, request, {})]
        return rules[int.from_bytes(digest[8:]) % len(rules)] if rules else None


def _overflow_window(rule: LabRule, use: _FaultUse, request: ParsedRequest) -> dict[str, int] | None:
    """Return the window if the request exceeds it; by default the first request sets the window."""
    window = rule.parameters["window"]
    limit = request.limit or 0
    if window is None:
        use.window = use.window or max(request.tokens * 3 // 4, 1)
        window, limit = use.window, 0
    return {"window": window} if request.tokens + limit > window else None


def _matches(rule: LabRule, number: int, request: ParsedRequest, headers: Mapping[str, str]) -> bool:
    if rule.request and not any(first <= number <= last for first, last in rule.request):
        return False
    if rule.fault.needs == "stream" and not request.stream:
        return False
    if (rule.fault.needs == "tools" or rule.tools) and not request.tools:
        return False
    if rule.tools is False and request.tools:
        return False
    if rule.stream is not None and rule.stream != request.stream:
        return False
    if rule.wire and rule.wire != request.wire:
        return False
    if rule.model and not fnmatchcase(request.model, rule.model):
        return False
    if any(headers.get(name.lower()) != value for name, value in rule.header.items()):
        return False
    return not rule.contains or any(rule.contains in turn.text for turn in request.turns)
