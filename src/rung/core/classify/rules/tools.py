"""Classification rules for tools: errors of the operating system, of commands and of programs."""

from __future__ import annotations

import errno as codes
from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind, Phase

_TOOL: Final = (Phase.TOOL,)

# Errno values and exception classes that are unambiguous.
SYSTEM: Final = (
    ClassifyRule(
        id="no-space",
        kind=Kind.RESOURCE_EXHAUSTED,
        why="Disk, memory or file handles are exhausted on this machine.",
        example=Evidence(exceptions=("OSError",), errno=codes.ENOSPC, text="[Errno 28] No space left on device"),
        errno=(codes.ENOSPC, codes.ENOMEM, codes.EMFILE, codes.ENFILE, codes.EDQUOT),
        exception=("MemoryError", "RecursionError", "OutOfMemoryError"),
    ),
    ClassifyRule(
        id="enoent",
        kind=Kind.NOT_FOUND,
        why="A path or command does not exist; another one may.",
        example=Evidence(exceptions=("FileNotFoundError", "OSError"), errno=codes.ENOENT, text="[Errno 2] No such file"),
        errno=(codes.ENOENT, codes.ENOTDIR, codes.ENXIO, codes.ESRCH),
        # If a server cannot be started, the failed connection to it is only a consequence.
        output_has=("spawn * enoent", "failed to spawn * not found", "program not found", "executable file not found"),
    ),
    ClassifyRule(
        id="eacces",
        kind=Kind.PERMISSION_DENIED,
        why="The operating system denies access; another location or permission may work.",
        example=Evidence(exceptions=("PermissionError", "OSError"), errno=codes.EACCES, text="[Errno 13] Permission denied"),
        errno=(codes.EACCES, codes.EPERM, codes.EROFS),
    ),
    ClassifyRule(
        id="port-taken",
        kind=Kind.CONFIGURATION,
        why="The address is already in use; another port may be free.",
        example=Evidence(exceptions=("OSError",), errno=codes.EADDRINUSE, text="Address already in use"),
        errno=(codes.EADDRINUSE, codes.EADDRNOTAVAIL),
        output_has=("address already in use", "eaddrinuse", "port is already allocated", "port * is already in use", "port * already in use"),
    ),
    ClassifyRule(
        id="errno-network",
        kind=Kind.NETWORK,
        retryable=True,
        why="The operating system could not reach the peer, or lost the connection.",
        example=Evidence(exceptions=("OSError",), errno=codes.ENETUNREACH, text="Network is unreachable"),
        errno=(
            codes.ECONNREFUSED, codes.ECONNRESET, codes.ECONNABORTED, codes.EPIPE, codes.EHOSTUNREACH, codes.ENETUNREACH,
            codes.ENETDOWN, codes.ENOTCONN, codes.EHOSTDOWN, codes.ENETRESET,
        ),
    ),
    ClassifyRule(
        id="errno-timeout",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="An operation of the operating system timed out.",
        example=Evidence(exceptions=("OSError",), errno=codes.ETIMEDOUT, text="Operation timed out"),
        errno=(codes.ETIMEDOUT,),
    ),
)  # fmt: skip

# The verdict of a test run or compiler takes precedence over the errors that its output quotes.
TESTS: Final = (
    ClassifyRule(
        id="compiler",
        kind=Kind.TOOL_ERROR,
        why="A compiler reports an error in a source line; text quoted from that line is not a failure of its own.",
        example=Evidence(text="a.c:3:5: error: 'x' undeclared", phase=Phase.TOOL, exit_code=1),
        code=("source-error",),
        except_if=("no such file or directory", "file not found", "no module named"),
    ),
    ClassifyRule(
        id="edit-failed",
        kind=Kind.TOOL_ERROR,
        why="An edit did not match the file; read the file again and recreate the edit.",
        example=Evidence(text="String to replace not found in file.", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=(
            "string to replace not found", "no replacement was performed", "did not appear verbatim", "occurrences found for", "file has not been read yet",
            "modified since read", "modified since it was read", "no edits made", "no changes to make", "old string * not found", "patch does not apply", "patch failed",
            "hunk failed", "hunks failed", "could not find the string", "found * matches of the string", "invalid context", "failed to find expected lines",
        ),
    ),
    ClassifyRule(
        id="edit-malformed",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="The model's edit or response does not have the required format; a new sample may.",
        example=Evidence(text="InvalidEditBlock: edit failed! No exact chunk found", phase=Phase.TOOL),
        phase=(Phase.TOOL, Phase.RESULT),
        exception=("InvalidEditBlock", "FormatError", "FunctionCallFormatError"),
        output_has=("malformed response", "invalideditblock", "conform to the edit format", "search replace block failed", "searchreplacenoexactmatch", "the exact chunk of search", "code parsing failed", "regex pattern * not found in it"),
    ),
    ClassifyRule(
        id="person-said-no",
        kind=Kind.PERMISSION_DENIED,
        why="A person denied the call: a decision, not a fault.",
        example=Evidence(text="This tool call was rejected by the user and not executed.", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=(
            "rejected by the user", "rejected by user", "user rejected/denied/declined", "denied by the user", "doesnt want to proceed", "user doesnt want",
            "declined by the user", "user has denied", "requires approval", "approval * denied/required", "sandbox * denied/failed/blocked", "blocked by * hook",
            "permission to use * has been denied", "havent granted", "not granted", "denied by policy",
        ),
    ),
    ClassifyRule(
        id="tests-failed",
        kind=Kind.TEST_FAILURE,
        why="A test run reports failed tests.",
        example=Evidence(text="=== short test summary info ===\nFAILED test_a.py::test_x - assert 1 == 2\n1 failed in 0.02s", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=(
            "short test summary info", "failed * passed", "^failed failures", "failed errors", "tests * failed", "test result failed", "^fail test",
            "^fail", "failing", "examples * failure/failures", "tests failed", "test failed", "test suites * failed", "failures 1/2/3/4/5", "failed in",
            "^failures$", "expect received", "for async tests and hooks", "expected * received", "found no collectors for", "errors during collection", "^not ok", "assertionerror expected", "there were test failures", "build failed * tests", "test timed out", "testtimeoutfailure", "failed tests",
        ),
        contains=("test", "spec", " passed", "failing", "expect("),
        except_if=("hook id", "nginx", "timed out and has been killed", "timed out after"),
    ),
)  # fmt: skip

TOOL_OUTPUT: Final = (
    ClassifyRule(
        id="architecture",
        kind=Kind.ARCHITECTURAL_BLOCKER,
        why="The message says that the design of the system rules the approach out.",
        example=Evidence(text="Blocked: the current architecture does not support plugins per tenant", phase=Phase.RESULT),
        output_has=(
            "architectural blocker", "architecture blocker", "architecture does not support", "architecture doesnt support", "not possible with the current architecture",
            "not supported by the current architecture", "not possible in the current architecture", "requires an architectural change", "would require an architectural change",
            "requires a redesign of", "would require a redesign", "architecturally impossible", "incompatible with the architecture",
        ),
    ),
    ClassifyRule(
        id="killed-at-limit",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="The command was killed at its time limit.",
        example=Evidence(exit_code=124, text="", phase=Phase.TOOL),
        exit_code=(124, 142),
        output_has=(
            "timed out and has been killed", "timed out after", "command timed out", "command * timed out", "execution timed out", "time limit exceeded",
            "timeout expired", "timed out waiting", "exceeded the timeout", "operation timed out", "timeout * exceeded", "killed * timeout", "alarm clock", "due to statement timeout",
        ),
    ),
    ClassifyRule(
        id="too-many-clients",
        kind=Kind.RESOURCE_EXHAUSTED,
        retryable=True,
        why="All connections are in use; one may be free soon.",
        example=Evidence(text="FATAL: sorry, too many clients already", phase=Phase.TOOL, exit_code=2),
        output_has=("too many clients", "too many connections", "remaining connection slots", "connection pool exhausted", "connection pool is full", "queuepool limit"),
    ),
    ClassifyRule(
        id="used-up",
        kind=Kind.RESOURCE_EXHAUSTED,
        why="The system's message for exhausted memory, disk, file handles or quota.",
        example=Evidence(text="dd: error writing 'a': No space left on device", phase=Phase.TOOL, exit_code=1),
        exit_code=(137, -137),
        output_has=(
            "no space left on device", "cannot allocate memory", "out of memory", "too many open files", "disk quota exceeded", "enospc", "emfile", "enomem",
            "resource temporarily unavailable", "max number of operations", "oomkilled", "unable to allocate", "enough available memory", "not enough memory",
            "requires more system memory", "std bad alloc", "memoryerror", "memory exhausted", "virtual memory exhausted", "file too large", "no space left",
            "fork retry", "argument list too long", "not enough free disk space", "not enough free space", "disk full", "fatalprocessoutofmemory", "killed signal terminated program", "killed process * out of memory", "inotify watches", "database or disk is full", "heap limit", "heap space", "outofmemoryerror", "insufficient cpu/memory", "oom kill", "kernel died", "deadkernelerror", "process pool was terminated abruptly", "file limit", "stackoverflowerror", "stack overflow", "maximum call stack size",
        ),
    ),
    ClassifyRule(
        id="not-allowed",
        kind=Kind.PERMISSION_DENIED,
        why="The system, a tool or a website denies access.",
        example=Evidence(text="sh: 1: cannot create /etc/x: Permission denied", phase=Phase.TOOL, exit_code=2),
        exit_code=(126,),
        output_has=(
            "permission denied", "operation not permitted", "read only file system", "access is denied", "access denied", "eacces", "eperm", "erofs", "not permitted",
            "error 403", "403 forbidden", "http 403", "enable javascript and cookies", "captcha", "verify you are human", "are you a robot",
            "is not allowed authorized imports", "user site packages are not visible", "externally managed environment", "must be root", "are you root",
            "superuser privilege", "insufficient permissions", "permission to * denied", "access blocked", "is not in the sudoers", "unauthorized access",
            "not authorized to", "not accessible by", "forbidden", "hook declined", "protected branch", "not allowed to * push", "push declined", "dubious ownership", "blocked by * policy", "requires approval", "permission * not granted", "outside * allowed director/directories", "allowed working directories", "was blocked * security", "readonly database", "is read only", "does not have authorization", "permission to use * denied", "sandbox * deny", "hook error deny",
        ),
        except_if=("exec format error",),
    ),
    ClassifyRule(
        id="no-version",
        kind=Kind.NOT_FOUND,
        why="The requested version was never published.",
        example=Evidence(text="Because there is no version of demo==2.0.2 and you require demo==2.0.2 …", phase=Phase.TOOL, exit_code=1),
        output_has=("there is no version of", "could not find a version", "no matching version found", "no compatible version", "no matching distribution found", "no matching package", "etarget", "not found in the package registry"),
        except_if=("conflicting dependencies",),
    ),
    ClassifyRule(
        id="mcp-arguments",
        kind=Kind.INVALID_REQUEST,
        why="The MCP server rejects the arguments of the call.",
        example=Evidence(text="MCP error -32602: Input validation error: Invalid arguments for tool find", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=("mcp error 32602",),
        except_if=("tool * not found", "unknown tool"),
    ),
    ClassifyRule(
        id="tool-server-busy",
        kind=Kind.OVERLOADED,
        retryable=True,
        why="The server that the tool asked has no capacity right now.",
        example=Evidence(text="error: the server is currently unable to handle the request", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=("unable to handle the request", "server is overloaded", "server busy", "is busy try again"),
    ),
    ClassifyRule(
        id="misused",
        kind=Kind.CONFIGURATION,
        why="An invalid option, parameter, tool name, setting or combination of versions.",
        example=Evidence(text="usage: deploy [-h]\ndeploy: error: unrecognized arguments: -q", phase=Phase.TOOL, exit_code=2),
        phase=_TOOL,
        output_has=(
            "unrecognized arguments/argument/option", "option * is unknown", "already exists", "unknown skill/language", "invalid reference format", "no config file", "unknown url type", "must specify a/an/the", "invalid requirement", "invalid maximum heap", "following arguments are required", "following required arguments", "invalid/unknown/illegal/unrecognised/bad option",
            "no such option/command/subcommand", "unknown flag/argument/command/subcommand/parameter/tool/field/switch/shorthand", "unexpected argument",
            "invalid choice", "invalid int value", "invalid value for", "invalid argument for", "flag provided but not defined", "option requires an argument",
            "conflicting dependencies", "resolutionimpossible", "eresolve", "unsatisfiable", "libmambaunsatisfiableerror", "requirements conflict", "dependency conflict",
            "parameter * is required", "missing required argument/arguments/parameter/parameters/option/field/property", "invalid * parameter", "invalid parameter",
            "directive is not allowed", "configuration file * test failed", "unknown directive", "unable to start editor", "run conda init", "is not a git command",
            "please tell me who you are", "has no upstream branch", "no configured push destination", "no solution found", "failed to select a version", "failed to parse lock file", "outdated lockfile", "not up to date with",
            "lock file * needs to be updated", "lockfile * needs to be updated", "version solving failed", "incompatible with", "requires node", "unsupported engine", "requires python", "must be specified", "is a required property", "invalid configuration",
            "configuration error", "syntax error in configuration", "config error", "unsupported option", "incompatible options", "cannot be used with", "mutually exclusive",
            "not a valid tool", "tool * not found", "no tool named", "tool * does not exist", "input validation error", "requires a value", "environment variable * not set",
            "environment variable * is not set", "environment variable * required", "invalid syntax for option", "invalid tool parameters", "refusing to merge unrelated histories",
        ),
        except_if=("command not found", "cannot find module"),
    ),
    ClassifyRule(
        id="test-import",
        kind=Kind.TEST_FAILURE,
        why="A test run failed before its first test.",
        example=Evidence(text="ERROR collecting tests/test_a.py\nImportError while importing test module", phase=Phase.TOOL, exit_code=2),
        phase=_TOOL,
        output_has=("while importing test module", "error collecting"),
    ),
    ClassifyRule(
        id="not-there",
        kind=Kind.NOT_FOUND,
        why="The system's message for a file, command, module, package or version that does not exist.",
        example=Evidence(text="cat: notes.txt: No such file or directory", phase=Phase.TOOL, exit_code=1),
        exit_code=(127,),
        exception=("FileNotFoundError", "ModuleNotFoundError", "NoSuchKey", "NoSuchBucket"),
        output_has=(
            "no such file or directory", "no such file", "or directory not found", "there is no package called", "failed to find", "does not appear to be a git repository", "doesnt have a resource type", "is not recognized as a name", "could not access", "cant locate", "unable to open database", "does the file exist", "template not found", "could not resolve to a", "refspec * does not match any", "in its dependencies", "missing from your system", "command not found", "not found$", "no module named", "no matching distribution found", "could not find a version",
            "unable to locate package", "does not exist", "doesnt exist", "do not exist", "cannot find module", "module not found", "did not match any file", "did not match any files",
            "no such table", "no such column", "not a conda environment", "is not installed", "unknown revision", "couldnt find remote ref", "repository not found",
            "no such container", "no such image", "no such service", "no such process", "no such directory", "cannot access", "file not found", "enoent", "e404", "404 not found",
            "could not find", "cannot find", "was not found", "not found please", "is not recognized as an internal", "path not found", "not a git repository", "no such device",
            "no such remote", "bad revision", "unknown revision or path", "package * not found", "manifest unknown", "cannot open * no such", "cant find", "no versions available",
            "no such package", "could not import", "please install it", "os error 2", "is not in std", "is not in goroot", "unknown package", "could not be found", "not found in", "no package * available", "target * not found", "no rule to make target", "no recipe",
        ),
        except_if=("exec format error", "cmake error", "cannot be opened for loading", "no replacement was performed", "merge conflict", "did not appear verbatim"),
    ),
    ClassifyRule(
        id="json-cut",
        kind=Kind.OUTPUT_LIMIT,
        why="The JSON ends inside a string: the response was truncated.",
        example=Evidence(text="invalid JSON: Unterminated string in JSON at position 90000", phase=Phase.RESULT),
        phase=(Phase.RESULT,),
        message_has=("unterminated string in json", "unterminated string starting at", "unexpected end of json"),
    ),
    ClassifyRule(
        id="not-json",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="The output does not parse or does not match its schema; a new sample may.",
        example=Evidence(exceptions=("json.decoder.JSONDecodeError", "ValueError"), text="Expecting value: line 1 column 1 (char 0)"),
        exception=("JSONDecodeError", "ValidationError", "JSONSchemaValidationError"),
        code=("json_invalid",),
        output_has=("validation error for", "validation errors for"),
        message_has=("code parsing failed", "invalid json", "not valid json", "unexpected token * json", "unexpected end of json input", "json parse error", "failed to parse json"),
        except_if=("request body is not valid json",),
    ),
)  # fmt: skip

# Where the output says nothing more specific.
TOOL_FALLBACK: Final = (
    ClassifyRule(
        id="program-broke",
        kind=Kind.TOOL_ERROR,
        why="The program or script has a bug or crashed; the same run fails the same way.",
        example=Evidence(text="Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nNameError: name 'x' is not defined", phase=Phase.TOOL, exit_code=1),
        exception=(
            "NameError", "TypeError", "ValueError", "AttributeError", "KeyError", "IndexError", "SyntaxError", "IndentationError", "TabError", "ZeroDivisionError",
            "UnicodeDecodeError", "UnicodeEncodeError", "ImportError", "AssertionError", "RuntimeError", "ReferenceError", "RangeError", "NotImplementedError", "OverflowError",
            "StopIteration", "ArithmeticError", "LookupError", "EOFError", "CalledProcessError", "UnboundLocalError", "OperationalError", "ProgrammingError", "IntegrityError",
        ),
        phase=_TOOL,
    ),
    ClassifyRule(
        id="bug",
        kind=Kind.TOOL_ERROR,
        why="An exception that indicates a bug in a program; the same run fails the same way.",
        example=Evidence(exceptions=("AttributeError",), text="'str' object has no attribute 'get'"),
        exception=(
            "TypeError", "AttributeError", "NameError", "UnboundLocalError", "IndexError", "SyntaxError", "IndentationError",
            "ZeroDivisionError", "ImportError",
        ),
    ),
    ClassifyRule(
        id="tool-said-no",
        kind=Kind.TOOL_ERROR,
        why="The tool reports that it could not perform the operation.",
        example=Evidence(text="CONFLICT (content): Merge conflict in a.md", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=(
            "merge conflict", "non fast forward", "failed to push some refs", "no replacement was performed", "syntax error", "segmentation fault", "exec format error", "core dumped",
            "directory not empty", "unexpected eof", "hook id", "is a directory", "not a directory", "cannot execute", "compilation failed", "build failed", "npm err", "^error", "^fatal", "cmake error", "errors occurred",
            "^err", "cannot format", "codec cant decode", "traceback most recent call last", "has terminated", "error loading", "panicked at", "^panic", "exception in thread", "goroutine 1", "^e", "^failed", "returned non zero exit status", "would be overwritten",
        ),
        sure=False,
    ),
    ClassifyRule(
        id="tool-complained",
        kind=Kind.TOOL_ERROR,
        why="The tool's output mentions an error, but matches no more specific rule.",
        example=Evidence(text="run 7 errored: too many values", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=("error", "errors", "errored", "exception", "failed", "failure"),
        sure=False,
    ),
    ClassifyRule(
        id="tool-failed",
        kind=Kind.TOOL_ERROR,
        why="The command exited with an error code, and its output matches no rule.",
        example=Evidence(text="boom", phase=Phase.TOOL, exit_code=3),
        phase=_TOOL,
        exit_code=(*(code for code in range(1, 256) if code not in {124, 127, 130, 137}), -6, -11, -4, -8, -7),
        sure=False,
    ),
)  # fmt: skip
