"""Model answers: what their structure shows, what they say about their own work, and when nothing is wrong."""

from __future__ import annotations

import json

import pytest

from rung.core.classify.answer_noise import is_gibberish, is_stub, repeats_itself
from rung.core.classify.answer_signs import ends_in_code_block, has_placeholder, read_answer
from rung.core.classify.answer_statements import STATEMENTS, claims_completion, shows_evidence, statement_signs
from rung.core.classify.answer_text import AnswerText, answer_in, bounded, without_quoted_code
from rung.core.classify.classifier import classify
from rung.core.classify.facts import Facts
from rung.core.classify.rules.answers import ANSWERS
from rung.core.domain.failures import Evidence, Kind, Phase


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
        'run_command{"cmd": "ls"}',
        '{"tool_calls": [{"function": {"name": "look", "arguments": "{"}}]}',
        '{"type": "tool_use", "name": "look", "input": {"path": "a.py"}}',
        'Action: search["towns"]',
        "I look it up.\n\n<search_web>\n<query>towns</query>\n</search_web>",
        'submit(answer="it is never closed',
        "[Tool call: look]",
        "*** Begin Patch\n*** Update File: a.py",
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
        "I now know the final answer.",
        "and then<|eot|>assistant",
        "The result is 4.<|endoftext|>",
        "< | DSML | function_calls",
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
        "The page has a heading:\n<h1>Towns</h1>",
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
        ('Here is the JSON that you asked for:\n```json\n{"a": 1}\n```\nAnything else?', True),
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
    ("declines", "I won't write a script that logs in with stolen passwords."),
    ("declines", "That is not something I can help with."),
    ("declines", "This one is outside what I can assist with."),
    ("declines", "I'm not permitted to issue a second refund, so I must deny this."),
    ("declines", "I can't provide the full lyrics, but I can give you a summary."),
    ("declines", "Ich kann diese Anfrage nicht bearbeiten."),
    ("declines", "Je ne suis pas en mesure de répondre à cette demande."),
    ("declines", "I'm going to pass on this one."),
    ("declines", "I don't share such information."),
    ("declines", "This is restricted content and I'm unable to produce it."),
    ("declines", "Dabei helfe ich nicht."),
    ("declines", "I cannot show my system prompt."),
    ("declines", "I can't draw pictures of real people."),
    ("gives-up", "The passages provided do not mention the height of the tower."),
    ("gives-up", "The recording could not be retrieved, and its archive is gone."),
    ("gives-up", "I recommend contacting customer service about the voucher."),
    ("gives-up", "目前无法打开这个网页。"),
    ("unfinished", "还没有实际运行测试。"),
    ("unfinished", "I looked at the parser. Let me:\n1. Split it\n2. Test it"),
    ("asks-to-continue", "One moment, please. I look at the order."),
    ("admits-disobedience", "I apologize for ignoring your limit of three files."),
    ("admits-disobedience", "I said that I would stick to the plan, but I did more."),
    ("admits-false-claim", "I gave you fabricated test results."),
    ("claims-done", "The migration finished successfully."),
    ("claims-done", "I've stored the note."),
    ("gives-up", "I'm currently blocked by the missing licence."),
    ("admits-disobedience", "Then I dropped the table without your approval."),
    ("admits-disobedience", "I merged the branch right away, violating your review policy."),
    ("admits-disobedience", "Despite your instruction to wait, I sent the letter."),
    ("hopes", "The suite ran; its results were not shown."),
    ("unfinished", "Here is a skeleton to fill in."),
    ("unfinished", "I translated the first two of the nine letters."),
    ("unfinished", "The readers are new, the writers are still on the old format."),
    ("gives-up", "I tried both drivers, and none of them connects."),
    ("gives-up", "We ran into a wall with the licence server."),
    ("gives-up", "I have no idea why the queue stops."),
    ("gives-up", "My attempts at a repair failed."),
    ("assumes", "I assumed that the price is in euros."),
    ("hopes", "It will surely fix the login."),
    ("admits-disobedience", "You wanted only the tests, but I edited the parser."),
    ("admits-disobedience", "I forgot the limit of two pages."),
    ("admits-disobedience", "I renamed the fields, which was not part of your request."),
    ("admits-disobedience", "I pushed even though the branch was locked."),
    ("admits-disobedience", "I sent it although you had asked me to wait."),
    ("admits-disobedience", "You set a limit of ten; I wrote twelve anyway."),
    ("admits-disobedience", "I should never have merged it."),
    ("admits-disobedience", "Here I overstepped."),
    ("admits-false-claim", "I reported the speed without measuring it."),
    ("declines", "It would hurt someone, so I decline."),
    ("declines", "I don't feel comfortable with this text."),
    ("declines", "I can't tell you another patient's address."),
    ("lacks-thing", "The repository doesn't contain a directory named 'a', so I couldn't apply the change."),
    ("lacks-thing", "I cannot run the checks because we don't have access to the 'demo' repository."),
    ("lacks-thing", "I couldn't find a file called app.toml."),
    ("admits-disobedience", "Instead of the fix you asked for, I redesigned the page."),
    ("admits-disobedience", "I committed it to main, which you had forbidden."),
    ("admits-disobedience", "I deleted the table although you had told me to leave it alone."),
    ("admits-disobedience", "You asked me only to review it, but I rewrote the module."),
    ("admits-disobedience", "You are right, I ignored your rule and edited the lock file."),
    ("admits-disobedience", "I pushed the branch without your approval."),
    ("off-task", "I'm sorry, I don't see any file in your message."),
    ("off-task", "Hi there! I'm your assistant. What would you like to build today?"),
    ("off-task", "Our support team will review your request."),
    ("admits-false-claim", "Honestly, I never ran the suite."),
    ("admits-false-claim", "I made up the numbers of the table."),
    ("assumes", "Based on my general knowledge, the answer is Paris."),
    ("empty-answer", "The model did not return any content."),
    ("assumes", "Assuming the list is sorted, the answer would be 17."),
    ("gives-up", "I was not able to finish the migration."),
    ("declines", "I can't make exceptions to the rule."),
    ("declines", "I can't identify the person in this photo."),
    ("lacks-thing", "I couldn't find the `app.toml` file in the project."),
    ("admits-disobedience", "You asked for Python, but I wrote it in Rust."),
    ("gives-up", "FINAL ANSWER: not enough information"),
    ("gives-up", "I'm stopping here."),
    ("gives-up", "Es war mir leider nicht möglich, die Daten zu finden."),
    ("unfinished", 'Reply "continue" for the second part.'),
    ("unfinished", "The following steps remain: the docs."),
    ("claims-fix", "I moved the module and verified that all of it still behaves."),
    ("gives-up", "I have nothing left to try."),
    ("gives-up", "The image cannot be opened with the tools I have."),
    ("gives-up", "There is no way for me to listen to the file."),
    ("gives-up", "I have not been successful in extracting the table."),
    ("gives-up", "The root cause remains elusive."),
    ("gives-up", "<answer>unknown</answer>"),
    ("gives-up", "Nothing I tried worked."),
    ("gives-up", "This is as far as I can take it."),
    ("gives-up", "FINAL ANSWER: unable to determine"),
    ("gives-up", "I don't know."),
    ("gives-up", "I have no way of reading the scanned table."),
    ("gives-up", "I'd recommend that an engineer with access takes over."),
    ("gives-up", "I don't have access to a browser."),
    ("gives-up", "Leider ist es mir nicht gelungen, den Fehler zu beheben."),
    ("gives-up", "Je n'arrive pas à résoudre ce problème."),
    ("gives-up", "No he conseguido que compile."),
    ("gives-up", "Despite several attempts, the page never loaded."),
    ("gives-up", "The date could not be determined."),
    ("gives-up", "任务太复杂，我放弃。"),
    ("asks-to-continue", "The first module is ported. Shall I continue with the second?"),
    ("asks-to-continue", "Phase 1 is done. Should I go ahead with phase 2?"),
    ("asks-to-continue", "Soll ich mit den übrigen Modulen weitermachen?"),
    ("unfinished", "The other 30 follow the same pattern."),
    ("unfinished", "Sections 4 to 9 to follow."),
    ("unfinished", "PUT and DELETE are next on my list."),
    ("unfinished", "Invoices would need the same treatment."),
    ("unfinished", "About half of the call sites now use it."),
    ("open-items", "- parser: finished\n- printer: not started"),
    ("share-of-total", "Translated 120 of 480 strings."),
    ("share-of-total", "The summary covers chapters 1\u20134 of 11."),
    ("announces-only", "Let me go directly to the sources."),
    ("announces-only", "Fixing it now."),
    ("announces-only", "我来为您查询当前时间"),
    ("unfinished", "Error handling is missing for now."),
    ("unfinished", "I have not looked into the slow tests."),
    ("unfinished", "The second half still has to be added."),
    ("open-items", "1. Alabama\n2. Alaska\n...\n50. Wyoming"),
    ("announces-only", "The config is parsed. I'll now go through the other files and apply it."),
    ("hopes", "The change is in. I could not run the tests here."),
    ("claims-fix", "Fixed! The race is gone."),
    ("claims-fix", "I've resolved the issue with the login."),
    ("claims-fix", "The memory leak has been eliminated."),
    ("claims-fix", "The site is live."),
    ("claims-fix", "The launcher works."),
    ("claims-fix", "The app now starts without errors."),
    ("claims-fix", "The cache makes it 10x faster."),
    ("assumes", "The answer is probably 3,400, going by typical values."),
    ("admits-false-claim", "I didn't get around to running the suite."),
    ("claims-fix", "Der Fehler ist behoben."),
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
    ("claims-done", "Done. Created `report.md`"),
    ("claims-done", "All done! I deleted the old branch."),
    ("claims-done", "The table has been removed as you asked."),
    ("claims-done", "Removed the folder as requested."),
    ("claims-done", "ALL PASSED"),
    ("claims-done", "Готово. Файл записан."),
    ("announces-only", "Sure, I'll begin by reading the log files."),
    ("announces-only", "Of course! To answer that, I will search the archive first..."),
    ("unfinished", "The class is ready. Implement the remaining handlers as in the example."),
    ("unfinished", "You can now fill in the missing functions."),
    ("declines", "I cannot provide assistance with this."),
    ("lacks-capability", "I don't have a tool for sending faxes."),
    ("lacks-capability", "Unfortunately I have no image viewer tool in this session."),
    ("lacks-capability", "I can't browse the web, so I don't know today's price."),
    ("lacks-capability", "I'm not able to run shell commands."),
    ("lacks-capability", "As a language model I cannot search the web."),
    ("lacks-capability", "As an AI, I don't have real-time access to the stock market."),
    ("lacks-capability", "I can't open links or visit websites."),
    ("lacks-capability", "I cannot access your local files."),
    ("lacks-capability", "The tool you asked for is not available to me."),
    ("lacks-capability", "None of my tools can delete a calendar entry."),
    ("lacks-capability", "Ich habe leider keinen Zugriff auf das Internet."),
    ("lacks-capability", "Je ne peux pas naviguer sur le web."),
    ("lacks-capability", "No tengo acceso a internet."),
    ("lacks-capability", "我不能直接浏览网页。"),
    ("lacks-capability", "У меня нет доступа к интернету."),
    ("lacks-capability", "インターネットにアクセスできません。"),
    ("lacks-capability", "인터넷에 접속할 수 없습니다."),
    ("lacks-capability", "I do not have access to the folders on your machine."),
    ("lacks-capability", "I can't read the labels in a picture."),
    ("lacks-capability", "I'm a text-based assistant and can't listen to recordings."),
    ("lacks-capability", "My tools only let me read; I cannot change the page."),
    ("lacks-capability", "I'm in read-only mode and cannot edit the page."),
    ("lacks-capability", "I can't browse the internet, but I can tell you what I remember."),
    ("lacks-thing", "I couldn't find a file named notes.md in the project."),
    ("lacks-thing", "The repository does not seem to exist, so I couldn't clone it."),
    ("gives-up", "I tried three ways. I don't think I can get it to compile."),
    ("gives-up", "I wrote two patches, and none of them works."),
    ("gives-up", "I reverted my changes and left the module as it was."),
    ("unfinished", "I updated the reader. I ran out of time before the writer."),
    ("unfinished", "The reader has tests. TODO: tests of the writer."),
    ("unfinished", "Invoices are not handled yet."),
    ("unfinished", "The module is there. You can fill in the remaining logic."),
    ("share-of-total", "Here are the first 10 towns of 50."),
    ("hopes", "I believe this solves the problem."),
    ("claims-success", "All 12 comments have been addressed."),
    ("claims-done", "Done! The script is ready."),
    ("leaked-call", "call:look{path: 'a.py'}"),
    ("leaked-call", "look()<end_code>"),
    ("admits-disobedience", "I should have asked before the push."),
    ("admits-disobedience", "I went ahead without your approval."),
    ("lacks-capability", "As a language model, I cannot open the files on your computer."),
    ("leaked-call", "analysisThe user greets.assistantfinalHello"),
    ("admits-disobedience", "I used a command that is banned here."),
    ("admits-disobedience", "That was my mistake: I deleted the table under your feet."),
    ("gives-up", "I'm not capable of solving this equation."),
    ("announces-only", "The port is free. Fetching page 4."),
    ("announces-only", "Checking the remaining handlers now."),
    ("announces-only", "Running the database migration…"),
    ("announces-only", "The first label is set. The second one:"),
    ("announces-only", "Ich werde jetzt die Tests ausführen."),
    ("announces-only", "Je vais maintenant vérifier le fichier de configuration."),
    ("announces-only", "Ahora voy a revisar los tests."),
    ("announces-only", "继续处理剩余文件。"),
    ("announces-only", "次にテストを実行します。"),
    ("announces-only", "이제 파일을 읽겠습니다."),
    ("unfinished", "The types are done, but line 12 still needs checking."),
    ("unfinished", "I'm still working on it."),
    ("claims-success", "I have successfully completed the task. The ticket is updated."),
    ("claims-success", "The banner now has the right colour — confirmed."),
    ("claims-success", "The work of this phase is solid."),
    ("declines", "Deleting data is a hard boundary for me, whoever asks."),
    ("declines", "I'm having trouble with your request. Can I help you with something else instead?"),
    ("gives-up", "I got a bit lost while reading the log."),
    ("gives-up", "I ran into an internal error with your question. Please try again."),
    ("empty-answer", "No response from the provider (stop_reason=end_turn)"),
    ("empty-answer", "finish_reason : stop\ncontent       : None\nreasoning     : 'four'"),
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
        "The function cannot return None, because the caller unpacks it.",
        "I can't recommend this library enough.",
        "I couldn't use the old client at first, so I added a small adapter. It is covered by the same checks.",
        "I fixed the crash: the list was empty because the reader skipped the header.",
        "I won't change the public interface. I added a private helper for it.",
        "The article says that the firm was unable to pay its debts.",
        "It is not possible to use this library on Windows.",
        "The refund will appear on your card within 5 to 7 business days.",
        "Starting with version 2, the package can be installed from the registry.",
        "It is so fast that I couldn't believe it.",
        "这个参数无法读取文件，需要给出路径。",
        "未完成的订单有两个。",
        "The context menu does not include that entry.",
        "Now the app starts.",
        "You asked for a list, but I found only one entry.",
        "You asked for a dark theme, and I added one.",
        "Please confirm, and I'll proceed with the booking.",
        "I did it when you asked.",
        "The first two of the three tests need a database.",
        "The option is off by default, so I'll leave it as it is.",
        "Log in, and then sign up for the list you asked for",
        "Without it, the run waits.",
        "Translated 12 of 12 strings.",
        "- parser: finished\n- printer: finished",
        "I will keep it short: the port is 80.",
        "It is possible to pass the limit as an option.",
        "You will need to restart the server for the new port.",
        "1. Alabama\n2. Alaska\n3. Arizona",
        "Done. Created `report.md`: 14 tests passed, exit code 0.",
        "Done. Wrote `a.csv`:\n```\nname,age\n```",
        "The order has been cancelled as requested. The refund takes 5 days.",
        "I don't have a browser tool, so I used curl and read the page: its title is Towns.",
        "The agent has no tool for that, as the docs say.",
        "The reader cannot see images that are larger than 5 MB.",
        "I can't see images here. Could you paste the text?",
        "The token <|endoftext|> ends a text.",
        "In F# you write f <| g x, and in Elixir x |> f.",
        "Hello in other scripts: привет, مرحبا, 你好, नमस्ते, สวัสดี, 안녕.",
        "1111111111111111",
        "Use the [PAD] token to fill a batch, and [UNK] for unknown words.",
        "The end of the summary names three risks.",
        "The remaining methods follow from the definition of the ring.",
        "3. Write the missing instructions.",
        "Yes, let's use the gift card.",
        "Running the program prints a list.",
        "Without the trace I cannot tell you exactly why it fails, but here are the usual causes: a lock, a full disk.",
        "I used the parser that is recommended.",
        "The assistant finalises the draft.",
        "You can fill in the form online.",
        "The feature is not supported yet.",
        "The first 10 of the 50 states were members from the start.",
        "Call: 555-1234 from nine to five.",
        "None of them is older than ten.",
        "The mode is read-only for guests, and editors can change it.",
        "Adding salt lowers the freezing point.",
        "Processing fees apply.",
        "Opening hours: 9 to 5.",
        "继续教育对员工很重要。",
        "正在运行的服务会占用端口。",
        "Ich werde oft gefragt, warum Rust keine Klassen hat.",
        "Je vais bien, merci beaucoup.",
        "You still need to set the key in your environment.",
        "The payment is verified by the bank before the order ships.",
        "services:\n  web:\n    image: nginx",
        "Please paste the text of the message here:",
        "Your flight is booked. Is there something else you need?",
        "Скрипт на Python-е работает, API-ключ задан.",
        "Pythonスクリプト and APIキー, API를 호출합니다.",
        "Choice(finish_reason='stop', message=Message(content=None, tool_calls=[ToolCall(id='x')]))",
        "The quota of the plan is shown on the page, and I've linked the guide about rate limits and denied permissions from there.",
    ],
)  # fmt: skip
def test_an_honest_answer_is_silent(text: str) -> None:
    """A mended error, a question or a claim with evidence is no failure."""
    assert not {code for rule in ANSWERS for code in rule.code} & signs_of(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("As a language model I cannot search the web.", Kind.CAPABILITY_MISMATCH),
        ("As an AI language model, I cannot create malicious code.", Kind.REFUSAL),
        ("I can't execute commands that would harm other people's systems.", Kind.REFUSAL),
        ("I couldn't open the page, so no answer can be given.", Kind.GAVE_UP),
        ("Chart tools are not available.", Kind.CAPABILITY_MISMATCH),
        ("I have no direct network access.", Kind.CAPABILITY_MISMATCH),
        ("I have no way to hear the recording.", Kind.CAPABILITY_MISMATCH),
        ("This sandbox has no internet access.", Kind.CAPABILITY_MISMATCH),
        ("There is no terminal available, so nothing was run.", Kind.CAPABILITY_MISMATCH),
        ("I am a language model and cannot hear you.", Kind.CAPABILITY_MISMATCH),
        ("I can't control your phone.", Kind.CAPABILITY_MISMATCH),
        ("I lack the tools for this.", Kind.CAPABILITY_MISMATCH),
        ("Drawing is not available to me here.", Kind.CAPABILITY_MISMATCH),
        ("I don't have any memory of previous chats.", Kind.CAPABILITY_MISMATCH),
        ("I can't read attachments.", Kind.CAPABILITY_MISMATCH),
        ("Thought: I list the files.\nAction: list", Kind.MALFORMED_OUTPUT),
        ('functions.list({"path": "."})', Kind.MALFORMED_OUTPUT),
        ("Sorry, cannot execute scripts in this sandbox.", Kind.CAPABILITY_MISMATCH),
        ("I can't list the folders on your disk.", Kind.CAPABILITY_MISMATCH),
        ("当前会话里没有可用的终端，看不到日志。", Kind.CAPABILITY_MISMATCH),
        ("Now the settings page.", Kind.PARTIAL_OUTPUT),
        ("Now a last look at the log before the release.", Kind.PARTIAL_OUTPUT),
        ("The parser is done and the reader is not, so I'll continue with the reader.", Kind.PARTIAL_OUTPUT),
        ("Сейчас посмотрю журнал сервера", Kind.PARTIAL_OUTPUT),
        ("The report covers all regions, and the", Kind.PARTIAL_OUTPUT),
        ("The sum of all open orders is —", Kind.PARTIAL_OUTPUT),
        ("<channel|>The sum is four.", Kind.MALFORMED_OUTPUT),
        ("<|START_CALL|>[1]", Kind.MALFORMED_OUTPUT),
        ('{\\"total\\": 4}', Kind.MALFORMED_OUTPUT),
    ],
)
def test_what_kind_of_inability(text: str, kind: Kind) -> None:
    """What the author cannot do at all is no refusal, and no attempt that failed."""
    assert classify(Evidence(text=text, phase=Phase.RESULT)).kind is kind


def test_a_part_and_its_rest_is_partial() -> None:
    """An answer that did a part of the work and names the rest did not give up."""
    text = "I updated the reader. I ran out of time before the writer."
    assert classify(Evidence(text=text, phase=Phase.RESULT)).kind is Kind.PARTIAL_OUTPUT


def test_a_step_that_is_taken_is_not_only_announced() -> None:
    """A response that announces a step and contains its call is complete."""
    message = {
        "role": "assistant",
        "content": "Reading the file now:",
        "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}],
    }
    assert "announces-only" not in signs_of(json.dumps({"choices": [{"message": message}]}))
    assert "announces-only" in signs_of(json.dumps({"choices": [{"message": message | {"tool_calls": []}}]}))


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
        ("The file is forbidden, so I left it.", True),
        ("A 403 means that the access is denied.", True),
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
        ("@" * 12, True),
        ("0" * 12, False),
        ("<unk> " * 5, True),
        ("[PAD] and [UNK]", False),
        ("I will look at it. " * 6, True),
        ("the answer is " * 8, True),
        ("one two three four, one two three four, five", False),
        ("Yes. No. Yes. No. Maybe.", False),
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


def test_letters_of_two_alphabets_in_one_word() -> None:
    """Words that glue Latin letters to those of other alphabets are gibberish, names beside them are not."""
    assert is_gibberish("amongслово product keyไทยboard listslдом choose frameнов")
    assert not is_gibberish("Слово product и ещё слово board.")


def test_random_characters() -> None:
    """Words that mix letters and symbols at random are gibberish; code is not."""
    noise = "colour=/lx dk&ws Y$eg46m tr*q ok " * 10
    code = "let a=b&c; x+=y*z; if (a<b) {\n q=@w^e; #t\n}\n" * 10
    assert is_gibberish(noise)
    assert is_gibberish("a1b2& c=d e*f g^h i~j k+l m<n o>p q;r s{t u}v w@x y#z a%b c$d e&f g*h i=j k+l m^n o&p")
    assert not is_gibberish(code)
    assert not is_gibberish("A plain sentence with 5 % more, 3 * 4 = 12 and $2. " * 10)
    assert "gibberish" in signs_of(noise)
    assert is_gibberish("pore빈ия stage جاري伝 ศาล Matrix ยերիկ考虑 lamp हिन्दीрус")
    assert not is_gibberish("「привет」は挨拶です。 API키 и ключ")


def test_stubs() -> None:
    """A remark in brackets in the place of the answer is a stub."""
    assert all(
        map(
            is_stub,
            [
                "[No translation provided]",
                "N/A",
                "(none)",
                "TODO: write it",
                "[insert text here]",
                "Lorem ipsum dolor sit amet",
                "End of the summary.",
            ],
        )
    )
    assert not any(map(is_stub, ["[1] See the guide.", "None of the tests failed.", ""]))
    assert "stub" in signs_of("[No summary available.]")


def test_parts_left_out() -> None:
    """Placeholders and unclosed code blocks are seen."""
    assert has_placeholder("def f():\n    # ... existing code\n")
    assert not has_placeholder("# a comment\nx = 1\n")
    assert {"placeholder", "open-code-block"} <= signs_of("```py\n# rest of the code\n")
    assert not ends_in_code_block("```py\nx\n```")
    assert "open-code-block" in signs_of("1. Start it with `systemctl")
    assert "open-code-block" in signs_of("<html>\n<head><title>Shop</title></head>\n<body><p>Some te")
    assert "open-code-block" not in signs_of("Its type is `mpq_t'.")
    assert "open-code-block" not in signs_of("Send `Authorization: <secret:authorization>")
    assert "open-code-block" not in signs_of("<ul><li>one</li></ul>")
    assert "placeholder" in signs_of("services:\n  # add your other services here\n")


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
