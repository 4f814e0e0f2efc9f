"""What a person is told who orders a retry of a recovery that has not ended."""

from __future__ import annotations

from rung.core.classify.classifier import classify
from rung.core.domain.events import AttemptFailed, Decided, Event, IncidentContext, Opened, Repeat
from rung.core.domain.failures import Evidence
from rung.core.domain.incident import Incident
from rung.core.domain.request import Request
from rung.service.incident_status import answer_note, order_note

OPENED = Opened(1_000.0, "i", IncidentContext("call", "default"), Request(prompt="x"))


def note(now: float, *events: Event) -> str:
    log = [OPENED, *events]
    return order_note(Incident.of(log), log, now)


def test_a_process_that_may_be_gone_is_not_promised_to_follow() -> None:
    """Until its next event is overdue the order is taken for granted; then the silence is named, and what to do."""
    failed = AttemptFailed(1_001.0, classify(Evidence(status=503)), 1.0, 0.0, may_retry=True)
    waits = Decided(1_001.0, Repeat(0, 60.0, "overloaded"))
    assert note(1_040.0, failed, waits) == "the waiting recovery continues at once"
    assert note(1_080.0, failed, waits) == "the waiting recovery continues at once"
    overdue = note(1_661.0, failed, waits)
    assert "if its process still runs: nothing was recorded for 10 min" in overdue
    assert overdue.endswith("start it again")
    assert note(1_010.0) == "the recovery retries as soon as the current attempt ends"
    assert "nothing was recorded for 1 h" in note(4_600.0)


def test_what_becomes_of_an_answer() -> None:
    """A live owner continues at once, a run without one needs a command, and of any other process the silence is named."""
    assert answer_note("i", 1_000.0, 5_000.0, is_owned=True) == "the waiting recovery continues at once"
    assert answer_note("i", 1_000.0, 1_010.0, is_owned=None) == "the waiting recovery continues at once"
    assert "`rung resume i` continues the run" in answer_note("i", 1_000.0, 1_010.0, is_owned=False)
    silent = answer_note("i", 1_000.0, 4_600.0, is_owned=None)
    assert "if its process still runs: nothing was recorded for 1 h" in silent
    assert silent.endswith("start it again")
