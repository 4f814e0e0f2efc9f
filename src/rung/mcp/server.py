"""The MCP server itself, on the `mcp` package 2.x or 1.x: tools to report and to ask, the journal as resources."""

from __future__ import annotations

from typing import Any

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import clip
from rung.core.classify.guide.work import GUIDES
from rung.detectors.step import Step
from rung.mcp.recovery_service import RecoveryService, as_json, beyond, evidence
from rung.mcp.schemas import KnownFailure, LoopReport, NextStep, OutcomeReport, ReportAccepted

INSTRUCTIONS = (
    "Rung tells you what to do when something fails. Call report_failure with the error's own words whenever a step fails, and do "
    "what it answers: wait and repeat, change the approach, hand over, ask, or finish. Call am_i_looping after calls that did not "
    "bring you further. When you cannot go on, finish_partial ends honestly. Use one session name for one task."
)
LIMIT = 50


def make_server(desk: RecoveryService, *, host: str = "127.0.0.1", port: int = 8643) -> Any:
    """A server over this desk; 1.x is told its address now, 2.x when it runs."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        from mcp.server.fastmcp import FastMCP  # type: ignore[attr-defined]  # 1.x, which is not the one installed

        server: Any = FastMCP("rung", instructions=INSTRUCTIONS, host=host, port=port)
    else:
        server = MCPServer("rung", instructions=INSTRUCTIONS)
    _add_tools(server, desk)
    _add_resources(server, desk)
    return server


def run(server: Any, *, http: bool, host: str, port: int) -> None:
    """Serve until the client goes, or for good."""
    if not http:
        server.run("stdio")
    elif hasattr(server, "run_streamable_http_async") and type(server).__name__ == "MCPServer":
        server.run("streamable-http", host=host, port=port)
    else:
        server.run("streamable-http")


def _add_tools(server: Any, desk: RecoveryService) -> None:
    @server.tool()  # type: ignore[untyped-decorator]  # one of two packages
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
        """Report a failure, in the error's own words, and be told the next step. `task` is what you were asked to do."""
        return desk.failed(session, evidence(clip(error), tool, exit_code, status, clip(output)), task, model)

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def known_about_error(error: str, tool: str = "", status: int | None = None) -> KnownFailure:
        """What is known about an error: its kind, whether repeating helps, what does, and what helped here before."""
        return known(desk, error, tool, status)

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def am_i_looping(
        tool: str,
        arguments: dict[str, Any] | None = None,
        result: str = "",
        error: str = "",
        session: str = "default",
        task: str = "",
    ) -> LoopReport:
        """Tell of a call and its outcome, and hear whether you are going in circles. Call it once for each call."""
        found = desk.saw(session, Step(tool, arguments or {}, result, error or False))
        if found is None:
            return {"looping": False, "stage": "", "rule": "", "count": 0, "fact": "", "next": None}
        step = desk.found(session, found, task) if found.is_new_stage else None
        stage = found.stage.value if found.stage is not None else ""
        return {
            "looping": True,
            "stage": stage,
            "rule": found.rule,
            "count": found.count,
            "fact": found.text,
            "next": step,
        }

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def report_progress(step: str, finished: bool = False, session: str = "default") -> ReportAccepted:
        """Report a finished part of the work; with `finished`, that all of it is done after a failure."""
        noted = desk.progressed(session, clip(step), finished=finished)
        said = "Noted." if noted else "Nothing is open in this session, so there was nothing to note it with."
        return {"noted": noted, "message": said}

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def ask_escalation(reason: str, session: str = "default", task: str = "") -> NextStep:
        """Say that this is beyond you, and why; be told who takes over, what to ask a person, or how to end."""
        return desk.failed(session, beyond(clip(reason)), task)

    @server.tool()  # type: ignore[untyped-decorator]  # as above
    def finish_partial(
        reason: str, done: list[str] | None = None, session: str = "default", task: str = ""
    ) -> OutcomeReport:
        """End honestly with what there is: what is done, and why not all of it. Answers with the outcome to hand on."""
        return desk.finished(session, [clip(step) for step in done or []], clip(reason), task)


def _add_resources(server: Any, desk: RecoveryService) -> None:
    from rung.store.queries import listing
    from rung.store.queries.groups import groups

    @server.resource("rung://incidents", mime_type="application/json")  # type: ignore[untyped-decorator]  # as above
    def incidents() -> str:
        """The latest incidents: what failed, what was done, how it ended."""
        rows = listing.incidents(desk.journal, limit=LIMIT).rows
        return as_json([row._asdict() for row in rows])

    @server.resource("rung://incidents/{name}", mime_type="application/json")  # type: ignore[untyped-decorator]  # as above
    def incident(name: str) -> str:
        """One incident with all its events."""
        from rung.core.domain.event_codec import to_json

        row = listing.incident(desk.journal, name)
        if row is None:
            raise ValueError(f"incident {name!r}: there is none of this name; rung://incidents lists them")
        return as_json({**row._asdict(), "events": [to_json(event) for event in desk.journal.events(name)]})

    @server.resource("rung://learnings", mime_type="application/json")  # type: ignore[untyped-decorator]  # as above
    def learnings() -> str:
        """What failed again and again, and which rung helped."""
        found = groups(desk.journal, now=desk.now(), limit=LIMIT)
        return as_json([{**group._asdict(), "tried": tried(desk, group.project, group.fingerprint)} for group in found])


def known(desk: RecoveryService, error: str, tool: str, status: int | None) -> KnownFailure:
    """What the classifier, the guide and the journal say of an error."""
    failure = classify(evidence(clip(error), tool, None, status, ""))
    guide = GUIDES[failure.kind]
    return {
        "kind": failure.kind.value,
        "retryable": failure.retryable,
        "rule": failure.rule,
        "wait_seconds": failure.retry_after,
        "summary": guide.summary,
        "helps": list(guide.helps),
        "avoid": guide.avoid,
        "fingerprint": failure.fingerprint,
        "tried_before": tried(desk, desk.project, failure.fingerprint),
    }


def tried(desk: RecoveryService, project: str, fingerprint: str) -> list[Any]:
    """What was tried about a failure before."""
    from rung.store.queries.remedies import what_worked

    return [
        {"rung": one.rung, "tried": one.tried, "worked": one.worked}
        for one in what_worked(desk.journal, project, fingerprint)
    ]
