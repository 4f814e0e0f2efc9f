"""Classification rules for exhausted limits and oversized requests."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind

# Exhausted limits and oversized requests.
LIMITS: Final = (
    ClassifyRule(
        id="http-402",
        kind=Kind.QUOTA_EXHAUSTED,
        why="HTTP 402: payment required, whatever else the message mentions.",
        example=Evidence(status=402, text="no"),
        status=(402,),
    ),
    ClassifyRule(
        id="request-too-large",
        kind=Kind.CONTEXT_LIMIT,
        why="This single request exceeds the size limit or the whole per-minute limit; waiting does not help.",
        example=Evidence(
            status=429, code="rate_limit_exceeded", text="Request too large for m-1 on tokens per min: Limit 30000, Requested 42000"
        ),
        code=("request_too_large", "payload_too_large"),
        message_has=(
            "request too large", "request is too large", "payload too large", "request entity too large",
            "request exceeds the maximum size/allowed", "request payload size exceeds", "request body too large",
            "request * exceeds the limit of * bytes", "content length * too large",
        ),
    ),
    ClassifyRule(
        id="over-the-limit",
        kind=Kind.CONTEXT_LIMIT,
        why="Reported as a rate limit, but the requested amount exceeds the whole limit; waiting does not help.",
        example=Evidence(status=429, text="Rate limit reached on tokens per minute (TPM): Limit 5000, Used 0, Requested 6053."),
        code=("rate_limit_exceeded",),
        message_has=("rate limit reached", "tokens per minute", "tokens per min"),
        over_limit=True,
    ),
    ClassifyRule(
        id="context-words",
        kind=Kind.CONTEXT_LIMIT,
        why="The service says that the input does not fit the context window; the same input never fits.",
        example=Evidence(status=400, text="prompt is too long: 210000 tokens > 200000 maximum"),
        code=(
            "context_length_exceeded", "context_window_exceeded", "context_limit_exceeded", "exceed_context_size_error",
            "prompt_too_long", "input_too_long", "contextwindowexceeded", "context_too_long", "max_context_exceeded",
        ),
        exception=("ContextWindowExceededError", "ContextOverflowError", "ContextLengthExceeded", "ContextWindowOverflowException"),
        message_has=(
            "prompt/input/request/message/text/conversation is too long", "prompt/input/request/conversation/payload too long",
            "prompt/input/inputs tokens/length * max new/output/completion tokens exceeds/exceed/exceeded", "sum of * tokens must/cannot/exceeds/exceed/exceeded",
            "maximum/max/model/models context length/window/size", "context length exceeded", "context window exceeded",
            "exceed/exceeds/exceeded/exceeding * context window/length/size/limit", "context size/length/window/limit has been exceeded",
            "context size/length/window/limit * exceeded", "longer than * context length/window", "longer than the maximum",
            "input token count * exceeds", "input/prompt tokens * exceeded/exceeds/exceed", "prompt tokens * limit", "input tokens exceed", "exceeds/exceed the maximum number of tokens",
            "exceeds/exceed the maximum number of input tokens", "too many input tokens", "too many total text bytes",
            "tokens exceed/exceeds * maximum/limit/model", "token count * exceeds", "number of tokens * exceeds/exceed/exceeded",
            "reduce the length of the messages/prompt/input", "reduce the input length", "context/prompt overflow",
            "larger than * context", "input length * exceed/exceeds/exceeded", "range of input length should be",
            "max tokens must be at least 1 got", "prompt length * exceeds/exceed", "maximum prompt length",
            "available context size", "reached * context window/length/limit", "context window/length/limit reached/hit", "context window/length/limit is/was reached/full", "out of context", "room in the context", "room in * context window", "^token limit$", "tokens is too large", "tokens are too large", "too large to process", "exceeds * token limit of", "input * exceeds the * token limit",
            "context shift is disabled", "enable context shift", "context overflows", "context the overflows", "a larger context length", "prompt tokens limit exceeded", "fit in the context", "fit within the context", "prompt contains * tokens * maximum", "message token length exceeds",
        ),
        except_if=(
            "per minute", "per min", "rate limit", "please wait before trying again",
            "max/completion/output/new tokens is/are too large",  # a limit on the answer
        ),
    ),
    ClassifyRule(
        id="tokens-in-sum",
        kind=Kind.CONTEXT_LIMIT,
        why="The tokens of the input and of the answer together exceed a bound, whichever names the service quotes.",
        example=Evidence(status=422, text="Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"),
        message_has=("tokens must be", "tokens must not exceed", "tokens cannot exceed", "tokens cannot be"),
        contains=("tokens + ", "tokens` + ", "tokens plus ", "inputs + ", "input + ", "prompt + "),
        except_if=("per minute", "per min", "rate limit"),
    ),
    ClassifyRule(
        id="quota-code",
        kind=Kind.QUOTA_EXHAUSTED,
        why="The service's error code for an exhausted balance, credit or plan.",
        example=Evidence(status=429, text='{"error": {"code": "insufficient_quota", "message": "x"}}'),
        code=(
            "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credit_balance_too_low",
            "insufficient_credits", "insufficient_balance", "insufficient_funds", "payment_required", "billing_error",
            "usage_limit_reached", "usage_limit_exceeded", "quota_exceeded", "account_quota_exceeded", "arrearage",
            "access_terminated_due_to_billing", "access_terminated_error", "account_overdue_error", "set_limit_exceeded", "prepaid_bill_overdue", "postpaid_bill_overdue", "commodity_not_purchased", "insufficient_user_quota", "pre_consume_token_quota_failed", "credit_balance_exhausted", "exceeded_current_quota_error", "credits_exhausted", "insufficient_g1_credits_balance", "free_tier_limit_exceeded",
            "quotaexceeded", "out_of_credits", "budget_exceeded", "budgetexceeded", "servicequotaexceededexception", "limitexceededexception", "billing_disabled",
        ),
        exception=("BudgetExceededError", "QuotaExceededError", "InsufficientQuotaError"),
        except_if=("负载已饱和", "负载饱和", "is currently overloaded", "is overloaded"),  # the text is about load, whatever the code says
    ),
    ClassifyRule(
        id="short-wait",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="Reported as a quota, but it resets within the hour: a rate limit.",
        example=Evidence(status=429, text="Quota exceeded for requests per day. Please retry in 36.5s."),
        code=("resource_exhausted", "rate_limit_exceeded"),
        message_has=("quota exceeded", "quota exhausted", "exceeded your current quota", "rate limit reached", "usage limit", "quota/limit/limits will reset", "exhausted your capacity/quota/limit"),
        wait_under=3_600.0,
        except_if=("request too large",),
    ),
    ClassifyRule(
        id="quota-day",
        kind=Kind.QUOTA_EXHAUSTED,
        why="A daily or longer quota is used up; a short wait does not restore it.",
        example=Evidence(status=429, text='{"error": {"message": "Quota exceeded", "quotaId": "RequestsPerDay-FreeTier"}}'),
        code=("resource_exhausted", "rate_limit_exceeded"),
        message_has=("quota exceeded", "quota limit", "limit reached/exceeded", "rate limit", "tokens/requests per day", "throttling"),
        contains=("perday", "per_day", "permonth", "requests per day", "tokens per day", "(rpd)", "(tpd)", "tpd rate", "credits_balance", "rpd rate"),
        status=(None, 402, 403, 429),
    ),
    ClassifyRule(
        id="google-rate",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="Google reports a quota, but names a per-minute limit.",
        example=Evidence(
            status=429, provider="gemini", text="You exceeded your current quota. Quota exceeded for metric: requests per minute"
        ),
        code=("resource_exhausted",),
        message_has=("quota exceeded", "exceeded your current quota", "resource exhausted", "resource has been exhausted"),
        contains=("perminute", "per minute", "per_minute", "persecond", "per_base_model", "with backoff"),
        except_if=("per day", "perday"),
    ),
    ClassifyRule(
        id="throttling-code",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="The service's code for throttling, also where its message speaks of a quota.",
        example=Evidence(status=429, text='{"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded"}'),
        code=("throttling", "throttling.allocationquota", "throttling.ratequota", "throttling.burstrate", "rate_limit_reached_error"),
        except_if=("free tier/quota/allocated", "plan"),
    ),
    ClassifyRule(
        id="google-exhausted",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="Google's message for too many requests, without a daily quota.",
        example=Evidence(status=429, text="Resource has been exhausted (e.g. check quota)."),
        message_has=("resource has been exhausted", "resource exhausted"),
    ),
    ClassifyRule(
        id="quota",
        kind=Kind.QUOTA_EXHAUSTED,
        why="The balance, credit or plan is used up; a short wait does not restore it.",
        example=Evidence(status=429, text="You exceeded your current quota, see your plan and billing"),
                message_has=(
            "exceeded your current quota", "insufficient balance/credits/credit/funds/quota", "credit balance is too low",
            "out of credits/credit", "not/no enough/more/remaining credits/credit", "requires/require more credits", "add * credits",
            "usage limit/limits", "usage cap", "spend/spending/budget limit/limits", "billing hard limit", "billing not active",
            "plan and billing", "payment required", "enable billing", "billing to be enabled", "billing account * disabled/closed",
            "extra usage", "plan limit/limits", "exceed/exceeds/exceeded quota limits", "exhausted * quota", "quota * exhausted", "5 hour limit/quota/usage/cap", "daily/weekly/monthly limit/quota/cap reached/exceeded/exhausted",
            "hourly/daily/weekly/monthly request/requests/message/messages/credit/token/usage limit/quota reached/exceeded/exhausted", "you have/youve reached the limit", "out of * messages",
            "exceeded/reached/used/exhausted your * allowance", "the limits reset", "your limit/limits/quota resets/refreshes/renews",
            "hour/5hour limit reached", "session limit", "free usage exceeded", "out of codex messages", "limite de mensagens", "limit/limits will reset", "reached your daily/monthly * limit/quota", "subscription expired/inactive/required", "subscription is/has/was expired/inactive/required/ended", "subscription has been * expired/cancelled/suspended", "requires/require a/an subscription",
            "trial * expired/ended", "balance is insufficient", "balance * not enough", "your credit/credits * exhausted/expired/depleted", "daily/weekly/monthly limit/quota/cap hit", "positive balance", "positive credit balance", "credits have been used", "prepayment credits",
            "quota * exhausted/used", "account is not active", "free tier * exceeded/exhausted", "余额不足", "欠费",
            "budget has been exceeded", "exceeded budget", "over budget", "max budget", "quota exceeded", "individual quota reached", "no quota", "any credits", "no credits",
            "purchase/buy * credits", "hit your * limit", "hit your limit", "higher monthly limit", "请充值", "额度不足", "额度已用", "premium requests * exceeded/limit", "can only afford", "calls month", "per month", "使用上限", "限额", "key limit exceeded", "monthly included credits", "credits are depleted/exhausted", "out of call volume quota",
        ),
        except_if=("model requires a/an subscription", "not your usage limit", "not your account limit", "not your plan limit"),  # then it is the service's own
    ),
    ClassifyRule(
        id="long-wait",
        kind=Kind.QUOTA_EXHAUSTED,
        why="Reported as a rate limit, but the wait is longer than a day: a plan is used up.",
        example=Evidence(text="You were rate limited. Please wait 300 hours before trying again."),
        message_has=("rate limited/limit/limits", "too many requests", "limit reached/exceeded"),
        wait_over=86_401.0,
    ),
    ClassifyRule(
        id="rate-or-key",
        kind=Kind.RATE_LIMIT,
        retryable=True,
        why="The message names a bad key as the other possible cause; the status says that it is the rate.",
        example=Evidence(status=429, text="Rate limited, or your API key is invalid"),
        message_has=("rate limit/limits/limited or", "too many requests or", "or rate limited", "or * rate limit/limits exceeded/reached"),
        status=(429,),
    ),
    ClassifyRule(
        id="memory-short",
        kind=Kind.RESOURCE_EXHAUSTED,
        why="The machine that runs the model does not have enough memory for it.",
        example=Evidence(status=500, text="model requires more system memory (9 GiB) than is available (4 GiB)"),
        message_has=(
            "requires more system memory", "cuda out of memory", "cuda error out of memory", "enough available memory",
            "unable to allocate", "failed to allocate", "cudamalloc failed", "out of memory", "insufficient memory", "insufficient system resources", "not enough memory/vram/ram", "oom$", "oom error",
        ),
    ),
)  # fmt: skip
