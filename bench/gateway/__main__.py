"""Compare gateways in one run: requests per CPU second, added latency, memory.

    python -m bench.gateway [--quick] [--seconds 2] [--litellm PYTHON] [--portkey SCRIPT] [--requests 100000]

Everything runs on loopback: the lab answers, this process generates load, each subject is a separate process. Subjects
take turns, so that other load on the machine affects all of them equally; compare ratios. Latency is relative to direct
requests in the same run. Rung runs with its defaults: journal, classification, circuit breakers, budgets.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from bench.gateway.load import Measured, load, memory_of, send
from bench.gateway.subjects import DIRECT, LITELLM, MINIMAL, OURS, PORTKEY, Subject, lab, ours, running, stop_all

ROUNDS = 4
WARM_UP_SECONDS = 3.0
MEMORY_MARKS = (10_000, 50_000, 100_000)
# Minimum requests per CPU second of rung, as a multiple of the others'.
GOALS = {MINIMAL: 0.7, LITELLM: 40.0, PORTKEY: 6.0}
ADDED_MS, MEGABYTES, GROWTH, READY = 1.0, 80.0, 3.0, 1.0


class Cell(NamedTuple):
    """One case: connections, streaming, request size, delay of the lab."""

    connections: int
    stream: bool
    large: bool
    delay: float

    def __str__(self) -> str:
        kind = "stream of 100" if self.stream else "whole"
        return f"{kind}, {'200 kB' if self.large else 'small'}, {self.delay * 1000:.0f} ms, c={self.connections}"

    @property
    def ending(self) -> bytes:
        return b"message_stop" if self.stream else b"word20"


def build_request(cell: Cell, headers: str = "") -> bytes:
    history = (
        [{"role": "user", "content": "x" * 4_000}, {"role": "assistant", "content": "y"}] * 50 if cell.large else []
    )
    messages = [*history, {"role": "user", "content": "count to 100" if cell.stream else "count to 20"}]
    body = json.dumps({"model": "small", "max_tokens": 1_000, "messages": messages, "stream": cell.stream}).encode()
    head = (
        "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-api-key: sk-test\r\n"
        "anthropic-version: 2023-06-01\r\naccept: application/json\r\nuser-agent: bench\r\nx-stainless-lang: python\r\n"
        f"{headers}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def warm_up(found: list[Subject]) -> None:
    """Send requests until imports, compilation and connections are done."""
    for subject in found:
        for stream in (False, True):
            cell = Cell(8, stream, False, 0.0)
            await load(
                subject.port, build_request(cell, subject.headers), cell.ending, 8, WARM_UP_SECONDS, subject.process.pid
            )


async def measure(cell: Cell, found: list[Subject], seconds: float) -> dict[str, Measured]:
    measured = {subject.name: Measured() for subject in found}
    for turn in range(ROUNDS + 1):
        for subject in found:
            if measured[subject.name].seconds > 2 * seconds:  # a slow subject has used its time
                continue
            request = build_request(cell, subject.headers)
            length = seconds / ROUNDS if turn else min(0.2, seconds / ROUNDS)  # the first turn warms up
            one = await load(subject.port, request, cell.ending, cell.connections, length, subject.process.pid)
            if turn:
                measured[subject.name].add(one)
    return measured


def print_cell(cell: Cell, measured: dict[str, Measured]) -> None:
    direct, mine = measured[DIRECT], measured[OURS]
    load_now = os.getloadavg()[0]
    print(
        f"\n{cell}: direct p50 {direct.percentile_ms(50):.2f} ms, p99 {direct.percentile_ms(99):.2f} ms; load {load_now:.1f}"
    )
    print(f"  {'':10}{'req/cpu s':>10}{'rung is':>9}{'req/s':>8}{'+p50 ms':>9}{'+p99 ms':>9}{'first ms':>9}  wrong")
    for name, one in measured.items():
        if name != DIRECT:
            times = mine.per_cpu_second / one.per_cpu_second if one.per_cpu_second else 0.0
            print(
                f"  {name:10}{one.per_cpu_second:10.0f}{times:8.2f}x{len(one.took) / one.seconds:8.0f}"
                f"{one.percentile_ms(50) - direct.percentile_ms(50):9.2f}{one.percentile_ms(99) - direct.percentile_ms(99):9.2f}{one.percentile_ms(50, one.first):9.2f}"
                f"  {one.wrong}",
                flush=True,
            )


def cells(*, quick: bool) -> list[Cell]:
    if quick:
        return [Cell(c, stream, False, 0.0) for c in (1, 32) for stream in (False, True)] + [Cell(32, False, True, 0.0)]
    return [
        Cell(c, stream, large, delay)
        for delay in (0.0, 0.02)
        for c in (1, 32, 128)
        for stream in (False, True)
        for large in (False, True)
    ]


async def measure_memory(requests: int, scratch: Path) -> dict[int, float]:
    """Return rung's memory in megabytes after each number of requests; a quarter of them streamed."""
    found = [lab(0.0, scratch)]
    found.append(ours(f"http://127.0.0.1:{found[0].port}", scratch))
    kept, done = {0: memory_of(found[1].process.pid)}, 0
    whole, stream = Cell(32, False, False, 0.0), Cell(32, True, False, 0.0)
    try:
        for mark in [mark for mark in MEMORY_MARKS if mark < requests] + [requests]:
            for cell, share in ((whole, 0.75), (stream, 0.25)):
                number = round((mark - done) * share)
                wrong = await send(found[1].port, build_request(cell), cell.ending, cell.connections, number)
                assert not wrong, f"{wrong} wrong answers"
            done = mark
            kept[mark] = memory_of(found[1].process.pid)
    finally:
        stop_all(found)
    return kept


def print_goal(what: str, figure: str, *, met: bool) -> None:
    print(f"  {what:66}{figure:>14}  {'met' if met else 'MISSED'}", flush=True)


def print_goals(everything: dict[Cell, dict[str, Measured]]) -> None:
    for name, goal in GOALS.items():
        ratios = {
            cell: measured[OURS].per_cpu_second / measured[name].per_cpu_second
            for cell, measured in everything.items()
            if name in measured and measured[name].per_cpu_second
        }
        for cell in [cell for cell in ratios if cell[:1] == (32,) and cell[2:] == (False, 0.0)]:
            print_goal(f"requests per cpu second, of {name}'s, goal {goal:g}x: {cell}", f"{ratios[cell]:.2f}x", met=ratios[cell] >= goal)  # fmt: skip
        if len(ratios) > 1:
            least = min(ratios, key=lambda cell: ratios[cell])
            good = sum(ratio >= goal for ratio in ratios.values())
            print_goal(
                f"  in {good} of {len(ratios)} cells; least: {least}", f"{ratios[least]:.2f}x", met=good == len(ratios)
            )
    for cell, measured in everything.items():
        if cell.connections == 1 and not cell.large:
            added = measured[OURS].percentile_ms(50) - measured[DIRECT].percentile_ms(50)
            print_goal(f"added p50, goal {ADDED_MS:g} ms: {cell}", f"{added:.2f} ms", met=added <= ADDED_MS)


def as_json(everything: dict[Cell, dict[str, Measured]], kept: dict[int, float], ready: float) -> dict[str, Any]:
    """Return the figures of each cell, rung's memory in MB after each number of requests, and the seconds of its start."""
    cells = {
        str(cell): {
            name: {
                "per_cpu_second": one.per_cpu_second,
                "p50": one.percentile_ms(50) / measured[DIRECT].percentile_ms(50),
                "p99": one.percentile_ms(99) / measured[DIRECT].percentile_ms(99),
                "wrong": one.wrong,
            }
            for name, one in measured.items()
        }
        for cell, measured in everything.items()
    }
    return {"cells": cells, "memory": {str(mark): size for mark, size in kept.items()}, "ready": ready}


async def main(options: Any) -> None:
    wanted = cells(quick=options.quick)
    peers = {LITELLM: options.litellm, PORTKEY: options.portkey}
    everything: dict[Cell, dict[str, Measured]] = {}
    ready = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        # Installed packages have bytecode; a first start that is not measured compiles it here.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(scratch, "bytecode"))
        stop_all([ours("http://127.0.0.1:9", Path(scratch))])
        for delay in sorted({cell.delay for cell in wanted}):
            with running(delay, Path(scratch), peers) as found:
                ready = max(ready, *(subject.ready for subject in found if subject.name == OURS))
                for subject in found[1:]:
                    print(f"{subject.name}: ready in {subject.ready:.2f} s, {memory_of(subject.process.pid):.0f} MB")
                await warm_up(found)
                for cell in wanted:
                    if cell.delay == delay:
                        everything[cell] = await measure(cell, found, options.seconds)
                        print_cell(cell, everything[cell])
                print()
                for subject in found[1:]:
                    print(f"{subject.name}: {memory_of(subject.process.pid):.0f} MB after all of it")
                print()
        kept = await measure_memory(options.requests, Path(scratch)) if options.requests else {}
    if options.json:
        options.json.write_text(json.dumps(as_json(everything, kept, ready), indent=1) + "\n")
    print("goals:")
    print_goals(everything)
    print_goal(f"ready, goal {READY:g} s", f"{ready:.2f} s", met=ready < READY)
    if kept:
        most, marks = max(kept.values()), [mark for mark in kept if mark]
        said = ", ".join(f"{mark:,}: {size:.1f}" for mark, size in kept.items())
        print_goal(f"memory, goal {MEGABYTES:g} MB; after requests: {said}", f"{most:.1f} MB", met=most <= MEGABYTES)
        grown = kept[marks[-1]] - kept[marks[0]]
        print_goal(
            f"flat from {marks[0]:,} to {marks[-1]:,}, goal {GROWTH:g} MB", f"{grown:+.1f} MB", met=grown <= GROWTH
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="five cells, without the memory run")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds per subject and cell")
    parser.add_argument("--litellm", type=Path, help="Python interpreter with litellm[proxy]")
    parser.add_argument("--portkey", type=Path, help="start-server.js of @portkey-ai/gateway")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures to this file")
    parser.add_argument("--requests", type=int, default=None, help="requests of the memory run; 0 skips it")
    given = parser.parse_args()
    if given.requests is None:
        given.requests = 0 if given.quick else MEMORY_MARKS[-1]
    uvloop.run(main(given))
