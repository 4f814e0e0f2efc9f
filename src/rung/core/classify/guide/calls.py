"""What each kind means, for a person who was just paged. Here: trouble with the call (transient, limits, request)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """One kind: what it is, how it looks, what helps (the first thing first), what not to do and why."""

    summary: str
    looks: str
    helps: tuple[str, ...]
    avoid: str


_TRANSIENT: Final[Mapping[Kind, Guide]] = {
    Kind.RATE_LIMIT: Guide(
        summary="Too many requests or tokens in a short time; the same request is fine once that time has passed.",
        looks="HTTP 429, often with a Retry-After header or the name of a per-minute limit. "
        "Without a status: an error that begins with “rate limit” or “too many requests”.",
        helps=(
            "Wait as long as the server asks, up to the policy's `retry_after_cap`, then repeat.",
            "Above the cap: climb to another model or provider, if the policy lists one.",
            "If it comes often: fewer calls at once, smaller prompts, or a higher limit from the provider.",
        ),
        avoid="Do not repeat at once or from many workers in step: that prolongs the limit. "
        "Do not take it for an exhausted quota, which a short wait does not bring back.",
    ),
    Kind.OVERLOADED: Guide(
        summary="The service is up and has no room for this request right now.",
        looks="HTTP 529 or 503, “overloaded”, “no capacity”, a model that is still loading. "
        "Some providers say it under 429 or 500.",
        helps=(
            "Wait a little longer each time, with jitter, and repeat.",
            "When the tries are spent: another model or provider.",
        ),
        avoid="Do not call it an outage after one answer. Do not shorten the waits: "
        "everybody's repeats are what keeps the service busy.",
    ),
    Kind.SERVER_ERROR: Guide(
        summary="The other side broke while handling a request that was in order.",
        looks="HTTP 500, 502 or another 5xx; a proxy's HTML error page where JSON was expected.",
        helps=(
            "Repeat after a short wait: mostly it is a blip.",
            "When the tries are spent: another model or provider.",
            "Keep the request id from the response; the provider will ask for it.",
        ),
        avoid="Do not rewrite the prompt: there is nothing wrong with it. Do not repeat after a side effect "
        "unless the request is marked idempotent: the other side may have done the work before it broke.",
    ),
    Kind.TIMEOUT: Guide(
        summary="Something took longer than it was allowed to.",
        looks="HTTP 408 or 504, a TimeoutError, a command ended by timeout(1) with exit code 124, "
        "or an attempt that we ended because its own time was up.",
        helps=(
            "Repeat, while the rung still has time.",
            "Ask for less at once: shorter steps, less output, no long-running commands.",
            "If we ended it and the work really is long: more `attempt_seconds`, or rung seconds, for the next run.",
        ),
        avoid="Do not stretch a limit in the middle of an incident: a rung's time is final, past it the ladder climbs. "
        "Do not assume that nothing happened; the other side may have finished.",
    ),
    Kind.NETWORK: Guide(
        summary="The connection could not be made, or was lost.",
        looks="Connection refused or reset, a host name that does not resolve, a broken TLS handshake, a server that "
        "hangs up without answering; in a tool's output also ECONNRESET and the like.",
        helps=(
            "Repeat after a short wait.",
            "If every provider fails: look at this machine's DNS, proxy and firewall.",
            "If one provider fails and the tries are spent: another one.",
            "A certificate that does not verify will not heal: correct the trust store.",
        ),
        avoid="Do not change the request or blame the model: it never saw the call, or its answer never arrived.",
    ),
    Kind.STREAM_INTERRUPTED: Guide(
        summary="An answer began to arrive and broke off.",
        looks="A connection closed in the middle of a stream, an error event in a stream that began with status 200, "
        "a stream that ends without its closing message.",
        helps=(
            "Before anything was shown: begin again; nobody notices.",
            "After output: go on from what has arrived.",
            "Replay after output or a side effect only if the caller marked it idempotent, or a person approved.",
        ),
        avoid="Do not replay silently after output: the user sees the text twice, and tools act twice. "
        "Do not treat the part that arrived as the whole answer.",
    ),
}

_LIMITS: Final[Mapping[Kind, Guide]] = {
    Kind.CONTEXT_LIMIT: Guide(
        summary="The input does not fit into the model's context.",
        looks="HTTP 400 or 413 that says the prompt is too long or the maximum context length is exceeded, mostly with "
        "two token counts. Also one request that is larger than a whole per-minute token limit.",
        helps=(
            "Compact: leave out old tool results, keep calls and their results paired.",
            "Read less: only the part of a file or of an output that is needed.",
            "Split the task, or give it to a model with a larger context.",
        ),
        avoid="Do not repeat it unchanged: the same input never fits. Do not compact again when it did not shrink, "
        "and do not paste the error and the history on top.",
    ),
    Kind.OUTPUT_LIMIT: Guide(
        summary="The answer was cut off at its length limit.",
        looks="A stop reason such as `max_tokens` or `length`; text that ends in mid-sentence, "
        "JSON or code without its closing bracket.",
        helps=(
            "Raise the output limit to the model's maximum.",
            "Have it go on from the exact point where it was cut.",
            "Ask for the work in smaller pieces.",
        ),
        avoid="Do not repeat under the same limit: it cuts at the same place. Do not parse or run the cut answer.",
    ),
    Kind.QUOTA_EXHAUSTED: Guide(
        summary="The money or the plan is used up; waiting a moment does not bring it back.",
        looks="HTTP 402; or 429, 400 or 403 with words about credit, balance, billing, a spending limit, "
        "or a plan limit that resets hours from now.",
        helps=(
            "A person adds credit, raises the limit or waits for the reset.",
            "Meanwhile a cheaper model, if the policy lists one below this one.",
            "Otherwise finish with what is done and say when the limit resets.",
        ),
        avoid="Do not retry. Never fall back to a dearer model: that spends faster what is already gone.",
    ),
    Kind.RESOURCE_EXHAUSTED: Guide(
        summary="Disk, memory or file handles are used up on the machine that does the work.",
        looks="No space left on device, out of memory, too many open files, a MemoryError, "
        "a command killed with exit code 137.",
        helps=(
            "Work in smaller pieces that need less at once.",
            "Free what the run itself left behind: temporary files, stray processes.",
            "A larger machine or a higher limit for the container.",
        ),
        avoid="Do not run the same command again: it is killed again, and may take its neighbours with it. "
        "Do not delete what the run did not make.",
    ),
    Kind.TURNS_EXHAUSTED: Guide(
        summary="The agent used all the turns it was given and is not done.",
        looks="An SDK result or error that says the maximum number of turns is reached; "
        "the last message is a tool call, not an answer.",
        helps=(
            "Look at the last turns first: was it working, or going in circles?",
            "It was working: a narrower scope, more turns, the finished steps kept.",
            "It was going in circles: treat it as a loop.",
        ),
        avoid="Do not only raise the limit: an agent without a way out uses that up too. Do not start from nothing.",
    ),
    Kind.BUDGET_EXHAUSTED: Guide(
        summary="A cap on attempts, seconds or dollars that somebody set on purpose is reached.",
        looks="An SDK or a caller ends the run at its own spending cap and names both sums. "
        "Rung's own caps end an incident the same way; the reason says which one.",
        helps=(
            "Read in the events what it was spent on.",
            "Raise the cap if the work is worth it, and run it again; finished steps are in the outcome.",
            "A cheaper model for the routine part.",
        ),
        avoid="Do not raise a cap automatically or start a second incident to get around it: "
        "the cap is a promise to whoever pays.",
    ),
}

_REQUEST: Final[Mapping[Kind, Guide]] = {
    Kind.INVALID_REQUEST: Guide(
        summary="The request itself is wrong; the provider understood it and said no.",
        looks="HTTP 400 or 422 that names a parameter, a schema that is violated, "
        "a tool call in the history without its result, a field another provider does not know.",
        helps=(
            "Correct the field the error names.",
            "After a hand-over: repair the history (orphan tool calls, fields only the former provider knows).",
            "If a model wrote the request: show it the error and have it write a new one.",
        ),
        avoid="Do not repeat it unchanged. Do not drop fields one by one until it passes: "
        "then nobody knows what was asked.",
    ),
    Kind.AUTH_ERROR: Guide(
        summary="The provider refuses this key or token.",
        looks="HTTP 401; an invalid, expired or revoked key, or a key of another organisation or environment.",
        helps=(
            "A person checks the key: right provider, right environment, not expired, not revoked.",
            "Renew it where the service reads it, then run again.",
        ),
        avoid="Do not retry: it is refused again, and repeated refusals can lock the account. "
        "Do not print the key to compare it.",
    ),
    Kind.MISSING_CREDENTIALS: Guide(
        summary="There is no key at all.",
        looks="An SDK error before any call was made: no API key provided, an environment variable that must be set, "
        "credentials that could not be found.",
        helps=(
            "Give the process its key: the environment of the service, not that of your shell.",
            "Then run it again; nothing was sent, so nothing is lost.",
        ),
        avoid="Do not retry. Do not let an agent look for a key elsewhere on the machine: "
        "what it finds was not given to it.",
    ),
    Kind.MODEL_UNAVAILABLE: Guide(
        summary="This model does not exist for this account; another one may.",
        looks="HTTP 404 or 400 that says a model is not found, retired, unknown, "
        "or not enabled for this account or region.",
        helps=(
            "Hand over to another model in the policy.",
            "Correct the name, or have access to the model switched on.",
        ),
        avoid="Do not retry: the name will not come into being. Do not guess a similar name: "
        "it may be another model at another price.",
    ),
    Kind.NOT_FOUND: Guide(
        summary="A file, command, module or page is not where it was looked for.",
        looks="ENOENT, “no such file or directory”, “command not found” or exit code 127, "
        "a Python module that cannot be imported, HTTP 404 from an address.",
        helps=(
            "Look first what is really there, then use another path or name.",
            "Install what is missing, if the task allows that.",
            "If the task names something that does not exist: say so.",
        ),
        avoid="Do not try the same path again. Do not create it empty to make the error go away: "
        "the error then comes up later, further from its cause.",
    ),
    Kind.PERMISSION_DENIED: Guide(
        summary="It is there, we are known, and it is not allowed.",
        looks="EACCES or EPERM, “permission denied”, exit code 126, HTTP 403, a tool call that was not approved, "
        "a web site that keeps robots out.",
        helps=(
            "Another place or another way that is allowed.",
            "Ask whoever can grant the right, naming exactly what is needed.",
        ),
        avoid="Do not repeat it. Do not go around it (sudo, changed modes, a sandbox switched off): "
        "somebody drew that line on purpose.",
    ),
    Kind.CONFIGURATION: Guide(
        summary="A setting is wrong: something is there, but not set up as it has to be.",
        looks="An unknown option or parameter, a tool name that does not exist, a port already in use, "
        "versions that exclude each other.",
        helps=(
            "Correct the setting the error names.",
            "Check the version that is really installed against the one the option is from.",
            "A person, where the setting is outside the agent's reach.",
        ),
        avoid="Do not repeat it: settings do not heal. Do not make it pass by switching a check off.",
    ),
    Kind.CONTENT_FILTER: Guide(
        summary="The provider's filter stopped the input or the answer.",
        looks="HTTP 400 with a content policy code, a stop reason such as `content_filter` or `safety`, "
        "an empty answer with a block reason.",
        helps=(
            "Find the passage; often it is quoted material that the task does not need.",
            "Do the acceptable part and say plainly what is left out.",
            "A person decides about the rest.",
        ),
        avoid="Do not repeat it unchanged. Do not reword it to slip past the filter.",
    ),
    Kind.REFUSAL: Guide(
        summary="The model itself declines.",
        looks="A stop reason `refusal`, or an answer that begins by declining and contains no work.",
        helps=(
            "State what the work is for and where its limits are, if that was missing.",
            "Have the acceptable part done, and what is left out said plainly.",
            "A person decides about the rest.",
        ),
        avoid="Do not repeat it unchanged, do not argue, do not hide the purpose: "
        "an answer got that way cannot be relied on.",
    ),
}

CALLS: Final[Mapping[Kind, Guide]] = MappingProxyType({**_TRANSIENT, **_LIMITS, **_REQUEST})
