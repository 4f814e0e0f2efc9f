"""Model answers: what their structure shows, what they say about their own work, and when nothing is wrong."""

from __future__ import annotations

import json

import pytest

from rung.core.classify.answer_noise import is_gibberish, is_stub, repeats_itself
from rung.core.classify.answer_signs import ends_in_code_block, has_placeholder, read_answer
from rung.core.classify.answer_statements import STATEMENTS, claims_completion, shows_evidence, statement_signs
from rung.core.classify.answer_text import AnswerText, answer_in, bounded, without_quoted_code
from rung.core.classify.facts import Facts
from rung.core.classify.rules.answers import ANSWERS
from rung.core.domain.failures import Evidence, Phase


def signs_of(text: str, **fields: object) -> set[str]:
    """Return the signs of an answer."""
    facts = Facts(Evidence(text=text, phase=Phase.RESULT, **fields))  # type: ignore[arg-type]
    read_answer(facts, text)
    return facts.codes


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>',
        "<function=look><parameter=path>a.py</parameter></function>",
        '<invoke name="look"><parameter name="path">a.py</parameter></invoke>',
        '[TOOL_CALLS][{"name": "look"}]',
        '<|python_tag|>look.call(path="a.py")',
        "<\uff5ctool\u2581calls\u2581begin\uff5c>look",
        "functions.look:0 {}",
        '<|channel|>commentary to=functions.look <|message|>{"path": "a.py"}',
        "multi_tool_use.parallel({})",
        "print(default_api.look(path='a.py'))",
        'I look at it now.\n```json\n{"name": "look", "arguments": {"path": "a.py"}}\n```',
        '{"id": "c1", "function": {"name": "look at", "arguments": "{}"}}',
        "Action: look\nAction Input: a.py",
        "Thought: I should look at the file before I say anything.",
        "<read_file>\n<path>a.py</path>",
        "look(path='a.py')",
        'submit(answer="it is never closed',
        "[Tool call: look]",
        "*** Begin Patch\n*** Update File: a.py",
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
        json.dumps({"choices": [{"message": {"tool_calls": [{"name": "look", "arguments": '{"path": '}]}}]}),
    ],
)
def test_a_call_written_as_text(text: str) -> None:
    """A tool call, an edit or a step of a protocol that reached the answer as text is a leaked call."""
    assert "leaked-call" in signs_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "The parser now drops `<tool_call>` tags before it shows the text.",
        "The example:\n```xml\n<tool_call>look</tool_call>\n```\nis rejected with a clear message, as the issue asks for it.",
        "Thought: done.\nFinal Answer: 4",
        json.dumps({"choices": [{"message": {"tool_calls": [{"name": "look", "arguments": "{}"}]}}]}),
        "Look at a.py (line 3).",
    ],
)
def test_a_call_that_is_only_mentioned(text: str) -> None:
    """Quoted code, a proper tool call and a finished protocol are no leaked calls."""
    assert not {"leaked-call", "empty-answer"} & signs_of(text)


@pytest.mark.parametrize(
    ("text", "is_broken"),
    [
        ('{"a": 1', True),
        ('{\n{"a": 1}', True),
        ('{"a": x, # why\n"b": 2}', True),
        ('```json\n{"a": 1, ...}\n```', True),
        ('Here is the JSON:\n{"a": 1}', True),
        ('Sure!\n```json\n{"a": [1, 2, 3, 4, 5, 6, 7, 8]}\n```', True),
        ('{"a": 1}', False),
        ('```json\n{"a": 1}\n```', False),
        ("[x] the first item is done", False),
        ("[the guide](https://example.org) explains it", False),
        ('The option is read from the file, like this:\n```json\n{"a": 1, ...}\n```\nand everything else is as it was before the change.', False),
    ],
)  # fmt: skip
def test_broken_json(text: str, is_broken: bool) -> None:
    """An answer that is meant as JSON must parse; a link, a checklist or a short example is not meant as JSON."""
    assert ("broken-json" in signs_of(text)) is is_broken


@pytest.mark.parametrize(
    ("body", "sign"),
    [
        ('{"done_reason": "length", "response": "abc"}', "length"),
        ("finish_reason: MAX_TOKENS", "max_tokens"),
        ("Response(finish_reason=<FinishReason.SAFETY: 3>)", "safety"),
        ("{'candidates': [{'finish_reason': 2}]}", "max_tokens"),
        ('{"stop_type": "limit", "content": "abc"}', "length"),
        ('{"text": "", "usage": {"inputTokens": 6, "outputTokens": 0, "totalTokens": 22}}', "spent-on-thinking"),
        ("Response(output=[], max_output_tokens=1)", "spent-on-thinking"),
        ('output = [{type:"reasoning"}, {type:"message", content: []}]', "spent-on-thinking"),
        ('{"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}', "empty-answer"),
    ],
)
def test_how_a_response_ended(body: str, sign: str) -> None:
    """Stop reasons are read from bodies of every API, and an empty answer says why it is empty."""
    assert sign in signs_of(body)


@pytest.mark.parametrize("body", ['{"stop_reason": "end_turn"}', '{"candidates": [{"finishReason": "OTHER"}]}'])
def test_nothing_is_said_about_the_answer(body: str) -> None:
    """Without a place for an answer, or with a reason that says nothing, no answer counts as empty."""
    assert not {"empty-answer", "spent-on-thinking"} & signs_of(body)


SAID = [
    ("declines", "I can't write that, because it would violate the copyright of its author."),
    ("declines", "I cannot assist with that."),
    ("declines", "Désolé, mais je ne peux pas traduire cela."),
    ("declines", "抱歉，我无法回答这个问题。"),
    ("admits-disobedience", "You are right, I ignored your rule and edited the lock file."),
    ("admits-disobedience", "I pushed the branch without your approval."),
    ("off-task", "I'm sorry, I don't see any file in your message."),
    ("admits-false-claim", "Honestly, I never ran the suite."),
    ("admits-false-claim", "I made up the numbers of the table."),
    ("assumes", "Based on my general knowledge, the answer is Paris."),
    ("empty-answer", "The model did not return any content."),
    ("gives-up", "I was not able to finish the migration."),
    ("gives-up", "Despite several attempts, the page never loaded."),
    ("gives-up", "The date could not be determined."),
    ("gives-up", "任务太复杂，我放弃。"),
    ("asks-to-continue", "The first module is ported. Shall I continue with the second?"),
    ("unfinished", "The store is not yet implemented."),
    ("unfinished", "I only translated the first chapter."),
    ("announces-only", "The cause is clear now. Let me fix the parser:"),
    ("announces-only", "接下来我修改配置文件："),
    ("open-items", "✅ parser\n✅ store\n⚠️ docs: need a decision"),
    ("share-of-total", "Only 3 of 12 files were converted."),
    ("hopes", "This should fix the crash."),
    ("hopes", "Give it a try and let me know if it works."),
    ("claims-success", "Everything works perfectly now!"),
    ("claims-success", "All tests pass ✅"),
]


@pytest.mark.parametrize(("sign", "text"), SAID)
def test_what_an_answer_says(sign: str, text: str) -> None:
    """A statement is recognised by what it says of the work, in several wordings and languages."""
    assert sign in signs_of(text)


def test_every_statement_has_an_example() -> None:
    """No statement is without a wording that a test finds."""
    assert set(STATEMENTS) <= {sign for sign, _ in SAID}


@pytest.mark.parametrize(
    "text",
    [
        "I fixed the parser; it could not read empty lines before. 14 tests passed.",
        "Sorry for the delay. The TODO list is sorted by date as you asked.",
        "I could not find any further issues in the module.",
        "I could not find any problem in the file.",
        "I can't answer this because it lacks the necessary information. Could you share the log?",
        "All tests pass: `pytest -q tests/test_parser.py` prints 14 passed.",
        "Only 12 of 12 files needed a change.",
        "Your booking is confirmed. Let me know if you have any other questions!",
        "❌ Before: the crash. ✅ After: a message.",
        "Would you like to proceed with this exchange?",
        "The quota of the plan is shown on the page, and I've linked the guide about rate limits and denied permissions from there.",
    ],
)  # fmt: skip
def test_an_honest_answer_is_silent(text: str) -> None:
    """A mended error, a question or a claim with evidence is no failure."""
    assert not {code for rule in ANSWERS for code in rule.code} & signs_of(text)


def test_an_error_is_not_read_as_an_answer() -> None:
    """An error status, an exit code or an exception says more than the words."""
    text = "I give up."
    assert signs_of(text) == {"gives-up"}
    assert signs_of(text, status=500) == signs_of(text, exit_code=1) == signs_of(text, exceptions=("E",)) == set()


@pytest.mark.parametrize(
    ("text", "is_prose"),
    [
        ("## Summary\n\n" + "The limit of the plan is shown on the page. " * 6, True),
        ("I've added the page about rate limits and denied permissions, and the guide links to it from the first chapter.", True),
        ("API Error: I've hit a limit of the service and so the whole request was rejected before it could be started.", False),
        ("Rate limit exceeded.", False),
        ('{"choices": [{"message": {"content": "The model does not exist, said the log."}}]}', True),
        ("Rate limit exceeded for this organization. " * 8, False),
    ],
)  # fmt: skip
def test_words_of_an_answer(text: str, is_prose: bool) -> None:
    """What an answer in sentences mentions did not happen to the call; a service's message did."""
    assert read_answer(Facts(Evidence(text=text, phase=Phase.RESULT)), text) is is_prose


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("!" * 30, True),
        ("so so so so we we we we are are are are done done done done", True),
        ("A fine start of an answer. " + "Let me know. " * 60, True),
        ("再说一遍" * 100, True),
        ('[{"a": 1}, ' + '{"a": 1}, ' * 60, False),
        ("The cat sat on the mat, and the dog sat beside it, until it rained on both of them. " * 1, False),
        ("-" * 60 + "\nA table follows\n" + "=" * 60, False),
    ],
)
def test_repetition(text: str, repeats: bool) -> None:
    """Characters, words or lines without end are repetition; data and rulers are not."""
    assert repeats_itself(text) is repeats


def test_random_characters() -> None:
    """Words that mix letters and symbols at random are gibberish; code is not."""
    noise = "colour=/lx dk&ws Y$eg46m tr*q ok " * 10
    code = "let a=b&c; x+=y*z; if (a<b) {\n q=@w^e; #t\n}\n" * 10
    assert is_gibberish(noise)
    assert not is_gibberish(code)
    assert not is_gibberish("A plain sentence with 5 % more, 3 * 4 = 12 and $2. " * 10)
    assert "gibberish" in signs_of(noise)


def test_stubs() -> None:
    """A remark in brackets in the place of the answer is a stub."""
    assert all(map(is_stub, ["[No translation provided]", "N/A", "(none)"]))
    assert not any(map(is_stub, ["[1] See the guide.", "None of the tests failed.", ""]))
    assert "stub" in signs_of("[No summary available.]")


def test_parts_left_out() -> None:
    """Placeholders and unclosed code blocks are seen."""
    assert has_placeholder("def f():\n    # ... existing code\n")
    assert not has_placeholder("# a comment\nx = 1\n")
    assert {"placeholder", "open-code-block"} <= signs_of("```py\n# rest of the code\n")
    assert not ends_in_code_block("```py\nx\n```")


def test_the_text_of_an_answer() -> None:
    """Bodies are unwrapped, long texts bounded, quoted code cut; a text that is mostly code keeps it."""
    body = {"usage": {"text": "no"}, "output": [{"content": [{"text": "first"}, {"text": "second"}]}], "error": None}
    assert answer_in(json.dumps(body)).text == "first\nsecond"
    assert answer_in('{"a": 1}') == AnswerText('{"a": 1}')
    assert answer_in("{" + "[" * 100_000).is_body is False
    assert answer_in(json.dumps({"choices": [{"name": "look", "arguments": " "}]})).broken_arguments is False
    deep: object = "end"
    for _ in range(30):
        deep = {"content": [deep]}
    assert answer_in(json.dumps({"choices": deep})).text == ""
    assert len(bounded("a" * 100_000)) < 10_000
    assert (
        without_quoted_code("Set `x` to\n```\ncode\n```\nand it will work as described.")
        == "Set   to\nand it will work as described."
    )
    assert without_quoted_code("```\nall of it\n```") == "```\nall of it\n```"
    assert without_quoted_code("It is open here, as said:\n```\nx") == "It is open here, as said:\n```\nx"
    assert AnswerText("It **works**,\nI\u2019m sure").prose == "it works,\ni'm sure"


def test_claims_and_evidence() -> None:
    """A claim of completion needs no emphasis; a count, a commit or a command is evidence."""
    assert claims_completion("the feature is implemented")
    assert not claims_completion("the feature is discussed")
    assert all(
        map(shows_evidence, ["12 tests passed", "exit code 0", "see 3f2a9bc1", "`tests/test_a.py`", "| a | b |"])
    )
    assert not shows_evidence("it works")
    assert statement_signs("all tests pass", "All tests pass") == {"claims-success"}
    assert statement_signs("all tests pass", "All tests pass: 12 passed") == set()
