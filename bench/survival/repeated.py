"""Claude Code and Codex while every second request fails, by the faults of the lab: python -m bench.survival.repeated."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.gateway.agent_rig import MODEL, OTHER, TIMEOUTS, run_before
from tests.gateway.agents import RAN, SAID, Task, rules, task, turns
from tests.gateway.cells import CASES

from bench.clients.__main__ import isolate_network
from bench.clients.cells import DIRECT, DONE, FAILED, GATEWAY, HUNG, LITELLM, PLAIN, UNMET, WRONG, Cell, Result
from bench.clients.clients import CLIENTS
from bench.clients.store import ResultStore
from bench.gateway.matrix_peers import Proxy
from rung.testing.provider import Lab

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ENVIRONMENTS: Final = Path(".venv/clients")
SAVED: Final = Path(__file__).parent / "repeated.jsonl"
STORE: Final = "repeated.jsonl"
ROUTES: Final = (DIRECT, GATEWAY, LITELLM)
AGENT: Final = {"claude-code": "claude", "codex": "codex"}
PROVIDER: Final = {"claude": "anthropic", "codex": "openai"}
# Faults that nobody survives are left out, and what the model does by itself.
FAULTS: Final = tuple(name for name, case in CASES.items() if case.best == "whole" and name != "loop")


def all_cells() -> list[Cell]:
    """Return every cell: the agents as they are installed, with their own tries."""
    return [
        Cell(client=name, wire=CLIENTS[name].wires[0], mode="stream", tries="default", fault=fault, route=route)
        for name in AGENT
        for fault in (PLAIN, *FAULTS)
        for route in ROUTES
    ]


def judged(found: Task) -> Result:
    """Return how a task ended."""
    whole, rows = found.said == SAID, len(found.ran)
    if found.exit < 0:
        verdict = HUNG
    elif found.exit:
        verdict = FAILED
    else:
        verdict = DONE if found.done else WRONG
    text = "whole" if whole else "other" if found.said else "none"
    return Result(
        verdict=verdict, exit_code=None if found.exit < 0 else found.exit, text=text, rows=rows,
        requests=found.attempts, seconds=round(found.seconds, 1), note="" if verdict == DONE else found.said[-300:],
    )  # fmt: skip


class BehindLiteLLM:
    """One lab and one proxy for all cells of an agent, one after the other; both with the models that our gateway has."""

    def __init__(self, agent: str, program: Path) -> None:
        self._agent, self._program = agent, program
        self._lab = Lab().__enter__()
        self._proxy: Proxy | None = None

    def task(self, root: Path, faults: list[object]) -> Task:
        """Run the task under these faults."""
        if self._proxy is None:
            models = MODEL[self._agent], OTHER[self._agent]
            proxy = Proxy(self._lab, self._program, PROVIDER[self._agent], models, TIMEOUTS["headers"])
            self._proxy = proxy.__enter__()
        self._lab.use({"turns": turns(self._agent), "rules": faults})
        told = {"agent": self._agent, "root": str(root), "gateway": True, "tries": True}
        found = {"apart": True, **run_before(self._lab, f"http://127.0.0.1:{self._proxy.port}", told)}
        if found["exit"] < 0:  # the proxy may still repeat a request of the agent that was killed
            self.close_proxy()
        return Task(**{field: found[field] for field in Task._fields})

    def close_proxy(self) -> None:
        """End the proxy."""
        if self._proxy is not None:
            self._proxy.__exit__()
            self._proxy = None

    def close(self) -> None:
        """End the proxy and the lab."""
        self.close_proxy()
        self._lab.__exit__(None, None, None)


def _run(cells: Iterable[Cell], store: ResultStore, litellm: Path) -> None:
    """Run cells of one agent and one route, one after the other."""
    behind: BehindLiteLLM | None = None
    for cell in cells:
        agent = AGENT[cell.client]
        faults = rules(agent, CASES.get(cell.fault))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
            if cell.route == LITELLM:
                behind = behind or BehindLiteLLM(agent, litellm.absolute())
                found = behind.task(Path(root), faults)
            else:
                found = task(agent, Path(root), faults, gateway=cell.route == GATEWAY, tries=True)
        result = judged(found)
        if cell.fault != PLAIN and not found.struck:
            result = Result(**{**result.to_dict(), "verdict": UNMET})
        store.add(cell, result, version=CLIENTS[cell.client].version, date=dt.datetime.now(dt.UTC).date().isoformat())
        told = f"ran {'+'.join(found.ran) or 'nothing'} of {len(RAN)}, {found.struck} faults, {found.seconds:.0f} s"
        print(f"{cell.client:<12} {cell.route:<8} {cell.fault:<32} {result.verdict:<7} {told} {result.note[:120]}", flush=True)  # fmt: skip
    if behind is not None:
        behind.close()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.survival.repeated", description=__doc__)
    for name, known in (("client", AGENT), ("fault", (PLAIN, *FAULTS)), ("route", ROUTES)):
        parser.add_argument(f"--{name}", action="append", choices=tuple(known), help="may be given several times")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    parser.add_argument("--litellm", type=Path, default=Path(".venv/litellm/bin/python"))
    parser.add_argument("--again", action="store_true", help="also run cells that have a result")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells that have no result yet, each agent's on each route one after the other, three of these at once."""
    options = _options(arguments)
    store = ResultStore(options.environments / STORE, SAVED)
    chosen = [
        cell
        for cell in all_cells()
        if all(getattr(cell, name) in (getattr(options, name) or (getattr(cell, name),)) for name in ("client", "fault", "route"))
        and (options.again or not store.has(cell, CLIENTS[cell.client].version))
    ]  # fmt: skip
    isolate_network()
    modules = options.environments.absolute() / "claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    os.environ["RUNG_CLAUDE"] = str(modules)
    os.environ["RUNG_CODEX"] = str(options.environments.absolute() / "codex/node_modules/.bin/codex")
    lanes: dict[tuple[str, str], list[Cell]] = {(cell.client, cell.route): [] for cell in chosen}
    for cell in chosen:
        lanes[cell.client, cell.route].append(cell)
    with ThreadPoolExecutor(len(ROUTES)) as pool:
        list(pool.map(lambda lane: _run(lane, store, options.litellm), lanes.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
