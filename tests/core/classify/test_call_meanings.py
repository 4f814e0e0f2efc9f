"""Families of wordings in errors of calls: one meaning, many texts, and the texts that only look alike. All are our own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rung.core.classify.classifier import classify, rules
from rung.core.classify.status_text import status_in, status_of_reason
from rung.core.domain.failures import Evidence, Kind

K = Kind


def http(status: int, message: str, /, **error: Any) -> dict[str, Any]:
    return {"form": "http", "status": status, "body": json.dumps({"error": {"message": message, **error}})}


# The model exists, but lacks what the request asks of it. "Is not supported" of the model itself is another matter.
LACKS_A_FEATURE = [
    (http(400, "model m-2 does not support endpoint: completions"), K.INVALID_REQUEST),
    (http(400, "m-2 doesn't support image input"), K.INVALID_REQUEST),
    (http(400, "该模型不支持关闭思考，请使用 low 或 high"), K.INVALID_REQUEST),
    (http(404, "No endpoints found that support image input"), K.CONFIGURATION),
    (http(500, "Model m-2 does not have a chat template defined in the tokenizer"), K.CONFIGURATION),
    (http(400, "The model m-2 is not supported"), K.MODEL_UNAVAILABLE),
    (http(400, "Model m-2 is not permitted for this project"), K.MODEL_UNAVAILABLE),
    (http(403, "this model requires a subscription, upgrade for access"), K.MODEL_UNAVAILABLE),
]


@pytest.mark.parametrize(("error", "kind"), LACKS_A_FEATURE)
def test_a_feature_that_the_model_lacks(error: dict[str, Any], kind: Kind) -> None:
    """A missing feature is a matter of the request, a missing model is not."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, False)


NO_CREDENTIAL = [
    "You did not pass an authentication token",
    "The client didn't provide an access token",
    "An API key was not supplied with the request",
    "The bearer token is not present in the headers",
    "you did not supply credentials",
]


@pytest.mark.parametrize("text", NO_CREDENTIAL)
def test_a_credential_that_was_not_sent(text: str) -> None:
    """A credential that was never sent is missing, not rejected."""
    assert classify(text).kind is K.MISSING_CREDENTIALS


def test_a_code_for_an_internal_error_says_less_than_the_message() -> None:
    """The message decides before a general code such as `server_error`; without one, the code decides."""
    too_long = http(500, "input (549 tokens) is too large to process", type="server_error")
    assert classify(too_long).kind is K.CONTEXT_LIMIT
    unreadable = http(500, "could not parse the arguments of the function call", type="server_error")
    assert classify(unreadable).kind is K.MALFORMED_OUTPUT
    failure = classify({"body": '{"error": {"type": "api_error", "message": "boom"}}'})
    assert (failure.kind, failure.rule) == (K.SERVER_ERROR, "broke-by-code")


def test_a_server_that_answers_500_to_a_bad_field() -> None:
    """A field that is empty or missing makes the request invalid, also where the status is 500."""
    for text in ("请求参数不能为空", "parameter `model` is required", "field messages must not be empty"):
        assert classify(http(500, text)).kind is K.INVALID_REQUEST
    assert classify(http(500, "the worker crashed")).kind is K.SERVER_ERROR


def test_a_batch_of_inputs_is_no_prompt() -> None:
    """Too many inputs in one call is an invalid request; too many tokens is a context limit."""
    assert classify(http(422, "input exceeds the batch size limit of 32")).kind is K.INVALID_REQUEST
    assert classify(http(422, "input exceeds the limit of 8192 tokens")).kind is K.CONTEXT_LIMIT


def test_a_403_of_a_model_provider() -> None:
    """A provider of models, also an unknown one, refuses the key; a cloud or a site refuses the role."""
    assert classify(Evidence(status=403, text="no", provider="new-model-house")).kind is K.AUTH_ERROR
    for provider in ("", "github", "bedrock"):
        assert classify(Evidence(status=403, text="no", provider=provider)).kind is K.PERMISSION_DENIED


REASONS = [
    ("API request failed: Not Found", 404),
    ("Not Found", 404),
    ("Request failed with Too Many Requests.", 429),
    ("unexpected response: (Bad Gateway)", 502),
    ("Unsuccessful API response TooManyRequests\nmore", 429),
    ("Error: Payment Required\n    at request (index.js:1)", 402),
    ("Model Not Found", None),
    ("the page was not found", None),
    ("we learned that the Service Unavailable", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "status"), REASONS)
def test_a_reason_phrase_without_its_number(text: str, status: int | None) -> None:
    """The reason phrase of HTTP at the end of the first line stands for its status."""
    assert status_of_reason(text) == status


def test_a_reason_phrase_decides_where_nothing_else_does() -> None:
    """A text that ends with a reason phrase is classified by its status."""
    assert classify("API request failed: Not Found").kind is K.NOT_FOUND
    assert classify("API request failed: Payment Required").kind is K.QUOTA_EXHAUSTED


def test_other_single_statements() -> None:
    """Each text has its kind."""
    for text, kind in (
        ("REQUEST_LIMIT_EXCEEDED: RPC token bucket limit has been exceeded", K.RATE_LIMIT),
        ("do request failed: upstream error", K.NETWORK),
        ("Invalid response body while trying to fetch https://host/v1: Parse Error: Expected HTTP/", K.NETWORK),
        ("unknown provider 'abc'", K.CONFIGURATION),
        ("create() got an unexpected keyword argument 'verbosity'", K.CONFIGURATION),
        ("the response is incomplete, reason: max_output_tokens", K.OUTPUT_LIMIT),
    ):
        assert classify(text).kind is kind, text


LANGUAGES = [
    ("Zu viele Anfragen. Bitte versuchen Sie es später erneut.", K.RATE_LIMIT),
    ("Trop de requêtes, veuillez réessayer plus tard", K.RATE_LIMIT),
    ("Demasiadas solicitudes. Inténtelo más tarde.", K.RATE_LIMIT),
    ("Muitas requisições. Tente novamente mais tarde.", K.RATE_LIMIT),
    ("Слишком много запросов, попробуйте позже", K.RATE_LIMIT),
    ("リクエストが多すぎます。しばらくしてからお試しください。", K.RATE_LIMIT),
    ("요청이 너무 많습니다. 잠시 후 다시 시도해 주세요.", K.RATE_LIMIT),
    ("Der Server ist derzeit überlastet", K.OVERLOADED),
    ("Модель временно недоступна, повторите попытку позже", K.OVERLOADED),
    ("サーバーが混み合っています", K.OVERLOADED),
    ("Crédit insuffisant pour cette opération", K.QUOTA_EXHAUSTED),
    ("利用上限に達しました", K.QUOTA_EXHAUSTED),
    ("今日调用次数已达上限", K.QUOTA_EXHAUSTED),
    ("La clave de API no es válida", K.AUTH_ERROR),
    ("Chave de API inválida", K.AUTH_ERROR),
    ("Der API-Schlüssel ist abgelaufen", K.AUTH_ERROR),
    ("El modelo solicitado no está disponible", K.MODEL_UNAVAILABLE),
    ("Das Modell m-9 wurde nicht gefunden.", K.MODEL_UNAVAILABLE),
]


@pytest.mark.parametrize(("text", "kind"), LANGUAGES)
def test_other_languages(text: str, kind: Kind) -> None:
    """The common statements are read in the languages of the large markets."""
    assert classify(text).kind is kind


REFUSALS = [
    ("bedrock", 403, "Your project has been denied access", K.PERMISSION_DENIED),
    ("", 403, "Access to this endpoint is forbidden", K.PERMISSION_DENIED),
    ("new-house", 403, "Your project has been denied access", K.AUTH_ERROR),
    ("new-house", 400, "Organization has been restricted, write to support", K.AUTH_ERROR),
    ("new-house", 403, "This region is not supported", K.PERMISSION_DENIED),
    ("new-house", 403, "Access denied due to firewall rules", K.PERMISSION_DENIED),
    ("openai", 403, "<html><head><title>Just a moment...</title></head></html>", K.PERMISSION_DENIED),
    ("openai", 401, "You have insufficient permissions. Missing scopes: m.request", K.AUTH_ERROR),
]


@pytest.mark.parametrize(("provider", "status", "text", "kind"), REFUSALS)
def test_who_is_refused(provider: str, status: int, text: str, kind: Kind) -> None:
    """A provider of models refuses the account or its key; a cloud, a region, a network and a bot wall are other matters."""
    failure = classify(Evidence(provider=provider, status=status, text=text))
    assert (failure.kind, failure.retryable) == (kind, False)


MORE = [
    (http(429, "Capacity temporarily exceeded, please try again"), K.OVERLOADED, True),
    (http(429, "you have used up your daily free allocation of 10,000 units"), K.QUOTA_EXHAUSTED, False),
    (http(429, "You use a Trial key, which is limited to 10 API calls / minute"), K.RATE_LIMIT, True),
    (http(429, "You use a Trial key, which is limited to 1000 API calls / month"), K.QUOTA_EXHAUSTED, False),
    (http(400, "Usage blocked until 2027-03-01 due to user specified spend limits"), K.QUOTA_EXHAUSTED, False),
    (http(400, "The conversation is currently processing another request"), K.SERVER_ERROR, True),
    (http(400, "The model has crashed without additional information"), K.SERVER_ERROR, True),
    (http(400, "The system is being upgraded"), K.SERVICE_DOWN, True),
    (http(400, "budget_tokens must be less than max_tokens"), K.INVALID_REQUEST, False),
    (http(400, "m-2:latest does not support thinking"), K.CONFIGURATION, False),
    (http(500, "tools param requires --templates flag"), K.CONFIGURATION, False),
    (http(500, "error loading model: unknown model architecture: 'x3'"), K.CONFIGURATION, False),
    (http(400, "Loading was stopped due to insufficient system resources"), K.RESOURCE_EXHAUSTED, False),
    (http(446, "The guardrail checks defined in the config failed."), K.CONTENT_FILTER, False),
    (http(400, "Prompt 超长"), K.CONTEXT_LIMIT, False),
    ("The model has reached its context window limit.", K.CONTEXT_LIMIT, False),
    ("Did not find vendor_api_key, please add an environment variable", K.MISSING_CREDENTIALS, False),
    ("Illegal header value b'Bearer '", K.MISSING_CREDENTIALS, False),
    ('Post "https://host/v1": dial tcp: lookup host: i/o timeout', K.NETWORK, True),
    ({"exception_type": "aiohttp.ClientPayloadError", "message": "not completed: <TransferEncodingError: 400>"}, K.STREAM_INTERRUPTED, True),
    ({"exception_type": "httpx.UnsupportedProtocol", "message": "Request URL is missing an 'http://' protocol."}, K.CONFIGURATION, False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable"), MORE)
def test_more_meanings(error: Any, kind: Kind, retryable: bool) -> None:
    """Each error has its kind, and says whether the same request may be repeated."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


LATE = [
    (http(400, "Model response did not respect the required format. Please consider retrying."), K.MALFORMED_OUTPUT, True),
    (http(404, "tools is not supported in this model"), K.CONFIGURATION, False),
    (http(404, "No model found for m-9"), K.MODEL_UNAVAILABLE, False),
    (http(500, "no_valid_channel_error (tid: 20)"), K.MODEL_UNAVAILABLE, False),
    (http(400, "This model requires a newer version of the client"), K.CONFIGURATION, False),
    (http(499, "The operation was cancelled.", status="CANCELLED"), K.UNKNOWN, False),
    ("No model specified in request. Please provide a model name in the request body", K.INVALID_REQUEST, False),
    ("Got an odd error chunk: throttlingexception", K.RATE_LIMIT, True),
    ({"status": 503, "body": "Attempt to decode JSON with unexpected mimetype: text/html"}, K.OVERLOADED, True),
    ("Proxy Error (HTTP 400 Bad Request)", K.INVALID_REQUEST, False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable"), LATE)
def test_meanings_behind_wrappers(error: Any, kind: Kind, retryable: bool) -> None:
    """The message inside a wrapper decides, and a gateway's own status where there is no message."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


def test_a_general_rule_may_be_overruled() -> None:
    """Rules that know only a status or a general code let the model name the kind, if it is confident."""
    unsure = {rule.id for rule in rules() if not rule.sure}
    assert {"http-4xx", "http-404", "http-5xx", "says-bad-request", "class-request"} <= unsure
    assert not unsure & {"context-words", "quota", "bad-key", "no-such-model", "http-401", "http-503"}


ODD = [
    ("401 Virtual Key expected", K.AUTH_ERROR, False),
    ("403 该令牌无权使用模型：m-4", K.MODEL_UNAVAILABLE, False),
    ("request failed with status 429: quota exhausted. Retry after 17s.", K.RATE_LIMIT, True),
    (http(403, "Your account was flagged for potential abuse"), K.AUTH_ERROR, False),
    (http(400, "One or more prompts contained filtered words."), K.CONTENT_FILTER, False),
    (http(451, "The content you provided is blocked.", type="censorship_blocked"), K.CONTENT_FILTER, False),
    (http(200, "AppIdNoAuthError"), K.AUTH_ERROR, False),
    (http(429, "job throttled, endpoint has no idle workers"), K.OVERLOADED, True),
    ("No choices returned from the model", K.MALFORMED_OUTPUT, True),
    (http(400, "Function call is missing a thought_signature. This may lead to degraded model performance."), K.INVALID_REQUEST, False),
    (http(400, "Function id 'x': DEGRADED function cannot be invoked"), K.MODEL_UNAVAILABLE, False),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "retryable"), ODD)
def test_odd_forms(error: Any, kind: Kind, retryable: bool) -> None:
    """A status before a sentence, a message that is one word, and words that look like others."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    "text", ["429 Tests passed", "404 files changed", "500 Startups", "503 units", "4040 Errors in total"]
)
def test_a_number_before_other_words(text: str) -> None:
    """A number that counts things is no status."""
    assert status_in(text) is None


LIMITS_IN_WORDS = [
    (http(422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"), K.CONTEXT_LIMIT, False),
    (http(400, "prompt tokens plus max_output_tokens cannot be larger than 8192"), K.CONTEXT_LIMIT, False),
    (http(400, "Request too long"), K.CONTEXT_LIMIT, False),
    (http(400, "max_new_tokens must be at most 4096"), K.INVALID_REQUEST, False),
    ("The answer exceeded its length limit, so it was stopped", K.OUTPUT_LIMIT, False),
    ("Sorry, this reply hit the token limit.", K.OUTPUT_LIMIT, False),
    ("You're sending too many messages. Slow down and try later.", K.RATE_LIMIT, True),
    ('{"message": "You have sent too many messages. Try again later.", "clears_in": 90}', K.RATE_LIMIT, True),
    ('{"message": "You have sent too many messages. Try again later.", "clears_in": 9000}', K.QUOTA_EXHAUSTED, False),
    ("The conversation has too many messages: 900, the limit is 500", K.CONTEXT_LIMIT, False),
    ("Request limit for this hour reached", K.RATE_LIMIT, True),
    (http(429, "Sie haben 20 Anfragen pro Stunde überschritten"), K.RATE_LIMIT, True),
    (http(429, "Превышено число запросов в минуту"), K.RATE_LIMIT, True),
    (http(429, "Вы превысили текущую квоту. Проверьте тарифный план"), K.QUOTA_EXHAUSTED, False),
    (http(429, "現在のクォータを超えています。プランと請求を確認してください"), K.QUOTA_EXHAUSTED, False),
    (http(429, "현재 할당량을 초과했습니다. 요금제를 확인하세요"), K.QUOTA_EXHAUSTED, False),
    (http(429, "您已超过当前配额，请检查套餐和账单"), K.QUOTA_EXHAUSTED, False),
    (http(429, "您已超出目前的額度，請檢查方案"), K.QUOTA_EXHAUSTED, False),
    (
        http(429, "Sie haben Ihr aktuelles Kontingent überschritten, bitte prüfen Sie den Tarif"),
        K.QUOTA_EXHAUSTED,
        False,
    ),
    (http(429, "Vous avez dépassé votre quota actuel, vérifiez votre forfait"), K.QUOTA_EXHAUSTED, False),
    (http(429, "Ha superado su cuota actual, revise su plan"), K.QUOTA_EXHAUSTED, False),
    (http(429, "Hai superato la tua quota attuale, controlla il piano"), K.QUOTA_EXHAUSTED, False),
    (http(429, "Você excedeu sua cota atual, verifique seu plano"), K.QUOTA_EXHAUSTED, False),
    (http(429, "Too many requests or the API key is wrong"), K.RATE_LIMIT, True),
    (http(401, "Too many requests or the API key is invalid"), K.AUTH_ERROR, False),
    (
        {
            "status": 429,
            "body": '{"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota", "details":'
            ' [{"quotaId": "RequestsPerMinute-Free"}, {"quotaId": "RequestsPerDay-Free"}]}}',
        },
        K.QUOTA_EXHAUSTED,
        False,
    ),
]


@pytest.mark.parametrize(("error", "kind", "retryable"), LIMITS_IN_WORDS)
def test_limits_in_other_words(error: Any, kind: Kind, retryable: bool) -> None:
    """Which limit is over is read from what the message counts: tokens, the answer, messages, an hour, a plan."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)


REQUESTS_IN_WORDS = [
    (
        http(403, "<div><h1>Sorry, you have been blocked</h1><p>You are unable to access api.example.com</p></div>"),
        K.PERMISSION_DENIED,
        False,
    ),
    (http(404, "nova-3 failed. Choose another model and retry."), K.MODEL_UNAVAILABLE, False),
    (http(404, "The thread was not found. Choose another thread."), K.NOT_FOUND, False),
    (http(403, "The free tier is limited to use the small models"), K.MODEL_UNAVAILABLE, False),
    (http(200, "Number of beams must be greater than 1"), K.INVALID_REQUEST, False),
    (http(400, "for model m-3: Invalid 'content' type. Expected a string, got a list"), K.INVALID_REQUEST, False),
    (http(400, "Invalid model m-3"), K.MODEL_UNAVAILABLE, False),
    ("Gave up after 3 tries: the model failed to produce valid JSON", K.MALFORMED_OUTPUT, True),
    ("We hit a temporary problem, please try again shortly", K.SERVER_ERROR, True),
    ("model runner process has exited: signal 11", K.SERVER_ERROR, True),
    ("error in callback: unsupported operand type(s) for +: 'int' and 'str'", K.TOOL_ERROR, False),
]


@pytest.mark.parametrize(("error", "kind", "retryable"), REQUESTS_IN_WORDS)
def test_requests_and_services_in_other_words(error: Any, kind: Kind, retryable: bool) -> None:
    """A block page, a demand for another model, a bound of a field and an interpreter's message are recognised."""
    failure = classify(error)
    assert (failure.kind, failure.retryable) == (kind, retryable)
