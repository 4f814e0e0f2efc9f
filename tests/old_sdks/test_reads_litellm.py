"""The exceptions of litellm, as it raises them. It may need an openai of its own: `scripts/try_old_sdks.py` has both."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.classify.evidence import evidence_of
from rung.core.domain.failures import Phase
from tests.adapters.errors.loopback import assert_survives_wrapping, raised_by

if TYPE_CHECKING:
    from rung.core.domain.failures import Evidence
    from tests.adapters.errors.loopback import Provider

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it asks the internet for prices
litellm = pytest.importorskip("litellm")
litellm.suppress_debug_info = True
litellm.telemetry = False

pytestmark = pytest.mark.filterwarnings("default")

LIMIT = {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}


def ask(model: str, url: str, **more: Any) -> Any:
    return litellm.completion(
        model=model, messages=[{"role": "user", "content": "hi"}], api_key="sk-x", api_base=url,
        num_retries=0, max_retries=0, timeout=0.3, **more,
    )  # fmt: skip


def seen(error: BaseException) -> Evidence:
    assert_survives_wrapping(error)
    return evidence_of(error)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_rate_limit_with_its_wait(provider: Provider, name: str) -> None:
    """The wait is read from the headers kept aside; code and type are the provider's, not litellm's."""
    provider.says(429, {"type": "error", "error": LIMIT}, retry_after="4")
    evidence = seen(raised_by(lambda: ask(f"{name}/m", provider.url)))
    assert (evidence.status, evidence.provider, evidence.retry_after) == (429, name, 4.0)
    assert "slow down" in evidence.text
    assert evidence.exceptions[0] == "litellm.exceptions.RateLimitError"
    assert "throttling_error" not in evidence.code
    if name == "openai":
        assert evidence.code == "rate_limit_error rate_limit_exceeded"


def test_an_overload_keeps_its_status(provider: Provider) -> None:
    """Of any server error litellm says 500; the 529 behind it is the one that was sent."""
    provider.says(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    evidence = seen(raised_by(lambda: ask("anthropic/m", provider.url)))
    assert evidence.status == 529
    assert "Overloaded" in evidence.text


def test_a_wrong_key(provider: Provider) -> None:
    """A status that was sent stays."""
    provider.says(401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}})
    evidence = seen(raised_by(lambda: ask("anthropic/m", provider.url)))
    assert evidence.status == 401
    assert "invalid x-api-key" in evidence.text


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_no_answer_in_time_has_no_status(provider: Provider, name: str) -> None:
    """Of it litellm says 408; nobody sent that."""
    provider.is_silent()
    evidence = seen(raised_by(lambda: ask(f"{name}/m", provider.url)))
    assert evidence.status is None
    assert evidence.exceptions[0] == "litellm.exceptions.Timeout"


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_nobody_listens_has_no_status(refused: str, name: str) -> None:
    """Of it litellm says 500; nobody sent that, and behind it stands the errno."""
    evidence = seen(raised_by(lambda: ask(f"{name}/m", refused)))
    assert (evidence.status, evidence.errno) == (None, 111)


def test_an_error_after_the_first_words(provider: Provider) -> None:
    """It is said what had been handed on, and so that output had started."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    provider.streams(
        ("message_start", {"type": "message_start", "message": message}),
        ("content_block_start", block),
        ("content_block_delta", text),
        ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    )
    evidence = seen(raised_by(lambda: list(ask("anthropic/m", provider.url, stream=True))))
    assert (evidence.phase, evidence.output_started, evidence.status) == (Phase.STREAM, True, None)
    assert "Overloaded" in evidence.text
