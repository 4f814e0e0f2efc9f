"""Classification rules for an invalid request, a wrong configuration of the client, and the service's internal errors."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.classify.rules.conditions import CALLS, SERVER_FAULT_STATUSES
from rung.core.domain.failures import Evidence, Kind

# The request or the client's configuration is wrong.
REQUEST: Final = (
    ClassifyRule(
        id="orphan-tool-call",
        kind=Kind.INVALID_REQUEST,
        why="The history contains a tool call without a result, or a result without a call; it can be repaired.",
        example=Evidence(status=400, text="messages.4: tool_use ids were found without tool_result blocks immediately after"),
        message_has=(
            "ids were found without tool result", "no tool output found for", "no tool call found for", "without its required following item",
            "did not have response messages", "must be followed by tool messages", "unexpected tool use id", "function call turn comes immediately after",
            "number of function response parts is equal", "tool result * without * tool use", "each tool use block must have a corresponding",
            "tool call id * not found in", "expected toolresult blocks", "no previous assistant message", "role tool must be a response to a preceding/preceeding",
        ),
    ),
    ClassifyRule(
        id="request-unparsable",
        kind=Kind.INVALID_REQUEST,
        why="The service could not parse the request's body; the same body fails again.",
        example=Evidence(status=500, text="We could not parse the JSON body of your request"),
        code=("json_invalid",),
        message_has=(
            "request body as json", "the json body of", "parse/decode/deserialize the json/request body", "parse/parsing/decode/decoding/deserialize request/requests body", "parse the body of", "request body is not valid/parseable", "request body is not a valid", "request body * valid json", "request body could not be parsed", "request body cannot be parsed", "invalid/malformed json in * request/body", "invalid/malformed json request/body/payload",
            "json exception parse error",
        ),
        except_if=("response body",),
        phase=CALLS,
    ),
    ClassifyRule(
        id="not-capable",
        kind=Kind.CONFIGURATION,
        why="This model or endpoint does not support the requested feature; another setting may.",
        example=Evidence(status=400, text="m-2:latest does not support tools"),
        message_has=(
            "does not support tools/chat/generate/thinking/embeddings/insert/completions", "doesnt support tools/chat/generate/thinking/embeddings/insert/completions", "does not support tool/function use/calling/calls",
            "provider not provided", "api version not supported", "api version is not supported", "unsupported api version", "only for api versions", "requires * flag", "tools is/are not supported", "tool/function use/calling/calls is/are not supported", "newer version of", "version is too old", "client is outdated", "client version * no longer supported", "model architecture", "function calling is not enabled", "unknown/unsupported provider", "provider * not found in", "endpoints found that support", "got an unexpected keyword argument", "url error", "must specify a region", "please use * api instead", "please run pip install", "is not a chat model", "auto tool choice requires", "only supported in",
        ),
    ),
    ClassifyRule(
        id="bad-address",
        kind=Kind.CONFIGURATION,
        why="The client's base URL is not a URL.",
        example=Evidence(exceptions=("httpx.UnsupportedProtocol",), text="Request URL is missing an 'http://' or 'https://' protocol."),
        exception=("UnsupportedProtocol", "MissingSchema", "InvalidSchema", "InvalidURL"),
        message_has=("no scheme supplied", "url is missing an", "typeerror invalid url", "err invalid url"),
    ),
    ClassifyRule(
        id="wrong-object",
        kind=Kind.CONFIGURATION,
        why="The library received an object of the wrong class: the program is wired incorrectly.",
        example=Evidence(exceptions=("pydantic.ValidationError",), text="1 validation error for Chain\nparser\n  instance of Parser expected (type=type_error.arbitrary_type)"),
        exception=("ValidationError",),
        contains=("type_error.arbitrary_type", "type=is_instance_of", "type=is_subclass_of"),
    ),
    ClassifyRule(
        id="bug-in-words",
        kind=Kind.TOOL_ERROR,
        why="The interpreter's message for a bug in a program, without its class.",
        example=Evidence(text="Cannot read properties of undefined (reading 'x')"),
        message_has=(
            "cannot read properties of", "cannot read property", "object has no attribute", "object is not subscriptable/iterable/callable",
            "is not a function$", "is not iterable$",
        ),
        status=(None,),
    ),
    ClassifyRule(
        id="bug-in-client",
        kind=Kind.TOOL_ERROR,
        why="The interpreter's message for a bug in the program that made the call.",
        example=Evidence(text="error from callback: can only concatenate str (not 'Reply') to str"),
        phase=CALLS,
        message_has=(
            "can only concatenate", "unsupported operand type", "missing * required positional argument/arguments", "takes * positional argument/arguments but",
            "index out of range", "is not json serializable", "nonetype object", "referenced before assignment", "too many values to unpack", "not enough values to unpack", "dictionary changed size during",
        ),
        status=(None,),
    ),
    ClassifyRule(
        id="aborted-by-caller",
        kind=Kind.UNKNOWN,
        why="The caller cancelled the request: nothing failed, so nothing is retried.",
        example=Evidence(text="Error: Request was aborted.", exceptions=("APIUserAbortError",)),
        exception=("APIUserAbortError", "AbortError", "KeyboardInterrupt", "CancelledError"),
        code=("cancelled", "canceled"),
        message_has=("request was aborted", "operation/request was cancelled/canceled", "aborted by user", "cancelled by user", "interrupted by user", "operation was aborted"),
        exit_code=(130,),
    ),
    ClassifyRule(
        id="in-progress",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="Another request of the same conversation is not finished yet; it ends by itself.",
        example=Evidence(status=400, text="The conversation is currently processing another request"),
        message_has=(
            "processing another request", "another request is in progress", "already has an active response/run", "request is already in progress",
            "generation is already in progress", "while a run * is active",
        ),
    ),
    ClassifyRule(
        id="service-broke-code",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="The words for an internal error, also behind a gateway's own status.",
        example=Evidence(status=400, text="BedrockException - internalServerException"),
        code=("internalserverexception", "internalfailure"),
        message_has=(
            "internalserverexception", "^internal server error$", "message internal server error$", "model/engine/runner/worker has crashed", "model crashed",
            "unexpectedly stopped", "finish/stop reason error$",
        ),
    ),
    ClassifyRule(
        id="runner-ended",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="The process that runs the model ended; the server starts another one for the next request.",
        example=Evidence(text="Error: the engine process has exited: status 3"),
        phase=CALLS,
        message_has=("model/engine/runner/worker process has/was terminated/exited/died/crashed/stopped", "model/engine/runner/worker process is no longer", "model/engine/runner/worker has terminated/exited/died/stopped"),
        status=SERVER_FAULT_STATUSES,
    ),
    ClassifyRule(
        id="model-broke",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="Bedrock reports with HTTP 424 that the model failed while it processed the request; it is usually transient.",
        example=Evidence(status=424, code="ModelErrorException", text="The request failed due to an error while processing the model."),
        code=("modelerrorexception", "modelstreamerrorexception"),
        status=(424,),
    ),
    ClassifyRule(
        id="service-broke",
        kind=Kind.SERVER_ERROR,
        retryable=True,
        why="The service reports an internal error; it is usually transient.",
        example=Evidence(status=500, text="The server had an error while it processed your request"),
        message_has=("internal server error", "bad gateway", "internal error", "server had an error", "error occurred while processing your request", "unexpected error * internal", "something went wrong on our"),
        except_if=("bad request",),
        status=SERVER_FAULT_STATUSES,
    ),
)  # fmt: skip
