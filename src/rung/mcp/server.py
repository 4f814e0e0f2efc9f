"""The MCP server, on the `mcp` package 2.x or 1.x: recovery as tools, the journal as resources."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import clip
from rung.core.classify.guide.work import GUIDES
from rung.core.domain.failures import is_limit
from rung.core.text.moments import rfc3339
from rung.detectors.step import Step
from rung.engine.local_zone import local_zone
from rung.mcp.recovery_service import RecoveryService, escalation_evidence, evidence, to_json_text
from rung.mcp.schemas import KnownFailure, LoopReport, NextStep, OutcomeReport, ReportAccepted

if TYPE_CHECKING:
    import socket

INSTRUCTIONS = (
    "Rung tells you what to do when something fails. Call report_failure with the error text whenever a step fails, and follow "
    "its answer: wait and repeat, change the approach, hand over, ask, or finish. Call am_i_looping after calls that made no "
    "progress. When you cannot continue, call finish_partial to report what is done. Use one session name per task."
)
MAX_ROWS = 50


def make_server(service: RecoveryService, *, host: str = "127.0.0.1", port: int = 8643) -> Any:
    """Return a server over this service. Version 1.x takes the address here, 2.x when it runs."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        from mcp.server.fastmcp import FastMCP  # type: ignore[attr-defined]  # 1.x is not the version that types are checked with

        server: Any = FastMCP("rung", instructions=_instructions(service), host=host, port=port)
    else:
        server = MCPServer("rung", instructions=_instructions(service))
    _add_tools(server, service)
    _add_resources(server, service)
    return server


def _instructions(service: RecoveryService) -> str:
    """Return what a client is told when its session starts: how to use the tools, and the project's notes as data."""
    try:
        known = "" if service.notes is None else str(service.notes.read())
    except OSError as error:
        import warnings

        warnings.warn(f"rung: the notes of the project could not be read: {error}", RuntimeWarning, stacklevel=2)
        return INSTRUCTIONS
    return (
        f"{INSTRUCTIONS}\n\nWhat is known in this project about earlier failures:\n{known}" if known else INSTRUCTIONS
    )


def run_http(server: Any, token: str, listening: socket.socket, *, host: str) -> None:
    """Serve clients that have the token over HTTP until the process is stopped."""
    import uvicorn

    from rung.mcp.bearer_auth import RequireToken

    where = {"host": host} if type(server).__name__ == "MCPServer" else {}  # 2.x: names that it accepts as Host
    app = RequireToken(server.streamable_http_app(**where), token)
    config = uvicorn.Config(app, host=host, log_level="warning", ws="none")
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([listening])


def _add_tools(server: Any, service: RecoveryService) -> None:
    @server.tool()  # type: ignore[untyped-decorator]  # untyped in one of the two versions
    def report_failure(
        error: str,
        session: str = "default",
        task: str = "",
        tool: str = "",
        exit_code: int | None = None,
        status: int | None = None,
        output: str = "",
        model: str = "",
    ) -> NextStep:
        """Report a failure with the original error text, and get the next step. `task` is what you were asked to do."""
        return service.report_failure(
            session, evidence(clip(error), tool, exit_code, status, clip(output)), task, model
        )

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def known_about_error(error: str, tool: str = "", status: int | None = None) -> KnownFailure:
        """Look up an error: its kind, whether a retry can help, what fixes it, and what worked in this project before."""
        return explain_error(service, error, tool, status)

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def am_i_looping(
        tool: str,
        arguments: dict[str, Any] | None = None,
        result: str = "",
        error: str = "",
        session: str = "default",
        task: str = "",
    ) -> LoopReport:
        """Report a tool call and its outcome, and learn whether you are in a loop. Call it once per tool call."""
        finding = service.check_step(session, Step(tool, arguments or {}, result, error or False))
        if finding is None:
            return {"looping": False, "stage": "", "rule": "", "count": 0, "fact": "", "next": None}
        step = service.report_finding(session, finding, task) if finding.is_new_stage else None
        stage = finding.stage.value if finding.stage is not None else ""
        return {
            "looping": True,
            "stage": stage,
            "rule": finding.rule,
            "count": finding.count,
            "fact": finding.text,
            "next": step,
        }

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def report_progress(step: str, finished: bool = False, session: str = "default") -> ReportAccepted:
        """Report a completed step; set `finished` when all the work is done after a failure."""
        noted = service.record_progress(session, clip(step), finished=finished)
        message = "Recorded." if noted else "This session has no open incident; nothing was recorded."
        return {"noted": noted, "message": message}

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def ask_escalation(reason: str, session: str = "default", task: str = "") -> NextStep:
        """Report that the task is beyond you, and why; get who takes over, what to ask a person, or how to finish."""
        return service.report_failure(session, escalation_evidence(clip(reason)), task)

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def finish_partial(
        reason: str, done: list[str] | None = None, session: str = "default", task: str = ""
    ) -> OutcomeReport:
        """Finish with a partial result: what is done, and why the rest is not. Returns the outcome to pass on."""
        return service.finish_partial(session, [clip(step) for step in done or []], clip(reason), task)


def _add_resources(server: Any, service: RecoveryService) -> None:
    from rung.store.queries import listing
    from rung.store.queries.groups import groups

    @server.resource("rung://incidents", mime_type="application/json")  # type: ignore[untyped-decorator]  # as above
    def incidents() -> str:
        """List the latest incidents: what failed, what was tried, how each ended."""
        rows = listing.incidents(service.journal, limit=MAX_ROWS).rows
        return to_json_text([row._asdict() for row in rows])

    @server.resource("rung://incidents/{name}", mime_type="application/json")  # type: ignore[untyped-decorator]  # as above
    def incident(name: str) -> str:
        """Return one incident with all its events."""
        from rung.core.domain.event_codec import to_json

        row = listing.incident(service.journal, name)
        if row is None:
            raise ValueError(f"incident {name!r} not found; rung://incidents lists the ids")
        return to_json_text({**row._asdict(), "events": [to_json(event) for event in service.journal.events(name)]})

    @server.resource("rung://learnings", mime_type="application/json")  # type: ignore[untyped-decorator]  # as above
    def learnings() -> str:
        """List recurring failures, and which rungs fixed them."""
        failures = groups(service.journal, now=service.now(), limit=MAX_ROWS)
        return to_json_text(
            [
                {**group._asdict(), "tried": tried_remedies(service, group.project, group.fingerprint)}
                for group in failures
            ]
        )


def explain_error(service: RecoveryService, error: str, tool: str, status: int | None) -> KnownFailure:
    """Return what the classifier, the guide and the journal know about an error."""
    failure = classify(evidence(clip(error), tool, None, status, ""), service.now(), local_zone())
    guide = GUIDES[failure.kind]
    return {
        "kind": failure.kind.value,
        "retryable": failure.retryable,
        "rule": failure.rule,
        "wait_seconds": failure.retry_after,
        "reopens_at": None
        if failure.retry_after is None or not is_limit(failure)
        else rfc3339(service.now() + failure.retry_after),
        "summary": guide.summary,
        "helps": list(guide.helps),
        "avoid": guide.avoid,
        "fingerprint": failure.fingerprint,
        "tried_before": tried_remedies(service, service.project, failure.fingerprint),
    }


def tried_remedies(service: RecoveryService, project: str, fingerprint: str) -> list[Any]:
    """Return the rungs tried on a failure before."""
    from rung.store.queries.remedies import what_worked

    return [
        {"rung": remedy.rung, "tried": remedy.tried, "worked": remedy.worked}
        for remedy in what_worked(service.journal, project, fingerprint)
    ]
