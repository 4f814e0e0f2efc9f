"""`report_cost` with the usage of a response: list prices, own prices, and what cannot be priced."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from anthropic.types import Usage as AnthropicUsage
from google.genai.types import GenerateContentResponseUsageMetadata, MediaModality, ModalityTokenCount
from openai.types import CompletionUsage
from openai.types.completion_usage import PromptTokensDetails
from openai.types.responses import ResponseUsage

import rung
from rung.errors import ConfigError
from rung.testing import Script

PRICE = {"input": 10, "output": 100, "cache_read": 1, "input_audio": 50}
RESPONSES = {
    "input_tokens": 1000,
    "output_tokens": 10,
    "total_tokens": 1010,
    "input_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 5},
}
USAGES = {
    "anthropic": AnthropicUsage(input_tokens=600, output_tokens=10, cache_read_input_tokens=400),
    "chat": CompletionUsage(
        prompt_tokens=1000,
        completion_tokens=10,
        total_tokens=1010,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=400),
    ),
    "responses": ResponseUsage.model_validate(RESPONSES),
    "gemini": GenerateContentResponseUsageMetadata(
        prompt_token_count=1000, candidates_token_count=10, cached_content_token_count=400
    ),
    "json": RESPONSES,
    "json of gemini": {"prompt_token_count": 1000, "candidates_token_count": 10, "cached_content_token_count": 400},
}
DOLLARS = (600 * 10 + 400 * 1 + 10 * 100) / 1_000_000


@pytest.mark.parametrize("usage", USAGES.values(), ids=USAGES)
def test_usage_of_every_sdk(usage: Any) -> None:
    """The same call costs the same, whatever the SDK calls its tokens, and counts for the attempt."""

    def attempt(request: rung.Request) -> float:
        return rung.report_cost(usage=usage, model="any", price=PRICE)

    outcome = rung.recover_sync(attempt, "go")
    assert outcome.value == pytest.approx(DOLLARS)
    assert outcome.dollars == pytest.approx(DOLLARS)


def test_modalities() -> None:
    """Audio tokens of Gemini have their own price."""
    audio = ModalityTokenCount(modality=MediaModality.AUDIO, token_count=100)
    usage = GenerateContentResponseUsageMetadata(prompt_token_count=100, prompt_tokens_details=[audio])
    assert rung.report_cost(usage=usage, model="any", price=PRICE) == pytest.approx(100 * 50 / 1_000_000)


def test_list_prices() -> None:
    """Without a price, the list price of the model is taken."""
    dollars = rung.report_cost(usage={"input_tokens": 1_000_000, "output_tokens": 0}, model="claude-sonnet-4-5")
    assert dollars > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "dollars: None is invalid; must be a finite number of US dollars"),
        ({"dollars": 1.0, "usage": RESPONSES}, "dollars: 1.0 is invalid; must be left out"),
        ({"usage": 5, "model": "x"}, "usage: 5 is invalid; must be the usage of a response"),
        ({"usage": {"tokens": 5}, "model": "x"}, "usage: .* is invalid"),
        ({"usage": RESPONSES}, "model: '' is invalid"),
        (
            {"usage": RESPONSES, "model": "no-such-model-7"},
            "model: 'no-such-model-7' is invalid; must be a model with a",
        ),
        ({"usage": RESPONSES, "price": {"inputs": 3}}, "price: 'inputs' is invalid; must be one of cache_read"),
        ({"usage": RESPONSES, "price": {"input": 3}}, "price: .* must be a table with `input` and `output`"),
        ({"usage": RESPONSES, "price": {"input": -3, "output": 1}}, "price.input: -3 is invalid"),
    ],
)
def test_what_cannot_be_priced(arguments: dict[str, Any], message: str) -> None:
    """A cost that is not known is an error that says what is allowed, never 0."""
    with pytest.raises(ConfigError, match=message):
        rung.report_cost(**arguments)


def test_without_the_package_of_prices() -> None:
    """Without genai-prices, a usage without a price names the extra to install; with a price it works."""
    code = """
import sys
sys.modules["genai_prices"] = None  # as if it were not installed
import rung
usage = {"input_tokens": 1_000_000, "output_tokens": 0}
print(rung.report_cost(usage=usage, model="m", price={"input": 3, "output": 15}))
try:
    rung.report_cost(usage=usage, model="claude-sonnet-4-5")
except rung.errors.ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    dollars, message = done.stdout.splitlines()
    assert dollars == "3.0"
    assert message.endswith("or install the list prices: pip install 'rung[prices]'")


def test_who_answered() -> None:
    """An outcome names the model, its provider as the policy has it, and the number of the attempt that answered."""
    policy = rung.policy(models=["small", {"name": "large", "cost": 0.1, "provider": "acme"}])

    def attempt(request: rung.Request) -> str:
        if request.model == "small":
            raise rung.AttemptError("too hard", finding="capability_mismatch")
        return "done"

    outcome = rung.recover_sync(attempt, rung.Request(prompt="go", model="small"), policy=policy)
    assert (outcome.model, outcome.provider, outcome.attempt) == ("large", "acme", 2)
    assert {key: outcome.to_dict()[key] for key in ("model", "provider", "attempt")} == {
        "model": "large",
        "provider": "acme",
        "attempt": 2,
    }
    failed = rung.recover_sync(lambda request: 1 / 0, "go", policy="call")
    assert (failed.provider, failed.attempt) == ("", 0)


@pytest.mark.parametrize("arguments", [{"dollars": "0.3"}, {"usage": RESPONSES, "model": "none such"}])
def test_a_wrong_report_ends_the_recovery(arguments: dict[str, Any]) -> None:
    """Misuse inside an attempt is no failure of the model: it ends the recovery after one attempt, with its message."""

    def attempt(request: rung.Request) -> str:
        rung.report_cost(**arguments)
        return "good answer"

    outcome = rung.recover_sync(attempt, "go", policy=rung.policy("task", dollars=1))
    assert (outcome.attempts, outcome.ok) == (1, False)
    assert outcome.failure is not None
    assert outcome.failure.kind == "configuration"


def test_a_dollar_budget_is_spent_to_the_cent() -> None:
    """Ten attempts of ten cents spend a budget of one dollar, whatever binary fractions make of it."""

    def attempt(request: rung.Request) -> str:
        rung.report_cost(0.1)
        raise rung.AttemptError("slow down", finding="rate_limit")

    policy = rung.policy("call", dollars=1.0, attempts=50, retries=40, backoff={"base": 0.0001, "cap": 0.001})
    outcome = rung.recover_sync(attempt, "go", policy=policy, retry_budget=None, breakers=None)
    assert (outcome.attempts, outcome.dollars) == (10, 1.0)


def test_a_success_has_nothing_to_recommend() -> None:
    """An outcome with a result has no reason, no place of failure and no recommendation."""
    script = Script(rung.AttemptError("slow down", finding="rate_limit"), "done")
    outcome = rung.recover_sync(script, "go", policy=rung.policy("call", backoff={"base": 0.0001}))
    assert (outcome.status, outcome.reason, outcome.recommendation, outcome.failed_at) == ("recovered", "", "", "")
