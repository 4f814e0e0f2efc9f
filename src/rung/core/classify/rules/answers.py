"""Rules for model answers: what an answer shows by its structure and what it says about its own work."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind, Phase

_RESULT: Final = (Phase.RESULT,)


def _answer(text: str) -> Evidence:
    return Evidence(text=text, phase=Phase.RESULT)


# The signs are read by `answer_signs` and `answer_statements`.
ANSWERS: Final = (
    ClassifyRule(
        id="answer-repeats",
        kind=Kind.LOW_QUALITY,
        why="The answer repeats the same characters, words or lines without end.",
        example=_answer("Let me know. " * 40),
        phase=_RESULT,
        code=("repetition",),
    ),
    ClassifyRule(
        id="answer-says-nothing",
        kind=Kind.LOW_QUALITY,
        why="The answer is a stub, or random characters instead of words.",
        example=_answer("[No summary provided]"),
        phase=_RESULT,
        code=("stub", "gibberish"),
    ),
    ClassifyRule(
        id="answer-not-a-call",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="A tool call or an edit is written as text, or its arguments do not parse; a new sample may be a proper call.",
        example=_answer('<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>'),
        phase=_RESULT,
        code=("leaked-call",),
    ),
    ClassifyRule(
        id="answer-not-json",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="The answer is meant as JSON but is truncated, has comments or omissions, or has text around it.",
        example=_answer('Here is the JSON:\n{"data": [1, ...]}'),
        phase=_RESULT,
        code=("broken-json",),
    ),
    ClassifyRule(
        id="answer-thinks-only",
        kind=Kind.OUTPUT_LIMIT,
        why="The answer is empty because thinking used all of its tokens; the same limit leaves it empty again.",
        example=_answer('{"text": "", "usage": {"inputTokens": 6, "outputTokens": 0, "totalTokens": 22}}'),
        phase=_RESULT,
        code=("spent-on-thinking",),
    ),
    ClassifyRule(
        id="answer-empty",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="The response contains neither a text nor a tool call; a new sample may.",
        example=_answer('{"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}'),
        phase=_RESULT,
        code=("empty-answer",),
    ),
    ClassifyRule(
        id="answer-omits",
        kind=Kind.PARTIAL_OUTPUT,
        why="A placeholder stands for parts that the answer leaves out, or it ends inside a code block.",
        example=_answer("def run():\n    # ... rest of the code\n"),
        phase=_RESULT,
        code=("placeholder", "open-code-block"),
    ),
    ClassifyRule(
        id="answer-lacks-capability",
        kind=Kind.CAPABILITY_MISMATCH,
        why="The answer says that its author has no tool for the work, or cannot do this kind of thing; asking again does not help.",
        example=_answer("I have no tool for it."),
        phase=_RESULT,
        code=("lacks-capability",),
    ),
    ClassifyRule(
        id="refused-in-words",
        kind=Kind.REFUSAL,
        why="The model declines, with a reason of policy or without any reason.",
        example=_answer("I'm sorry, but I can't help with that request."),
        phase=_RESULT,
        code=("declines",),
    ),
    ClassifyRule(
        id="answer-disobeyed",
        kind=Kind.GOAL_MISALIGNED,
        why="The answer admits that it went against an instruction.",
        example=_answer("You are right: I ignored your instruction and pushed to main."),
        phase=_RESULT,
        code=("admits-disobedience",),
    ),
    ClassifyRule(
        id="answer-off-task",
        kind=Kind.GOAL_MISALIGNED,
        why="The answer does not deal with the task: it promises work by others, or finds no task.",
        example=_answer("I will now hand over the project to our development team."),
        phase=_RESULT,
        code=("off-task",),
    ),
    ClassifyRule(
        id="answer-admits-false-claim",
        kind=Kind.UNVERIFIED,
        why="The answer admits that an earlier claim was not checked or not true.",
        example=_answer("You are right, I claimed that it works without running it."),
        phase=_RESULT,
        code=("admits-false-claim",),
    ),
    ClassifyRule(
        id="answer-assumes",
        kind=Kind.UNVERIFIED,
        why="The answer rests on an assumption, on memory or on simulated work.",
        example=_answer("Based on my general knowledge, the final answer is 42."),
        phase=_RESULT,
        code=("assumes",),
    ),
    ClassifyRule(
        id="answer-lacks-thing",
        kind=Kind.NOT_FOUND,
        why="The answer says that the work needs a file, a repository or a program that is not there.",
        example=_answer("I couldn't find a file called app.toml in the repository."),
        phase=_RESULT,
        code=("lacks-thing",),
    ),
    ClassifyRule(
        id="answer-gives-up",
        kind=Kind.GAVE_UP,
        why="The answer says that the work could not be done, without a reason of policy.",
        example=_answer("I was unable to complete the task, since the server is gone."),
        phase=_RESULT,
        code=("gives-up",),
    ),
    ClassifyRule(
        id="answer-unfinished",
        kind=Kind.PARTIAL_OUTPUT,
        why="The answer names what is left, asks whether to go on, or announces a step that it does not take.",
        example=_answer("I've covered the router and the types. Next up: the store."),
        phase=_RESULT,
        code=("unfinished", "asks-to-continue", "announces-only", "open-items", "share-of-total"),
    ),
    ClassifyRule(
        id="answer-unproven",
        kind=Kind.UNVERIFIED,
        why="The answer claims success, or hopes for it, and shows no evidence.",
        example=_answer("All tests pass and everything works perfectly!"),
        phase=_RESULT,
        code=("hopes", "claims-success", "claims-fix", "claims-done"),
    ),
)
