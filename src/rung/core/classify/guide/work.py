"""Guide texts for failures of the work (result, behaviour, crew, other), and the complete table `GUIDES`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.classify.guide.calls import CALLS, Guide
from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESULT: Final[Mapping[Kind, Guide]] = {
    Kind.MALFORMED_OUTPUT: Guide(
        summary="The response does not have the required format.",
        looks="JSON that does not parse, required fields that are missing, a code fence or a preface around the data, "
        "a tool call whose arguments are broken.",
        helps=(
            "Sample again: a new response may parse.",
            "State exactly what is wrong with the format, and request the complete response again.",
            "Use the provider's structured output, if it offers one.",
        ),
        avoid="Do not patch the text until it parses: the result may not be what the model meant. "
        "Do not let the content change to fit the format.",
    ),
    Kind.PARTIAL_OUTPUT: Guide(
        summary="Parts of the response are missing.",
        looks="Required sections that are absent, placeholders such as “rest unchanged”, "
        "a list that ends before its last item.",
        helps=(
            "Request only the missing parts, by name.",
            "If many are missing: start a new agent with a narrower scope.",
        ),
        avoid="Do not have everything rewritten: the good parts change too. Do not pass it on as if it were complete.",
    ),
    Kind.GAVE_UP: Guide(
        summary="The agent stopped before the work was finished, although nothing had failed.",
        looks="The agent asks whether to continue, describes what it would do, or leaves the rest “as an exercise”.",
        helps=(
            "Tell it to continue from its current state.",
            "Narrow the task: agents often stop when the remaining work is not clear.",
            "Use another model.",
        ),
        avoid="Do not start over: the finished part is good. Do not accept a description of the work as the work.",
    ),
    Kind.LOW_QUALITY: Guide(
        summary="The work addresses the right goal but was judged not good enough.",
        looks="A check or a judge rejects it with reasons: skipped steps, an inconsistent final state, "
        "insufficient proof.",
        helps=(
            "Try another approach, with the judge's reasons in the prompt.",
            "Use a stronger model.",
        ),
        avoid="Do not only ask it to try harder: without the reasons it produces the same work. "
        "Do not lower the threshold, and do not let the worker judge itself.",
    ),
    Kind.GOAL_MISALIGNED: Guide(
        summary="The work is good but does not address the task.",
        looks="A judge scores goal alignment low and the other dimensions high; the agent worked on another file, feature or question.",
        helps=(
            "Make a new plan from the original text of the task.",
            "If the task is ambiguous: ask which reading is meant.",
        ),
        avoid="Do not refine the result or nudge the agent: the same approach leads to the same wrong result.",
    ),
    Kind.UNVERIFIED: Guide(
        summary="The work is said to be done, without evidence; or its check or judge could not run.",
        looks="No changed file, no test run, no output; the claim names files that do not exist; or a check raised an error.",
        helps=(
            "If a check or judge could not run: fix it; the work is kept and not run again.",
            "Ask for proof: the changed files, and a command with its output that shows the result.",
            "Have the missing work done.",
        ),
        avoid="Do not accept the claim, and do not count a summary as evidence: it only restates the claim.",
    ),
    Kind.TEST_FAILURE: Guide(
        summary="The tests fail after the work.",
        looks="A failed assertion, a test run that ends with a list of failed tests and a non-zero exit code.",
        helps=(
            "Check whether that test already failed before the work.",
            "Find the cause in the code: reproduce the failure, trace it to its origin, then fix it.",
            "Run the tests again before reporting the work as done.",
        ),
        avoid="Do not change, skip or weaken the test, and do not special-case its input: "
        "the test then passes while the code is still broken.",
    ),
    Kind.TOOL_ERROR: Guide(
        summary="A tool that the agent ran, or a script that it wrote, failed.",
        looks="A traceback from the agent's own script, a tool result marked as an error, "
        "a non-zero exit code without further information.",
        helps=(
            "Read the error and call the tool with other arguments.",
            "Use another tool for the same purpose.",
            "Fix the script, if the agent wrote it.",
        ),
        avoid="Do not make the same call with the same arguments. Do not assume that it had no effect: "
        "it may have failed half-way.",
    ),
}

_BEHAVIOUR: Final[Mapping[Kind, Guide]] = {
    Kind.ARCHITECTURAL_BLOCKER: Guide(
        summary="The design of the system rules the approach out: no parameter, path or repetition of it can work.",
        looks="The agent, a check or a reviewer says that the architecture does not support it: a missing extension point, "
        "dependencies that exclude each other, a boundary that must not be crossed, a redesign that would be needed.",
        helps=(
            "Find the root cause, then make a new plan that reaches the goal in another way.",
            "If every other way needs a redesign: ask the owner of the architecture.",
        ),
        avoid="Do not nudge or retry: each variation of the approach meets the same obstacle. Do not work around the boundary.",
    ),
    Kind.LOOP_DETECTED: Guide(
        summary="The agent repeats an action that produces the same outcome each time.",
        looks="The same call with the same result three times, with no call in between that could change it; "
        "two alternating actions; an edit that keeps failing at the same place.",
        helps=(
            "Stop, state what is known and what is unknown, and choose another way to find out.",
            "More repeats enter the ladder higher: another model or agent, then a forced finish.",
            "Provide the missing information or permission.",
        ),
        avoid="Do not allow one more try: the outcome is known. Paging, waiting for a server and "
        "testing after each edit are not loops.",
    ),
    Kind.STALLED: Guide(
        summary="There was no activity for too long, although nothing failed.",
        looks="An open stream without bytes, no tool call and no output for minutes, "
        "a command that waits for a password or a confirmation.",
        helps=(
            "Find out what it waits for; often it is an interactive prompt that nobody sees.",
            "End the attempt and request a smaller step.",
            "Try another approach.",
        ),
        avoid="Do not wait without a limit. Do not end a tool that is slow but visibly making progress.",
    ),
    Kind.CAPABILITY_MISMATCH: Guide(
        summary="This model or agent lacks the capability for this work.",
        looks="The agent says that it cannot see images or run commands; a read-only agent is asked to write; "
        "the agent lacks the tool that the task needs.",
        helps=(
            "Use an agent with the capability; if there is none, a stronger model.",
            "Give the agent the missing tool.",
        ),
        avoid="Do not retry or nudge: asking again does not add the capability, and each try costs money.",
    ),
    Kind.CONTEXT_WARNING: Guide(
        summary="The context is nearly full; nothing has failed yet.",
        looks="A detector or an agent reports that the use of the context has passed its threshold.",
        helps=(
            "Finish the current step and start no other.",
            "Compact now, while there is enough room for a good summary.",
            "Or hand over to a new agent with written notes.",
        ),
        avoid="Do not start a large read. Do not wait for `context_limit`: the notes can then no longer be written.",
    ),
}

_CREW: Final[Mapping[Kind, Guide]] = {
    Kind.WORKER_DEAD: Guide(
        summary="A worker's process has exited, and its task is not finished.",
        looks="The process no longer exists, the session closed without a final message, "
        "the task is still marked as in progress.",
        helps=(
            "Verify that the process has exited and that its claim is released.",
            "Check what it left: files, commits, the last finished step.",
            "Start a new worker from that step.",
        ),
        avoid="Do not start a second worker while the first may still write. "
        "Do not trust its unfinished step: verify it.",
    ),
    Kind.WORKER_HUNG: Guide(
        summary="A worker is alive but has been silent for too long.",
        looks="The process runs, its heartbeat is stale, its log has stopped.",
        helps=(
            "Find out what it waits for: a lock, a prompt, a slow command.",
            "Terminate it, then start a new worker from its last finished step.",
        ),
        avoid="Do not wait without a limit, and do not start a second worker beside it: when it resumes, both write.",
    ),
    Kind.CLAIM_BLOCKED: Guide(
        summary="A worker could not claim its task.",
        looks="Another worker holds the claim, the task is not in a claimable state, or its instructions are missing.",
        helps=(
            "Check which worker holds the claim and whether it is alive.",
            "If it is alive: stop the new worker. If it is dead: release the claim, then start again.",
            "Write the missing instructions.",
        ),
        avoid="Do not force the claim: two owners of one task overwrite each other.",
    ),
    Kind.SCOPE_CONFLICT: Guide(
        summary="Two workers change the same files or make the same decisions.",
        looks="Merge conflicts, edits that disappear, two tasks that list the same file, contradictory decisions.",
        helps=(
            "Stop both workers.",
            "Divide the work again, so that each file and each decision has one owner.",
            "Run the parts that cannot be separated one after the other.",
        ),
        avoid="Do not let the last writer win: the lost changes are noticed much later.",
    ),
    Kind.STRATEGIC_AMBIGUITY: Guide(
        summary="The task has more than one reasonable goal, and the choice matters.",
        looks="The task can be read in two ways that lead to different work, or its requirements contradict each other.",
        helps=(
            "Ask a person, with two or three options and the cost of each.",
            "If nobody is available: end as blocked, with a report that lists the same options.",
        ),
        avoid="Do not guess: wrong work has to be undone, and nobody knows that it was a guess.",
    ),
    Kind.BEYOND_AUTHORITY: Guide(
        summary="The next step needs a decision or a permission that the worker does not have.",
        looks="A change to the plan, a deletion, a new dependency, money: an action that its instructions reserve for others.",
        helps=(
            "Escalate: state what is needed, why, and what happens without it.",
            "Continue with the parts that do not depend on it.",
        ),
        avoid="Do not do it anyway, and do not split it into steps that are individually allowed: the sum is not allowed.",
    ),
    Kind.REVIEW_EXHAUSTED: Guide(
        summary="The work was rejected in review as often as the rules allow.",
        looks="Successive rejections of one checkpoint, with repeating comments.",
        helps=(
            "Read the reviews together: do they agree on one change, and is it feasible?",
            "Make a new plan for this part, with the reviewers' reasons.",
            "Ask a person if worker and reviewer disagree about the goal.",
        ),
        avoid="Do not add another identical round, and do not approve it only to finish.",
    ),
}

_OTHER: Final[Mapping[Kind, Guide]] = {
    Kind.SERVICE_DOWN: Guide(
        summary="The failure of a service has outlasted the retries: it is currently unavailable.",
        looks="The circuit breaker is open, or the retries for an overload, a server error or a lost connection are "
        "exhausted; or the provider announces an outage or maintenance.",
        helps=(
            "Use another provider or model, if the policy lists one.",
            "Otherwise finish with the completed part, and run the rest when the service is back.",
        ),
        avoid="Do not report it after one 503: most are over in seconds. Do not bypass an open breaker; its half-open probe "
        "detects the recovery. Do not nudge or replan: the work is not the cause.",
    ),
    Kind.HOOK_CRASH: Guide(
        summary="A hook that must run crashed, so that the attempt was not made; or another extension crashed and was ignored.",
        looks="A warning that an extension crashed, a `Crashed` event, a traceback from the code of a hook or listener.",
        helps=(
            "Read the error, and fix or disable the extension.",
            "Find out what it did not do: a guard that crashed has allowed nothing.",
        ),
        avoid="Do not run the work again: it is not the cause. Do not let a guard that must run fail open.",
    ),
    Kind.UNKNOWN: Guide(
        summary="No rule matches this error.",
        looks="An exception, a status or a text that no rule matches; often an error of a library without an adapter.",
        helps=(
            "Read the raw evidence: the first and the last lines.",
            "Let the ladder change the request (adjust, add the error as context, investigate) or show the error to a person.",
            "Classify it for the next time: raise `AttemptError` with a `finding`, or add a rule.",
        ),
        avoid="Do not retry it unchanged: a retry is not known to be safe or useful, so the kind is not retryable.",
    ),
}

GUIDES: Final[Mapping[Kind, Guide]] = MappingProxyType({**CALLS, **_RESULT, **_BEHAVIOUR, **_CREW, **_OTHER})

__all__ = ["GUIDES", "Guide"]
