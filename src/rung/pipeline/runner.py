"""Runs the stages of a pipeline, each recovered on its own. After a stage has failed, no other stage starts."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.agent_sessions.agent_sessions import AgentSessions
from rung.adapters.system.agent_sessions.changed_files import changed_files
from rung.adapters.system.command_line import require_program
from rung.adapters.system.pid_file import launcher
from rung.adapters.system.placeholders import fill_placeholders, uses_placeholder
from rung.adapters.system.planner import CommandInvestigator, CommandPlanner
from rung.adapters.system.process import RECOVERY_PLACEHOLDER, RunningProcess
from rung.adapters.system.worker_processes import RealProcesses
from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError
from rung.core.domain.events import Status
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.domain.outcome import report_text
from rung.core.domain.request import Request
from rung.core.pipeline.partition import scope_of
from rung.core.pipeline.spec import blocked_report, check_output, merge_outputs, read_pipeline, stage_prompt
from rung.core.policy.parser import parse_policy
from rung.core.policy.prompts import prompt_id, render, without_task
from rung.core.policy.tool_settings import policy_for_tool
from rung.core.text.printable import printable
from rung.engine.agent_sessions import sessions_of_attempt
from rung.engine.durable import recovery
from rung.engine.recover import recover
from rung.pipeline.restructuring import Partition, divide
from rung.pipeline.result import PipelineResult, signal_of
from rung.pipeline.thread_call import in_thread, run_in_thread
from rung.store.stage_runs import next_run_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from rung.adapters.system.agent_sessions.agent_sessions import SessionCommand
    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.core.pipeline.spec import Pipeline, PipelineStage
    from rung.core.policy.policy import Policy
    from rung.engine.ports.recovery import Notes, RungHandler
    from rung.engine.recovery_arguments import RunPorts
    from rung.store.journal.journal import Journal

PLACEHOLDERS: Final = ("{prompt}", "{stage}", "{out}", "{turns}")
# Statuses that stop a pipeline, the worst first.
_STOPPING_STATUSES: Final = (Status.BLOCKED, Status.FAILED, Status.PARTIAL)


def load(table: dict[str, Any]) -> tuple[Pipeline, Policy]:
    """Return the pipeline in a parsed TOML document, and its policy: the `pipeline` preset with `[policy]` applied."""
    return read_pipeline(table), parse_policy(policy_settings(table))


def policy_settings(table: dict[str, Any]) -> dict[str, Any]:
    """Return the policy settings of a pipeline's document, with its ladder."""
    return {"ladder": "pipeline", **table.get("policy", {})}


@dataclass(kw_only=True)
class PipelineRun:
    """One run of a pipeline. Paths are relative to `folder`, which is also the agents' working directory.

    With a journal and a run id, a run survives a process crash: run again, it resumes and finished stages are not
    repeated. `ask(stage, question, incident)` answers questions; without it, a stage that needs a person ends
    blocked. `listen(stage, event, incident)` receives every event. `notes` are read before each stage, and added to at
    its end. `sessions` know how an agent that failed continues its own session. `on_park(stage, incident)` is called when a
    stage is parked until a limit reopens. `ports_of_run(run, request)` returns further arguments of a stage's recovery: what a
    person asks of it.
    """

    pipeline: Pipeline
    policy: Policy
    folder: Path
    journal: Journal | None = None
    run_id: str = ""
    ask: Callable[[str, Any, Any], Any] | None = None
    listen: Callable[[str, Any, Any], object] = lambda *_: None
    report: Path | None = None
    notes: Notes | None = None
    on_park: Callable[[str, Incident], object] | None = None
    ports_of_run: Callable[[str, Request], RunPorts] | None = None
    sessions: AgentSessions = field(default_factory=AgentSessions)
    outcomes: dict[str, Outcome[str]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    def load_prompts(self) -> None:
        """Read all prompt files and check all commands, so that a mistake is an error before any stage runs."""
        stages = self.pipeline.stages
        self._prompts = {stage.id: stage.prompt or _read(self.folder / stage.prompt_path) for stage in stages}
        for stage in stages:
            fill_placeholders(stage.command, dict.fromkeys(PLACEHOLDERS, ""))  # refuses a prompt that would be code
            require_program(f"stage {stage.id}: command", stage.command, self.folder)
            if stage.check:
                require_program(f"stage {stage.id}: check", stage.check, self.folder)

    async def run(self) -> PipelineResult:
        """Run the pipeline. Cancellation (Ctrl-C) ends the running agents and all processes they started."""
        self._agents = RealProcesses(self.folder / self.pipeline.out / self.pipeline.name / ".run")
        self._partition = Partition(self.pipeline, self._partition_path, self.run_id)
        self.pipeline = self._partition.pipeline
        self.load_prompts()
        running = self._running = dict[asyncio.Task["Outcome[str]"], str]()
        try:
            while True:
                for stage in self._ready(set(running.values())):
                    running[asyncio.create_task(self._run_stage(stage))] = stage.id
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._record(running.pop(task), task.result())
        finally:
            for task in running:
                task.cancel()
            for name, ended in zip(
                running.values(), await asyncio.gather(*running, return_exceptions=True), strict=True
            ):
                outcome = getattr(ended, "__dict__", {}).get("__rung_outcome__")  # of a stage that was stopped
                if outcome is not None:
                    self._record(name, outcome)
            self._agents.remove_empty_directories()
        return self._result()

    def _ready(self, running: set[str]) -> list[PipelineStage]:
        """Return the stages that may start now: none after a stage has failed."""
        if any(not outcome.ok for outcome in self.outcomes.values()):
            return []
        waiting = [stage for stage in self.pipeline.stages if stage.id not in self.outcomes and stage.id not in running]
        ready = [stage for stage in waiting if self.pipeline.dependencies[stage.id] <= self.outcomes.keys()]
        return ready[: max(0, self.pipeline.workers - len(running))]

    def _record(self, name: str, outcome: Outcome[str]) -> None:
        """Store the outcome of a stage, and write its complete or partial output to a file."""
        self.outcomes[name] = outcome
        partial = outcome.failure.evidence.output if outcome.failure is not None else ""
        text = (outcome.value or "") if outcome.ok else outcome.value or partial
        if outcome.ok:  # of an attempt that was stopped
            (self.folder / self._path(name, is_complete=False)).unlink(missing_ok=True)
        if text or outcome.ok:
            self.paths[name] = _write(self.folder, self._path(name, is_complete=outcome.ok), text)

    def _path(self, name: str, *, is_complete: bool = True) -> str:
        return f"{self.pipeline.out}/{self.pipeline.name}/{name}{'' if is_complete else '.partial'}.md"

    @property
    def _partition_path(self) -> Path:
        return self.folder / self.pipeline.out / self.pipeline.name / "partition.json"

    def _restructure(self, stage: str) -> Callable[[Request, Incident], Awaitable[Request]]:
        """Return the handler that divides the work again, waits for the stages that come first, and tells the agent."""

        async def restructure(request: Request, incident: Incident) -> Request:
            note = self._partition.note_of(incident)
            if note is None:
                note = await self._divide(stage, incident)
            changed = self.pipeline
            first = changed.dependencies[stage] - self.outcomes.keys()
            tasks = [task for task, name in self._running.items() if name in first]
            if tasks:
                await asyncio.wait(tasks)
            failure = incident.failures[-1]
            head = without_task(render(prompt_id(Action.RESTRUCTURE, failure), incident, failure, self.policy.prompts))
            text = f"{head}\n\nThe work was divided again: {note}. {scope_of(changed, stage)}\n\nThe task:\n{self._prompts[stage]}"
            return request.replace(prompt=text, recovery=text)

        return restructure

    async def _divide(self, stage: str, incident: Incident) -> str:
        """Divide the work again after a conflict of a stage. Return a sentence about it."""
        before = self.pipeline
        others = {name for name in self._running.values() if name != stage}
        passed = {name for name, outcome in self.outcomes.items() if outcome.ok}
        changed, note = await run_in_thread(
            lambda: divide(before, stage, incident, running=others, passed=passed, folder=self.folder)
        )
        self.pipeline = changed
        self.load_prompts()
        self._partition.change(changed, incident, note)
        return note

    async def _run_stage(self, stage: PipelineStage) -> Outcome[str]:
        dependencies = {
            name: (self.paths[name], signal_of(self.outcomes[name], "").line())
            for name in self.pipeline.dependencies[stage.id]
            if name in stage.depends_on
        }
        request = Request(
            prompt=stage_prompt(self._prompts[stage.id], dict(sorted(dependencies.items()))),
            max_turns=stage.turns,
            idempotent=stage.idempotent,
            task=f"{self.pipeline.name}/{stage.id}",
        )
        ports: RunPorts = {
            "check": self._output_check(stage),
            "listeners": [lambda event, incident: self.listen(stage.id, event, incident)],
            **self._planning_ports(stage.id),
        }
        if self.notes is not None:
            ports["notes"] = self.notes
        if self.ask is not None:
            ports["ask"] = self._operator(stage.id, self.ask)
        if self.on_park is not None:
            on_park = self.on_park
            ports["on_park"] = lambda incident: on_park(stage.id, incident)
        agent, journal = self._agent(stage), self.journal
        policy = policy_for_tool(self.policy, PurePath(stage.command[0]).name)
        policy = policy.replace(report="")  # the pipeline's report includes that of the stage
        if journal is None or not self.run_id:
            return await recover(agent, request, policy=policy, journal=journal, **ports)
        run = await asyncio.to_thread(next_run_id, journal, f"{self.run_id}/{stage.id}")
        if self.ports_of_run is not None:
            ports.update(await asyncio.to_thread(self.ports_of_run, run, request))
        return await recovery.recover(agent, request, policy=policy, journal=journal, run_id=run, **ports)

    def _planning_ports(self, stage: str) -> RunPorts:
        """Return the planner and the investigator of the pipeline, as ports that do not block the other stages."""
        handlers: dict[str, RungHandler] = {
            Action.NUDGE.value: self._nudge,
            Action.RESTRUCTURE.value: self._restructure(stage),
        }
        ports: RunPorts = {"rung_handlers": handlers}
        if self.pipeline.planner:
            planner = CommandPlanner(self.pipeline.planner, prompts=self.policy.prompts, cwd=self.folder)
            handlers[Action.REPLAN.value] = in_thread(planner)
        if self.pipeline.investigate:
            ports["investigate"] = in_thread(CommandInvestigator(self.pipeline.investigate, cwd=self.folder))
        return ports

    def _agent(self, first: PipelineStage) -> Callable[[Request], Any]:
        async def attempt(request: Request) -> str:
            stage = self.pipeline.stage(first.id)
            turns = "" if request.max_turns is None else str(request.max_turns)
            environment = {"RUNG_STAGE": stage.id, "RUNG_RUN": self.run_id, "RUNG_TURNS": turns}
            placeholders = {"{stage}": stage.id, "{out}": self._path(stage.id), "{turns}": turns}
            self._agents.end(self._process_name(stage.id))  # of an earlier runner: it may still write to its session
            output = await self._in_session(stage, request, placeholders, environment)
            self._agents.end(self._process_name(stage.id))
            nudged = request.params.get("nudged") == request.recovery
            return merge_outputs(str(request.params.get("kept", "")) if nudged else "", output, stage.sections)

        return attempt

    async def _in_session(
        self, stage: PipelineStage, request: Request, placeholders: dict[str, str], environment: dict[str, str]
    ) -> str:
        """Run the command of a stage in the session of its agent, and return its output."""
        log = sessions_of_attempt()

        async def run(command: SessionCommand) -> str:
            sent_request = request
            if command.is_fresh and log is not None and not log.is_first:
                sent_request = log.handed_over(request, await run_in_thread(lambda: changed_files(self.folder)))
            prompt = sent_request.prompt if command.prompt is None else command.prompt
            values = {"{prompt}": prompt, **({} if command.prompt is None else {RECOVERY_PLACEHOLDER: prompt})}
            arguments, variables = fill_placeholders(command.words, {**placeholders, **values})
            stdin = "" if any(uses_placeholder(command.words, name) for name in values) else prompt
            words = self._with_pid_file(stage.id, arguments)
            return await self._run_command(words, stdin, {**variables, **environment}, command)

        command = await run_in_thread(lambda: self.sessions.continued(stage.command, log))
        try:
            return await run(command)
        except AttemptError as error:
            instead = self.sessions.replacement(stage.command, command, error, log)
            if instead is None:
                raise
        return await run(instead)

    def _with_pid_file(self, stage: str, arguments: Sequence[str]) -> list[str]:
        """Return the command with a launcher that writes a PID file.

        A process that an earlier runner of this run left behind for this stage is ended first.
        """
        name = self._process_name(stage)
        self._agents.end(name)
        return launcher(self._agents.pid_file(name), arguments)

    def _process_name(self, stage: str) -> str:
        return re.sub(r"[^A-Za-z0-9._-]", "_", f"{self.run_id or os.getpid()}.{stage}")

    async def _run_command(
        self, arguments: Sequence[str], stdin: str, environment: dict[str, str], command: SessionCommand | None = None
    ) -> str:
        """Run a command and return its output; the id of the session is read from that of an agent's `command`."""
        shows = () if command is None else (command.show("output", None), command.show("errors", None))
        process = RunningProcess(arguments, stdin, *shows, cwd=self.folder, env={**os.environ, **environment})
        try:
            return await run_in_thread(process.result)
        except asyncio.CancelledError:
            await run_in_thread(process.terminate)
            raise
        finally:
            if command is not None:
                command.finish()

    def _nudge(self, request: Request, incident: Incident) -> Request:
        """Return a request for the missing sections only. The output so far is kept: the answer will not repeat it."""
        failure = incident.failures[-1]
        text = render(prompt_id(Action.NUDGE, failure), incident, failure, self.policy.prompts)
        params = dict(request.params)
        if failure.kind is Kind.PARTIAL_OUTPUT:
            params |= {"kept": failure.evidence.output, "nudged": text}
        return request.replace(prompt=text, recovery=text, params=params)

    def _output_check(self, stage: PipelineStage) -> Callable[[str], Any]:
        async def check(output: str) -> Evidence | None:
            evidence = check_output(stage, output)
            if evidence is not None or not stage.check:
                return evidence
            try:
                await self._run_command(stage.check, "", {"RUNG_STAGE": stage.id, "RUNG_RUN": self.run_id})
            except AttemptError as error:
                text = f"`{' '.join(stage.check)}` failed: {clip(error.evidence.text, 2_000)}"
                code = error.evidence.exit_code
                return Evidence(text=text, output=output, exit_code=code, finding=Kind.TEST_FAILURE, phase=Phase.RESULT)
            return None

        return check

    def _operator(self, stage: str, ask: Callable[[str, Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return the `ask` port of a stage. `ask` may block or return an awaitable; the other stages continue."""

        async def ask_operator(question: Any, incident: Any) -> Any:
            answer = await run_in_thread(lambda: ask(stage, question, incident))
            return await answer if hasattr(answer, "__await__") else answer

        return ask_operator

    @property
    def running_stages(self) -> set[str]:
        """Names of the stages that run now, or are parked."""
        return set(self._running.values())

    def stopped_result(self) -> PipelineResult:
        """Return the result of a run that was stopped: what its stages have done so far."""
        return PipelineResult(status=Status.PARTIAL, outcomes=self.outcomes, paths=self.paths, pipeline=self.pipeline)

    def _result(self) -> PipelineResult:
        statuses = {outcome.status for outcome in self.outcomes.values()}
        stopped = next((status for status in _STOPPING_STATUSES if status in statuses), None)
        status = stopped or (Status.RECOVERED if Status.RECOVERED in statuses else Status.SUCCEEDED)
        result = PipelineResult(status=status, outcomes=self.outcomes, paths=self.paths, pipeline=self.pipeline)
        if stopped is None or self.report is None:
            return result
        reports = {
            name: report_text(outcome, self.policy.ladder) for name, outcome in self.outcomes.items() if not outcome.ok
        }
        states = {stage.id: result.state(stage.id) for stage in self.pipeline.stages}
        self.report.parent.mkdir(parents=True, exist_ok=True)
        with self.report.open("a", encoding="utf-8") as file:  # keeps the reports of earlier runs
            file.write(printable(blocked_report(self.pipeline, states, reports)))
        return replace(result, report=str(self.report))


def _read(path: Path) -> str:
    from rung.core.domain.errors import FileError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _write(folder: Path, name: str, text: str) -> str:
    """Write a file atomically. Return its name."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
    return name
