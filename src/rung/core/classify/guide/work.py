"""What each kind means, for a person who was just paged. Here: trouble with the work, and the whole table."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rung.core.classify.guide.calls import CALLS, Guide
from rung.core.domain.failures import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESULT: Final[Mapping[Kind, Guide]] = {
    Kind.MALFORMED_OUTPUT: Guide(
        summary="There is an answer, and it does not have the required form.",
        looks="JSON that does not parse, required fields that are missing, a code fence or a preface around the data, "
        "a tool call whose arguments are broken.",
        helps=(
            "Sample again: a new answer may parse.",
            "Say exactly what is wrong with the form, and ask for the whole answer again.",
            "Use the provider's structured output, where there is one.",
        ),
        avoid="Do not patch it with string surgery: what parses afterwards may not be what was meant. "
        "Do not have the content changed to fit the form.",
    ),
    Kind.PARTIAL_OUTPUT: Guide(
        summary="Parts of the answer are missing.",
        looks="Declared sections that are not there, placeholders such as “rest unchanged”, "
        "a list that ends before its last item.",
        helps=(
            "Ask for the missing parts only, by name.",
            "If many are missing: a fresh agent with a narrower scope.",
        ),
        avoid="Do not have everything written again: the good parts change too. "
        "Do not hand it on as if it were complete.",
    ),
    Kind.GAVE_UP: Guide(
        summary="The agent stopped before the work was finished, and nothing had failed.",
        looks="It asks whether it should go on, describes what it would do, or leaves the rest “as an exercise”.",
        helps=(
            "Tell it to go on from where it is.",
            "A narrower task: often it stops because the end is out of sight.",
            "Another model.",
        ),
        avoid="Do not start over: what is done is good. Do not take a description of the work for the work.",
    ),
    Kind.LOW_QUALITY: Guide(
        summary="The work is on the right goal and was judged not good enough.",
        looks="A check or a judge fails it and gives reasons: steps left out, a state that does not hang together, "
        "too little proof.",
        helps=(
            "Another approach, with the judge's reasons in front of it.",
            "A stronger model.",
        ),
        avoid="Do not only ask it to try harder: without the reasons the same work comes back. "
        "Do not lower the bar, and do not let the worker judge itself.",
    ),
    Kind.GOAL_MISALIGNED: Guide(
        summary="Good work on something that was not asked for.",
        looks="A judge scores the goal low while the rest is fine; another file, feature or question was dealt with.",
        helps=(
            "A new plan, made from the original text of the task.",
            "If the task can be read in two ways: ask which one is meant.",
        ),
        avoid="Do not polish the result or nudge it along: the same approach arrives at the same wrong place.",
    ),
    Kind.UNVERIFIED: Guide(
        summary="The work is called done, and nothing shows that it is.",
        looks="No changed file, no test run, no output; or files are named that do not exist.",
        helps=(
            "Ask for proof: which files changed, which command shows it, with its output.",
            "Have done what turns out to be missing.",
        ),
        avoid="Do not accept the claim, and do not count a summary as evidence: it is the same claim in more words.",
    ),
    Kind.TEST_FAILURE: Guide(
        summary="The tests fail after the work.",
        looks="A failed assertion, a test run that ends with a list of failed tests and a non-zero exit code.",
        helps=(
            "Check whether that test failed before the work as well.",
            "Find the cause in the code: reproduce it, read where it comes from, then mend it.",
            "Run the tests again before calling it done.",
        ),
        avoid="Do not change, skip or weaken the test, and do not special-case its input: "
        "then it is green and still broken.",
    ),
    Kind.TOOL_ERROR: Guide(
        summary="A tool that the agent ran, or a script it wrote, broke.",
        looks="A traceback out of the agent's own script, a tool result marked as an error, "
        "an exit code that says no more than “failed”.",
        helps=(
            "Read the error and call the tool with other arguments.",
            "Another tool for the same purpose.",
            "Mend the script, if the agent wrote it.",
        ),
        avoid="Do not make the same call with the same arguments. Do not assume that it did nothing: "
        "it may have broken half-way.",
    ),
}

_BEHAVIOUR: Final[Mapping[Kind, Guide]] = {
    Kind.LOOP_DETECTED: Guide(
        summary="The agent repeats an action that has the same outcome each time.",
        looks="The same call with the same result three times and nothing between that could change it; "
        "two actions in turn; one edit that keeps failing at one place.",
        helps=(
            "Stop, say what is known and what is not, and choose another way to find that out.",
            "The more repeats, the higher it enters: another model or agent, then an honest end.",
            "Give it the fact or the right that it lacks.",
        ),
        avoid="Do not let it try once more: the outcome is known. Do not take paging, waiting for a server, "
        "or testing after each edit for a loop.",
    ),
    Kind.STALLED: Guide(
        summary="Nothing has happened for too long, and nothing has failed.",
        looks="An open stream without bytes, no tool call and no output for minutes, "
        "a command that waits for a password or a yes.",
        helps=(
            "Look what it waits for; a question on a terminal nobody sees is common.",
            "End the attempt and ask for a smaller step.",
            "Another approach.",
        ),
        avoid="Do not wait without a limit. Do not end a tool that is slow but visibly getting on.",
    ),
    Kind.CAPABILITY_MISMATCH: Guide(
        summary="This model or agent cannot do this sort of work.",
        looks="It says it cannot see images or run commands; a read-only agent is asked to write; "
        "it lacks the tool the task needs.",
        helps=(
            "An agent that can; if there is none, a stronger model.",
            "Give it the missing tool.",
        ),
        avoid="Do not retry or nudge: nobody grows a skill by being asked again, and each try is paid for.",
    ),
    Kind.CONTEXT_WARNING: Guide(
        summary="The context is nearly full; nothing has failed yet.",
        looks="A detector or an agent reports that the use of the context has passed its threshold.",
        helps=(
            "Finish the step at hand, and begin no other.",
            "Compact now, while there is room to do it well.",
            "Or hand over to a fresh agent with written notes.",
        ),
        avoid="Do not begin a large read. Do not wait for `context_limit`: by then the notes cannot be written.",
    ),
}

_CREW: Final[Mapping[Kind, Guide]] = {
    Kind.WORKER_DEAD: Guide(
        summary="A worker's process is gone, and its task is not finished.",
        looks="The process does not exist any more, the session closed without a last word, "
        "the task still says it is being worked on.",
        helps=(
            "Make sure that it is gone and its claim released.",
            "See what it left: files, commits, the last finished step.",
            "Start a successor from there.",
        ),
        avoid="Do not start a second worker while the first may still write. "
        "Do not trust its unfinished step: check it again.",
    ),
    Kind.WORKER_HUNG: Guide(
        summary="A worker is alive and has said nothing for too long.",
        looks="The process runs, its heartbeat is old, its log has stopped.",
        helps=(
            "Look what it waits for: a lock, a question, a slow command.",
            "End it, then start a successor from its last finished step.",
        ),
        avoid="Do not wait for ever, and do not put a second worker beside it: when it wakes up, both write.",
    ),
    Kind.CLAIM_BLOCKED: Guide(
        summary="A worker could not take its task.",
        looks="Somebody else holds the claim, the task is in a state nobody may claim, or its instructions are missing.",
        helps=(
            "See who holds it and whether they are alive.",
            "Alive: let the newcomer go. Dead: release the claim, then start again.",
            "Write the missing instructions.",
        ),
        avoid="Do not force the claim: two owners of one task overwrite each other.",
    ),
    Kind.SCOPE_CONFLICT: Guide(
        summary="Two workers change the same files or decide the same things.",
        looks="Merge conflicts, edits that disappear, two tasks that list one file, decisions that contradict each other.",
        helps=(
            "Stop both.",
            "Cut the work up again, so that each file and each decision has one owner.",
            "What cannot be cut apart: one after the other.",
        ),
        avoid="Do not let the last writer win: the loss shows up much later.",
    ),
    Kind.STRATEGIC_AMBIGUITY: Guide(
        summary="There is more than one sensible goal, and the choice matters.",
        looks="The task can be read in two ways that lead to different work, or its requirements contradict each other.",
        helps=(
            "Ask a person, with two or three options and what each of them costs.",
            "Nobody there: end blocked, with a report that holds the same options.",
        ),
        avoid="Do not guess: the wrong half of the work has to be undone, and nobody knows that it was a guess.",
    ),
    Kind.BEYOND_AUTHORITY: Guide(
        summary="The next step needs a decision or a right that the worker does not have.",
        looks="A change to the plan, a deletion, a new dependency, money: something its instructions keep for others.",
        helps=(
            "Hand it up: say what is needed, why, and what happens without it.",
            "Go on with the parts it does not touch.",
        ),
        avoid="Do not do it anyway, and do not cut it into steps small enough to pass: the sum was not allowed either.",
    ),
    Kind.REVIEW_EXHAUSTED: Guide(
        summary="A piece of work was sent back as often as the rules allow.",
        looks="One checkpoint with one rejection after the other, the comments repeating themselves.",
        helps=(
            "Read the reviews together: do they ask for one thing, and can it be done?",
            "A new plan for this part, with the reviewers' reasons.",
            "A person, if worker and reviewer hold different views of the goal.",
        ),
        avoid="Do not add one more round of the same, and do not approve it to be done with it.",
    ),
}

_OTHER: Final[Mapping[Kind, Guide]] = {
    Kind.SERVICE_DOWN: Guide(
        summary="A service's trouble has outlasted the tries: it is down, for us and for now.",
        looks="The circuit breaker is open, or the tries for an overload, a server error or a lost connection are "
        "spent; or the provider announces an outage or maintenance.",
        helps=(
            "Another provider or model, if the policy lists one.",
            "Otherwise finish with what is done, and run the rest when the service is back.",
        ),
        avoid="Do not say it after one 503: most are over in seconds. Do not call past an open breaker; its one probe "
        "finds out. Do not nudge or replan: the work was not at fault.",
    ),
    Kind.HOOK_CRASH: Guide(
        summary="An extension (a hook, listener, check or detector) broke; the work went on without it.",
        looks="A warning that something broke and was ignored, a `Crashed` event, "
        "a traceback out of code that only watches.",
        helps=(
            "Read the error, and mend the extension or switch it off.",
            "See what it did not do: a check that crashed has judged nothing.",
        ),
        avoid="Do not fail the work because of it. Do not leave it broken either: "
        "a check that never runs looks just like one that always passes.",
    ),
    Kind.UNKNOWN: Guide(
        summary="No rule knows this error.",
        looks="An exception, a status or a text that is in no rule; often an error of a library without an adapter.",
        helps=(
            "Read the raw evidence: the first and the last lines.",
            "Let the ladder change something (adjust, give the error as context, investigate) or show it to a person.",
            "Name it for the next time: raise `AttemptError` with a finding, or add a rule.",
        ),
        avoid="Do not repeat it unchanged: it is not known to be safe or to help, so it is not retryable.",
    ),
}

GUIDES: Final[Mapping[Kind, Guide]] = MappingProxyType({**CALLS, **_RESULT, **_BEHAVIOUR, **_CREW, **_OTHER})

__all__ = ["GUIDES", "Guide"]
