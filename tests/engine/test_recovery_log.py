"""The logger `rung`: what a program without any configuration sees, and what a configured one gets."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.engine.external_loop import ExternalRecovery
from rung.engine.log_switch import LOG_SWITCH
from rung.engine.loop import recovery_log
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 10
FAST = rung.policy("call", backoff={"base": 0.001, "cap": 0.001})


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "rung"]


def flaky(*errors: Exception) -> Any:
    left = list(errors)

    def work() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return work


def test_a_plain_script_shows_retries(tmp_path: Path) -> None:
    """A script that configures nothing prints each failed attempt and the end of a recovery to standard error."""
    code = """
import rung
left = [ConnectionResetError("reset by peer"), ConnectionResetError("reset by peer")]
@rung.guarded(rung.policy("call", backoff={"base": 0.001, "cap": 0.001}))
def fetch():
    if left:
        raise left.pop()
    return "done"
fetch()
def give_up(request):
    raise PermissionError(13, "Permission denied")
rung.recover_sync(give_up, "go", policy="call")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    first, second, last = done.stderr.splitlines()
    assert first.startswith("__main__.fetch: attempt 1 failed: network: reset by peer; next: retry (again ")
    assert second.startswith("__main__.fetch: attempt 2 failed: network: reset by peer; next: retry (again ")
    assert last.startswith("__main__.give_up: failed after 1 attempt in ")
    assert "permission_denied" in last
    assert done.stdout == ""


def test_success_does_not_import_logging() -> None:
    """Neither the import of Rung nor a guarded call that succeeds imports logging or asyncio."""
    code = """
import sys, rung
rung.guarded(lambda: 1)()
rung.recover_sync(lambda request: 1, "go")
print(*[name for name in ("logging", "asyncio") if name in sys.modules] or ["light"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "light\n"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_guarded_call(caplog: pytest.LogCaptureFixture, is_async: bool) -> None:
    """A guarded call logs each failure that is retried as a warning, and its recovery as an info."""
    caplog.set_level(logging.INFO, "rung")
    work = flaky(ConnectionResetError("reset"), ConnectionResetError("reset"))

    async def awork() -> str:
        return str(work())

    if is_async:
        assert asyncio.run(rung.guarded(FAST, key="shop.fetch")(awork)()) == "done"
    else:
        assert rung.guarded(FAST, key="shop.fetch")(work)() == "done"
    (one, first), (two, second), (three, end) = lines(caplog)
    assert (one, two, three) == ("WARNING", "WARNING", "INFO")
    assert first.startswith("shop.fetch: attempt 1 failed: network: reset; next: retry (again")
    assert second.startswith("shop.fetch: attempt 2 failed")
    assert end.startswith("shop.fetch: recovered after 3 attempts in ")


def test_one_retry_that_helps(caplog: pytest.LogCaptureFixture) -> None:
    """The first retry of a guarded call, which needs no incident, is logged like any other."""
    caplog.set_level(logging.INFO, "rung")
    assert rung.guarded(FAST, key="k")(flaky(ConnectionResetError("reset")))() == "done"
    assert [level for level, _ in lines(caplog)] == ["WARNING", "INFO"]
    assert lines(caplog)[1][1].startswith("k: recovered after 2 attempts in ")


def test_an_error_that_is_not_retried(caplog: pytest.LogCaptureFixture) -> None:
    """A guarded call that raises at once logs nothing: the caller has the error."""
    with pytest.raises(PermissionError):
        rung.guarded(FAST)(flaky(PermissionError(13, "Permission denied")))()
    assert lines(caplog) == []


def test_escalation(caplog: pytest.LogCaptureFixture) -> None:
    """Each failed attempt names its kind, the next rung and the wait, also as fields of the record."""
    script = Script(HttpError(529, "Overloaded"), rung.AttemptError("too hard", finding="capability_mismatch"), "done")
    policy = rung.policy("task", models=["small", {"name": "large", "cost": 0.5}])
    request = rung.Request(prompt="go", model="small")
    rung.recover_sync(script, request, policy=policy, clock=FakeClock(), breakers=None, jitter=lambda: 0.5)
    retried, handed_over = [record for record in caplog.records if record.levelname == "WARNING"]
    fields: dict[str, Any] = retried.__dict__
    assert (fields["rung_kind"], fields["rung_action"], fields["rung_attempts"]) == ("overloaded", "retry", 1)
    assert fields["rung_wait"] > 0
    assert fields["rung_incident"]
    assert "attempt 2 failed: capability_mismatch: too hard; next: fallback (hand over to large, about $0.50)" in (
        handed_over.getMessage()
    )


def test_levels_of_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """`recover` logs a failed outcome as an error and a partial one as a warning, with what a person should do."""
    attempt = Script(*[HttpError(401, "invalid x-api-key")] * 9)
    outcome = rung.recover_sync(attempt, "go", policy="call", clock=FakeClock())
    assert outcome.status == "failed"
    ((level, text),) = lines(caplog)
    assert level == "ERROR"
    assert text.endswith(outcome.recommendation)
    caplog.clear()
    rung.recover_sync(Script(*[HttpError(401, "invalid x-api-key")] * 9), "go", clock=FakeClock())
    assert lines(caplog)[-1][0] == "WARNING"
    assert "partial after" in lines(caplog)[-1][1]


def test_secrets_and_control_characters(caplog: pytest.LogCaptureFixture) -> None:
    """A log line has the first line of the message, without secrets and without control characters."""
    error = ConnectionResetError(f"refused key {SECRET}\x1b[31m\nsecond line")
    rung.guarded(FAST)(flaky(error))()
    ((_, text),) = lines(caplog)
    assert SECRET not in text
    assert "second line" not in text
    assert "\x1b" not in text


def test_a_printing_listener_replaces_the_log(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recovery whose listener prints is not logged."""
    listeners = [rung.print_events()]
    rung.recover_sync(Script(TimeoutError("late"), "done"), "go", policy=FAST, listeners=listeners, clock=FakeClock())
    assert lines(caplog) == []
    assert "✗ attempt 1    timeout: late" in capsys.readouterr().err


def test_the_command_line_logs_nothing(tmp_path: Path) -> None:
    """`rung run` prints each attempt once: its own lines, none of the log."""
    command = [sys.executable, "-m", "rung", "run", "--no-journal", "--", "sh", "-c", "echo 'no such file' >&2; exit 1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, input="go")
    assert "attempt 1" in done.stderr
    assert "next:" not in done.stderr
    assert "attempt 1 failed" not in done.stderr


def test_a_handler_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    """A filter that raises is told about and does not end the recovery."""

    def broken(record: logging.LogRecord) -> bool:
        raise ValueError("broken filter")

    recovery_log.LOGGER.addFilter(broken)
    try:
        with pytest.warns(RuntimeWarning, match="a log handler failed and was ignored"):
            assert rung.guarded(FAST)(flaky(ConnectionResetError("reset")))() == "done"
    finally:
        recovery_log.LOGGER.removeFilter(broken)


def test_the_switch(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the switch off, nothing is logged."""
    monkeypatch.setattr(LOG_SWITCH, "is_on", False)
    caplog.set_level(logging.DEBUG, "rung")
    rung.guarded(FAST)(flaky(ConnectionResetError("reset"), ConnectionResetError("reset")))()
    rung.recover_sync(Script(*[HttpError(401, "no")] * 9), "go", policy="call", clock=FakeClock())
    assert lines(caplog) == []


def test_a_skipped_rung_is_no_second_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A failed attempt is one warning, also if its first rung cannot be applied and another one is taken."""
    script = Script(*[rung.AttemptError("no such file", finding="not_found")] * 20)
    handlers = {"nudge": lambda request, incident: request}  # changes nothing: the rung is skipped
    caplog.set_level(logging.INFO, "rung")
    rung.recover_sync(script, "go", rung_handlers=handlers, clock=FakeClock())
    first = [(level, text) for level, text in lines(caplog) if "attempt 1 failed" in text]
    assert [level for level, _ in first] == ["WARNING", "INFO"]


def test_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    """A recovery that is stopped from outside after a failure says so as an info."""
    caplog.set_level(logging.INFO, "rung")

    class Stopped(BaseException):
        pass

    with pytest.raises(Stopped):
        rung.recover_sync(Script(TimeoutError("late"), Stopped()), "go", policy=FAST, clock=FakeClock())
    assert lines(caplog)[-1][0] == "INFO"
    assert "stopped from outside after 1 attempt" in lines(caplog)[-1][1]


class TestDollarBudget:
    """A dollar budget that never hears of a cost."""

    @pytest.fixture(autouse=True)
    def _forget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recovery_log, "_warned_budgets", set())

    def test_warns_once(self, caplog: pytest.LogCaptureFixture) -> None:
        """A budget in dollars whose attempts report no cost is warned about once for each policy."""
        for _ in range(2):
            rung.recover_sync(lambda request: 1, "go", policy=rung.policy("task", dollars=2.0))
        rung.guarded(rung.policy("call", dollars=3.0), key="k")(lambda: 1)()
        texts = [text for _, text in lines(caplog)]
        assert ["$2.00" in texts[0], "$3.00" in texts[1], len(texts)] == [True, True, 2]
        assert "rung.report_cost(usage=response.usage" in texts[0]

    @pytest.mark.parametrize("dollars", [0.0, 0.25])
    def test_a_reported_cost(self, caplog: pytest.LogCaptureFixture, dollars: float) -> None:
        """Any reported cost counts, also one of 0 and one that an inner call reports."""
        policy = rung.policy("task", dollars=2.0)
        rung.recover_sync(lambda request: rung.report_cost(dollars), "go", policy=policy)
        rung.recover_sync(
            lambda request: rung.recover_sync(lambda inner: rung.report_cost(dollars), "in").unwrap(),
            "go",
            policy=policy,
        )
        assert lines(caplog) == []

    def test_without_a_budget(self, caplog: pytest.LogCaptureFixture) -> None:
        """Nothing is said without a budget in dollars."""
        rung.recover_sync(lambda request: 1, "go")
        assert lines(caplog) == []


def test_records_are_json(caplog: pytest.LogCaptureFixture) -> None:
    """The fields of a record can be written as JSON."""
    rung.recover_sync(Script(TimeoutError("late"), "done"), "go", policy=FAST, clock=FakeClock())
    record = caplog.records[0]
    json.dumps({key: value for key, value in record.__dict__.items() if key.startswith("rung_")})


def test_a_loop_of_somebody_else(caplog: pytest.LogCaptureFixture) -> None:
    """A framework's loop that asks for decisions is logged under the framework's name; its own error ends it."""
    caplog.set_level(logging.INFO, "rung")
    recovery = ExternalRecovery("call", listeners=(recovery_log.FailureLog("a_framework"),), retry_budget=None)
    recovery.failed(TimeoutError("late"))
    recovery.failed(PermissionError(13, "no"))
    ((level, text),) = lines(caplog)
    assert level == "WARNING"
    assert text.startswith("a_framework: attempt 1 failed: timeout: late; next: retry (again in ")


@pytest.mark.parametrize(
    ("models", "why", "advice"),
    [
        (
            ["small", {"name": "large", "cost": 5.0}],
            "fallback skipped: large would cost $5.00, more than the remaining budget",
            "or raise the budget in dollars, which was too small for the fallback.",
        ),
        (
            ["small", "large"],
            "fallback skipped: the price of large is unknown, and the budget is in dollars: set its `cost`",
            "or set the `cost` of the fallback, which the budget in dollars needs.",
        ),
    ],
)
def test_a_fallback_that_the_budget_forbids(
    caplog: pytest.LogCaptureFixture, models: list[Any], why: str, advice: str
) -> None:
    """The log says why a listed model was not used, and the advice names the budget instead of another model."""
    policy = rung.policy("call", models=models, dollars=1.0, patience=60)
    work = Script(*[HttpError(529)] * 50)
    outcome = rung.recover_sync(work, rung.Request(prompt="go", model="small"), policy=policy, clock=FakeClock())
    *logged, (_, last) = lines(caplog)
    waits = [text for _, text in logged if "next: wait (waiting for the service" in text]
    assert waits
    assert all(text.endswith(f"; {why})") for text in waits)
    assert why in last
    assert outcome.recommendation.endswith(advice)
    assert last.endswith(outcome.recommendation)
    assert "another model" not in last
