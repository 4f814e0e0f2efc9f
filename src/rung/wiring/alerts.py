"""Alerts beside a way in: a thread that evaluates the rules of a settings file and sends what waits to be sent.

A service, a gateway and a crew each run one. Any number of them may share a journal: its database says what fires, and who
sends which notification. An unavailable journal is told once, and never reaches the process that the thread runs in.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.adapters.alerts.delivery import check_channel, deliver
from rung.core.alerts.evaluation import AlertChange, Reading, evaluate
from rung.core.alerts.notifications import TEST, new_notification
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import suggest_names
from rung.store.alerts.causes import explain_reading
from rung.store.alerts.figures import Moment, read_figure
from rung.store.alerts.outbox import claim_next, has_due, record_delivery
from rung.store.alerts.states import load_state, record, record_test
from rung.store.fleet.database_clock import time_of
from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rung.core.alerts.rules import AlertChannel, AlertRule, AlertSettings
    from rung.store.journal.journal import Journal
    from rung.wiring.settings_file import SettingsFile

    ScopedFigures = Callable[[AlertRule], Reading | None]  # None: the scope has no such figure

SEND_POLL_SECONDS: Final = 5.0  # between two looks for notifications that wait
STOP_SECONDS: Final = 5.0  # for the last evaluation, when the process exits
_CLAIM_TIMEOUTS: Final = 3  # a delivery's timeout holds for connecting, sending and reading
_CLAIM_MARGIN_SECONDS: Final = 5.0
_MAX_GAP: Final = 3  # intervals without an answer of the database, after which it is observed anew
NO_JOURNAL: Final = "alerts are not evaluated: this process has no journal"


class SentTest(NamedTuple):
    """Result of a test: the error of each channel, empty where it was accepted."""

    errors: dict[str, str]


class Alerts:
    """Rules and channels of one process, over one journal. `figures` are those of a crew, by scope."""

    def __init__(
        self,
        journal: Journal,
        settings: AlertSettings,
        *,
        allowed_hosts: Iterable[str] = (),
        figures: Mapping[str, ScopedFigures] | None = None,
        environment: Mapping[str, str] | None = None,
        warn: Callable[[str], object] = lambda _text: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._journal = journal
        self._allowed_hosts = tuple(allowed_hosts)
        self._figures = figures or {}
        self._environment = os.environ if environment is None else environment
        self._warn = warn
        self._monotonic = monotonic
        self._name = secrets.token_hex(8)  # among the processes that share the journal
        self._observed_since: float | None = None  # on the database's clock
        self._last_read = 0.0  # on this process's monotonic clock
        self._is_troubled = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rung-alerts", daemon=True)

    def use(self, settings: AlertSettings) -> None:
        """Evaluate other rules, and send to other channels, from the next turn on."""
        self.settings = settings

    # -- the thread -----------------------------------------------------------------------------------

    def start(self) -> Alerts:
        """Begin to evaluate and to send, in a thread."""
        self._thread.start()
        return self

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Evaluate once more, and end the thread; what it cannot send in time is left to another process."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def __enter__(self) -> Alerts:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        next_evaluation = 0.0
        while not self._stopped.is_set():
            is_due = self._monotonic() >= next_evaluation
            if is_due:
                next_evaluation = self._monotonic() + self.settings.interval
            self._turn(is_due=is_due)
            self._stopped.wait(min(self.settings.interval, SEND_POLL_SECONDS))
        self._turn(is_due=True)

    def _turn(self, *, is_due: bool) -> None:
        try:
            if is_due:
                self.evaluate()
            self.send_due()
        except Exception as error:  # noqa: BLE001  # alerts must not end the process that they run in
            if not self._is_troubled:
                self._warn(f"alerts are not evaluated, trying again: {type(error).__name__}: {error}")
            self._is_troubled, self._observed_since = True, None
        else:
            self._is_troubled = False

    # -- one turn -------------------------------------------------------------------------------------

    def evaluate(self, now: float | None = None) -> None:
        """Evaluate every rule once, for the journal and for each scope of this process."""
        at = time_of(self._journal, now)
        moment = Moment(at, self._observe(at))
        for rule in self.settings.rules.values():
            self._apply(rule, read_figure(self._journal, rule, moment), "", now, at)
            for scope, figures in self._figures.items():
                reading = figures(rule)
                if reading is not None:
                    self._apply(rule, reading, scope, now, at)

    def _apply(self, rule: AlertRule, reading: Reading, scope: str, now: float | None, at: float) -> None:
        """Store what a reading changes. Most change nothing, which needs no transaction."""
        state = load_state(self._journal, rule.name, scope)
        if (done := evaluate(rule, reading, state, at, "")).is_new:
            if done.change is not AlertChange.RESOLVED and not scope:
                reading = explain_reading(self._journal, rule, reading, at)
            record(self._journal, rule, self.settings, reading, scope=scope, now=now)

    def _observe(self, now: float) -> float:
        """Return since when the database is read without a gap."""
        read = self._monotonic()
        if self._observed_since is None or read - self._last_read > _MAX_GAP * self.settings.interval:
            self._observed_since = now
        self._last_read = read
        return self._observed_since

    def send_due(self, now: float | None = None) -> int:
        """Send every notification that is due to a channel of this process. Return how many were tried."""
        channels, tried = self.settings.channels, 0
        while channels and has_due(self._journal, channels, time_of(self._journal, now)):
            longest = max(channel.timeout for channel in channels.values())
            seconds = _CLAIM_TIMEOUTS * longest + _CLAIM_MARGIN_SECONDS
            claim = claim_next(self._journal, channels, self._name, seconds, now=now)
            if claim is None:
                break  # another process was faster
            error = self._deliver(channels[claim.channel], claim.notification)
            record_delivery(self._journal, claim, self._name, error, now=now)
            tried += 1
            if error:
                self._warn(f"alert {claim.notification.rule}: channel {claim.channel} was not notified: {error}")
        return tried

    def send_test(self, name: str) -> SentTest:
        """Send a test of a rule to its channels at once, and record it; raise ConfigError if there is no such rule."""
        rule = self.rule(name)
        at = time_of(self._journal)
        made = new_notification(
            rule, TEST, f"{rule.name}-test-{secrets.token_hex(4)}", Reading(None), at, url=self.settings.dashboard
        )
        errors = {name: self._deliver(self.settings.channels[name], made) for name in rule.channels}
        deliveries = {
            channel: {"state": "failed" if error else "sent", "attempts": 1, "at": at, "error": error}
            for channel, error in errors.items()
        }
        record_test(self._journal, made, deliveries)
        return SentTest(errors)

    def rule(self, name: str) -> AlertRule:
        """Return the rule of this name; raise ConfigError if there is none."""
        rules = self.settings.rules
        if name not in rules:
            allowed = f"a rule of [alerts.rules]: {', '.join(rules) or 'there is none'}{suggest_names(name, rules)}"
            raise ConfigError("rule", name, allowed)
        return rules[name]

    def figure(self, rule: AlertRule) -> Reading:
        """Return the figure of a rule in the journal now."""
        at = time_of(self._journal)
        return read_figure(
            self._journal, rule, Moment(at, at if self._observed_since is None else self._observed_since)
        )

    def _deliver(self, channel: AlertChannel, made: Any) -> str:
        hosts = frozenset(name.lower() for name in (*self._allowed_hosts, *self.settings.allow_hosts))
        return deliver(channel, made, self._environment, hosts, now=time.time())


def check_alerts(file: SettingsFile | None, allowed_hosts: Iterable[str] = ()) -> AlertSettings | None:
    """Return the alerts of a settings file; None if it has none. Raise ConfigError if a rule or a channel is wrong."""
    settings = None if file is None else file.alerts()
    if file is None or settings is None:
        return None
    with file.errors():
        for channel in settings.channels.values():
            check_channel(channel, os.environ, {*allowed_hosts, *settings.allow_hosts})
    return settings


def untrusted_alerts() -> SettingsFile | None:
    """Return the `rung.toml` here if it has alerts that are switched off because it is not trusted."""
    found = find(quiet=True)
    return found if found is not None and found.withholds_alerts else None


def warn_if_untrusted(file: SettingsFile | None, warn: Callable[[str], object]) -> None:
    """Warn that alerts are off if nobody has decided about a file that defines them. A denied file is a decision."""
    if file is not None and file.withholds_alerts and file.is_undecided:
        warn(
            f"WARNING: alerts are off: {file.place} has an [alerts] table, but its content is not trusted."
            f" Review it, run `{file.trust_command}`, and start again."
        )


def alerts_beside(
    journal: Journal | None,
    *,
    file: SettingsFile | None = None,
    dashboard: str = "",
    allowed_hosts: Iterable[str] = (),
    figures: Mapping[str, ScopedFigures] | None = None,
    warn: Callable[[str], object],
) -> Alerts | None:
    """Return the alerts of a way in, not started; None if its file, or the `rung.toml` here, has no rules.

    Raises ConfigError if a rule or a channel is invalid, or a variable is not set: a process without the alerts that its file
    promises would be another one.
    """
    file = find(quiet=True) if file is None else file
    warn_if_untrusted(file, warn)
    settings = check_alerts(file, allowed_hosts)
    if settings is None or not settings.rules:
        return None
    if journal is None:
        warn(NO_JOURNAL)
        return None
    settings = settings if settings.dashboard else replace(settings, dashboard=dashboard)
    return Alerts(journal, settings, allowed_hosts=allowed_hosts, figures=figures, warn=warn)
