"""Errors behind wrappers, in codes, and between the warnings of a tool. Every text here is our own."""

from __future__ import annotations

from typing import Any

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Evidence, Kind, Phase

K = Kind


def call(text: str, status: int | None = None, provider: str = "") -> dict[str, Any]:
    return {"form": "exception", "status": status, "body": text, "provider": provider}


def tool(text: str, exit_code: int | None = 1) -> dict[str, Any]:
    return {"form": "tool", "body": text, "exit_code": exit_code}


def answer(text: str) -> dict[str, Any]:
    return {"form": "output", "body": text}


MEANINGS: list[tuple[dict[str, Any], Kind, bool]] = [
    # a wrapper's class says less than the message that it wraps
    (call("litellm.ServiceUnavailableError: XException - Cannot connect to host api.example:443"), K.NETWORK, True),
    (call("litellm.ServiceUnavailableError: XException - no"), K.OVERLOADED, True),
    (call("litellm.BadRequestError: XException - bad seed. Received Model Group=m-1 Available Model Group Fallbacks=None"), K.INVALID_REQUEST, False),
    (call("APIError: The model returned the following errors: a prefill is not supported with thinking"), K.INVALID_REQUEST, False),
    (call("BedrockException - internalServerException", 400), K.SERVER_ERROR, True),
    (call('BedrockException - {"message": "Operation not allowed"}'), K.MODEL_UNAVAILABLE, False),
    (call('APICallError: Bad Request\n  url: "https://x",\n  requestBodyValues: { model: "claude-9", max_tokens: 9 }'), K.INVALID_REQUEST, False),
    (call('Please run /login · API Error: 403 {"error": {"message": "Forbidden (request id: 1)"}}'), K.AUTH_ERROR, False),
    (call("Service error '503 Service Unavailable' for url 'http://x'"), K.OVERLOADED, True),
    # codes
    (call('{"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded"}', 429), K.RATE_LIMIT, True),
    (call('{"output": {"code": "InvalidParameter", "message": "seed is odd"}}', 200), K.INVALID_REQUEST, False),
    (call('{"error": {"code": "channel:invalid_key", "message": "changed"}}', 409), K.AUTH_ERROR, False),
    (call('{"code": "InvalidApiKey", "message": "no"}', 400), K.AUTH_ERROR, False),
    (call('{"code": "invalid-api-key", "message": "no"}', 400), K.AUTH_ERROR, False),
    (call('{"error": {"code": "AccountOverdueFault", "message": "see the console"}}', 403), K.QUOTA_EXHAUSTED, False),
    (call('{"error": {"code": "ModelNotOpenYet", "message": "see the console"}}', 400), K.MODEL_UNAVAILABLE, False),
    (call('{"base_resp": {"status_code": 1, "status_msg": "insufficient balance"}}', 200), K.QUOTA_EXHAUSTED, False),
    (call("m.ClientModelNotAvailableError: see above"), K.MODEL_UNAVAILABLE, False),
    (call('{"error": {"code": "1305", "message": "."}}', 429, "zhipu"), K.OVERLOADED, True),
    (call('{"error": {"code": "1305", "message": "."}}', 429), K.RATE_LIMIT, True),
    (call("prompt tokens limit exceeded: 900 > 400", 402), K.QUOTA_EXHAUSTED, False),
    (call('{"error": "generation was not finished"}', 424), K.SERVER_ERROR, True),
    # statements
    (call("提示词被拦截", 400), K.CONTENT_FILTER, False),
    (call('{"detail": [{"msg": "Input should be less than or equal to 2"}]}', 422), K.INVALID_REQUEST, False),
    (call("Unrecognized request argument supplied: seed"), K.INVALID_REQUEST, False),
    (call("invalid JSON schema for tool find: 'properties' is missing"), K.INVALID_REQUEST, False),
    (call("Unable to get json response from the provider"), K.MALFORMED_OUTPUT, True),
    (call("the chat template of this model is missing", 400), K.CONFIGURATION, False),
    (call("the provider is unavailable"), K.OVERLOADED, True),
    (call("Error loading settings.toml: invalid type in the configuration of compaction"), K.CONFIGURATION, False),
    (call("Your weekly usage exceeds the limit of 900 tokens"), K.QUOTA_EXHAUSTED, False),
    (call("not enough coins", 400), K.QUOTA_EXHAUSTED, False),
    (call("模型 m-1 无可用渠道", 503), K.MODEL_UNAVAILABLE, False),
    (call("身份验证失败", 404), K.AUTH_ERROR, False),
    (call("API_KEYが設定されていません"), K.MISSING_CREDENTIALS, False),
    (call("Upstream request failed"), K.SERVER_ERROR, True),
    (call("could not authenticate this api key"), K.AUTH_ERROR, False),
    (call("the refresh token was rejected", 400), K.AUTH_ERROR, False),
    (call("Please re-authenticate with the provider."), K.AUTH_ERROR, False),
    (call("we got a 402 from the service"), K.QUOTA_EXHAUSTED, False),
    (call("请缩短上下文"), K.CONTEXT_LIMIT, False),
    (call("Thinking is mandatory for this endpoint and cannot be disabled", 400), K.INVALID_REQUEST, False),
    (call("every account of model m-1 is cooling down"), K.RATE_LIMIT, True),
    (call("x.engine.AsyncEngineDeadError: the loop has errored"), K.SERVER_ERROR, True),
    (call('Post "http://127.0.0.1:1/completion": EOF'), K.STREAM_INTERRUPTED, True),
    (call('400 "Incorrect API key provided: k***y. Get one at https://x."', 400), K.AUTH_ERROR, False),
    (call("Cannot read properties of null (reading 'map')"), K.TOOL_ERROR, False),
    (call("deploying to subscription 7: a network list is required", 400), K.INVALID_REQUEST, False),
    (call("Превышен лимит запросов, подождите", 429), K.RATE_LIMIT, True),
    (call("Cuota excedida"), K.QUOTA_EXHAUSTED, False),
    # tools: a warning before an error is not its cause
    (tool("npm warn Unknown user config x\nnpm error code EINTEGRITY"), K.TOOL_ERROR, False),
    (tool("CONFLICT (content): Merge conflict in a\nhint: Resolve all conflicts, or abort the connection"), K.TOOL_ERROR, False),
    (tool("╷\n│ Warning: the file ~/.rc does not exist\n╵\nError: Unsupported option"), K.CONFIGURATION, False),
    (tool("\x1b[31mERROR\x1b[m there is no \x1b[1mPOM\x1b[m in this directory"), K.NOT_FOUND, False),
    (tool("WARNING: Retrying after connection broken: Name or service not known\nERROR: no matching distribution found"), K.NETWORK, True),
    (tool("httpx.HTTPStatusError: Server error '500 Internal Error' for url 'http://x'"), K.SERVER_ERROR, True),
    (tool("An error occurred (ValidationException) when calling the Query operation: reserved word"), K.INVALID_REQUEST, False),
    (tool("An error occurred (ValidationException) when calling X: the database is resuming. Wait a few seconds and try again"), K.OVERLOADED, True),
    (tool("curl: (26) Failed to open/read local data", 26), K.NOT_FOUND, False),
    (tool("curl: (3) URL rejected", 3), K.INVALID_REQUEST, False),
    (tool("Error: cannot navigate to invalid URL"), K.INVALID_REQUEST, False),
    (tool("yaml.scanner.ScannerError: mapping values are not allowed here"), K.MALFORMED_OUTPUT, True),
    (tool("Invalid package.json: expected a property name\nFailed to parse JSON data"), K.CONFIGURATION, False),
    (tool("head: odd bytes\nTry 'head --help' for more information."), K.CONFIGURATION, False),
    (tool("bash: line 1: X: unbound variable", 127), K.TOOL_ERROR, False),
    (tool("Expected 'put' to have been called twice", None), K.TEST_FAILURE, False),
    (tool("terminate called after throwing an instance of 'std::invalid_argument'", 134), K.TOOL_ERROR, False),
    (tool("Code execution failed at line 'open(\"a.pdf\") # not found' due to: UnboundLocalError: no value", None), K.TOOL_ERROR, False),
    (tool("src/a.ts(3,14): error TS2339: Property 'x' does not exist on type 'Y'.", 2), K.TOOL_ERROR, False),
    (tool("error[E0425]: cannot find value `x` in this scope", 101), K.TOOL_ERROR, False),
    (tool("bash: -c: line 1: `THOUGHT: I will now look at the (old) file.'", 2), K.MALFORMED_OUTPUT, True),
    (tool("Could not find the exact text in a.ts. The old text must match exactly.", None), K.TOOL_ERROR, False),
    (tool("ls: Zugriff auf 'a' nicht möglich: Datei oder Verzeichnis nicht gefunden", 2), K.NOT_FOUND, False),
    (tool("bash: ligne 1: gti : commande introuvable", 127), K.NOT_FOUND, False),
    (tool("cat: b: 没有那个文件或目录"), K.NOT_FOUND, False),
    (tool("cat: b: Keine Berechtigung"), K.PERMISSION_DENIED, False),
    (tool("touch: '/x': Sistema de ficheros de sólo lectura"), K.PERMISSION_DENIED, False),
    (tool("dd: На устройстве не осталось свободного места"), K.RESOURCE_EXHAUSTED, False),
    (tool("ssh: connect to host b: Connexion refusée", 255), K.NETWORK, True),
    (tool("ssh: connect to host b: 接続がタイムアウトしました", 255), K.TIMEOUT, True),
    (tool("bind: Indirizzo già in uso"), K.CONFIGURATION, False),
    (tool("ls: nieznana opcja '--nope'", 2), K.CONFIGURATION, False),
    (tool('Exception in thread "main" java.lang.ArrayIndexOutOfBoundsException: Index 3'), K.TOOL_ERROR, False),
    (tool("make: *** No targets specified and no makefile found.  Stop.", 2), K.NOT_FOUND, False),
    (tool("No stash entries found."), K.NOT_FOUND, False),
    (tool("2 files checked, no errors found."), K.TOOL_ERROR, False),
    (tool("Makefile:2: *** missing separator.  Stop.", 2), K.CONFIGURATION, False),
    (tool("cc: fatal error: no input files"), K.CONFIGURATION, False),
    (tool("CMake 9.1 or higher is required.  You are running version 3.2"), K.CONFIGURATION, False),
    (tool("timeout: invalid time interval 'x'\nTry 'timeout --help' for more information.", 125), K.CONFIGURATION, False),
    (tool("cp: пропущен операнд, задающий файл\nПо команде «cp --help» можно получить дополнительную информацию."), K.CONFIGURATION, False),
    (tool("head: ungültige Anzahl von Zeilen: „x“"), K.CONFIGURATION, False),
    (tool("unknown key type nope", 255), K.CONFIGURATION, False),
    (tool("Invalid command 'nope'; type \"help\" for a list."), K.CONFIGURATION, False),
    (tool("No executable file specified."), K.CONFIGURATION, False),
    (tool("error: no context exists with the name: 'a'"), K.NOT_FOUND, False),
    (tool("Error: Unable to access jarfile a.jar"), K.NOT_FOUND, False),
    (tool('Error: cannot open "a.sql"'), K.NOT_FOUND, False),
    (tool("fatal: invalid reference: nope", 128), K.NOT_FOUND, False),
    (tool("mount: /mnt: must be superuser to use mount.", 32), K.PERMISSION_DENIED, False),
    (tool("SyntaxError: invalid syntax"), K.TOOL_ERROR, False),
    (tool("(standard_in) 2: syntax error", 0), K.TOOL_ERROR, False),
    (tool("bash: line 2: from: command not found\nbash: -c: line 3: syntax error near unexpected token `('", 2), K.TOOL_ERROR, False),
    (tool("test_a (tests.T.test_a) ... ok\ntest_b (tests.T.test_b) ... ERROR\n\nAttributeError: 'object' object has no attribute 'a'"), K.TEST_FAILURE, False),
    (tool("src/a.ts:205:2 parse \u2501\u2501\u2501\n\n  × expected a semicolon\n  204 │ /** no API key available"), K.TOOL_ERROR, False),
    # what agents' tools report
    (tool("The file has been unexpectedly modified; read it again before you edit.", None), K.TOOL_ERROR, False),
    (tool("edit a.md: the file must be read before editing", None), K.TOOL_ERROR, False),
    (tool("edit a.md: cannot find this substring in the current file", None), K.TOOL_ERROR, False),
    (tool("edit a.md: old_string and new_string are the same", None), K.TOOL_ERROR, False),
    (tool("open failed: error.FileNotFound (notes.txt)", 1), K.NOT_FOUND, False),
    (tool("failed to resolve path notes/a.txt", 1), K.NOT_FOUND, False),
    (tool("failed to resolve registry.example", 1), K.NETWORK, True),
    (tool("Format error: give EXACTLY ONE ACTION in backticks", None), K.MALFORMED_OUTPUT, True),
    (tool("No code blocks found in the thread.", None), K.MALFORMED_OUTPUT, True),
    (tool("Tool 'serach' is not available. Available tools: search, read", None), K.CONFIGURATION, False),
    (tool("Error: user not found", None), K.NOT_FOUND, False),
    (tool("The reservation was not found.", None), K.NOT_FOUND, False),
    (tool("Error: model not found", None), K.MODEL_UNAVAILABLE, False),
    (tool("Error: insufficient gift card balance", None), K.TOOL_ERROR, False),
    (tool("The command is still running after 30 seconds and was stopped.", None), K.TIMEOUT, True),
    (tool('[vite]: Rollup failed to resolve import "x" from "/a/b.ts".'), K.NOT_FOUND, False),
    (tool("Could not resolve all files for configuration ':a'. > Connection refused"), K.NETWORK, True),
    (tool("HTTP 401: Bad credentials\nTry authenticating with: gh auth login"), K.AUTH_ERROR, False),
    (tool("(error) NOAUTH Authentication required."), K.MISSING_CREDENTIALS, False),
    (tool("ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction"), K.TOOL_ERROR, True),
    (tool('ERROR:  duplicate key value violates unique constraint "u"\nDETAIL:  Key (a)=(b) already exists.'), K.TOOL_ERROR, False),
    (tool("Could not connect to Redis at 127.0.0.1:6379: Connection refused"), K.SERVICE_DOWN, False),
    (tool("Failed to connect to bus: Host is down"), K.SERVICE_DOWN, False),
    (tool("Killed\nmake: *** [Makefile:7: train] Error 137", 2), K.RESOURCE_EXHAUSTED, False),
    (tool("a/b.go:15:2: missing go.sum entry for module providing package x"), K.CONFIGURATION, False),
    (tool("grep: Invalid regular expression", 2), K.CONFIGURATION, False),
    (tool('docker: The container name "/web" is already in use by container "4f".', 125), K.CONFIGURATION, False),
    (tool("chown: invalid user: 'nouser'"), K.NOT_FOUND, False),
    (tool("tar: This does not look like a tar archive", 2), K.TOOL_ERROR, False),
    (tool("gpg: no valid OpenPGP data found.", 2), K.TOOL_ERROR, False),
    (tool("no tests ran in 0.17s", 5), K.TEST_FAILURE, False),
    (tool("Runtime error (func=(main), adr=3): Divide by zero", 0), K.TOOL_ERROR, False),
    (tool('Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nAssertionError: rate limit'), K.TOOL_ERROR, False),
    (tool("/a/b.py:9: UserWarning: Unknown distribution option: 'x'\nerror: subprocess-exited-with-error"), K.TOOL_ERROR, False),
    # answers
    (answer(""), K.MALFORMED_OUTPUT, True),
    (answer(" \n"), K.MALFORMED_OUTPUT, True),
    (answer("The report is done: the query returned 402 records."), K.UNKNOWN, False),
    (answer("I'm sorry, I'm unable to answer your question at the moment."), K.GAVE_UP, False),
    (answer("I'm unable to process that request."), K.REFUSAL, False),
    (answer('{"choices": [{"message": {"content": "", "refusal": "No."}, "finish_reason": "stop"}]}'), K.REFUSAL, False),
    (answer("Ready to proceed with the next table once you agree."), K.PARTIAL_OUTPUT, False),
    (answer("The build should succeed after you run it."), K.UNVERIFIED, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("trouble", "kind", "retryable"), MEANINGS, ids=[str(row[0]["body"])[-60:] for row in MEANINGS]
)
def test_what_it_means(trouble: dict[str, Any], kind: Kind, retryable: bool) -> None:
    """An error is named for the innermost fact that explains it."""
    failure = classify(trouble)
    assert (failure.kind, failure.retryable, failure.rule) == (kind, retryable, failure.rule)


GUARDS = [
    (tool("Loop detected: the assistant called read_file 4 times in a row.", None), K.LOOP_DETECTED, False),
    (tool("Error: a tool call loop was detected, stopping.", None), K.LOOP_DETECTED, False),
    (tool("You seem to be stuck in a loop. Try something else.", None), K.LOOP_DETECTED, False),
    (tool("Added loop detection to the agent.", None), K.UNKNOWN, False),
    (tool("a1b2c3d Stop the agent when a loop is detected\nd4e5f6a Fix duplicate tool calls", 0), K.UNKNOWN, False),
    (tool("The agent reached its maximum number of steps (30).", None), K.TURNS_EXHAUSTED, False),
    (tool("Sub-agent exceeded max turns: 20", None), K.TURNS_EXHAUSTED, False),
    (tool("lbfgs failed to converge: maximum iterations reached\nerror"), K.TOOL_ERROR, False),
    (tool("BLOCKED: dangerous command: git push --force", None), K.PERMISSION_DENIED, False),
    (tool("Command 'curl' is not allowed in this session", None), K.PERMISSION_DENIED, False),
    (tool("Path /etc/passwd is outside the workspace", None), K.PERMISSION_DENIED, False),
    (tool("Access to this path: outside allowed roots", None), K.PERMISSION_DENIED, False),
    (tool("Blocked: 3 tasks\nReady: 5 tasks", None), K.UNKNOWN, False),
    (tool('nginx: [emerg] "server" directive is not allowed here in /etc/nginx/a.conf:3'), K.CONFIGURATION, False),
]


@pytest.mark.parametrize(("trouble", "kind", "retryable"), GUARDS)
def test_what_guards_of_agents_report(trouble: dict[str, Any], kind: Kind, retryable: bool) -> None:
    """A guard's report of a loop, a used-up number of steps or a blocked command is no fault of the tool."""
    failure = classify(trouble)
    assert (failure.kind, failure.retryable) == (kind, retryable)


PROGRAMS = [
    (
        tool("usage: paint [-h] FILE\n\noptions:\n  -h  show this help\n  -q  quiet\n  -v  loud\n", 2),
        K.CONFIGURATION,
        False,
    ),
    (tool("usage: paint [-h] FILE\n\noptions:\n  -h  show this help\n", 0), K.UNKNOWN, False),
    (tool("error: --depth must be a number"), K.CONFIGURATION, False),
    (tool('Error: cannot open "notes"'), K.NOT_FOUND, False),
    (tool("No snapshot found with name 'may'"), K.NOT_FOUND, False),
    (tool("gpg: signing failed: No secret key", 2), K.MISSING_CREDENTIALS, False),
    (tool("sh: 1: File size limit exceeded", 153), K.RESOURCE_EXHAUSTED, False),
    (tool("", -14), K.TIMEOUT, True),
    (tool("RetryError[<Future at 0x1 state=finished raised ConnectionError>]", None), K.NETWORK, True),
    (tool("not ok 1 - slow\n  error: 'test timed out after 50ms'\n# tests 1"), K.TEST_FAILURE, False),
    (tool("The model did not produce valid JSON", None), K.MALFORMED_OUTPUT, True),
    (tool("fatal: Failed to resolve 'topic' as a valid ref.", 128), K.NOT_FOUND, False),
    (tool("Error: element <a> intercepts pointer events", None), K.TOOL_ERROR, False),
    (tool("strict mode violation: selector '.row' resolved to 4 elements", None), K.TOOL_ERROR, False),
    (tool("RangeError: Maximum call stack size exceeded"), K.TOOL_ERROR, False),
    (tool("RecursionError: maximum recursion depth exceeded"), K.TOOL_ERROR, False),
    (tool("NotADirectoryError: [Errno 20] Not a directory: 'a/b'"), K.NOT_FOUND, False),
    (
        tool('ERROR:  null value in column "a" violates not-null constraint\nDETAIL:  Failing row contains (1).'),
        K.TOOL_ERROR,
        False,
    ),
    (tool("ERROR: not found: tests/test_a.py::test_b", 4), K.NOT_FOUND, False),
    (tool("Invalid column name 'colour'. (207)"), K.NOT_FOUND, False),
    (tool("Error: Method not found: find_all", None), K.CONFIGURATION, False),
    (tool("Invalid patch: a hunk has no header", None), K.MALFORMED_OUTPUT, True),
    (tool("a.ps1 cannot be loaded because running scripts is disabled on this system."), K.PERMISSION_DENIED, False),
    (tool("not authorized on shop to execute command { find: 'items' }"), K.PERMISSION_DENIED, False),
    (tool("UnboundLocalError: cannot access local variable 'a'", None), K.TOOL_ERROR, False),
    (
        tool(
            "---- keeps_order stdout ----\nthread 'keeps_order' panicked at tests/a.rs:3:5:\nNo such file or directory"
        ),
        K.TEST_FAILURE,
        False,
    ),
    (
        tool(
            "cat: a.txt: No such file or directory\nTraceback (most recent call last):\n"
            "subprocess.CalledProcessError: Command 'cat' returned non-zero exit status 1."
        ),
        K.NOT_FOUND,
        False,
    ),
    (tool("error: unknown feature `fast` for package demo", 101), K.CONFIGURATION, False),
    (tool("error: package demo does not have these features: fast", 101), K.CONFIGURATION, False),
    (tool("unknown generator: Turbo"), K.CONFIGURATION, False),
    (tool("fatal: your current branch 'main' does not have any commits yet", 128), K.NOT_FOUND, False),
    (tool("On branch main\n\nNo commits yet\n\nnothing to commit", 0), K.UNKNOWN, False),
    (tool("A.java:1: error: package org.demo does not exist\nimport org.demo.X;\n1 error"), K.NOT_FOUND, False),
    (tool("A.java:1: error: ';' expected\n1 error"), K.TOOL_ERROR, False),
    (tool("# Fatal process OOM in Heap::Allocate", 133), K.RESOURCE_EXHAUSTED, False),
    (tool("sh: fork: Resource temporarily unavailable", 254), K.RESOURCE_EXHAUSTED, True),
    (tool("Fetching\nurllib.error.URLError: <urlopen error [Errno 111] Connection refused>", 0), K.NETWORK, True),
    (tool("src/app.error.log\nsrc/urllib.error.py\nREADME.md", 0), K.UNKNOWN, False),
    (tool("a.md:3: urllib.error.URLError: <urlopen error> is raised if offline", 0), K.UNKNOWN, False),
    (tool("ssl.SSLError: [SSL: WRONG_VERSION_NUMBER] wrong version number"), K.NETWORK, False),
    (tool("Expecting value: line 1 column 1 (char 0)"), K.MALFORMED_OUTPUT, True),
    (tool("failed to parse model JSON output: EOF while parsing an object at line 3", None), K.MALFORMED_OUTPUT, True),
]


@pytest.mark.parametrize(("trouble", "kind", "retryable"), PROGRAMS)
def test_what_programs_report(trouble: dict[str, Any], kind: Kind, retryable: bool) -> None:
    """Unknown features, empty branches, exhausted memory and unparsable JSON are told apart; success stays silent."""
    failure = classify(trouble)
    assert (failure.kind, failure.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("evidence", "kind", "retryable"),
    [
        (
            Evidence(
                status=429,
                text='{"error": {"message": "Your account <ak-1> request reached max request: 3, please try again after 1 seconds",'
                ' "type": "rate_limit_reached_error"}}',
            ),
            Kind.RATE_LIMIT,
            True,
        ),
        (
            Evidence(text="finish_reason: MALFORMED_FUNCTION_CALL", exceptions=("StopCandidateException",)),
            Kind.MALFORMED_OUTPUT,
            True,
        ),
        (
            Evidence(text="Reached heap limit Allocation failed - JavaScript heap out of memory", phase=Phase.TOOL),
            Kind.RESOURCE_EXHAUSTED,
            False,
        ),
        (Evidence(text='MCP server "github" is not connected', phase=Phase.TOOL), Kind.SERVICE_DOWN, False),
        (
            Evidence(
                text="TypeError: foo() missing 1 required positional argument: 'b'", phase=Phase.TOOL, exit_code=1
            ),
            Kind.TOOL_ERROR,
            False,
        ),
        (
            Evidence(text="This is beyond what I can do in this environment. Run it yourself.", phase=Phase.RESULT),
            Kind.GAVE_UP,
            False,
        ),
    ],
)
def test_a_word_does_not_decide_against_its_sentence(evidence: Evidence, kind: Kind, retryable: bool) -> None:
    """Words of money, filters, options or refusal do not decide where the sentence is about something else."""
    failure = classify(evidence)
    assert (failure.kind, failure.retryable) == (kind, retryable)
