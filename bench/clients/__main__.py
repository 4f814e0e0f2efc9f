"""Run the real clients in every cell that has no result yet: python -m bench.clients [CLIENT …] [--again] [--report FILE]."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import datetime as dt
import fcntl
import socket
import struct
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.clients.across import AcrossHarness, across_cells
from bench.clients.across_report import across_page, across_summary
from bench.clients.cells import DONE, LITELLM, ROUTES, Cell
from bench.clients.clients import CLIENTS, Client
from bench.clients.harness import Harness
from bench.clients.litellm_proxy import ProxyPool
from bench.clients.report import page, summary
from bench.clients.store import SAVED, SAVED_ACROSS, ResultStore

if TYPE_CHECKING:
    from collections.abc import Sequence

NEW_USER, NEW_NET = 0x10000000, 0x40000000
INTERFACE_FLAGS: Final = 0x8914


def isolate_network() -> None:
    """Enter a network namespace with loopback alone: no client reaches a real provider."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_USER | NEW_NET):
        print("clients: no network namespace here; clients may reach the network", file=sys.stderr)
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, INTERFACE_FLAGS, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))  # up, running


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.clients", description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="clients to run (default: all that are installed)")
    for name in ("wire", "mode", "tries", "fault", "route"):
        parser.add_argument(f"--{name}", help=f"only cells with this {name}, or one of several: a,b")
    parser.add_argument("--environments", type=Path, default=Path(".venv/clients"))
    parser.add_argument("--litellm", type=Path, default=Path(".venv/litellm/bin/python"), help="its interpreter")
    parser.add_argument("--workers", type=int, default=2, help="cells at once")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="factor of the gateway's timeouts and of time limits"
    )
    parser.add_argument(
        "--across", action="store_true", help="cells whose only living provider has another wire than the client"
    )
    parser.add_argument("--again", action="store_true", help="also run cells that have a result")
    parser.add_argument("--worse", action="store_true", help="also run cells whose result is not done")
    parser.add_argument("--stale", action="store_true", help="also run cells behind another state of the gateway")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="save the results, write them as a page, and run nothing"
    )
    found = parser.parse_args(arguments)
    if unknown := set(found.clients) - set(CLIENTS):
        parser.error(f"unknown client {', '.join(sorted(unknown))}; known: {', '.join(CLIENTS)}")
    return found


def _cells(client: Client, options: argparse.Namespace) -> list[Cell]:
    return across_cells(client) if options.across else client.cells((*ROUTES, LITELLM))


def _selected(client: Client, options: argparse.Namespace, store: ResultStore) -> list[Cell]:
    names = ("wire", "mode", "tries", "fault", "route")
    wanted = {name: value.split(",") for name in names if (value := getattr(options, name))}
    if not options.across:
        wanted.setdefault("route", list(ROUTES))
    found = [
        cell
        for cell in _cells(client, options)
        if all(getattr(cell, name) in values for name, values in wanted.items())
    ]
    if options.again:
        return found
    return [
        cell
        for cell in found
        if not store.has(cell, client.version)
        or (options.worse and store.found[cell].result.verdict != DONE)
        or (options.stale and store.is_stale(cell))
    ]


async def _run_client(
    client: Client, cells: Sequence[Cell], options: argparse.Namespace, store: ResultStore, proxies: ProxyPool
) -> None:
    left = deque(cells)

    async def worker() -> None:
        kind = AcrossHarness if options.across else Harness
        harness = kind(client, options.environments, options.patience, proxies)
        try:
            while left:
                cell = left.popleft()
                result = await harness.run(cell)
                store.add(cell, result, version=client.version, date=dt.datetime.now(dt.UTC).date().isoformat())
                where = f"{cell.client} {cell.wire} {cell.mode} {cell.tries} {cell.route}"
                told = f"text {result.text}, rows {result.rows}, requests {result.requests}, {result.seconds} s"
                note = f"  {' '.join(result.note.split())[:160]}" if result.note else ""
                print(f"{where:<55} {cell.fault:<24} {result.verdict:<7} {told}{note}", flush=True)
        finally:
            await harness.stop()

    await asyncio.gather(*(worker() for _ in range(min(options.workers, len(cells)))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing; return 1 if a client is worse off behind the gateway."""
    options = _options(arguments)
    name, saved = ("results-across.jsonl", SAVED_ACROSS) if options.across else ("results.jsonl", SAVED)
    store = ResultStore(options.environments / name, saved)
    if options.report:
        store.save(cell for client in CLIENTS.values() for cell in _cells(client, options))
        options.report.write_text((across_page if options.across else page)(store), encoding="utf-8")
        return 0
    isolate_network()
    proxies = ProxyPool(options.litellm, options.patience)
    try:
        _run_all(options, store, proxies)
    finally:
        proxies.close()
    lines, is_worse = (across_summary if options.across else summary)(store)
    print("\n".join(lines))
    return int(is_worse)


def _run_all(options: argparse.Namespace, store: ResultStore, proxies: ProxyPool) -> None:
    for name in options.clients or CLIENTS:
        client = CLIENTS[name]
        if not (options.environments / name / ".ready").exists():
            print(f"{name}: not installed", file=sys.stderr)
            continue
        cells = _selected(client, options, store)
        if cells:
            asyncio.run(_run_client(client, cells, options, store, proxies))


if __name__ == "__main__":
    sys.exit(main())
