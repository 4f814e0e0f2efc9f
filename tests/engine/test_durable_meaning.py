"""A resumed run is the same run: its requests, its reports and its results, whole, and no key of theirs in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.errors import RunNotResumable, SealedElsewhere, StoreUnavailable
from rung.errors import AttemptError
from rung.store import open_journal
from rung.store.run_lease import DurableRunLease
from rung.store.sealing import key_file
from rung.testing import FakeClock
from tests.store.durable_runs.crash_matrix import API_KEY, LONG, TOKEN
from tests.store.durable_runs.mortal import Death, Died, MortalJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.store.journal.journal import Journal

POLICY = rung.policy("task", models=["small", "large"], attempts=20)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    """A journal, and an account without a key."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with open_journal(tmp_path / "journal.db") as opened:
        yield opened


class Process:
    """One process that runs the recovery `r`; an attempt may end it."""

    def __init__(self, journal: Journal, *fates: Any) -> None:
        self.death = Death()
        self.journal = MortalJournal(journal, self.death)
        self.fates = list(fates)
        self.requests: list[rung.Request] = []

    def attempt(self, request: rung.Request) -> Any:
        """Come to the next fate: raise it, call it, or return it. The last one repeats."""
        self.requests.append(request)
        fate = self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]
        if callable(fate) and not isinstance(fate, type):
            fate = fate()
        if fate is Died:
            self.death.is_dead = True
            raise Died
        if isinstance(fate, Exception):
            raise fate
        return fate

    def recover(self, request: rung.Request, policy: rung.Policy = POLICY, **ports: Any) -> rung.Outcome[Any]:
        """Run the recovery."""
        return rung.durable.recover_sync(
            self.attempt, request, policy=policy, journal=self.journal, run_id="r", clock=FakeClock(),
            jitter=lambda: 0.0, retry_budget=None, breakers=rung.BreakerRegistry(), **ports,
        )  # fmt: skip


def killed_and_resumed(
    journal: Journal, request: rung.Request, *fates: Any, again: rung.Request | None = None, **ports: Any
) -> tuple[Process, Process, rung.Outcome[Any]]:
    """The process that died, the one that resumed, and the outcome."""
    first = Process(journal, *fates, Died)
    with pytest.raises(Died):
        first.recover(request, **ports)
    second = Process(journal, "done")
    return first, second, second.recover(again or request, **ports)


def planner(request: rung.Request, _: object) -> rung.Request:
    """A plan that cannot be made again."""
    planner.plans = getattr(planner, "plans", 0) + 1  # type: ignore[attr-defined]  # a counter
    return request.replace(prompt=f"Plan {planner.plans}", params={**request.params, "key": API_KEY})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("failure", "policy", "ports"),
    [
        (FileNotFoundError(2, "no such file"), POLICY, {}),
        (AttemptError("wrong goal", finding="goal_misaligned"), POLICY, {}),
        (AttemptError("wrong goal", finding="goal_misaligned"), POLICY, {"rung_handlers": {"replan": planner}}),
        (AttemptError("cannot do it", finding="capability_mismatch"), POLICY, {}),
        (AttemptError("cut", finding="output_limit", output="half"), rung.policy("call", models=["small"]), {}),
        (AttemptError("cut", finding="partial_output", output=f"half of {TOKEN} " + LONG), rung.policy("call", models=["small"]), {}),
    ],
    ids=["nudge", "replan", "planner", "handover", "raise-limit", "resume"],
)  # fmt: skip
def test_killed_in_a_changed_attempt(
    journal: Journal, failure: Exception, policy: rung.Policy, ports: dict[str, Any]
) -> None:
    """The attempt that the death interrupted is made again with the changed request, not with the original one."""
    request = rung.Request(prompt=f"Deploy with {TOKEN}", model="small", max_tokens=10, idempotent=True)
    first, second, outcome = killed_and_resumed(journal, request, failure, policy=policy, **ports)
    assert first.requests[1] != first.requests[0] == request
    assert second.requests == [first.requests[1]]
    assert outcome.ok
    assert TOKEN not in everything(journal)
    assert API_KEY not in everything(journal)


@pytest.mark.parametrize(
    ("fates", "check", "value"),
    [
        ([AttemptError("cut", finding="partial_output", output="one, "), "two"], None, "one, two"),
        (["wrong"], lambda _: "it is wrong", None),
    ],
    ids=["continued", "rejected"],
)
def test_killed_before_the_end_is_recorded(journal: Journal, fates: list[Any], check: Any, value: str | None) -> None:
    """A process that dies between the last event and the result: the resumed run has the value of an undisturbed one."""
    first = Process(journal, *fates)
    finish, seen = DurableRunLease.finish, list[Any]()

    def die(lease: DurableRunLease, result: Any) -> None:
        seen.append(result["value"])
        if len(seen) > 1:
            return finish(lease, result)
        first.death.is_dead = True
        raise Died

    request = rung.Request(prompt="p", model="small", idempotent=True)
    policy = rung.policy("call", models=["small"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DurableRunLease, "finish", die)
        with pytest.raises(Died):
            first.recover(request, policy, check=check)
        outcome = Process(journal, "not made").recover(request, policy, check=check)
    assert (outcome.value, seen) == (value, [value, value])


def everything(journal: Journal) -> str:
    """All texts in which a key could lie."""
    journal.flush()
    return "".join(str(journal.read(f"SELECT * FROM {table}")) for table in ("event", "run", "step", "incident"))


def lose_key(journal: Journal) -> str:
    """As on another account: remove the key, and return it."""
    secret = key_file().read_text()
    key_file().unlink()
    del journal.key.__dict__["_own_keys"]
    return secret


def test_what_the_caller_passes_is_used_as_it_is(journal: Journal) -> None:
    """Secrets and long texts of the caller reach the resumed attempt whole; a new token takes the place of the old."""
    request = rung.Request(
        prompt=f"Deploy with {TOKEN}. {LONG}", params={"api_key": API_KEY}, model="small", idempotent=True
    )
    new = "ghp_" + "z9Y8x7W6v5" * 3 + "u4T3s2"
    again = request.replace(prompt=request.prompt.replace(TOKEN, new))
    first, second, _ = killed_and_resumed(journal, request, FileNotFoundError(2, "x"), again=again)
    assert second.requests[0].prompt == first.requests[1].prompt.replace(TOKEN, new)
    assert second.requests[0].params == {"api_key": API_KEY}


def test_what_an_attempt_reported_outlives_it(journal: Journal) -> None:
    """Finished steps and dollars that an attempt reported before its process died are in the outcome."""

    def report() -> type[Died]:
        rung.report_step(f"built the parser with {TOKEN}")
        rung.report_cost(0.25)
        outcome = rung.recover_sync(lambda _: rung.report_cost(0.5), "a nested call", breakers=rung.BreakerRegistry())
        assert outcome.dollars == 0.5
        return Died

    first = Process(journal, report)
    request = rung.Request(prompt="p", idempotent=True)
    with pytest.raises(Died):
        first.recover(request)
    outcome = Process(journal, "done").recover(request)
    assert outcome.steps == ("built the parser with <secret:github-token>",)
    assert (outcome.dollars, outcome.attempts) == (0.75, 2)


def test_what_a_finished_attempt_reported(journal: Journal) -> None:
    """Killed between the end of an attempt and its event: its steps, its dollars and its side effects count."""

    def fail() -> Exception:
        rung.report_step("sent the mail")
        rung.report_cost(0.25)
        rung.mark_side_effect()
        return TimeoutError("late")

    first = Process(journal, fail)
    first.death.at = 5  # opened, begun, two reports, and the result of the attempt
    request = rung.Request(prompt="p", model="small", idempotent=False)
    with pytest.raises(Died):
        first.recover(request)
    outcome = Process(journal, "done").recover(request)
    (failed,) = [event for event in outcome.events if isinstance(event, ev.AttemptFailed)]
    assert failed.failure.evidence.side_effects
    assert (failed.dollars, outcome.steps) == (0.25, ("sent the mail",))


def test_a_report_that_cannot_be_recorded(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store in trouble does not end the attempt that reports: the user is told."""
    record = DurableRunLease.record

    def refuse(lease: DurableRunLease, key: str, result: Any) -> None:
        if ".report." in key:
            raise StoreUnavailable("the disk is full")
        record(lease, key, result)

    def work() -> str:
        rung.report_step("half")
        return "done"

    monkeypatch.setattr(DurableRunLease, "record", refuse)
    with pytest.warns(RuntimeWarning, match="journal failed and was ignored: StoreUnavailable: the disk is full"):
        outcome = Process(journal, work).recover(rung.Request(prompt="p"))
    assert (outcome.value, outcome.steps) == ("done", ("half",))


def test_results_are_sealed(journal: Journal) -> None:
    """A result with a key is the same value when it is replayed, and cannot be read in the journal."""
    value = {"answer": f"the key is {API_KEY}", "numbers": [1, 2.5, None]}
    assert Process(journal, value).recover(rung.Request(prompt="p")).value == value
    again = Process(journal, Died)
    assert (again.recover(rung.Request(prompt="p")).value, again.requests) == (value, [])
    assert API_KEY not in everything(journal)


def test_results_of_another_account(journal: Journal) -> None:
    """A result that was sealed under another key is refused, not altered."""
    Process(journal, API_KEY).recover(rung.Request(prompt="p"))
    lose_key(journal)
    with pytest.raises(SealedElsewhere, match="run 'r', result is sealed under another key"):
        Process(journal, "done").recover(rung.Request(prompt="p"))


def test_a_run_that_is_refused_is_given_back(journal: Journal) -> None:
    """Refused any number of times, a run is neither taken nor given up: with the key it goes on."""
    request = rung.Request(prompt="p", model="small", idempotent=True)
    first = Process(journal, AttemptError("wrong", finding="goal_misaligned"), Died)
    with pytest.raises(Died):
        first.recover(request, rung_handlers={"replan": planner})
    secret = lose_key(journal)
    for _ in range(5):
        with pytest.raises(SealedElsewhere, match=r"step request\.\d+ is sealed under another key"):
            Process(journal, "done").recover(request)
    key_file().write_text(secret)
    key_file().chmod(0o600)
    second = Process(journal, "done")
    assert second.recover(request).ok
    assert second.requests == [first.requests[1]]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda request, _: request.replace(params={"client": object()}), r"cannot be recorded: params\.client is a object"),
        (lambda request, _: request.replace(prompt=f"{request.prompt}\nAgain."), "started with another request: the request has no params"),
    ],
)  # fmt: skip
def test_requests_that_cannot_be_made_whole(journal: Journal, change: Callable[..., Any], why: str) -> None:
    """A changed request that cannot be made again is refused with the reason."""
    request = rung.Request(prompt="", params={"task": "a task that is passed as a parameter"}, idempotent=True)
    changer = {"replan": lambda request, _: change(request.replace(prompt=request.params["task"]), _)}
    first = Process(journal, AttemptError("wrong", finding="goal_misaligned"), Died)
    with pytest.raises(Died):
        first.recover(request, rung_handlers=changer)
    with pytest.raises(RunNotResumable, match=f"run 'r' cannot be resumed: .*{why}"):
        Process(journal, "done").recover(rung.Request(prompt="", idempotent=True))


@pytest.mark.parametrize("text", ["a short task", f"with {TOKEN}", LONG])
def test_runs_of_an_older_version(journal: Journal, text: str) -> None:
    """A journal without recorded changes: its copy is used if it is whole, else the run is refused."""
    request = rung.Request(prompt="p", messages=({"role": "user", "content": text},), model="small", idempotent=True)
    first = Process(journal, FileNotFoundError(2, "x"), Died)
    with pytest.raises(Died):
        first.recover(request)
    journal.write(lambda connection: connection.execute("DELETE FROM step WHERE key LIKE 'request.%'"), lambda _: True)
    second = Process(journal, "done")
    if text == "a short task":
        assert second.recover(request).ok
        assert second.requests == [first.requests[1]]
    else:
        with pytest.raises(RunNotResumable, match="only with its secrets and long texts removed"):
            second.recover(request)


def test_a_run_that_kills_its_process_each_time(journal: Journal) -> None:
    """Each death is an attempt of the budget: a run that kills its process ends with it, and uses no try of a rung."""
    request = rung.Request(prompt="p", model="small", idempotent=True)
    policy = rung.policy("task", attempts=3)
    for _ in range(3):
        with pytest.raises(Died):
            Process(journal, Died).recover(request, policy)
    outcome = Process(journal, "done").recover(request, policy)
    assert (outcome.status, outcome.attempts, outcome.path) == ("partial", 3, (5,))
    assert outcome.reason.startswith("the budget of 3 attempts is spent; last error: ")


def test_no_key_in_contract_and_report(journal: Journal, tmp_path: Path) -> None:
    """A key in a reported step or in a crash reaches neither the contract nor the report of a blocked run."""

    def fail() -> Exception:
        rung.report_step(f"logged in with {API_KEY}")
        return AttemptError(f"which of {API_KEY}?", finding="strategic_ambiguity")

    def crash(*_: object) -> None:
        raise ValueError(f"no {API_KEY}")

    policy = rung.policy("pipeline", report=str(tmp_path / "blocked.md"))
    with pytest.warns(RuntimeWarning, match="<secret:anthropic-key>"):
        outcome = Process(journal, fail).recover(rung.Request(prompt="p"), policy=policy, listeners=[crash])
    assert outcome.status == "blocked"
    report = (tmp_path / "blocked.md").read_text()
    assert "logged in with <secret:anthropic-key>" in report
    assert API_KEY not in report + str(outcome.to_dict()) + str(outcome.pipeline_failure()) + str(outcome.events)


def test_arguments_of_tasks(journal: Journal) -> None:
    """What only the journal has is kept whole and sealed; without its key the run is listed, and refused when resumed."""
    seen: list[str] = []
    name = "test_arguments_of_tasks"

    def work(token: str) -> str:
        seen.append(token)
        return rung.durable.step("used", lambda: f"used {token}")  # type: ignore[no-any-return]

    rung.durable.task(name)(work)
    text = f"{TOKEN} {LONG}"
    assert journal.runs.submit("t", name, {"token": text})
    assert TOKEN not in everything(journal)
    secret = lose_key(journal)
    (row,) = journal.runs.open_runs()
    assert (row.id, row.task, row.owned) == ("t", name, False)
    assert isinstance(rung.durable.resume(journal)["t"], SealedElsewhere)
    assert journal.runs.open_runs()[0].touched_at == row.touched_at
    key_file().write_text(secret)
    key_file().chmod(0o600)
    assert rung.durable.resume(journal) == {"t": f"used {text}"}
    assert seen == [text]
    assert TOKEN not in everything(journal)


def test_a_nested_run_costs_once(journal: Journal) -> None:
    """What a nested durable run cost before its process died is counted once, in its outer run and in all reports."""
    request = rung.Request(prompt="p", idempotent=True)

    def outer(ends: Callable[[], Any]) -> Callable[[], Any]:
        def inner(_: rung.Request) -> Any:
            rung.report_cost(0.5)
            return ends()

        def attempt() -> Any:
            rung.report_cost(0.25)
            made = rung.durable.recover_sync(
                inner,
                request,
                run_id="nested",
                journal=process.journal,
                policy=POLICY,
                breakers=None,
                retry_budget=None,
            )
            return made.dollars

        return attempt

    def die() -> None:
        process.death.is_dead = True
        raise Died

    process = Process(journal, outer(die))
    with pytest.raises(Died):
        process.recover(request)
    process = Process(journal, outer(lambda: "done"))
    outcome = process.recover(request)
    assert (outcome.value, outcome.dollars) == (1.0, 1.5)  # spent: 0.25 and 0.5, twice
    journal.flush()
    for table, column in (("incident", "own_dollars"), ("attempt", "dollars"), ("by_hour", "dollars")):
        assert journal.read(f"SELECT sum({column}) FROM {table}") == [(1.5,)], table
