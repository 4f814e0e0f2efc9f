"""Many calls at once behind the gateway, with random faults: python -m bench.clients.parallel [CALLS] [--seed N].

The calls are of every kind that the SDKs of Python and Node and Vercel's ai have: each wire, streamed and whole, with a
tool, without the client's own retries. Every answer must be whole, and every tool run once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.clients.behind import gateway
from bench.clients.clients import CLIENTS
from bench.clients.driver import Driver
from bench.clients.provider.script import ANSWER, FAULTS, STALLS, STREAM_ONLY, Asked, Play, is_answer
from bench.clients.provider.server import Provider

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SDKS: Final = ("anthropic-python", "openai-python", "anthropic-node", "openai-node", "vercel")
CONCURRENCY: Final = 12
RATE: Final = 0.3
PATIENCE: Final = 10.0  # factor of the gateway's timeouts where nothing stalls


class FaultyProvider(Provider):
    """Strikes a share of all requests, each with a fault that fits it."""

    def __init__(self, seed: int, *, has_stalls: bool) -> None:
        super().__init__(play=Play())
        # An empty message that strikes twice is the model's own end.
        self._unused = {"empty message"} if has_stalls else {"empty message", *STALLS}
        self._random = random.Random(seed)

    def _strike(self, asked: Asked) -> str | None:
        if self._random.random() >= RATE:
            return None
        place = "answer" if is_answer(self.play, asked) else "call"
        self.struck += 1
        common = [name for name in FAULTS if "before headers" in name or name.isdigit()]
        here = [name for name, where in FAULTS.items() if where == place]
        fitting = [name for name in {*common, *here} if asked.is_stream or name not in STREAM_ONLY]
        return self._random.choice(sorted(set(fitting) - self._unused))


class CallKind(NamedTuple):
    """A kind of call."""

    client: str
    wire: str
    mode: str


def kinds(clients: Sequence[str]) -> list[CallKind]:
    """Return every kind of call of these clients."""
    found = [CLIENTS[name] for name in clients]
    return [CallKind(client.name, wire, mode) for client in found for wire in client.wires for mode in client.modes]


def count_rows(file: Path) -> int:
    """Return how often the tool of a call ran."""
    return len(file.read_text().splitlines()) if file.exists() else 0


async def call(driver: Driver, kind: CallKind, url: str, rows: Path) -> str:
    """Make a call; return how it ended."""
    told = {"wire": kind.wire, "mode": kind.mode, "tries": "zero", "url": url, "rows": str(rows), "parallel": True}
    found = await driver.ask(told)
    count = count_rows(rows)
    if found.get("text") == ANSWER and count == 1:
        return "whole"
    return f"{' '.join(kind)}: {count} rows, {found.get('error') or found.get('died') or repr(found['text'])[:300]}"


async def run(calls: int, seed: int, clients: Sequence[str], environments: Path, *, has_stalls: bool) -> dict[str, Any]:
    """Make the calls; return how many ended in each way, and what the provider met."""
    provider = FaultyProvider(seed, has_stalls=has_stalls)
    await provider.start()
    drivers = {name: Driver(CLIENTS[name], environments) for name in clients}
    await asyncio.gather(*(driver.start() for driver in drivers.values()))
    mix = kinds(clients)
    ends: Counter[str] = Counter()
    left = iter(range(calls))

    async def worker(url: str, root: str, numbers: Iterator[int]) -> None:
        for number in numbers:
            kind = mix[number % len(mix)]
            ends[await call(drivers[kind.client], kind, url, Path(root) / f"{number}.txt")] += 1

    with tempfile.TemporaryDirectory() as root:
        async with gateway(f"http://127.0.0.1:{provider.port}", patience=1.0 if has_stalls else PATIENCE) as url:
            await asyncio.gather(*(worker(url, root, left) for _ in range(CONCURRENCY)))
    await asyncio.gather(*(driver.stop() for driver in drivers.values()))
    await provider.stop()
    found = {"calls": calls, "kinds": len(mix), "ends": dict(ends)}
    return {**found, "requests": provider.requests, "struck": provider.struck}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=450)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", default=",".join(SDKS), help="a,b (default: %(default)s)")
    parser.add_argument("--environments", type=Path, default=Path(".venv/clients"))
    parser.add_argument("--no-stalls", action="store_true", help="leave out the faults that end by a timeout")
    options = parser.parse_args()
    clients = options.clients.split(",")
    has_stalls = not options.no_stalls
    found = asyncio.run(
        run(options.calls, options.seed, clients, options.environments.resolve(), has_stalls=has_stalls)
    )
    print(json.dumps(found, ensure_ascii=False, indent=1))
    return int(found["ends"] != {"whole": options.calls})


if __name__ == "__main__":
    sys.exit(main())
