"""Scripts: selection of faults by number, match, time and chance; and invalid scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rung
from rung.testing import FAULTS, FakeClock
from rung.testing.provider.fault_selector import FaultSelector
from rung.testing.provider.faults import COMMON_FAULTS
from rung.testing.provider.parsed_request import LabWire, ParsedRequest, ParsedTool, ParsedTurn
from rung.testing.provider.script import script_from

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = ParsedRequest(
    wire=LabWire.MESSAGES, model="small", turns=(ParsedTurn(role="user", text="hello there"),), tokens=100
)
STREAM = ParsedRequest(
    wire=LabWire.CHAT, model="large", stream=True, tools=(ParsedTool(name="read", schema={}),), tokens=100
)


def struck(script: Any, asked: list[ParsedRequest], headers: dict[str, str] | None = None) -> list[str]:
    """Return the fault of each request; "" for none."""
    chooser = FaultSelector(script_from(script), 0.0)
    met = [chooser.select(number, one, headers or {}, 0.0) for number, one in enumerate(asked, 1)]
    return ["" if rule is None else rule.fault.name for rule in met]


@pytest.mark.parametrize(
    ("request_", "hit"),
    [(2, [2]), ("2-3", [2, 3]), ([1, "4-5"], [1, 4, 5]), ("3", [3])],
)
def test_requests_by_number(request_: Any, hit: list[int]) -> None:
    """Requests are selected by a number, a range or a list, counted from 1."""
    met = struck([{"fault": "reset", "request": request_}], [PLAIN] * 5)
    assert [number for number, name in enumerate(met, 1) if name] == hit


def test_the_first_rule_that_fits_and_is_not_spent() -> None:
    """Rules apply in order; an exhausted rule is skipped."""
    script = [{"fault": "reset", "times": 2}, {"fault": "quota", "times": 1}]
    assert struck(script, [PLAIN] * 4) == ["reset", "reset", "quota", ""]


def test_every_so_many() -> None:
    """`every` counts matching requests, from the first."""
    assert struck([{"fault": "reset", "every": 3}], [PLAIN] * 7) == ["reset", "", "", "reset", "", "", "reset"]


@pytest.mark.parametrize(
    ("match", "plain", "stream"),
    [
        ({"model": "small"}, True, False),
        ({"model": "l*"}, False, True),
        ({"wire": "chat"}, False, True),
        ({"stream": True}, False, True),
        ({"stream": False}, True, False),
        ({"tools": True}, False, True),
        ({"tools": False}, True, False),
        ({"contains": "hello"}, True, False),
        ({"header": {"X-Who": "me"}}, True, True),
        ({"header": {"X-Who": "you"}}, False, False),
    ],
)
def test_requests_by_what_they_are(match: dict[str, Any], plain: bool, stream: bool) -> None:
    """Model, wire, stream, tools, text and headers select requests."""
    met = struck([{"fault": "reset", **match}], [PLAIN, STREAM], {"x-who": "me"})
    assert [bool(name) for name in met] == [plain, stream]


def test_a_wall_stands_for_its_time() -> None:
    """A wall lasts ten minutes from its first request by default, and does not come back."""
    clock = FakeClock()
    chooser = FaultSelector(script_from(["wall"]), clock.now())
    met = []
    clock.advance(50)
    for wait in (0, 599, 2, 1_000):
        clock.advance(wait)
        met.append(chooser.select(1, PLAIN, {}, clock.now()) is not None)
    assert met == [True, True, False, False]


def test_an_outage_at_a_given_time() -> None:
    """`start` and `lasts` are seconds from the start of the lab."""
    clock = FakeClock()
    chooser = FaultSelector(script_from([{"fault": "unavailable", "start": 10, "lasts": 60}]), clock.now())
    met = []
    for _ in range(9):
        met.append(chooser.select(1, PLAIN, {}, clock.now()) is not None)
        clock.advance(10)
    assert met == [False, *[True] * 6, False, False]


@settings(deadline=None, max_examples=30)
@given(rate=st.sampled_from([0.1, 0.3, 0.7]), seed=st.integers(0, 1_000))
def test_chance_is_as_often_as_told_and_the_same_again(rate: float, seed: int) -> None:
    """The same seed gives the same faults, about as many as the rate, of all common kinds."""
    script = {"rate": rate, "seed": seed}
    met = struck(script, [STREAM] * 600)
    assert met == struck(script, [STREAM] * 600)
    assert abs(sum(map(bool, met)) / 600 - rate) < 0.12
    assert set(met) - {""} <= set(COMMON_FAULTS)
    assert met != struck({"rate": rate, "seed": seed + 1}, [STREAM] * 600)


def test_chance_among_named_faults() -> None:
    """Only the named faults are triggered, with their parameters."""
    chooser = FaultSelector(script_from({"rate": 1, "faults": [{"fault": "cut", "after": 9}]}), 0.0)
    rule = chooser.select(1, STREAM, {}, 0.0)
    assert rule is not None
    assert (rule.fault.name, rule.parameters["after"]) == ("cut", 9)


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_script_from_a_file(tmp_path: Path, suffix: str) -> None:
    """TOML and JSON are equivalent; keyword settings override the file."""
    path = tmp_path / f"faults.{suffix}"
    path.write_text(
        'words = 12\n[[rules]]\nrequest = 1\nfault = "overloaded"\nretry_after = 2\n'
        if suffix == "toml"
        else json.dumps({"words": 12, "rules": [{"request": 1, "fault": "overloaded", "retry_after": 2}]})
    )
    script = script_from(path, words=9)
    assert (script.words, script.rules[0].parameters["retry_after"]) == (9, 2)
    assert script_from(str(path)).words == 12
    assert script_from(script) == script


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([{"fault": "overload"}], "rules[0].fault: 'overload' is invalid; must be one of bad_request, "),
        ([{"request": 1}], "a fault's name, or a table with fault"),
        ([{"fault": "cut", "aftr": 3}], "rules[0].aftr: 3 is invalid; must be one of the keys fault, request, model"),
        ([{"fault": "cut", "after": "x"}], "rules[0].after: 'x' is invalid; must be a number of tokens"),
        ([{"fault": "cut", "request": "x"}], "rules[0].request: 'x' is invalid; must be a number from 1"),
        ([{"fault": "cut", "times": 0}], "rules[0].times: 0"),
        ([{"fault": "cut", "wire": "smtp"}], "one of messages, chat, responses"),
        ([{"fault": "rate_limit", "form": "stone"}], "one of seconds, ms, date, text, reset"),
        ([{"fault": "status", "status": 200}], "a status from 400 to 599"),
        ({"rate": 2}, "rate: 2 is invalid; must be from 0 to 1"),
        ({"wrds": 2}, "wrds: 2 is invalid; must be one of the keys words, "),
        ({"words": -1}, "words: -1"),
        ({"rules": 5}, "rules: 5 is invalid; must be a list"),
        ({"turns": [7]}, "turns[0]: 7"),
        ({"models": {"m": {"size": 3}}}, "models.m"),
        ({"models": {"m": {"window": 0}}}, "models.m.window: 0"),
        ({"keys": [1]}, "keys: [1] is invalid; must be a list of texts"),
        (5, "script: 5"),
        ("no/such/file.toml", "No such file or directory"),
    ],
)
def test_what_a_script_may_not_be(script: Any, said: str) -> None:
    """The error is one line with the key, the value and what is allowed."""
    with pytest.raises(rung.errors.ConfigError) as caught:
        script_from(script)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "text"), [("bad.toml", "= 3"), ("bad.json", "{"), ("text.json", '"x"')])
def test_a_file_that_is_no_script(tmp_path: Path, name: str, text: str) -> None:
    """The error names the file and the problem."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(rung.errors.ConfigError, match=name):
        script_from(path)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_can_be_asked_for_by_name_alone(name: str) -> None:
    """Every fault works without parameters."""
    rule = script_from([name]).rules[0]
    assert rule.parameters == dict(FAULTS[name].takes)
