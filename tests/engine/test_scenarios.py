"""What must hold end to end, in both modes: the cases the ladders were made for."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.core.domain.failures import Kind
from rung.core.domain.incident import Incident
from rung.core.domain.level_record import level_records
from rung.testing import FakeClock, HttpError, Script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import World

ASK = rung.Request(prompt="Fix the failing test", model="small")
OVERLOADED = HttpError(529, "Overloaded", code="overloaded_error")


def decisions(outcome: rung.Outcome[Any]) -> list[str]:
    return [type(e.decision).__name__ for e in outcome.events if isinstance(e, ev.Decided)]


def loop(repeats: int) -> rung.AttemptError:
    return rung.AttemptError("read a.txt, again", finding="loop_detected", repeats=repeats)


def test_first_attempt_succeeds(world: World) -> None:
    """A good first attempt is a success of one attempt, and nothing else happens."""
    outcome = world.recover(Script("done"), ASK)
    assert (outcome.status, outcome.value, outcome.attempts, outcome.path) == ("succeeded", "done", 1, ())
    assert world.clock.sleeps == []


def test_rate_limit_with_retry_after(world: World) -> None:
    """A rate limit with Retry-After 2 is waited out for at least 2 seconds, then repeated unchanged."""
    script = Script(HttpError(429, "slow down", {"Retry-After": "2"}), "done")
    outcome = world.recover(script, ASK)
    assert outcome.status == "recovered"
    assert 2.0 <= world.clock.sleeps[0] <= 2.5
    assert script.requests[0] == script.requests[1]


def test_retry_after_above_the_cap(world: World) -> None:
    """A server that asks for more than the cap is not waited for: another model takes over."""
    script = Script(HttpError(429, "slow down", {"retry-after": "3600"}), "done")
    outcome = world.recover(script, ASK, policy=rung.policy("task", models=["small", "large"]))
    assert [r.model for r in script.requests] == ["small", "large"]
    assert world.clock.sleeps == []
    assert outcome.path == (4,)


def test_unattended_waits_for_the_reset(world: World) -> None:
    """Where nobody is there, a limit of a day is parked for, if no other model can take the work."""
    script = Script(HttpError(429, "slow down", {"retry-after": "90000"}), "done")
    outcome = world.recover(script, ASK, policy=rung.policy("task", "unattended", models=["small"]))
    assert outcome.status == "recovered"
    assert [r.model for r in script.requests] == ["small", "small"]
    assert world.clock.sleeps[0] >= 90_000


def test_401_is_never_repeated(world: World) -> None:
    """A refused key ends at once, partial, and says what a person should do."""
    script = Script(HttpError(401, "invalid x-api-key"))
    outcome = world.recover(script, ASK)
    assert (outcome.status, outcome.attempts, outcome.path) == ("partial", 1, (5,))
    assert "key" in outcome.recommendation


@pytest.mark.parametrize("ladder", ["task", "call", "model"])
def test_overload_that_persists_falls_back(world: World, ladder: str) -> None:
    """Three 529s and more on one model are followed by success on the fallback model."""
    script = Script(OVERLOADED, OVERLOADED, OVERLOADED, "done")
    policy = rung.policy(ladder, models=["small", "large"], retries=2)
    outcome = world.recover(script, ASK, policy=policy)
    assert outcome.status == "recovered"
    assert [r.model for r in script.requests] == ["small", "small", "small", "large"]
    assert script.requests[-1].prompt == ASK.prompt  # the service failed, not the work
    assert len(world.clock.sleeps) == 2


def test_persistent_overload_with_nothing_to_fall_back_to(world: World) -> None:
    """A service that stays down and has no alternative is retried, waited for, and then the run ends partial."""
    outcome = world.recover(Script(OVERLOADED), ASK)
    assert (outcome.status, outcome.path) == ("partial", (1, 4, 5))
    assert 300 <= sum(world.clock.sleeps) <= 310
    outcome = world.recover(Script(OVERLOADED), ASK, policy=rung.policy("task", patience=0))
    assert (outcome.status, outcome.attempts, outcome.path) == ("partial", 4, (1, 5))


def test_output_limit_raised_then_resumed(world: World) -> None:
    """A cut-off answer gets a larger limit, then is resumed, and comes back whole."""

    def cut(text: str) -> rung.AttemptError:
        return rung.AttemptError("cut", finding="output_limit", output=text)

    script = Script(cut("One, "), cut("One, two, "), cut("three, "), "four.")
    policy = rung.policy("call", models=[rung.policies.Model(name="small", max_tokens=64_000)])
    outcome = world.recover(script, ASK.replace(max_tokens=8_000), policy=policy)
    assert outcome.value == "One, two, three, four."
    assert [r.max_tokens for r in script.requests] == [8_000, 64_000, 64_000, 64_000]
    assert "Do not apologise" in script.requests[2].prompt
    assert "One, two, three, " in script.requests[3].prompt
    assert outcome.path == (2, 3)


def test_resumed_answer_survives_a_blip(world: World) -> None:
    """A network failure while resuming is repeated, and what was written before is still there."""
    cut = rung.AttemptError("cut", finding="output_limit", output="One, ")
    script = Script(cut, cut, OVERLOADED, "two.")
    outcome = world.recover(script, ASK, policy="call")
    assert outcome.value == "One, two."


def test_compact_that_does_not_shrink(world: World) -> None:
    """A compaction that makes nothing smaller counts as failed and is not attempted."""
    script = Script(HttpError(400, "prompt is too long: 210000 tokens > 200000 maximum"))
    outcome = world.recover(script, ASK, policy="call")
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    assert any(isinstance(e, ev.Skipped) for e in outcome.events)

    def grow(request: rung.Request, _: Incident) -> rung.Request:
        return request.replace(prompt=request.prompt * 2)

    outcome = world.recover(script, ASK, policy="call", rung_handlers={"compact": grow})
    skipped = [e.reason for e in outcome.events if isinstance(e, ev.Skipped)]
    assert skipped == ["compaction did not shrink the request"]
    assert outcome.attempts == 1


def test_compact_that_shrinks(world: World) -> None:
    """Old tool results become stubs, tool pairs stay, and the smaller request is attempted."""
    messages: tuple[dict[str, Any], ...] = (
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x" * 5_000}]},
        {"role": "tool", "tool_call_id": "2", "content": "y" * 5_000},
        *({"role": "user", "content": f"step {n}"} for n in range(6)),
    )
    script = Script(HttpError(400, "prompt is too long: 9 tokens > 8 maximum"), "done")
    outcome = world.recover(script, rung.Request(messages=messages, model="small"), policy="call")
    assert outcome.status == "recovered"
    assert script.requests[1].size() < 2_000
    assert len(script.requests[1].messages) == len(messages)


def test_unknown_error_is_nudged_not_retried(world: World) -> None:
    """An error nobody knows is not repeated as it is: it enters at nudge, with the error in the prompt."""
    script = Script(RuntimeError("flux capacitor misaligned"), "done")
    outcome = world.recover(script, ASK)
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.path) == ("unknown", (2,))
    assert "flux capacitor" in script.requests[1].prompt
    assert ASK.prompt in script.requests[1].prompt


@pytest.mark.parametrize(("repeats", "path"), [(3, (3,)), (4, (3,)), (5, (4,)), (7, (4,))])
def test_loop_thresholds(world: World, repeats: int, path: tuple[int, ...]) -> None:
    """A loop of three enters at replan, of five at fallback."""
    script = Script(loop(repeats), "done")
    outcome = world.recover(script, ASK, policy=rung.policy("task", models=["small", "large"]))
    assert (outcome.status, outcome.path) == ("recovered", path)


def test_loop_of_eight_is_forced_to_end(world: World) -> None:
    """A loop of eight gets one last turn to say what was done, and ends partial with it."""
    script = Script(loop(8), "Done: a. Not done: b.")
    outcome = world.recover(script, ASK)
    assert (outcome.status, outcome.path, outcome.value) == ("partial", (5,), "Done: a. Not done: b.")
    assert "last turn" in script.requests[1].prompt


def test_a_last_turn_whose_result_passes_the_check_is_a_recovery(world: World) -> None:
    """A check decides about the last turn, too: an accepted result is a success, a rejected one stays partial."""
    outcome = world.recover(Script(loop(8), OVERLOADED, "fixed"), ASK, check=lambda value: value == "fixed")
    assert (outcome.status, outcome.path, outcome.value, outcome.failed_at) == ("recovered", (5,), "fixed", "")
    assert Incident.of(outcome.events).status == "recovered"
    outcome = world.recover(Script(loop(8), "not fixed"), ASK, check=lambda value: value == "fixed")
    assert (outcome.status, outcome.path, outcome.failure and outcome.failure.kind) == ("partial", (5,), "test_failure")


def test_a_retried_last_turn_is_still_partial(world: World) -> None:
    """A blip during the last turn is repeated, and the end is not mistaken for a recovery."""
    outcome = world.recover(Script(loop(8), OVERLOADED, "last words"), ASK)
    assert (outcome.status, outcome.value) == ("partial", "last words")


def test_missing_credentials(world: World) -> None:
    """No key at all ends at once: only a person can give one."""
    outcome = world.recover(Script(RuntimeError("No API key provided. Set SOME_API_KEY")), ASK)
    assert (outcome.status, outcome.attempts, outcome.path) == ("partial", 1, (5,))
    assert "credentials" in outcome.recommendation


def test_a_replan_that_throws(world: World) -> None:
    """A planner that breaks fails its rung, is recorded, and the ladder climbs on."""

    def plan(request: rung.Request, incident: Incident) -> rung.Request:
        raise OSError("planner is gone")

    script = Script(loop(3), "done")
    policy = rung.policy("task", models=["small", "large"])
    outcome = world.recover(script, ASK, policy=policy, rung_handlers={"replan": plan})
    assert (outcome.status, outcome.path) == ("recovered", (3, 4))
    assert ["planner is gone" in e.reason for e in outcome.events if isinstance(e, ev.Skipped)] == [True]


def test_a_fallback_that_throws(world: World) -> None:
    """A hand-over that fails too ends partial, back on the former model."""
    script = Script(rung.AttemptError("cannot", finding="capability_mismatch"))
    outcome = world.recover(script, ASK, policy=rung.policy("task", models=["small", "large"]))
    assert (outcome.status, outcome.model) == ("partial", "small")
    assert [r.model for r in script.requests] == ["small", "large", "small"]  # the last turn is on the first
    assert any(isinstance(e, ev.ModelRestored) for e in outcome.events)


def test_a_changer_that_returns_rubbish(world: World) -> None:
    """A changer that returns no request fails its rung with a word about it."""
    outcome = world.recover(Script(loop(3), "x"), ASK, rung_handlers={"replan": lambda request, incident: "plan"})
    assert any("must return a rung.Request" in e.reason for e in outcome.events if isinstance(e, ev.Skipped))


def test_a_listener_that_crashes(world: World) -> None:
    """A listener that breaks is recorded, shown and ignored; the others are still told."""
    seen: list[str] = []

    def broken(event: ev.Event, incident: Incident) -> None:
        raise ValueError("listener bug")

    def good(event: ev.Event, incident: Incident) -> None:
        seen.append(type(event).__name__)

    with pytest.warns(RuntimeWarning, match="listener bug"):
        outcome = world.recover(Script("done"), ASK, listeners=[broken, good])
    assert outcome.status == "succeeded"
    assert [name for name in seen if name != "Crashed"] == ["Opened", "AttemptSucceeded"]
    assert sum(isinstance(e, ev.Crashed) for e in outcome.events) == 2


def test_a_check_that_crashes_fails_closed(world: World) -> None:
    """A check that breaks has verified nothing: recorded, shown, the work kept but no success, and not done again."""

    def check(value: str) -> None:
        raise ZeroDivisionError

    with pytest.warns(RuntimeWarning, match="check failed so the result is not accepted"):
        outcome = world.recover(Script("done"), ASK, check=check)
    assert (outcome.status, outcome.attempts) == ("partial", 1)
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.evidence.output) == ("unverified", "done")
    assert "ZeroDivisionError" in outcome.reason


@pytest.mark.parametrize("ladder", ["task", "call", "pipeline", "model", "crew"])
def test_a_final_failure_ends_every_ladder(world: World, ladder: str) -> None:
    """A failure that is final is not followed by another attempt, on any ladder and with every way out open."""
    script = Script(rung.AttemptError("the guard said no", finding="permission_denied", final=True), "done")
    policy = rung.policy(ladder, models=["small", "large"], agents=["other"])
    outcome = world.recover(script, ASK, policy=policy, ask=lambda question, incident: "retry")
    assert (outcome.ok, outcome.attempts) == (False, 1)
    assert "the guard said no" in outcome.reason


@pytest.mark.parametrize(("answer", "attempts"), [(True, 1), (False, 2)])
def test_a_check_may_answer_with_a_bool(world: World, answer: bool, attempts: int) -> None:
    """True means that the result is good, False that it is a failure."""
    answers = iter([answer, True])
    outcome = world.recover(Script("a", "b"), ASK, check=lambda value: next(answers))
    assert (outcome.ok, outcome.attempts) == (True, attempts)
    if not answer:
        assert outcome.failure is not None
        assert (outcome.failure.kind, outcome.failure.evidence.output) == ("test_failure", "a")


@pytest.mark.parametrize("answer", [0, 1, [], "", " ", object()])
def test_an_answer_that_is_none_verifies_nothing(world: World, answer: object) -> None:
    """A check whose answer cannot be understood has verified nothing: no success, and the answer is named."""
    outcome = world.recover(Script("a"), ASK, check=lambda value: answer)
    assert outcome.failure is not None
    assert (outcome.ok, outcome.attempts, outcome.failure.kind) == (False, 1, "unverified")
    assert type(answer).__name__ in outcome.reason


@pytest.mark.parametrize(
    ("scores", "kind", "path"),
    [
        ((20, 20, 7, 20), "unverified", (2,)),
        ((14, 15, 15, 15), "goal_misaligned", (3,)),
        ((14, 20, 7, 20), "goal_misaligned", (3,)),
        ((16, 10, 12, 10), "low_quality", (3,)),
    ],
)
def test_a_judges_fail(world: World, scores: tuple[int, ...], kind: str, path: tuple[int, ...]) -> None:
    """A FAIL without evidence is nudged, one off the goal replanned, and of both the higher is taken."""
    verdicts = iter(
        [
            rung.detect.Verdict(
                goal_alignment=scores[0],
                action_completeness=scores[1],
                evidence_of_completion=scores[2],
                final_state_coherence=scores[3],
            ),
            rung.detect.Verdict(
                goal_alignment=25, action_completeness=25, evidence_of_completion=25, final_state_coherence=25
            ),
        ]
    )
    outcome = world.recover(Script("first", "second"), ASK, check=lambda value: next(verdicts))
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.path, outcome.value) == (kind, path, "second")


def test_a_checks_plain_words_are_evidence(world: World) -> None:
    """What a check returns that is neither evidence nor a verdict is the text of a low-quality result."""
    answers = iter(["too short", None])
    outcome = world.recover(Script("a", "b"), ASK, check=lambda value: next(answers))
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.message, outcome.value) == ("low_quality", "too short", "b")


def test_stopped_in_a_backoff_async() -> None:
    """A cancellation in a backoff passes through at once, and is recorded with a partial outcome."""

    class Endless(FakeClock):
        async def asleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    async def main() -> BaseException:
        clock = Endless()
        task = asyncio.create_task(
            rung.recover(Script(OVERLOADED).attempt, ASK, clock=clock, breakers=rung.BreakerRegistry())
        )
        await asyncio.sleep(0.01)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as stop:
            return stop
        raise AssertionError("not cancelled")

    outcome = asyncio.run(main()).__dict__["__rung_outcome__"]
    assert outcome.status == "partial"
    assert isinstance(outcome.events[-1], ev.Cancelled)


def test_ctrl_c_in_a_backoff_sync() -> None:
    """Ctrl-C in a backoff passes through at once, and carries a partial outcome."""

    class Pressed(FakeClock):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        rung.recover_sync(Script(OVERLOADED), ASK, clock=Pressed(), breakers=rung.BreakerRegistry())
    outcome = stop.value.__dict__["__rung_outcome__"]
    assert (outcome.status, outcome.attempts) == ("partial", 1)
    assert outcome.to_dict()["status"] == "partial"


def test_stopped_in_an_attempt_is_told_and_kept(world: World) -> None:
    """Ctrl-C in an attempt is told to listeners and written to the journal on the way out."""
    kept: list[str] = []

    class Memory:
        def append(self, incident: str, first: int, events: Any) -> None:
            kept.extend(type(event).__name__ for event in events)

    def pressed(request: rung.Request) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.recover(pressed, ASK, journal=Memory())
    assert kept == ["Opened", "Cancelled"]


def test_ctrl_c_in_a_listener(world: World) -> None:
    """Ctrl-C that hits while a listener is told passes through, with the outcome so far."""

    def pressed(event: ev.Event, incident: Incident) -> None:
        if isinstance(event, ev.Decided):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        world.recover(Script(OVERLOADED), ASK, listeners=[pressed])
    assert stop.value.__dict__["__rung_outcome__"].status == "partial"


def test_a_stop_after_the_end_changes_nothing(world: World) -> None:
    """Ctrl-C that hits while the end is told does not undo it."""

    def pressed(event: ev.Event, incident: Incident) -> None:
        if isinstance(event, ev.AttemptSucceeded):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        world.recover(Script("done"), ASK, listeners=[pressed])
    assert stop.value.__dict__["__rung_outcome__"].status == "succeeded"


def test_journal_before_acting(world: World) -> None:
    """Each decision is in the journal before the attempt it decides on is made."""
    journal: list[str] = []
    seen: list[list[str]] = []

    class Memory:
        def append(self, incident: str, first: int, events: Any) -> None:
            journal.extend(type(event).__name__ for event in events)

    def attempt(request: rung.Request) -> str:
        seen.append(list(journal))
        if len(seen) == 1:
            raise OVERLOADED
        return "done"

    world.recover(attempt, ASK, journal=Memory())
    assert seen == [["Opened"], ["Opened", "AttemptFailed", "Decided"]]
    assert journal[-1] == "AttemptSucceeded"


def test_a_broken_journal_does_not_stop_the_work(world: World) -> None:
    """A journal that cannot be written is shown to the user, and the agent's work goes on."""

    class Full:
        def append(self, incident: str, first: int, events: Any) -> None:
            raise OSError("No space left on device")

    with pytest.warns(RuntimeWarning, match="journal failed"):
        outcome = world.recover(Script(OVERLOADED, "done"), ASK, journal=Full())
    assert outcome.status == "recovered"


def test_a_broken_journal_does_not_hold_up_ctrl_c(world: World) -> None:
    """A journal that fails on the way out is shown, and the stop passes through."""

    class Full:
        def append(self, incident: str, first: int, events: Any) -> None:
            raise OSError("No space left on device")

    def pressed(request: rung.Request) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pytest.warns(RuntimeWarning, match="journal failed"):
        world.recover(pressed, ASK, journal=Full())


def test_replay_only_where_it_is_safe(world: World) -> None:
    """After output or a side effect the same request is not made again, unless it is marked idempotent."""
    cut = rung.AttemptError("reset", finding="network", output_started=True)
    policy = rung.policy("call", models=["small", "large"])
    outcome = world.recover(Script(cut, "again"), ASK, policy=policy)
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    outcome = world.recover(Script(cut, "again"), ASK.replace(idempotent=True), policy=policy)
    assert (outcome.status, outcome.value) == ("recovered", "again")


def test_touched_inside_an_attempt(world: World) -> None:
    """An attempt that says its effects can be seen is not replayed."""

    def attempt(request: rung.Request) -> str:
        rung.mark_side_effect()
        raise OVERLOADED

    outcome = world.recover(attempt, ASK, policy="call")
    assert (outcome.status, outcome.attempts) == ("failed", 1)


def test_steps_and_money_are_reported_from_inside(world: World) -> None:
    """Finished steps are harvested when it ends partial, and dollars count against the budget."""

    def attempt(request: rung.Request) -> str:
        rung.report_step("wrote the parser")
        rung.report_cost(0.4)
        raise OVERLOADED

    outcome = world.recover(attempt, ASK, policy=rung.policy("task", dollars=1.0))
    assert outcome.to_dict()["completedSteps"] == ["wrote the parser"]
    assert outcome.dollars == pytest.approx(1.2)
    assert "budget of $1.00 is spent" in outcome.reason


def test_reports_outside_any_recovery_do_nothing() -> None:
    """The reporting functions are harmless where nothing is being recovered."""
    rung.report_step("x")
    rung.report_cost(1.0)
    rung.mark_side_effect()


def test_checkpoint_and_rollback(world: World) -> None:
    """A checkpoint is taken before replan and above, and a rung that fails is rolled back where wanted."""
    calls: list[str] = []

    class Memory:
        def take(self, label: str) -> str:
            calls.append(f"take {label}")
            return f"at-{label}"

        def restore(self, reference: str) -> None:
            calls.append(f"restore {reference}")

    ladder = {
        "name": "mine",
        "rungs": [
            {"action": "nudge"},
            {"action": "replan", "rollback": True},
            {"action": "fallback"},
            {"action": "force-done", "tries": 0},
        ],
    }
    policy = rung.policy(ladder, models=["small", "large"])  # type: ignore[arg-type]  # a table is fine too
    outcome = world.recover(Script(RuntimeError("no")), ASK, policy=policy, checkpoint=Memory())
    assert calls == ["take replan", "restore at-replan", "take fallback"]
    assert outcome.status == "partial"
    assert [e.reference for e in outcome.events if isinstance(e, ev.RolledBack)] == ["at-replan"]


def test_what_was_rolled_back_is_not_told_as_done(world: World) -> None:
    """The steps of a rolled-back attempt are neither told nor reported as done, and it is a known-bad path of its model."""

    class Memory:
        def take(self, label: str) -> str:
            return label

        def restore(self, reference: str) -> None:
            pass

    script = Script(RuntimeError("no"))

    def attempt(request: rung.Request) -> object:
        rung.report_step(f"step of {request.model}")
        return script(request)

    ladder = {"rungs": [{"action": "escalate", "tries": 2, "rollback": True}, {"action": "surface"}]}
    policy = rung.policy(ladder, models=["small", "large", "huge"])  # type: ignore[arg-type]  # a table is fine too
    outcome = world.recover(attempt, ASK, policy=policy, checkpoint=Memory())
    assert [request.model for request in script.requests] == ["small", "large", "huge"]
    assert "step of large" not in script.requests[-1].prompt
    assert outcome.to_dict()["completedSteps"] == ["step of small"]
    known_bad = [event.approach for event in outcome.events if isinstance(event, ev.Abandoned)]
    assert [re.findall("^by: .*", text, re.MULTILINE) for text in known_bad] == [["by: small"], ["by: large"]]


def test_a_checkpoint_that_breaks_is_ignored(world: World) -> None:
    """Neither taking nor restoring a checkpoint can break the recovery."""

    class Broken:
        def take(self, label: str) -> str:
            if label == "replan":
                return "x"
            raise OSError("disk")

        def restore(self, reference: str) -> None:
            raise OSError("disk")

    ladder = {"rungs": [{"action": "replan", "rollback": True}, {"action": "respawn"}, {"action": "force-done"}]}
    with pytest.warns(RuntimeWarning, match="checkpoint failed"):
        outcome = world.recover(
            Script(RuntimeError("no")),
            ASK,
            policy=rung.policy(ladder),  # type: ignore[arg-type]
            checkpoint=Broken(),
        )
    assert sum(isinstance(e, ev.Crashed) for e in outcome.events) == 2


def test_asking_a_person(world: World) -> None:
    """A surfaced failure is put to a person, who may try again, choose a model, or stop."""
    asked: list[ev.Ask] = []

    def person(answer: str) -> Any:
        def ask(question: ev.Ask, incident: Incident) -> str:
            asked.append(question)
            return answer

        return ask

    policy = rung.policy("call", models=["small", "large"])
    bad = HttpError(400, "max_tokens: must be positive")
    outcome = world.recover(Script(bad, "done"), ASK, policy=policy, ask=person("retry"))
    assert (outcome.status, outcome.attempts) == ("recovered", 2)
    assert [option.id for option in asked[0].options] == ["retry", "model:large", "stop"]
    script = Script(bad, "done")
    outcome = world.recover(script, ASK, policy=policy, ask=person("model:large"))
    assert [r.model for r in script.requests] == ["small", "large"]
    outcome = world.recover(Script(bad), ASK, policy=policy, ask=person("stop"))
    assert outcome.status == "failed"
    assert outcome.reason.startswith("a person chose to stop; last error: invalid_request: ")


def test_a_person_may_replan(world: World) -> None:
    """Without another model the third choice is another approach."""
    script = Script(HttpError(400, "bad"), "done")
    outcome = world.recover(script, ASK, policy="call", ask=lambda question, incident: "replan")
    assert outcome.status == "recovered"
    assert "new plan" in script.requests[1].prompt


@pytest.mark.parametrize("answer", [None, "nonsense"])
def test_nobody_answers(world: World, answer: str | None, tmp_path: Path) -> None:
    """A question that nobody answers ends blocked, with a report; never with a guess."""
    report = tmp_path / "tasks" / "blocked.md"
    policy = rung.policy("pipeline", report=str(report))
    trouble = rung.AttemptError("which of the two?", finding="strategic_ambiguity")
    outcome = world.recover(Script(trouble), ASK, policy=policy, ask=lambda question, incident: answer)
    assert outcome.status == "blocked"
    text = report.read_text()
    assert "which of the two?" in text
    assert "## Options" in text


def test_an_asker_that_breaks(world: World, tmp_path: Path) -> None:
    """An asker that breaks is nobody there."""

    def ask(question: ev.Ask, incident: Incident) -> str:
        raise OSError("terminal gone")

    policy = rung.policy("pipeline", report=str(tmp_path / "r.md"))
    with pytest.warns(RuntimeWarning, match="operator failed"):
        outcome = world.recover(
            Script(rung.AttemptError("?", finding="strategic_ambiguity")), ASK, policy=policy, ask=ask
        )
    assert outcome.status == "blocked"


def test_nobody_there_is_blocked_with_a_report(world: World, tmp_path: Path) -> None:
    """Unattended, an ask becomes blocked with a written report; an earlier report stays."""
    report = tmp_path / "blocked.md"
    policy = rung.policy("pipeline", report=str(report))
    for _ in range(2):
        outcome = world.recover(Script(rung.AttemptError("turns", finding="turns_exhausted")), ASK, policy=policy)
    assert (outcome.status, outcome.path) == ("blocked", (2, 4))
    assert outcome.attempts == 4
    assert report.read_text().count("# BLOCKED") == 2


def test_a_report_that_cannot_be_written(world: World, tmp_path: Path) -> None:
    """A report that cannot be written is shown, and the outcome is blocked all the same."""
    (tmp_path / "file").write_text("")
    policy = rung.policy("pipeline", report=str(tmp_path / "file" / "r.md"))
    with pytest.warns(RuntimeWarning, match="report failed"):
        outcome = world.recover(Script(rung.AttemptError("?", finding="beyond_authority")), ASK, policy=policy)
    assert outcome.status == "blocked"


def test_no_report_by_default(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library call writes no file into the working directory unless the policy names one."""
    monkeypatch.chdir(tmp_path)
    outcome = world.recover(
        Script(rung.AttemptError("?", finding="beyond_authority")), ASK, policy=rung.policy("pipeline")
    )
    assert outcome.status == "blocked"
    assert list(tmp_path.iterdir()) == []


def test_a_dearer_model_is_confirmed(world: World) -> None:
    """With confirmation, a dearer model takes over only when a person agrees, knowing the price."""
    questions: list[ev.Ask] = []

    def ask(question: ev.Ask, incident: Incident) -> str:
        questions.append(question)
        return "decline" if question.model == "medium" else "approve"

    models = [{"name": "small", "cost": 0.01}, {"name": "medium", "cost": 0.05}, {"name": "large", "cost": 0.25}]
    policy = rung.policy("model", models=models, confirm="more_expensive")
    script = Script(rung.AttemptError("too hard", finding="capability_mismatch"), "done")
    outcome = world.recover(script, ASK, policy=policy, ask=ask)
    assert [q.model for q in questions] == ["medium", "large"]
    assert questions[1].estimate == 0.25
    assert "about $0.25" in questions[1].question
    assert [r.model for r in script.requests] == ["small", "large"]
    assert "already been tried" not in script.requests[1].prompt
    assert outcome.status == "recovered"


def test_a_declined_model_is_not_offered_again_after_a_wait(world: World) -> None:
    """A person who declines a handover is asked once, however often the overloaded model is waited for."""
    asked: list[str] = []

    def ask(question: ev.Ask, _: Incident) -> str:
        asked.append(question.model)
        return "decline"

    policy = rung.policy("task", models=["small", "medium", "large"], confirm="more_expensive", patience=300)
    policy = policy.replace(
        models=tuple(replace(m, cost=c) for m, c in zip(policy.models, (0.1, 0.1, 0.5), strict=True))
    )
    script = Script(*[OVERLOADED] * 12, "done")
    outcome = world.recover(script, rung.Request(prompt="x", model="small"), policy=policy, ask=ask)
    assert (outcome.status, outcome.value) == ("recovered", "done")
    assert outcome.probes > 1
    assert asked == ["large"]


@pytest.mark.parametrize("ladder", ["call", "model", "task"])
def test_a_declined_handover_buys_no_retries(world: World, ladder: str) -> None:
    """Declining every handover leaves the retries as spent as they were before the question."""

    def ask(question: ev.Ask, _: Incident) -> str:
        return "decline" if any(option.id == "decline" for option in question.options) else "stop"

    policy = rung.policy(ladder, models=["small", "medium", "large"], confirm="always", patience=0)
    script = Script(HttpError(500, "Internal server error"))
    world.recover(script, rung.Request(prompt="x", model="small"), policy=policy, ask=ask)
    assert [request.model for request in script.requests] == ["small"] * 4


def test_confirmation_with_nobody_there(world: World, tmp_path: Path) -> None:
    """Leave that nobody can give is not taken."""
    policy = rung.policy("model", models=["small", "large"], confirm="always", report=str(tmp_path / "r.md"))
    outcome = world.recover(Script(rung.AttemptError("hard", finding="capability_mismatch")), ASK, policy=policy)
    assert (outcome.status, outcome.attempts) == ("blocked", 1)


def test_escalation_after_so_many_failures(world: World) -> None:
    """Below the threshold the next model up is asked for; from it on it is taken."""
    policy = rung.policy("model", models=["small", "large"], escalate_after=1)
    hard = rung.AttemptError("hard", finding="low_quality")
    script = Script(hard, hard, "done")
    outcome = world.recover(script, ASK, policy=policy)
    assert [r.model for r in script.requests] == ["small", "small", "large"]
    assert outcome.path == (2, 3)


def test_quota_never_goes_to_a_dearer_model(world: World) -> None:
    """Exhausted quota may go to a cheaper model, never up; and never to another agent on the same one."""
    quota = HttpError(429, "You exceeded your current quota", code="insufficient_quota")
    script = Script(quota, "done")
    policy = rung.policy("task", models=["tiny", "small", "large"], agents=["other"])
    world.recover(script, ASK, policy=policy)
    assert [r.model for r in script.requests] == ["small", "tiny"]
    outcome = world.recover(Script(quota), ASK, policy=rung.policy("task", models=["small", "large"], agents=["other"]))
    assert (outcome.status, outcome.attempts) == ("partial", 1)


def test_quota_goes_to_an_agent_with_an_account_of_its_own(world: World) -> None:
    """Exhausted quota reaches another agent unless it is known to share the account: by name, or by the same model."""
    quota = HttpError(429, "You exceeded your current quota", code="insufficient_quota")
    unnamed = rung.Request(prompt="do it")
    for request, settings, status in (
        (unnamed, {}, "recovered"),
        (unnamed, {"same_account": ["other"]}, "partial"),
        (ASK, {}, "partial"),
        (ASK, {"same_account": []}, "recovered"),
    ):
        policy = rung.policy("task", agents=["other"], **settings)
        outcome = world.recover(
            Script(quota, "done") if status == "recovered" else Script(quota), request, policy=policy
        )
        assert outcome.status == status, (request, settings)
        shares = any("share the exhausted account" in str(event) for event in outcome.events)
        assert shares == (status == "partial"), (request, settings)


def test_another_account_comes_before_another_model(world: World) -> None:
    """An agent that is known to have an account of its own is tried on the same model, before a cheaper model."""
    quota = HttpError(429, "You exceeded your current quota", code="insufficient_quota")
    script = Script(quota, "done")
    policy = rung.policy("task", models=["tiny", "small"], agents=["shared", "own"], same_account=["shared"])
    world.recover(script, ASK, policy=policy)
    assert (script.requests[1].agent, script.requests[1].model) == ("own", "small")


@pytest.mark.parametrize(("shared", "agents"), [(None, [""]), (["other"], [""]), ([], ["", "other"])])
def test_a_refused_key_goes_to_another_account_only(world: World, shared: list[str] | None, agents: list[str]) -> None:
    """A ladder that lets a refused key enter at fallback hands over only to an agent known to have another account."""
    script = Script(HttpError(401, "invalid x-api-key"), "done")
    policy = rung.policy("call", agents=["other"], models=["small", "large"], same_account=shared)
    policy = policy.replace(
        ladder=replace(policy.ladder, entry={**policy.ladder.entry, rung.Kind.AUTH_ERROR: "fallback"})
    )
    world.recover(script, ASK, policy=policy)
    assert [request.agent for request in script.requests] == agents


def test_capability_goes_to_another_agent_first(world: World) -> None:
    """A mismatch of capability is given to another agent, with all that was tried."""
    script = Script(rung.AttemptError("I only do Python", finding="capability_mismatch"), "done")
    world.recover(script, ASK, policy=rung.policy("task", agents=["sysadmin"], models=["small", "large"]))
    assert (script.requests[1].agent, script.requests[1].model) == ("sysadmin", "small")
    assert "I only do Python" in script.requests[1].prompt


def test_money_bounds_a_hand_over(world: World) -> None:
    """A model whose price is above what is left is passed over."""
    policy = rung.policy("task", models=[{"name": "small"}, {"name": "large", "cost": 5.0}], dollars=1.0)
    outcome = world.recover(Script(rung.AttemptError("hard", finding="capability_mismatch")), ASK, policy=policy)
    assert outcome.path == (5,)
    closing = next(e.decision for e in outcome.events if isinstance(e, ev.Decided))
    assert any("more than the remaining budget" in reason for _, reason in closing.skipped)


def test_an_unknown_price_is_asked_about(world: World) -> None:
    """With a budget in dollars, a model of unknown price takes over only if a person approves; alone it is passed over."""
    policy = rung.policy("task", models=["small", "large"], dollars=1.0)
    hard = rung.AttemptError("hard", finding="capability_mismatch")
    outcome = world.recover(Script(hard), ASK, policy=policy)
    closing = next(e.decision for e in outcome.events if isinstance(e, ev.Decided))
    assert any(reason.startswith("the price of large is unknown") for _, reason in closing.skipped)
    questions: list[str] = []

    def approve(question: ev.Ask, incident: Incident) -> str:
        questions.append(question.question)
        return "approve"

    script = Script(hard, "done")
    world.recover(script, ASK, policy=policy, ask=approve)
    assert [r.model for r in script.requests] == ["small", "large"]
    assert "at an unknown cost" in questions[0]


def test_a_question_offers_only_what_the_budget_allows(world: World) -> None:
    """A retry, or a model, whose price exceeds what is left is not offered; if nothing else is left, nobody is asked."""
    offered: list[list[str]] = []

    def ask(question: ev.Ask, incident: Incident) -> str:
        offered.append([option.id for option in question.options])
        return "retry"

    def recover(*models: Any) -> rung.Outcome[Any]:
        def attempt(request: rung.Request) -> str:
            rung.report_cost(0.6)
            raise rung.AttemptError("bad", finding="auth_error")

        policy = rung.policy("model", models=[*models], dollars=1.0)
        return world.recover(attempt, ASK, policy=policy, ask=ask)

    outcome = recover({"name": "small", "cost": 0.3}, {"name": "large", "cost": 2.0})
    assert (outcome.attempts, offered) == (2, [["retry", "replan", "stop"]])
    outcome = recover({"name": "small", "cost": 0.5}, {"name": "large", "cost": 2.0})
    assert (outcome.attempts, outcome.status, offered) == (1, "failed", [["retry", "replan", "stop"]])
    assert "small would cost $0.50, more than the remaining budget" in outcome.reason


def test_session_remembers(world: World) -> None:
    """A session stays on the model it was handed over to, and its one fallback is used once."""
    session = rung.Session("small")
    policy = rung.policy("call", models=["small", "large", "huge"], escalate_after=0, patience=0, sticky="session")
    outcome = world.recover(Script(OVERLOADED, "done"), ASK, policy=policy, session=session)
    assert (outcome.model, session.model) == ("large", "large")
    script = Script(OVERLOADED)
    outcome = world.recover(script, ASK, policy=policy, session=session)
    assert (outcome.status, [r.model for r in script.requests]) == ("failed", ["large"] * 4)
    assert session.model == "large"


def test_a_fallback_is_for_one_call_by_default(world: World) -> None:
    """Without stickiness the next call is on the first model again; the outcome names the model that answered."""
    session, script = rung.Session(), Script(OVERLOADED, "done", "done")
    policy = rung.policy("call", models=["small", "large"], escalate_after=0)
    outcomes = [world.recover(script, ASK, policy=policy, session=session) for _ in range(2)]
    assert [outcome.model for outcome in outcomes] == ["large", "small"]
    assert [request.model for request in script.requests] == ["small", "large", "small"]


@pytest.mark.parametrize(
    ("budget", "limit"),
    [({"attempts": 1}, "the budget of 1 attempt is spent"), ({"dollars": 0.5}, "the budget of $0.50 is spent")],
)
def test_an_end_by_a_budget_names_the_error(world: World, budget: dict[str, Any], limit: str) -> None:
    """Where a budget ends it, the contract names the budget, the error that was left, and recommends to raise the limit."""

    def attempt(request: rung.Request) -> str:
        rung.report_cost(0.5)
        raise rung.AttemptError("relation users does not exist", finding="not_found")

    outcome = world.recover(attempt, ASK, policy=rung.policy("task", **budget))
    contract = outcome.to_dict()
    assert contract["failureReason"] == f"{limit}; last error: not_found: relation users does not exist"
    assert contract["recommendation"].startswith("Raise that limit if the work is worth it. ")


def test_the_step_that_failed_is_named(world: World) -> None:
    """An attempt that says which step failed has it in the contract."""
    script = Script(rung.AttemptError("no such host", finding="missing_credentials", step="deploy"))
    assert world.recover(script, ASK).to_dict()["failedAt"] == "deploy"


def test_why_a_rung_was_skipped_is_told(world: World) -> None:
    """The reason, the contract and the notes say why a rung that could have helped was not taken."""
    budget = rung.RetryBudget(capacity=1)
    budget.charge()
    outcome = world.recover(Script(HttpError(529, "Overloaded")), ASK, policy="call", retry_budget=budget)
    assert "retry skipped: the shared retry budget is spent" in outcome.reason
    assert "fallback skipped: no other model or agent to hand over to" in outcome.reason
    assert any(each["reason"].startswith("the shared retry budget is spent") for each in outcome.to_dict()["skipped"])
    with pytest.raises(HttpError) as raised:
        outcome.unwrap()
    assert any("skipped retry: the shared retry budget is spent" in note for note in raised.value.__notes__)


def test_a_planner_that_raised_is_told(world: World) -> None:
    """A rung whose handler raised is in the reason of the end, with the handler's error."""

    def plan(request: rung.Request, incident: Incident) -> rung.Request:
        raise LookupError("no plan")

    outcome = world.recover(Script(loop(3)), ASK, rung_handlers={"replan": plan})
    assert "replan skipped: replan raised LookupError: no plan" in outcome.reason


def test_breaker_per_model_lets_the_fallback_through(world: World) -> None:
    """An open circuit of one model is no attempt, and does not keep another model from being used."""
    world.breakers = rung.BreakerRegistry(rung.BreakerSettings(minimum=1, rate=1.0))
    policy = rung.policy("task", models=["small", "large"], escalate_after=0)
    world.recover(Script(OVERLOADED, "done"), ASK, policy=policy)
    script = Script("done")
    outcome = world.recover(script, ASK, policy=policy)
    assert [r.model for r in script.requests] == ["large"]
    assert (outcome.status, outcome.attempts) == ("recovered", 1)
    outcome = world.recover(Script("done"), ASK, policy=rung.policy("task", patience=0))
    assert (outcome.status, outcome.attempts) == ("partial", 0)
    assert outcome.failure is not None
    assert outcome.failure.kind == "service_down"


def test_breaker_probes_and_closes(world: World) -> None:
    """After its pause one probe goes through, and a good one closes the circuit."""
    world.breakers = rung.BreakerRegistry(rung.BreakerSettings(minimum=1, rate=1.0, pause=30))
    off = rung.policy("task", "off")
    world.recover(Script(OVERLOADED), ASK, policy=off)
    world.clock.advance(31)
    assert world.recover(Script("done"), ASK, policy=off).status == "succeeded"
    assert world.breakers.get("small").circuit == "closed"
    assert [key for key, _ in world.breakers.items()] == ["small"]


def test_a_probe_that_is_stopped_gives_its_place_back(world: World) -> None:
    """A cancelled probe is neither good nor bad: the next caller may probe."""
    world.breakers = rung.BreakerRegistry(rung.BreakerSettings(minimum=1, rate=1.0, pause=30))
    off = rung.policy("task", "off")
    world.recover(Script(OVERLOADED), ASK, policy=off)
    world.clock.advance(31)

    def pressed(request: rung.Request) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.recover(pressed, ASK, policy=off)
    assert world.recover(Script("done"), ASK, policy=off).status == "succeeded"


def test_a_tools_trouble_is_not_the_services(world: World) -> None:
    """A tool's timeout neither hands over to another model nor counts against the service."""
    world.breakers = rung.BreakerRegistry(rung.BreakerSettings(minimum=1, rate=1.0))
    tool = rung.AttemptError("killed at its limit", exit_code=124, phase="tool")
    script = Script(tool, tool, tool, tool, "done")
    outcome = world.recover(script, ASK, policy=rung.policy("task", models=["small", "large"]))
    assert {r.model for r in script.requests} == {"small"}
    assert outcome.path == (1, 2)


def test_the_shared_retry_budget_stops_a_herd(world: World) -> None:
    """When the bucket is empty nobody retries; it is charged when a retry is scheduled."""
    world.retry_budget = rung.RetryBudget(12, per_second=0)
    policy = rung.policy("call", patience=0)
    outcome = world.recover(Script(OVERLOADED), ASK, policy=policy)
    assert outcome.attempts == 3
    assert world.retry_budget.tokens == 2
    assert world.recover(Script(OVERLOADED), ASK, policy=policy).attempts == 1


def test_the_wait_never_outlasts_the_deadline(world: World) -> None:
    """A wait that would end after the total time is not begun: the ladder climbs, or it ends."""
    script = Script(HttpError(429, "slow", {"retry-after": "20"}), "done")
    outcome = world.recover(script, ASK, policy=rung.policy("call", seconds=10))
    assert (outcome.status, world.clock.sleeps) == ("failed", [])


def test_a_rungs_time_limit_is_final(world: World) -> None:
    """Past a rung's time the ladder climbs, whatever the progress, and does not come back."""

    def slow(request: rung.Request) -> str:
        world.clock.advance(200)
        raise rung.AttemptError("not there", finding="not_found")

    outcome = world.recover(slow, ASK)
    levels = [e.decision.rung for e in outcome.events if isinstance(e, ev.Decided)]
    assert levels == [1, 1, 2, 6, 6]  # two nudges in 300 s, a replan, the last turn, the end


def test_records_of_the_levels(world: World) -> None:
    """Each transition leaves a record of level, action, cause and what came before."""
    script = Script(RuntimeError("no"))
    policy = rung.policy("task", models=["small", "large"])
    outcome = world.recover(script, ASK, policy=policy)
    *records, ended = outcome.levels
    assert list(outcome.levels) == level_records(outcome.events, policy.ladder)
    assert (ended["status"], ended["partial"], ended["escalationLevel"]) == ("completed", True, 5)
    assert [(r["recoveryLevel"], r["recoveryAction"], r["previousLevels"]) for r in records] == [
        (2, "nudge", []),
        (3, "replan", [2]),
        (4, "fallback", [2, 3]),
        (5, "force-done", [2, 3, 4]),
    ]


def test_an_outcome_unwraps(world: World) -> None:
    """Unwrapping gives the value, or raises the last error with the path as notes."""
    assert world.recover(Script("x"), ASK).unwrap() == "x"
    outcome = world.recover(Script(HttpError(401, "invalid x-api-key")), ASK)
    with pytest.raises(HttpError, match="invalid x-api-key") as error:
        outcome.unwrap()
    assert any("auth_error" in note for note in error.value.__notes__)
    judged = world.recover(Script("x"), ASK, policy=rung.policy("task", "off"), check=lambda value: "bad")
    with pytest.raises(rung.AttemptError, match="low_quality"):
        judged.unwrap()


def test_a_request_may_be_plain_text(world: World) -> None:
    """A prompt alone is a request."""
    script = Script("x")
    world.recover(script, "do it")
    assert script.requests == [rung.Request(prompt="do it")]


def test_unknown_ports_are_a_mistake(world: World) -> None:
    """A misspelt argument is named, with what is allowed."""
    with pytest.raises(TypeError, match=r"unknown argument 'listner'.*listeners"):
        world.recover(Script("x"), ASK, listner=[])


def test_the_shipped_clock_is_real() -> None:
    """The system clock never runs backwards and really waits, in both modes."""
    from rung.engine.ports.clock import SystemClock

    clock = SystemClock()
    before = clock.now()
    clock.sleep(0.01)
    asyncio.run(clock.asleep(0.01))
    assert 0.02 <= clock.now() - before < 60


def test_events_fold_to_the_same_incident(world: World) -> None:
    """Folding an outcome's events again gives what the engine decided on."""
    seen: list[Incident] = []
    outcome = world.recover(
        Script(OVERLOADED, RuntimeError("x"), loop(5), "done"),
        ASK,
        policy=rung.policy("task", models=["small", "large"]),
        listeners=[lambda event, incident: seen.append(incident)],
    )
    assert Incident.of(outcome.events) == seen[-1]
    assert repr(seen[-1]).startswith("<Incident")
    assert decisions(outcome) == ["Repeat", "Change", "HandOver"]


def test_nothing_is_left_running() -> None:
    """A recovery leaves no thread of its own behind but the one watchdog."""
    before = set(threading.enumerate())
    rung.recover_sync(Script("x"), ASK, breakers=rung.BreakerRegistry())
    assert {thread.name for thread in set(threading.enumerate()) - before} <= {"rung-watchdog"}


def test_an_answer_does_not_exceed_a_cap(world: World) -> None:
    """A person's wish to go on is not followed past the time that was set."""

    def ask(question: ev.Ask, incident: Incident) -> str:
        world.clock.advance(100)
        return "retry"

    policy = rung.policy("call", seconds=60)
    outcome = world.recover(Script(HttpError(400, "bad")), ASK, policy=policy, ask=ask)
    assert (outcome.status, outcome.attempts) == ("failed", 1)
    assert outcome.reason == "the deadline has passed; last error: invalid_request: bad"


def test_a_retry_within_a_rung_respects_the_rungs_time(world: World) -> None:
    """A blip near the end of a nudge's time is not repeated: the ladder climbs."""

    def slow(request: rung.Request) -> str:
        world.clock.advance(299.9)
        raise DOWN

    outcome = world.recover(Script(RuntimeError("x"), slow, "done"), ASK, policy=rung.policy("task", seconds=None))
    skipped = [s for e in outcome.events if isinstance(e, ev.Decided) for s in e.decision.skipped]
    assert (0, "the wait would exceed the time limit of the current rung") in skipped


@pytest.mark.parametrize(
    ("wait", "settings", "reason"),
    [
        (100.0, {"retry_after_cap": 50.0}, "asked to wait 100 s, the cap is 50 s"),
        (400.0, {"retry_after_cap": 1e6}, "the wait would exceed the rung's time limit"),
        (200.0, {"retry_after_cap": 1e6, "seconds": 150}, "the wait would exceed the deadline"),
    ],
)
def test_a_changed_request_waits_as_told_or_not_at_all(
    world: World, wait: float, settings: dict[str, Any], reason: str
) -> None:
    """A nudge waits as long as the server asked, unless that is above the cap, its own time or the total."""
    asked = rung.AttemptError("later", finding="unknown", retry_after=wait)
    outcome = world.recover(Script(asked), ASK, policy=rung.policy("task", **settings))
    first = next(e.decision for e in outcome.events if isinstance(e, ev.Decided))
    assert (1, reason) in first.skipped


def test_a_changer_for_a_hand_over_works_on_the_new_request(world: World) -> None:
    """A user's own fallback gets the request already on the other model, and may change it further."""
    script = Script(OVERLOADED, "done")
    policy = rung.policy("call", models=["small", "large"], escalate_after=0)
    world.recover(
        script, ASK, policy=policy, rung_handlers={"fallback": lambda request, incident: request.replace(prompt="!")}
    )
    assert (script.requests[1].model, script.requests[1].prompt) == ("large", "!")


def test_a_session_is_not_sticky_by_itself(world: World) -> None:
    """A session whose policy is not sticky stays on its model, and rungs that count per incident leave no trace."""
    session = rung.Session("small")
    policy = rung.policy("task", models=["small", "large"])
    world.recover(Script(RuntimeError("x"), "done"), ASK, policy=policy, session=session)
    assert (session.model, session.tries_used) == ("small", {})


DOWN = HttpError(503, "down")


def test_no_time_left_is_no_attempt(world: World) -> None:
    """A planner that takes all the time leaves none for the attempt: it is not made, and not counted."""

    def plan(request: rung.Request, incident: Incident) -> rung.Request:
        world.clock.advance(10_000)
        return request.replace(prompt="late")

    script = Script(loop(3), "done")
    outcome = world.recover(script, ASK, rung_handlers={"replan": plan})
    assert (len(script.requests), outcome.attempts, outcome.status) == (1, 1, "partial")


def test_a_rung_that_costs_more_than_is_left(world: World) -> None:
    """A rung whose price is above what is left is passed over."""
    rungs = [{"action": "nudge", "cost": 2.0}, {"action": "force-done", "tries": 0}]
    policy = rung.policy({"rungs": rungs}, dollars=1.0)  # type: ignore[arg-type]  # a table is fine too
    outcome = world.recover(Script(RuntimeError("x")), ASK, policy=policy)
    decision = next(e.decision for e in outcome.events if isinstance(e, ev.Decided))
    assert decision.skipped == ((0, "would cost $2.00, more than the remaining budget"),)


def test_retry_with_context_is_a_replay_too(world: World) -> None:
    """After a side effect the work is not done again with the error beside it either."""
    seen = rung.AttemptError("half done", finding="low_quality", side_effects=True)
    outcome = world.recover(Script(seen), ASK, policy="model")
    assert (outcome.status, outcome.attempts) == ("failed", 1)


def test_asked_about_a_call_that_cannot_be_changed() -> None:
    """For a call that is no request a person may only try again or stop."""
    asked: list[ev.Ask] = []

    def ask(question: ev.Ask, incident: Incident) -> str:
        asked.append(question)
        return "stop"

    @rung.guarded("call", ask=ask, breakers=rung.BreakerRegistry())
    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        broken()
    assert [option.id for option in asked[0].options] == ["retry", "stop"]


def test_only_the_steps_of_this_attempt_are_taken() -> None:
    """Steps an earlier call reported are not taken for this one's."""

    @rung.guarded(rung.policy("call", retries=0, patience=0), breakers=rung.BreakerRegistry())
    def work(*, fails: bool) -> None:
        rung.report_step("failing" if fails else "before")
        if fails:
            raise ConnectionResetError("x")

    work(fails=False)
    work(fails=False)
    with pytest.raises(ConnectionResetError) as error:
        work(fails=True)
    assert error.value.__dict__["__rung_outcome__"].steps == ("failing",)


def test_a_prompt_is_for_the_first_model(world: World) -> None:
    """A recovery that is given a prompt alone begins with the first model that its policy lists."""
    script = Script(OVERLOADED, OVERLOADED, OVERLOADED, OVERLOADED, "done")
    outcome = world.recover(script, "go", policy=rung.policy("call", models=["small", "large"]))
    assert ([request.model for request in script.requests], outcome.model) == (["small"] * 4 + ["large"], "large")


@pytest.mark.parametrize(
    ("cap", "spent"), [(1.0, ["s", "s", "s"]), (0.9, ["s", "s", "s"]), (0.7, ["s", "s"]), (1.2, ["s", "s", "s", "l"])]
)
def test_no_attempt_costs_more_than_is_left(cap: float, spent: list[str]) -> None:
    """A model whose price the policy knows is not tried again if that exceeds the rest of the budget."""
    tried: list[str] = []

    def attempt(request: rung.Request) -> str:
        tried.append(request.model)
        rung.report_cost(0.3)
        raise HttpError(500, "no")

    models = [{"name": "s", "cost": 0.3}, {"name": "l", "cost": 0.3}]
    policy = rung.policy("call", models=models, dollars=cap, retries=2)
    outcome = rung.recover_sync(
        attempt, rung.Request(prompt="x", model="s"), policy=policy, clock=rung.testing.FakeClock()
    )
    assert tried == spent
    assert outcome.dollars <= cap + 1e-9


@pytest.mark.parametrize(
    ("kind", "is_abandoned"),
    [(Kind.OVERLOADED, False), (Kind.QUOTA_EXHAUSTED, False), (Kind.CAPABILITY_MISMATCH, True)],
)
def test_a_failing_provider_makes_no_approach_bad(kind: Kind, *, is_abandoned: bool) -> None:
    """A handover abandons the approach only if the work failed, not the provider."""
    script = Script(*[rung.errors.AttemptError("no", finding=kind)] * 4, "done")
    policy = rung.policy("task", models=["small", {"name": "other", "provider": "b"}], retries=3)
    policy = policy.replace(models=tuple(replace(model, provider=model.provider or "a") for model in policy.models))
    outcome = rung.recover_sync(script, rung.Request(prompt="x", model="small"), policy=policy, clock=FakeClock())
    assert outcome.model == "other" or not outcome.ok
    assert any(isinstance(event, ev.Abandoned) for event in outcome.events) is is_abandoned
    assert any(isinstance(event, ev.Decided) and isinstance(event.decision, ev.HandOver) for event in outcome.events)
