"""Classification rules for what agents' own tools report: edits, calls, records, logins, databases.

They are tried before the rules for services: these outputs use the words of services, and mean something else by them.
"""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.classify.rules.conditions import CALLS
from rung.core.domain.failures import Evidence, Kind, Phase

_TOOL: Final = (Phase.TOOL,)

TOOL_CALLS: Final = (
    ClassifyRule(
        id="stale-edit",
        kind=Kind.TOOL_ERROR,
        why="The file changed after it was read, or was never read; read it and recreate the edit.",
        example=Evidence(text="File has been unexpectedly modified. Read it again before attempting to write it.", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=(
            "file has been * modified", "modified since it/you/last/your/the", "has changed since * read", "changed on disk since", "must be read before", "must read the file", "must read * before editing", "have not read this file", "havent read this file", "read the file again before", "read it again before",
            "read the file first", "read it first before",
        ),
    ),
    ClassifyRule(
        id="no-action",
        kind=Kind.MALFORMED_OUTPUT,
        retryable=True,
        why="The model's message does not contain the action that the agent expects; a new sample may.",
        example=Evidence(text="No code blocks found in the message. Please provide at least one code block.", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=(
            "no code blocks found", "no code block found", "no code block was found", "exactly one action/command/code", "no action found", "no valid action", "no tool call found", "no tool calls found", "did not contain a valid action", "could not parse action", "could not parse your", "could not parse llm output",
            "failed to parse your response", "failed to parse tool arguments/call/input", "failed to parse llm/model/assistant * response/output/answer/json", "invalid json in tool arguments", "tool arguments are not valid json", "wrong output format", "your response did not", "your last response/message could not be parsed", "response format is invalid", "invalid format missing action", "please follow the format", "please use the correct format",
        ),
    ),
    ClassifyRule(
        id="loop-reported",
        kind=Kind.LOOP_DETECTED,
        why="An agent's own guard reports that it repeated the same step, and stopped it.",
        example=Evidence(text="Loop detected: the agent was stopped", phase=Phase.TOOL),
        phase=(*CALLS, Phase.TOOL),
        message_has=(
            "^loop detected", "^loop was/has detected/been", "^a/an/potential/possible/infinite/repetitive/tool/agent * loop detected", "^a/an/potential/possible/infinite/repetitive/tool/agent * loop was/has detected/been",
            "^potential/possible/infinite/tool/agent loop detected", "a/an potential/possible/infinite/endless loop was/has detected/been", "^error * loop detected", "^error * loop was/has detected/been", "^detected a/an * loop", "you are/seem/appear * stuck in a loop", "agent is/was/seems/appears * stuck in a loop", "loop detection triggered/stopped/halted/aborted",
            "same tool * times in a row", "same call/action/command/step * times in a row", "called/calling the same tool", "repeated the same call/action/command/step",
        ),
        contains=("agent", "tool", "model", "assistant", "halted", "repetit", "in a row", "repeated the same", "stuck in a loop"),
        except_if=("redirect/redirection/symlink/symlinks/symbolic/routing/dependency/import/bridge/event/network * loop", "circular"),
    ),
    ClassifyRule(
        id="agent-turns-over",
        kind=Kind.TURNS_EXHAUSTED,
        why="An agent that was called as a tool made as many steps as it may.",
        example=Evidence(text="Agent stopped due to max iterations.", phase=Phase.TOOL),
        phase=_TOOL,
        message_has=(
            "max/maximum iterations/turns/steps/rounds * reached/exceeded/hit", "max/maximum number of iterations/turns/steps/rounds * reached/exceeded/hit", "reached/exceeded/hit * max/maximum iterations/turns/steps/rounds", "reached/exceeded/hit * max/maximum number of iterations/turns/steps/rounds",
            "iteration/turn/step limit * reached/exceeded/hit", "reached/exceeded/hit * iteration/turn/step limit", "due to * iteration/turn/step limit", "due to * max/maximum iterations/turns/steps",
        ),
        contains=("agent", "final answer", "assistant", "max_turns", "tool call"),
        except_if=("converge", "convergence", "converged", "solver", "user agent"),
    ),
    ClassifyRule(
        id="no-such-tool",
        kind=Kind.CONFIGURATION,
        why="The model called a tool that the agent does not have, under this name.",
        example=Evidence(text="Tool 'serach' is not available. Available tools: search, read", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=(
            "available tools are", "available tools$", "^available tools", "is not available available tools", "is not an available tool", "is not a valid tool", "is not one of the available tools", "try one of", "no such tool available", "function * is not available", "function * not found in", "please choose from", "is not a registered tool", "tool is not registered",
        ),
        except_if=("no such file",),
    ),
    ClassifyRule(
        id="record-missing",
        kind=Kind.NOT_FOUND,
        why="The whole output says that a record, such as a user or an order, does not exist.",
        example=Evidence(text="Error: user not found", phase=Phase.TOOL),
        phase=_TOOL,
        code=("record-missing",),
    ),
    ClassifyRule(
        id="business-rule",
        kind=Kind.TOOL_ERROR,
        why="A rule of the business behind the tool forbids the action for this record; the same call fails again.",
        example=Evidence(text="Error: gift card balance is not enough", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=(
            "gift card", "payment amount", "payment method should/cannot/must/does", "pending order", "order cannot be", "orders cannot be", "reservation cannot be", "cannot be cancelled/canceled/exchanged/returned/refunded/rescheduled", "can not be cancelled/canceled/exchanged/returned/refunded/rescheduled", "number of passengers", "number of items", "does not add up", "not enough seats", "out of stock", "already been cancelled/canceled/returned/refunded/delivered/shipped",
        ),
        except_if=("traceback most recent call last",),
    ),
    ClassifyRule(
        id="still-running",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="The tool stopped waiting for a command that was still running.",
        example=Evidence(text="The command is still running after 30 seconds and was stopped.", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=("still running after", "did not finish within", "did not complete within", "not complete in time", "exceeded the time limit", "exceeded time limit", "took longer than * seconds/minutes", "killed after * seconds/minutes", "stopped after * seconds/minutes", "aborted after * seconds/minutes", "no output for * seconds/minutes", "max wait time", "maximum execution time"),
    ),
    ClassifyRule(
        id="import-unresolved",
        kind=Kind.NOT_FOUND,
        why="A build tool cannot find a module or a dependency by its name.",
        example=Evidence(text='[vite]: Rollup failed to resolve import "lodash-es" from "src/main.ts".', phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=(
            "failed to resolve import", "module not found error", "cant resolve * in", "could not resolve module", "unable to resolve module", "could not resolve dependency", "could not resolve dependencies", "could not resolve all", "moduleversionresolveexception", "failed to resolve module specifier", "could not resolve entry module",
            "could not resolve package", "could not resolve the package/module/import/dependency", "cannot resolve symbol", "unresolved import", "no required module provides package", "cannot find package", "cannot find module providing",
        ),
        except_if=("connection refused", "connection reset", "timed out", "unknown host", "unknownhostexception", "eresolve", "conflicting", "source error"),
    ),
    ClassifyRule(
        id="no-such-revision",
        kind=Kind.NOT_FOUND,
        why="The repository has no revision, branch or tag of this name.",
        example=Evidence(text="fatal: Failed to resolve 'v2' as a valid ref.", phase=Phase.TOOL, exit_code=128),
        phase=_TOOL,
        output_has=("failed to resolve * as a valid ref", "unknown revision or path", "not a valid ref", "unknown revision", "bad revision"),
    ),
    ClassifyRule(
        id="element-not-ready",
        kind=Kind.TOOL_ERROR,
        why="The element of the page is hidden, covered or not the only one that matches; look at the page again, and choose another.",
        example=Evidence(text="Error: element <button> is covered: <div> intercepts pointer events", phase=Phase.TOOL),
        phase=_TOOL,
        output_has=(
            "element * is not visible/clickable/enabled/stable/attached/interactable/editable/focusable", "element is not an input/select", "element not interactable", "intercepts pointer events", "is blocked/covered/obscured by another element", "element click intercepted", "stale element", "is not attached to the dom",
            "element is outside of the viewport", "strict mode violation", "selector * matched 2/3/4/5/6/7/8/9 elements", "resolved to 2/3/4/5/6/7/8/9 elements", "is not a valid selector",
        ),
        contains=("element", "selector"),
        except_if=("timeout * exceeded", "no such element", "unable to locate element"),
    ),
    ClassifyRule(
        id="login-refused",
        kind=Kind.AUTH_ERROR,
        why="A server refuses the credentials that the tool sent.",
        example=Evidence(text="HTTP 401: Bad credentials\nTry authenticating with: gh auth login", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=("bad credentials", "wrongpass", "invalid username or password", "incorrect username or password", "invalid login credentials", "login failed for user", "token has expired", "token is expired", "invalid or expired token", "expiredtoken"),
    ),
    ClassifyRule(
        id="login-needed",
        kind=Kind.MISSING_CREDENTIALS,
        why="A server or a program wants credentials, and the tool has none.",
        example=Evidence(text="(error) NOAUTH Authentication required.", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=("noauth", "^error authentication required", "command * requires authentication", "set the * token environment variable", "set the * api key environment variable", "you are not logged in", "you are not logged into", "you must be logged in", "login required", "please log in first", "please login first", "no credentials found", "no credentials were", "no password supplied", "no secret key", "no default secret key", "terminal prompts disabled"),
    ),
    ClassifyRule(
        id="lock-waited",
        kind=Kind.TOOL_ERROR,
        retryable=True,
        why="Another transaction or process holds what the command needs; it is usually released soon.",
        example=Evidence(text="ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=("lock wait timeout", "deadlock detected", "deadlock found when trying", "canceling statement due to lock timeout", "text file busy", "device or resource busy", "resource busy or locked", "ebusy", "being used by another process", "in use by another process", "locked by another process", "could not serialize access", "try restarting transaction"),
    ),
    ClassifyRule(
        id="constraint-violated",
        kind=Kind.TOOL_ERROR,
        why="The data that the command writes violates a constraint of the database.",
        example=Evidence(text="UNIQUE constraint failed: users.email", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=("violates * constraint", "constraint failed", "duplicate entry * for key", "duplicate key error", "cannot add or update a child row", "integrity constraint violation", "e11000"),
    ),
)  # fmt: skip
