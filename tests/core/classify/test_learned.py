"""Second opinion: when it is asked, what it answers, why, and how its weights are stored."""

from __future__ import annotations

from importlib.resources import files

import pytest

from rung.core.classify import learned
from rung.core.classify.classifier import classify
from rung.core.classify.learned import Opinion, Weights, judge, pack, parse_weights, weights_as_bytes
from rung.core.classify.read_facts import read_facts
from rung.core.domain.failures import Evidence, Kind, Phase

WEIGHTS = Weights(
    (Kind.NETWORK, Kind.QUOTA_EXHAUSTED, Kind.UNKNOWN),
    0.1,
    (0.0, 0.0, 0.0),
    {f"n{letter}": pack((60, 0, -60)) for letter in "abcdefgh"}
    | {f"q{letter}": pack((0, 4, 0)) for letter in "abcdefgh"}
    | {"u": pack((-10, -10, 127)), "low": pack((-128, -128, -128)), "exit:7": pack((127, 0, 0))},
)
ODD = Evidence(text="unable to locate the artifact in any of the repositories that were searched for it")
MANY = [f"n{letter}" for letter in "abcdefgh"]


def test_an_opinion() -> None:
    """The kind with the highest probability, and the features that speak for it most."""
    found = judge(WEIGHTS, [*MANY, "unheard"], 0.3)
    assert found is not None
    assert (found.kind, found.retryable, found.reasons) == (Kind.NETWORK, True, ("na", "nb", "nc"))
    assert 0.99 < found.confidence <= 1.0


@pytest.mark.parametrize(
    ("features", "least"),
    [
        (["na", "nb"], 0.0),
        ([], 0.0),
        (["exit:7"] * 6, 0.0),
        (["u"] * 6, 0.0),
        ([f"q{letter}" for letter in "abcdefgh"], 0.3),
        (MANY, 1.1),
    ],
    ids=["too few words", "no words", "no words but a code", "nothing failed", "a limit needs more", "not sure"],
)
def test_silence(features: list[str], least: float) -> None:
    """It abstains where it knows too little, where nothing failed, and where it is not sure enough."""
    assert judge(WEIGHTS, features, least) is None


def test_the_stored_form() -> None:
    """A model survives storage, and the same model has the same bytes."""
    data = weights_as_bytes(WEIGHTS)
    assert parse_weights(data) == WEIGHTS
    assert weights_as_bytes(parse_weights(data)) == data


def test_the_shipped_weights() -> None:
    """They are small, readable, and know kinds that rules know."""
    data = files("rung.core.classify").joinpath(learned.WEIGHTS_FILE).read_bytes()
    assert len(data) <= 300_000
    weights = parse_weights(data)
    assert weights_as_bytes(weights) == data
    assert {Kind.NETWORK, Kind.CONTEXT_LIMIT, Kind.UNKNOWN} <= set(weights.kinds)


def test_features() -> None:
    """Words, beginnings, pairs and the facts around them; numbers are all alike; the end of a tool's output counts."""
    facts = read_facts(Evidence(text="Requested 17 widgets", status=418, code="teapot", exceptions=("a.TeaError",)))
    assert set(learned.features_of(facts)) >= {
        "requested", "reque~", "0", "requested 0", "widgets", "phase:call", "status:418", "code:teapot", "class:TeaError",
    }  # fmt: skip
    tool = read_facts(Evidence(text="start " + "word " * 300 + "end", phase=Phase.TOOL, exit_code=3))
    assert {"end", "exit:3"} <= set(learned.features_of(tool))
    assert "start" not in learned.features_of(tool)


def test_the_classifier_asks_where_no_rule_is_sure() -> None:
    """An unknown failure gets the model's name, and the reason can be said; a sure rule is not overruled."""
    failure = classify(ODD)
    assert (failure.rule, failure.kind) == (learned.RULE, Kind.NOT_FOUND)
    assert "Strongest: “" in learned.explain(ODD)
    assert "Confidence: " in learned.explain(ODD)
    assert classify(Evidence(text="overloaded", status=529)).rule == "overloaded"


def test_what_it_has_no_opinion_about() -> None:
    """It does not judge a model's answer, nor a text without words that it knows."""
    assert learned.opinion(read_facts(ODD._replace(phase=Phase.RESULT)), 0.0) is None
    assert learned.explain(Evidence(text="frobnicated")) == learned.WHY
    assert not Opinion(Kind.REFUSAL, 0.5, ()).retryable
