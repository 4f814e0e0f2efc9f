"""Guide texts for failures of a call (transient, limits, request), written for the engineer on call."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """Guide to one kind: definition, symptoms, remedies in order of preference, and what to avoid and why."""

    summary: str
    looks: str
    helps: tuple[str, ...]
    avoid: str


_TRANSIENT: Final[Mapping[Kind, Guide]] = {
    Kind.RATE_LIMIT: Guide(
        summary="Too many requests or tokens in a short time; the same request succeeds once the window has passed.",
        looks="HTTP 429, often with a Retry-After header or the name of a per-minute limit. "
        "Without a status: an error that begins with “rate limit” or “too many requests”.",
        helps=(
            "Wait as long as the server asks, up to the policy's `retry_after_cap`, then retry.",
            "Above the cap: switch to another model or provider, if the policy lists one.",
            "If it recurs: reduce concurrency, shorten prompts, or get a higher limit from the provider.",
        ),
        avoid="Do not retry immediately or from many workers in lockstep: that prolongs the limit. "
        "Do not confuse it with an exhausted quota, which a short wait does not restore.",
    ),
    Kind.OVERLOADED: Guide(
        summary="The service is up but has no capacity for this request right now.",
        looks="HTTP 529 or 503, “overloaded”, “no capacity”, a model that is still loading. "
        "Some providers report it as 429 or 500.",
        helps=(
            "Retry with exponential backoff and jitter.",
            "When the retries are exhausted: switch to another model or provider.",
        ),
        avoid="Do not call it an outage after one response. Do not shorten the waits: "
        "the retries of all clients keep the service overloaded.",
    ),
    Kind.SERVER_ERROR: Guide(
        summary="The server failed while handling a valid request.",
        looks="HTTP 500, 502 or another 5xx; a proxy's HTML error page where JSON was expected.",
        helps=(
            "Retry after a short wait: the error is usually transient.",
            "When the retries are exhausted: switch to another model or provider.",
            "Keep the request id from the response; the provider will ask for it.",
        ),
        avoid="Do not rewrite the prompt: there is nothing wrong with it. Do not retry after a side effect "
        "unless the request is marked idempotent: the server may have done the work before it failed.",
    ),
    Kind.TIMEOUT: Guide(
        summary="An operation exceeded its time limit.",
        looks="HTTP 408 or 504, a TimeoutError, a command ended by timeout(1) with exit code 124, "
        "or an attempt that Rung ended at its own time limit.",
        helps=(
            "Retry while the rung has time left.",
            "Request less at once: shorter steps, less output, no long-running commands.",
            "If Rung ended it and the work is genuinely long: raise `attempt_seconds`, or the rung's seconds, for the next run.",
        ),
        avoid="Do not extend a limit during an incident: a rung's time is final, and past it the ladder climbs. "
        "Do not assume that nothing happened: the server may have finished the work.",
    ),
    Kind.NETWORK: Guide(
        summary="The connection could not be established, or was lost.",
        looks="Connection refused or reset, a host name that does not resolve, a broken TLS handshake, a server that "
        "closes the connection without a response; in a tool's output also ECONNRESET and similar codes.",
        helps=(
            "Retry after a short wait.",
            "If every provider fails: check this machine's DNS, proxy and firewall.",
            "If one provider fails and the retries are exhausted: switch to another one.",
            "If a certificate does not verify: correct the trust store; retrying does not help.",
        ),
        avoid="Do not change the request or suspect the model: it never received the call, or its response never arrived.",
    ),
    Kind.STREAM_INTERRUPTED: Guide(
        summary="A response started to arrive and was cut off.",
        looks="A connection closed in the middle of a stream, an error event in a stream that began with status 200, "
        "a stream that ends without its closing message.",
        helps=(
            "Before any output was shown: start again; the user does not notice.",
            "After output: continue from the text that has arrived.",
            "Replay after output or a side effect only if the caller marked it idempotent, or a person approved.",
        ),
        avoid="Do not replay silently after output: the user sees the text twice, and tools act twice. "
        "Do not treat the partial response as the complete one.",
    ),
}

_LIMITS: Final[Mapping[Kind, Guide]] = {
    Kind.CONTEXT_LIMIT: Guide(
        summary="The input does not fit into the model's context window.",
        looks="HTTP 400 or 413 that says the prompt is too long or the maximum context length is exceeded, usually with "
        "two token counts. Also one request that is larger than a whole per-minute token limit.",
        helps=(
            "Compact: drop old tool results, and keep calls paired with their results.",
            "Read less: only the required part of a file or an output.",
            "Split the task, or give it to a model with a larger context.",
        ),
        avoid="Do not retry it unchanged: the same input never fits. Do not compact again if the first compaction "
        "did not shrink the input, and do not append the error and the history to it.",
    ),
    Kind.OUTPUT_LIMIT: Guide(
        summary="The response was truncated at its length limit.",
        looks="A stop reason such as `max_tokens` or `length`; text that ends in mid-sentence, "
        "JSON or code without its closing bracket.",
        helps=(
            "Raise the output limit to the model's maximum.",
            "Let the model continue from the exact point of truncation.",
            "Request the work in smaller pieces.",
        ),
        avoid="Do not retry with the same limit: it truncates at the same place. Do not parse or run the truncated response.",
    ),
    Kind.QUOTA_EXHAUSTED: Guide(
        summary="The credit or the plan is used up; a short wait does not restore it.",
        looks="HTTP 402; or 429, 400 or 403 with a message about credit, balance, billing, a spending limit, "
        "or a plan limit that resets hours from now.",
        helps=(
            "A person adds credit, raises the limit or waits for the reset.",
            "Meanwhile use a cheaper model, if the policy lists one.",
            "Otherwise finish with the completed part and report when the limit resets.",
        ),
        avoid="Do not retry. Never fall back to a more expensive model of the same account: the quota is already used up.",
    ),
    Kind.RESOURCE_EXHAUSTED: Guide(
        summary="Disk, memory or file handles are exhausted on the machine that does the work.",
        looks="No space left on device, out of memory, too many open files, a MemoryError, "
        "a command killed with exit code 137.",
        helps=(
            "Work in smaller pieces that need fewer resources.",
            "Free what the run itself left behind: temporary files, orphaned processes.",
            "Use a larger machine, or raise the container's limit.",
        ),
        avoid="Do not run the same command again: it is killed again, and other processes may be killed with it. "
        "Do not delete files that the run did not create.",
    ),
    Kind.TURNS_EXHAUSTED: Guide(
        summary="The agent used all of its turns and has not finished.",
        looks="An SDK result or error that says the maximum number of turns is reached; "
        "the last message is a tool call, not an answer.",
        helps=(
            "Look at the last turns first: was the agent making progress or looping?",
            "If it made progress: narrow the scope, allow more turns, and keep the finished steps.",
            "If it was looping: treat it as a loop.",
        ),
        avoid="Do not only raise the limit: a stuck agent uses up the new limit too. Do not start from scratch.",
    ),
    Kind.BUDGET_EXHAUSTED: Guide(
        summary="A configured cap on attempts, seconds or dollars is reached.",
        looks="An SDK or a caller ends the run at its own spending cap and reports both amounts. "
        "Rung's own caps end an incident the same way; the reason names the cap.",
        helps=(
            "Check in the events what the budget was spent on.",
            "Raise the cap if the work is worth it, and run again; the outcome lists the finished steps.",
            "Use a cheaper model for the routine part.",
        ),
        avoid="Do not raise a cap automatically or start a second incident to get around it: "
        "the cap is a commitment to the person who pays.",
    ),
}

_REQUEST: Final[Mapping[Kind, Guide]] = {
    Kind.INVALID_REQUEST: Guide(
        summary="The request itself is invalid; the provider parsed and rejected it.",
        looks="HTTP 400 or 422 that names a parameter, a schema that is violated, "
        "a tool call in the history without its result, a field that only another provider supports.",
        helps=(
            "Correct the field that the error names.",
            "After a fallback: repair the history (orphan tool calls, fields that only the previous provider supports).",
            "If a model wrote the request: show the model the error and let it write a new request.",
        ),
        avoid="Do not retry it unchanged. Do not drop fields one by one until it passes: "
        "the request then no longer means what was intended.",
    ),
    Kind.AUTH_ERROR: Guide(
        summary="The provider rejects this key or token.",
        looks="HTTP 401; an invalid, expired or revoked key, or a key of another organisation or environment.",
        helps=(
            "A person checks the key: correct provider and environment, not expired, not revoked.",
            "Replace the key where the service reads it, then run again.",
        ),
        avoid="Do not retry: the key is rejected again, and repeated rejections can lock the account. "
        "Do not print the key to compare it.",
    ),
    Kind.MISSING_CREDENTIALS: Guide(
        summary="No credentials are configured.",
        looks="An SDK error before any call was made: no API key provided, an environment variable that must be set, "
        "credentials that could not be found.",
        helps=(
            "Give the process its key: in the environment of the service, not in that of your shell.",
            "Then run again; no request was sent, so nothing is lost.",
        ),
        avoid="Do not retry. Do not let an agent look for a key elsewhere on the machine: "
        "it is not authorised to use a key that it finds.",
    ),
    Kind.MODEL_UNAVAILABLE: Guide(
        summary="This model is not available to this account; another model may be.",
        looks="HTTP 404 or 400 that says a model is not found, retired, unknown, "
        "or not enabled for this account or region.",
        helps=(
            "Fall back to another model in the policy.",
            "Correct the name, or have access to the model enabled.",
        ),
        avoid="Do not retry: the model will not appear. Do not guess a similar name: "
        "it may be another model at another price.",
    ),
    Kind.NOT_FOUND: Guide(
        summary="A file, command, module or page does not exist at the given path or name.",
        looks="ENOENT, “no such file or directory”, “command not found” or exit code 127, "
        "a Python module that cannot be imported, HTTP 404 for a URL.",
        helps=(
            "List what exists, then use another path or name.",
            "Install the missing item, if the task allows it.",
            "If the task names something that does not exist: report that.",
        ),
        avoid="Do not try the same path again. Do not create it empty to suppress the error: "
        "the error then appears later, further from its cause.",
    ),
    Kind.PERMISSION_DENIED: Guide(
        summary="The resource exists and the caller is authenticated, but access is not allowed.",
        looks="EACCES or EPERM, “permission denied”, exit code 126, HTTP 403, a tool call that was not approved, "
        "a website that blocks automated clients.",
        helps=(
            "Use another location or method that is allowed.",
            "Ask the owner for the permission, naming exactly what is needed.",
        ),
        avoid="Do not retry it. Do not circumvent it (sudo, changed file modes, a disabled sandbox): "
        "the restriction is intentional.",
    ),
    Kind.CONFIGURATION: Guide(
        summary="A setting is wrong: a component exists but is not configured correctly.",
        looks="An unknown option or parameter, a tool name that does not exist, a port already in use, "
        "incompatible versions.",
        helps=(
            "Correct the setting that the error names.",
            "Compare the installed version with the version that supports the option.",
            "Ask a person if the agent cannot change the setting.",
        ),
        avoid="Do not retry it: the setting stays wrong. Do not bypass the error by disabling a check.",
    ),
    Kind.CONTENT_FILTER: Guide(
        summary="The provider's content filter blocked the input or the response.",
        looks="HTTP 400 with a content policy code, a stop reason such as `content_filter` or `safety`, "
        "an empty response with a block reason.",
        helps=(
            "Find the passage that triggers the filter; often it is quoted material that the task does not need.",
            "Do the acceptable part and state plainly what is omitted.",
            "A person decides about the rest.",
        ),
        avoid="Do not retry it unchanged. Do not reword it to evade the filter.",
    ),
    Kind.REFUSAL: Guide(
        summary="The model declines the request.",
        looks="A stop reason `refusal`, or a response that starts by declining and contains no work.",
        helps=(
            "State the purpose of the work and its limits, if that was missing.",
            "Have the acceptable part done, with a plain statement of what is omitted.",
            "A person decides about the rest.",
        ),
        avoid="Do not retry it unchanged, do not argue, do not hide the purpose: "
        "a response obtained that way is not reliable.",
    ),
}

CALLS: Final[Mapping[Kind, Guide]] = MappingProxyType({**_TRANSIENT, **_LIMITS, **_REQUEST})
