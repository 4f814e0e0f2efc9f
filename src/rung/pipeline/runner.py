"""Stages of agents, each recovered on its own; a finished stage never runs again, and nothing follows one that stopped."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.adapters.system.process import RunningProcess
from rung.adapters.system.worker_processes import RealProcesses, launcher
from rung.core.classify.evidence import clip
from rung.core.domain.errors import AttemptError
from rung.core.domain.events import Status
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import Action
from rung.core.domain.outcome import GOOD, report_text
from rung.core.domain.request import Request
from rung.core.pipeline.spec import blocked_report, joined, judge_output, read_pipeline, stage_prompt
from rung.core.policy.parser import policy_from
from rung.core.policy.prompts import prompt_id, render
from rung.engine.durable import recovery
from rung.engine.recover import recover
from rung.pipeline.result import PipelineResult, signal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rung.core.domain.outcome import Outcome
    from rung.core.pipeline.spec import Pipeline, PipelineStage
    from rung.core.policy.policy import Policy
    from rung.engine.recover import RunPorts

T = TypeVar("T")
# What stopped it, the gravest first.
_WORST: Final = (Status.BLOCKED, Status.FAILED, Status.PARTIAL)


def load(table: dict[str, Any]) -> tuple[Pipeline, Policy]:
    """The pipeline of a table and its policy: the `pipeline` ladder, and what `[policy]` says otherwise."""
    return read_pipeline(table), policy_from({"ladder": "pipeline", **table.get("policy", {})})


@dataclass(kw_only=True)
class PipelineRun:
    """One run of a pipeline. Paths are seen from `folder`, where the agents run.

    With a journal and a run id it survives its process: started again, it goes on. `ask(stage, question,
    incident)` answers questions; without it nobody is there, and what needs a person ends blocked. `listen(stage, event, incident)` is
    told everything.
    """

    pipeline: Pipeline
    policy: Policy
    folder: Path
    journal: Any = None
    run_id: str = ""
    ask: Callable[[str, Any, Any], Any] | None = None
    listen: Callable[[str, Any, Any], object] = lambda *_: None  # nobody listens
    report: Path | None = None
    outcomes: dict[str, Outcome[str]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Read what the stages are to be asked, before any of them is."""
        stages = self.pipeline.stages
        self._prompts = {stage.id: stage.prompt or _read(self.folder / stage.prompt_path) for stage in stages}

    async def run(self) -> PipelineResult:
        """All of it, or as far as it goes. Ctrl-C ends the agents that run, and all they started."""
        self._agents = RealProcesses(self.folder / self.pipeline.out / self.pipeline.name / ".run")
        self.prepare()
        running: dict[asyncio.Task[Outcome[str]], str] = {}
        try:
            while True:
                for stage in self._ready(set(running.values())):
                    running[asyncio.create_task(self._run_stage(stage))] = stage.id
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._take(running.pop(task), task.result())
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._agents.remove_empty_directories()
        return self._ended()

    def _ready(self, running: set[str]) -> list[PipelineStage]:
        """Who may start now; once one has stopped, nobody."""
        if any(not outcome.ok for outcome in self.outcomes.values()):
            return []
        waiting = [stage for stage in self.pipeline.stages if stage.id not in self.outcomes and stage.id not in running]
        ready = [stage for stage in waiting if self.pipeline.after[stage.id] <= self.outcomes.keys()]
        return ready[: max(0, self.pipeline.workers - len(running))]

    def _take(self, name: str, outcome: Outcome[str]) -> None:
        """Keep what a stage wrote, whole or as far as it got."""
        self.outcomes[name] = outcome
        partial = outcome.failure.evidence.output if outcome.failure is not None else ""
        text = (outcome.value or "") if outcome.ok else outcome.value or partial
        if text or outcome.ok:
            self.paths[name] = _write(self.folder, self._path(name, whole=outcome.ok), text)

    def _path(self, name: str, *, whole: bool = True) -> str:
        return f"{self.pipeline.out}/{self.pipeline.name}/{name}{'' if whole else '.partial'}.md"

    async def _run_stage(self, stage: PipelineStage) -> Outcome[str]:
        before = {
            name: (self.paths[name], signal_of(self.outcomes[name], "").line())
            for name in self.pipeline.after[stage.id]
            if name in stage.depends_on
        }
        request = Request(
            prompt=stage_prompt(self._prompts[stage.id], dict(sorted(before.items()))),
            max_turns=stage.turns,
            idempotent=stage.idempotent,
        )
        ports: RunPorts = {
            "check": self._check(stage),
            "rung_handlers": {Action.NUDGE.value: self._nudge},
            "listeners": [lambda event, incident: self.listen(stage.id, event, incident)],
        }
        if self.ask is not None:
            ports["ask"] = self._asker(stage.id, self.ask)
        agent, journal = self._agent(stage), self.journal
        policy = self.policy.replace(report="")  # its own report is part of the pipeline's
        if journal is None or not self.run_id:
            return await recover(agent, request, policy=policy, journal=journal, **ports)
        run = await asyncio.to_thread(self._stage_run, stage.id)
        return await recovery.recover(agent, request, policy=policy, journal=journal, run_id=run, **ports)

    def _stage_run(self, stage: str) -> str:
        """The run of a stage: the one that passed or was cut off, else a new one, as a stopped stage is tried again."""
        number, name = 1, f"{self.run_id}/{stage}"
        while self._stopped(name):
            number += 1
            name = f"{self.run_id}/{stage}~{number}"
        return name

    def _stopped(self, name: str) -> bool:
        """Has it ended, and not well? Ctrl-C is such an end; a process that died is none."""
        ended = self.journal.runs.ended(name)
        status = ended.get("status") if ended is not None else Incident.of(self.journal.events(name)).status
        return status is not None and status not in GOOD

    def _agent(self, stage: PipelineStage) -> Callable[[Request], Any]:
        async def attempt(request: Request) -> str:
            filled = {"{prompt}": request.prompt, "{stage}": stage.id, "{out}": self._path(stage.id)}
            filled["{turns}"] = "" if request.max_turns is None else str(request.max_turns)
            in_place = any("{prompt}" in word for word in stage.command)
            words = [_filled(word, filled) for word in stage.command]
            said = {"RUNG_STAGE": stage.id, "RUNG_RUN": self.run_id, "RUNG_TURNS": filled["{turns}"]}
            output = await self._command(self._behind_file(stage.id, words), "" if in_place else request.prompt, said)
            self._agents.end(self._name(stage.id))
            nudged = request.params.get("nudged") == request.recovery
            return joined(str(request.params.get("kept", "")) if nudged else "", output, stage.sections)

        return attempt

    def _behind_file(self, stage: str, words: Sequence[str]) -> list[str]:
        """The command, known by a PID file; what a runner that died left of this very stage is ended first."""
        name = self._name(stage)
        self._agents.end(name)
        return launcher(self._agents.pid_file(name), words)

    def _name(self, stage: str) -> str:
        return re.sub(r"[^A-Za-z0-9._-]", "_", f"{self.run_id or os.getpid()}.{stage}")

    async def _command(self, words: Sequence[str], given: str, said: dict[str, str]) -> str:
        started = RunningProcess(words, given, cwd=self.folder, env={**os.environ, **said})
        try:
            return await apart(started.result)
        except asyncio.CancelledError:
            await apart(started.terminate)
            raise

    def _nudge(self, request: Request, incident: Incident) -> Request:
        """Ask only for what is missing, and keep what is there: the answer will not say it again."""
        failure = incident.failures[-1]
        text = render(prompt_id(Action.NUDGE, failure), incident, failure, self.policy.prompts)
        params = dict(request.params)
        if failure.kind is Kind.PARTIAL_OUTPUT:
            params |= {"kept": failure.evidence.output, "nudged": text}
        return request.replace(prompt=text, recovery=text, params=params)

    def _check(self, stage: PipelineStage) -> Callable[[str], Any]:
        async def check(output: str) -> Evidence | None:
            found = judge_output(stage, output)
            if found is not None or not stage.check:
                return found
            try:
                await self._command(stage.check, "", {"RUNG_STAGE": stage.id, "RUNG_RUN": self.run_id})
            except AttemptError as error:
                text = f"`{' '.join(stage.check)}` failed: {clip(error.evidence.text, 2_000)}"
                code = error.evidence.exit_code
                return Evidence(text=text, output=output, exit_code=code, finding=Kind.TEST_FAILURE, phase=Phase.RESULT)
            return None

        return check

    def _asker(self, stage: str, ask: Callable[[str, Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Whoever answers may block, or promise an answer: the other stages go on."""

        async def put(question: Any, incident: Any) -> Any:
            said = await apart(lambda: ask(stage, question, incident))
            return await said if hasattr(said, "__await__") else said

        return put

    def _ended(self) -> PipelineResult:
        statuses = {outcome.status for outcome in self.outcomes.values()}
        stopped = next((status for status in _WORST if status in statuses), None)
        recovered = Status.RECOVERED in statuses
        status = stopped or (Status.RECOVERED if recovered else Status.SUCCEEDED)
        ran = PipelineResult(status=status, outcomes=self.outcomes, paths=self.paths, pipeline=self.pipeline)
        if stopped is None or self.report is None:
            return ran
        reports = {
            name: report_text(outcome, self.policy.ladder) for name, outcome in self.outcomes.items() if not outcome.ok
        }
        states = {stage.id: ran.state(stage.id) for stage in self.pipeline.stages}
        self.report.parent.mkdir(parents=True, exist_ok=True)
        with self.report.open("a", encoding="utf-8") as file:  # earlier reports stay
            file.write(blocked_report(self.pipeline, states, reports))
        return replace(ran, report=str(self.report))


def _filled(word: str, fields: dict[str, str]) -> str:
    """Each placeholder once: what a prompt says is never taken for one."""
    return re.sub("|".join(map(re.escape, fields)), lambda match: fields[match[0]], word)


def _read(path: Path) -> str:
    from rung.core.domain.errors import FileError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _write(folder: Path, name: str, text: str) -> str:
    """A whole file, at once; its name, as it was given."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
    return name


async def apart(work: Callable[[], T]) -> T:
    """Do what blocks beside the loop, in a thread that nobody waits for when the loop ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(act: Callable[[Any], None], what: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know
            loop.call_soon_threadsafe(lambda: None if future.done() else act(what))

    def run() -> None:
        try:
            tell(future.set_result, work())
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the caller's
            tell(future.set_exception, error)

    threading.Thread(target=run, daemon=True).start()
    return await future
