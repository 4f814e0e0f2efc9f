"""Classification rules, and an index that finds the first matching rule without trying all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.classify.phrase_index import PhraseIndex, key_word
from rung.core.classify.phrases import Phrase, parse_phrases
from rung.core.classify.statements import Occurrences, Statement, parse_statement
from rung.core.domain.failures import Evidence, Kind, Phase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rung.core.classify.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyRule:
    """One rule that recognises a kind of failure.

    A rule matches when at least one of its signs is present and all of its conditions hold. A rule without signs
    matches on its conditions alone.

    Attributes:
        id: Name of the rule, kept in failures.
        kind: Kind of the failure.
        why: Why the rule is right.
        example: Evidence that it matches.
        retryable: Whether the unchanged request may succeed later. Default: False.
        code: Sign: error types, codes or stop reasons of the provider.
        exception: Sign: names of exception classes, without their module.
        errno: Sign: error numbers of the operating system.
        exit_code: Sign: exit codes of commands.
        message_has: Sign: phrases in the service's own message.
        output_has: Sign: phrases in any text, the output of tools included.
        says: Sign: statements in the service's own message.
        status: Condition: HTTP statuses.
        phase: Condition: phases.
        provider: Condition: names of providers.
        contains: Condition: one of these lower-case substrings is in the text.
        except_if: Condition: none of these phrases is in the text.
        wait_over: Condition: the requested wait is longer, in seconds.
        wait_under: Condition: the requested wait is shorter, in seconds.
        over_limit: Condition: the message's numbers request more than the limit. Default: False.
        sure: Whether the rule knows the kind. If not, the model in `learned` may name it better. Default: True.
    """

    id: str
    kind: Kind
    why: str
    example: Evidence
    retryable: bool = False
    code: Sequence[str] = ()
    exception: Sequence[str] = ()
    errno: Sequence[int] = ()
    exit_code: Sequence[int] = ()
    message_has: Sequence[str] = ()
    output_has: Sequence[str] = ()
    says: Sequence[str] = ()
    status: Sequence[int | None] | range = ()
    phase: Sequence[Phase] = ()
    provider: Sequence[str] = ()
    contains: Sequence[str] = ()
    except_if: Sequence[str] = ()
    wait_over: float | None = None
    wait_under: float | None = None
    over_limit: bool = False
    sure: bool = True


def describe_conditions(rule: ClassifyRule) -> dict[str, list[str]]:
    """Return the signs and conditions that a rule sets, by name, as readable texts."""
    described: dict[str, list[str]] = {}
    for name in (*SIGNS, *_CONDITIONS):
        wanted = getattr(rule, name)
        if name in {"status", "exit_code"} and wanted:
            described[name] = _format_ranges(wanted)
        elif name == "says":
            described |= {name: [f"“{text}”" for text in wanted]} if wanted else {}
        elif isinstance(wanted, tuple) and wanted:
            described[name] = [str(value) for value in wanted]
        elif wanted:
            described[name] = [str(wanted)]
    return described


def _format_ranges(numbers: Collection[int | None]) -> list[str]:
    """Return numbers as texts, with runs collapsed: "none, 200, 500 to 599"."""
    runs: list[list[int]] = []
    for number in sorted(number for number in numbers if number is not None):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [f"{run[0]} to {run[-1]}" if run[2:] else ", ".join(map(str, run)) for run in runs]
    return ["none", *texts] if None in numbers else texts


_CONDITIONS: Final = ("status", "phase", "provider", "contains", "wait_over", "wait_under", "over_limit", "except_if")
SIGNS: Final = ("code", "exception", "errno", "exit_code", "message_has", "output_has", "says")


class _Conditions:
    """The conditions of a rule, prepared for matching."""

    __slots__ = ("_contains", "_except_if", "_except_words", "_over_limit", "_phase", "_provider", "_status", "_wait")

    def __init__(self, rule: ClassifyRule) -> None:
        self._status = frozenset(rule.status)
        self._phase = rule.phase
        self._provider = rule.provider
        self._wait: tuple[float, float] | None = None
        if rule.wait_over is not None or rule.wait_under is not None:
            self._wait = (rule.wait_over or 0.0, float("inf") if rule.wait_under is None else rule.wait_under)
        self._over_limit = rule.over_limit
        self._contains = rule.contains
        self._except_if = parse_phrases(rule.except_if)
        self._except_words = frozenset(map(key_word, self._except_if))  # usually absent, which saves the searches

    def has_any(self) -> bool:
        """Return whether the rule sets any condition."""
        return any(getattr(self, name) for name in self.__slots__)

    def are_met(self, facts: Facts) -> bool:
        """Return whether all conditions hold."""
        if self._status and facts.status not in self._status:
            return False
        if self._phase and facts.phase not in self._phase:
            return False
        if self._provider and facts.provider not in self._provider:
            return False
        if self._wait and not (facts.wait is not None and self._wait[0] <= facts.wait <= self._wait[1]):
            return False
        if self._over_limit and not _over_limit(facts.message):
            return False
        if self._contains and not _contains_any(facts.raw.lower(), self._contains):
            return False
        return self._except_words.isdisjoint(facts.all_words) or not _finds_any(facts.output, self._except_if)


def _over_limit(message: str) -> bool:
    from rung.core.domain.token_counts import (
        exceeds_rate_limit,  # lazy: it compiles two large patterns, which few errors need
    )

    return exceeds_rate_limit(message)


def _contains_any(text: str, parts: Sequence[str]) -> bool:
    for part in parts:  # noqa: SIM110  # a generator expression costs more than the search
        if part in text:
            return True
    return False


def _finds_any(text: str, phrases: Sequence[Phrase]) -> bool:
    for phrase in phrases:  # noqa: SIM110  # a generator expression costs more than the search
        if phrase.found_in(text):
            return True
    return False


_MAX_STATUSES: Final = 200  # whose statements are kept; a status is any number


# Statements by the first of their concepts, as a bit: if it does not occur, none of them does.
_Topics = tuple[tuple[int, list[tuple[int, Statement]]], ...]
_Statements = tuple[int, _Topics]  # position of the first rule that has one, and the statements


def _bare_code(code: str) -> str:
    """Return a code without separators: services write one code as invalid_api_key, invalid-api-key and InvalidApiKey."""
    return code.replace("_", "").replace("-", "").replace(" ", "")


class RuleIndex:
    """Rules in order of precedence, indexed by their signs.

    Only rules with a sign that is present are checked. The position of the best match so far bounds the search: rules
    after it are skipped.
    """

    def __init__(self, rules: Iterable[ClassifyRule]) -> None:
        self.rules: tuple[ClassifyRule, ...] = tuple(rules)
        conditions = [_Conditions(rule) for rule in self.rules]
        self._conditions = tuple(each if each.has_any() else None for each in conditions)
        # Each maps a sign to the ascending positions of the rules that have it.
        self._codes: dict[str, list[int]] = {}
        self._names: dict[str, list[int]] = {}
        self._errnos: dict[int | None, list[int]] = {}
        self._exits: dict[int | None, list[int]] = {}
        self._statuses: dict[int | None, list[int]] = {}
        self._phases: dict[Phase, list[int]] = {}
        for position, rule in enumerate(self.rules):
            self._index_fields(position, rule)
        self._phrases: dict[Phase, PhraseIndex] = {}  # built when a phase first occurs
        self._statements = tuple(
            (position, parse_statement(text)) for position, rule in enumerate(self.rules) for text in rule.says
        )
        self._allowed_statements: dict[tuple[Phase, int | None], _Statements] = {}

    def _index_fields(self, position: int, rule: ClassifyRule) -> None:
        for code in rule.code:
            self._codes.setdefault(_bare_code(code.lower()), []).append(position)
        for name in rule.exception:
            self._names.setdefault(name, []).append(position)
        for number in rule.errno:
            self._errnos.setdefault(number, []).append(position)
        for number in rule.exit_code:
            self._exits.setdefault(number, []).append(position)
        if any(getattr(rule, sign) for sign in SIGNS):
            return
        if rule.status:
            for status in rule.status:
                self._statuses.setdefault(status, []).append(position)
        else:
            for phase in rule.phase or Phase:
                self._phases.setdefault(phase, []).append(position)

    def _phrases_of(self, phase: Phase) -> PhraseIndex:
        """Return the phrases of the rules that hold in a phase."""
        found = self._phrases.get(phase)
        if found is None:
            found = self._phrases[phase] = PhraseIndex(
                (position, in_message, text)
                for position, rule in enumerate(self.rules)
                if not rule.phase or phase in rule.phase
                for in_message, texts in ((True, rule.message_has), (False, rule.output_has))
                for text in texts
            )
        return found

    def _statements_of(self, phase: Phase, status: int | None) -> _Statements:
        """Return the statements of the rules that hold in a phase and for a status, by their topics."""
        key = (phase, status)
        allowed = self._allowed_statements.get(key)
        if allowed is None:
            topics: dict[int, list[tuple[int, Statement]]] = {}
            for position, statement in self._statements:
                rule = self.rules[position]
                if (not rule.phase or phase in rule.phase) and (not rule.status or status in rule.status):
                    topics.setdefault(statement.wanted & -statement.wanted, []).append((position, statement))
            first = min((group[0][0] for group in topics.values()), default=len(self.rules))
            allowed = (first, tuple(topics.items()))
            if len(self._allowed_statements) < _MAX_STATUSES:
                self._allowed_statements[key] = allowed
        return allowed

    def first_match(self, facts: Facts) -> ClassifyRule | None:
        """Return the first rule that matches; None if none does."""
        best = self._match_phrases(facts, self._match_fields(facts))
        first, topics = self._statements_of(facts.phase, facts.status)
        if first < best:
            best = self._match_statements(facts, best, topics, facts.statement_words)
            if best == len(self.rules) and facts.exception_names:
                best = self._match_statements(facts, best, topics, facts.class_words)
        return self.rules[best] if best < len(self.rules) else None

    def _match_fields(self, facts: Facts) -> int:
        """Return the position of the first rule that matches by status, exit code, errno, code, class or phase."""
        best = len(self.rules)
        for number, positions in (
            (facts.status, self._statuses),
            (facts.exit_code, self._exits),
            (facts.errno, self._errnos),
        ):
            if number in positions:
                best = self._first_met(positions[number], best, facts)
        for code in facts.codes:
            bare = _bare_code(code)
            if bare in self._codes:
                best = self._first_met(self._codes[bare], best, facts)
        for name in facts.exception_names:
            if name in self._names:
                best = self._first_met(self._names[name], best, facts)
        if facts.phase in self._phases:
            best = self._first_met(self._phases[facts.phase], best, facts)
        return best

    def _first_met(self, positions: list[int], best: int, facts: Facts) -> int:
        """Return the first of these positions whose conditions hold, if it is before `best`; else `best`."""
        for position in positions:
            if position >= best:
                break
            conditions = self._conditions[position]
            if conditions is None or conditions.are_met(facts):
                return position
        return best

    def _match_phrases(self, facts: Facts, best: int) -> int:
        """Return the position of the first rule with a phrase in the text, if it is before `best`; else `best`."""
        words = facts.all_words
        index = self._phrases_of(facts.phase)
        found = words & index.words
        if not found:
            return best
        output, message = facts.output, facts.message_text
        for word in found:
            seconds, by_second = index[word]
            if words.isdisjoint(seconds):
                continue
            for second in words & seconds:
                for position, in_message, first, gapped in by_second[second]:
                    if position >= best:
                        break
                    text = message if in_message else output
                    if first in text and (gapped is None or gapped.found_in(text)):
                        conditions = self._conditions[position]
                        if conditions is None or conditions.are_met(facts):
                            best = position
                            break
        return best

    def _match_statements(self, facts: Facts, best: int, topics: _Topics, said: Sequence[str]) -> int:
        """Return the position of the first rule whose statement these words make, if it is before `best`; else `best`."""
        if not said:
            return best
        concepts = Occurrences(said, facts.message)
        present = concepts.present
        for topic, group in topics:
            if not topic & present:
                continue
            for position, statement in group:
                if position >= best:
                    break
                if concepts.has(statement):
                    conditions = self._conditions[position]
                    if conditions is None or conditions.are_met(facts):
                        best = position
                        break
        return best
