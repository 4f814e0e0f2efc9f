"""Descriptions of events, amounts and tables."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError
from rung.core.domain.event_codec import to_json
from rung.core.domain.failures import Evidence, Failure, Kind, first_line
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.policy.parser import parse_policy, policy
from rung.core.policy.serializer import policy_table, to_toml, worst_case_table
from rung.core.policy.stop_settings import read_stop_settings
from rung.core.text.event_text import describe_event, describe_json
from rung.core.text.units import format_bytes, format_dollars, format_duration, format_percent, format_time
from rung.wires.tool_arguments import missing_arguments

RUNGS = ("retry", "nudge")
FAILURE = Failure(Kind.RATE_LIMIT, True, "rate-limited", "slow down", 3.0, Evidence(text="slow down", status=429))
TERMS = ev.IncidentContext("task", "default")


@pytest.mark.parametrize(
    ("event", "subject", "text"),
    [
        (ev.Opened(1.0, "a", TERMS, Request(prompt="x", model="small")), "opened", "ladder task, small"),
        (ev.Opened(1.0, "a", TERMS), "opened", "ladder task"),
        (ev.AttemptFailed(1.0, FAILURE, 2.0, 0.5, False), "attempt 1", "rate_limit: slow down"),
        (ev.AttemptFailed(1.0, FAILURE._replace(retry_after=None, retryable=False), 2.0, 0.0, True, False), "not made", "rate_limit: slow down"),
        (ev.AttemptSucceeded(1.0, 0.04, 0.5), "attempt 1", "good"),
        (ev.AttemptSucceeded(1.0, 0.04, 0.0), "attempt 1", "good"),
        (ev.Decided(1.0, ev.Repeat(0, 1.5, "why")), "retry", "again in 1.5 s"),
        (ev.Decided(1.0, ev.Change(1, Action.NUDGE, 0.0, "why", ((0, "spent"),))), "nudge", ""),
        (ev.Decided(1.0, ev.HandOver(1, "large", "", 0.5, "why")), "nudge", "large"),
        (ev.Decided(1.0, ev.HandOver(9, "", "other", None, "why")), "9", "other"),
        (ev.Decided(1.0, ev.Ask(1, "go on?", (ev.Option("stop", "Stop"),), 0.5, "", "", "why")), "", "go on?"),
        (ev.Decided(1.0, ev.Finish(1, ev.Status.PARTIAL, "why")), "finish", "partial"),
        (ev.Decided(1.0, ev.Repeat(1, 5.0, "why", (), 90.0)), "nudge", "waiting for the service, up to 89 s, next try in 5.0 s"),
        (ev.Decided(0.0, ev.Repeat(1, 7_801.0, "why", (), 7_800.0, parked=True)), "nudge", "parked until 02:10 (UTC), in 2 h 10 min"),
        (ev.Unparked(1.0), "unparked", "taken up"),
        (ev.Cancelled(1.0, "Ctrl-C"), "stopped", "Ctrl-C"),
        (ev.Closed(1.0, ev.Status.FAILED, "why"), "failed", "why"),
        (ev.Crashed(1.0, "hook", "boom\nat line 3"), "crashed", "hook, ignored: boom"),
        (ev.Changed(1.0, Request(prompt="y", recovery="do it\nso"), "d", ("prompt",), "nudge.path"), "changed", "prompt by prompt nudge.path"),
        (ev.Changed(1.0, Request(prompt="y"), "d", ("model",), ""), "changed", "model"),
        (ev.Abandoned(1.0, 1, "plan: all\nat once", "a lock\nis held"), "abandoned", "cause: a lock"),
        (ev.Abandoned(1.0, 1, "plan: all"), "abandoned", "the approach"),
        (ev.Hinted(1.0, 1, "nudge worked"), "remembered", "nudge worked"),
        (ev.Learned(1.0, "gave_up", (ev.LearnedSkip(1, 2, 2, "seldom"),)), "learned", "tries to leave out after gave_up"),
        (ev.Learned(1.0, "gave_up", (), explored=True), "learned", "own order is taken"),
        (ev.Skipped(1.0, 1, "the same"), "skipped", "nudge: the same"),
        (ev.StepCompleted(1.0, "tests"), "step done", "tests"),
        (ev.AgentSessionOpened(1.0, "", "claude", "s-1"), "session", "new session s-1 of claude"),
        (ev.AgentSessionOpened(1.0, "", "claude", "s-1", continued=True), "session", "continues session s-1 of claude"),
        (ev.Answered(1.0, "approve"), "answered", "approve"),
        (ev.Ordered(1.0, "retry", "ada", "large", "so"), "ordered", "retry on large, with a new prompt, by ada"),
        (ev.Ordered(1.0, "cancel", ""), "ordered", "cancel, by a person"),
        (ev.CheckpointTaken(1.0, 1, "r1"), "checkpoint", "r1, before nudge"),
        (ev.RolledBack(1.0, 1, "r1"), "rolled back", "to r1"),
        (ev.ModelRestored(1.0, "", ""), "back to", "the first model"),
        (ev.Charged(1.0, 0.25), "cost", "$0.25 more, which became known later"),
        (ev.SessionSwitched(1.0, "large", ""), "session", "is on large already"),
    ],
)  # fmt: skip
def test_every_event_is_told(event: ev.Event, subject: str, text: str) -> None:
    """A subject and what happened; from JSON the same."""
    found = describe_event(event, RUNGS, 1)
    assert subject in found.subject
    assert text in found.text
    assert describe_json(to_json(event), RUNGS, 1) == found


def test_an_event_of_a_newer_rung() -> None:
    """Is named at least; a long line is cut."""
    assert describe_json({"name": "invented", "v": 1}, RUNGS).subject == "invented"
    assert describe_json({"v": 9}, RUNGS).subject == "?"
    assert first_line("\n  \n" + "x" * 300).endswith("…")
    assert first_line("") == ""


def test_amounts() -> None:
    """Two digits that matter; little is not nothing."""
    assert [format_duration(s) for s in (None, 0, 0.04, 1.5, 30, 720, 11_000, 400_000)] == [
        "-", "0 s", "40 ms", "1.5 s", "30 s", "12 min", "3.1 h", "4.6 days",
    ]  # fmt: skip
    assert [format_dollars(d) for d in (None, 0, 0.0004, 0.0154, 0.05, 0.14, 1234.5)] == [
        "-",
        "$0.00",
        "$0.0004",
        "$0.015",
        "$0.05",
        "$0.14",
        "$1,234.50",
    ]
    assert [format_bytes(n) for n in (999, 1_500, 2.5e7, 3e9, 4e12)] == ["999 B", "1.5 kB", "25 MB", "3.0 GB", "4.0 TB"]
    assert [format_percent(p) for p in (None, 0, 0.0001, 0.5, 0.99999, 1)] == [
        "-",
        "0.0 %",
        "<0.1 %",
        "50.0 %",
        "99.9 %",
        "100.0 %",
    ]
    assert (format_time(None), format_time(0), format_time(0, to="minutes")) == (
        "",
        "1970-01-01 00:00:00",
        "1970-01-01 00:00",
    )


plain: Any = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), plain, max_size=4))
def test_toml_is_read_back(table: dict[str, Any]) -> None:
    """What is written is TOML, and says the same."""
    assert tomllib.loads(to_toml(table)) == table


def test_policies_as_tables() -> None:
    """A policy's table makes the policy again; as TOML, too; what is None is left out."""
    made = policy("task", models=["small", "large"], dollars=2.0)
    assert parse_policy(policy_table(made)) == made
    assert to_toml({"a": None, "b": [{"c": None, "d": 1}], "e": {}}) == "b = [{d = 1}]\n\n[e]\n"
    assert worst_case_table(made)["attempts"] == 20


def test_what_a_call_lacks() -> None:
    """Named, where anybody knows what the tool takes."""
    schemas = {"read": {"required": ["path", 3]}, "free": {}}
    assert missing_arguments("read", {"path": "x"}, schemas) == ""
    assert missing_arguments("read", "no table", schemas) == "the call of read lacks required arguments: path"
    assert missing_arguments("free", {}, schemas) == missing_arguments("none", {}, schemas) == ""


def test_the_stop_table() -> None:
    """Checked whole, each error by its key."""
    good = {"gate": True, "max_blocks": 1, "check": "make test", "seconds": 5}
    assert read_stop_settings(good) == good
    for wrong, key in (
        (3, "stop"), ({"x": 1}, "stop.x"), ({"gate": 1}, "stop.gate"), ({"max_blocks": 9}, "stop.max_blocks"),
        ({"check": 1}, "stop.check"), ({"seconds": -1}, "stop.seconds"),
    ):  # fmt: skip
        with pytest.raises(ConfigError) as caught:
            read_stop_settings(wrong)
        assert caught.value.key == key
