"""Classification rules for how a call ended: the engine's time limit, and the stop reasons that providers report."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind, Phase

ENGINE: Final = (
    ClassifyRule(
        id="attempt-time-up",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="Rung ended the attempt at its time limit.",
        example=Evidence(text="attempt ended after 30 s", phase=Phase.LIMIT),
        phase=(Phase.LIMIT,),
    ),
)

# Stop reasons: how a response ended, as the provider reports it.
STOP_REASONS: Final = (
    ClassifyRule(
        id="output-cut",
        kind=Kind.OUTPUT_LIMIT,
        why="The response was truncated at its length limit; the same limit truncates it again.",
        example=Evidence(text='{"stop_reason": "max_tokens", "content": []}', phase=Phase.RESULT),
        code=("max_tokens", "length", "max_output_tokens", "model_length", "max_completion_tokens"),
        exception=("LengthFinishReasonError", "IncompleteOutputException"),
        message_has=(
            "output token maximum",
            "length limit was reached",
            "max tokens or model output limit was reached",
            "maximum output tokens/length * reached/exceeded",
            "output token limit * reached/exceeded",
            "exceeded the * output tokens",
            "response/answer/output/reply/completion hit/reached/exceeded/exceeds the/its length/token/output limit",
            "response/answer/output was truncated/cut", "response/answer/output truncated", "reason max output tokens", "model had/has reached the token/output limit", "complete/completed/incomplete * max output tokens", "incomplete * max tokens", "max tokens reached before",
        ),
    ),
    ClassifyRule(
        id="context-full",
        kind=Kind.CONTEXT_LIMIT,
        why="The response stopped because the context window was full.",
        example=Evidence(text='{"stop_reason": "model_context_window_exceeded"}', phase=Phase.RESULT),
        code=("model_context_window_exceeded",),
    ),
    ClassifyRule(
        id="turns-spent",
        kind=Kind.TURNS_EXHAUSTED,
        why="The agent used all of its turns.",
        example=Evidence(text='{"type": "result", "subtype": "error_max_turns"}', phase=Phase.RESULT),
        code=("error_max_turns", "max_turns"),
        exception=("MaxTurnsExceeded", "GraphRecursionError", "AgentMaxTurnsError"),
        message_has=("reached max/maximum * turns/iterations/steps", "reached the max/maximum number of turns/iterations/steps", "maximum number of turns", "max turns exceeded", "max turns * exceeded", "exceed the request limit of", "recursion limit of"),
    ),
    ClassifyRule(
        id="budget-spent",
        kind=Kind.BUDGET_EXHAUSTED,
        why="The agent used all of its budget.",
        example=Evidence(text='{"type": "result", "subtype": "error_max_budget_usd"}', phase=Phase.RESULT),
        code=("error_max_budget_usd",),
        exception=("UsageLimitExceeded",),
    ),
    ClassifyRule(
        id="filtered",
        kind=Kind.CONTENT_FILTER,
        why="The provider's content filter blocked the request or the response; the same text is blocked again.",
        example=Evidence(status=400, text='{"error": {"code": "content_filter", "message": "The prompt was filtered"}}'),
        code=(
            "content_filter", "content_policy_violation", "content_policy", "responsibleaipolicyviolation", "safety",
            "recitation", "prohibited_content", "blocklist", "spii", "image_safety", "guardrail_intervened",
            "content_filtered", "cyber_policy", "sensitive_content_detected", "input_text_sensitive_content_detected", "output_text_sensitive_content_detected", "data_inspection_failed", "datainspectionfailed", "moderation_blocked",
            "invalid_prompt", "invalid_prompts", "censorship_blocked", "sensitive_words_detected", "content_moderation", "contentfilter",
        ),
        exception=("ContentPolicyViolationError", "ContentFilterFinishReasonError", "BlockedPromptException", "StopCandidateException"),
        message_has=(
            "content filter/filtering/moderation", "content management policy", "responsible ai service/policy/filter/filters", "content policy", "content exists risk",
            "flagged as potentially", "was flagged", "flagged by * moderation/safety/policy", "safety system/filters/filter/settings",
            "for safety reasons", "violates/violating/violate * usage/content policy/policies/guidelines",
            "blocked by * safety/content/policy/filter", "blocked due to safety", "prohibited content/use",
            "inappropriate content", "usage policies * violat", "harmful content", "guardrail intervened", "guardrail/guardrails * failed/violated/violation/blocked/triggered", "block/blocked reason other/safety/image/language", "blockedreason",
        ),
        except_if=("is not supported", "account was flagged", "account has been flagged", "malformed function call"),
    ),
    ClassifyRule(
        id="refused",
        kind=Kind.REFUSAL,
        why="The model refused; the same prompt is refused again.",
        example=Evidence(text='{"stop_reason": "refusal", "content": []}', phase=Phase.RESULT),
        code=("refusal",),
        message_has=("refused this request", "refused to answer", "model refused", "declined/declines/refuses to answer/respond/help", "refused to respond/help", "^model refusal"),
    ),
    ClassifyRule(
        id="turn-paused",
        kind=Kind.PARTIAL_OUTPUT,
        why="The service paused a long turn; it continues when the response is sent back unchanged.",
        example=Evidence(text='{"stop_reason": "pause_turn"}', phase=Phase.RESULT),
        code=("pause_turn",),
    ),
    ClassifyRule(
        id="call-malformed",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="The model produced a tool call or JSON that the service could not parse; a new sample may parse.",
        example=Evidence(status=400, text='{"error": {"code": "tool_use_failed", "message": "Failed to call a function"}}'),
        code=(
            "tool_use_failed", "json_validate_failed", "malformed_function_call", "unexpected_tool_call",
            "error_max_structured_output_retries", "malformed_tool_call", "invalid_tool_call", "output_parse_failed",
        ),
        exception=("OutputParserException", "OutputParsingError", "JSONParseError", "InstructorRetryException", "AgentParsingError", "UnexpectedModelBehavior", "ModelBehaviorError", "AI_TypeValidationError", "AI_JSONParseError", "AI_NoObjectGeneratedError", "AI_InvalidToolInputError", "AI_InvalidToolArgumentsError", "AdapterParseError"),
        message_has=(
            "could not parse llm/model/tool", "failed to parse tool call", "failed to call a function",
            "tool call validation failed", "model produced invalid", "failed to generate json", "no choices returned/in", "returned no choices/candidates/content/output", "empty response/completion/content from", "none or empty", "model/llm response/output did not", "response/output/answer did not respect/match/follow/conform/adhere", "response/output does not conform/adhere", "unable to parse * model/llm * output/response", "could not be parsed as json", "tool call arguments * json", "invalid tool call", "retries * for output/result validation", "maximum output/result retries", "stop reason malformed response", "finish reason malformed response", "tool call could not be parsed",
        ),
        except_if=("in messages", "in the messages", "in message/conversation/chat history", "in the message/conversation/chat history"),  # then the request holds it
    ),
)  # fmt: skip
