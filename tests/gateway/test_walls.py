"""The suite of walls: its provider, its routes and its verdicts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest
from bench.clients.cells import DONE, FAILED
from bench.clients.provider.script import ROW, Play
from bench.walls.cells import DIRECT, LITELLM, MODELS, ONE, PROVIDERS, WALLS, Cell, Result, all_cells
from bench.walls.report import Verdicts, page
from bench.walls.routes import case_of
from bench.walls.store import WallStore

from tests.gateway.behind import LONG

if TYPE_CHECKING:
    from pathlib import Path

TOOL = {"name": "append_row", "input_schema": {"type": "object", "properties": {"row": {"type": "string"}}}}


def cell(route: str, wall: int = 30, client: str = "anthropic-python") -> Cell:
    return Cell(client=client, wire="messages", mode="whole", tries="10", wall=wall, route=route)


def test_every_wall_has_every_client_and_route() -> None:
    """The table of the suite has every combination once."""
    cells = all_cells()
    assert len(cells) == len(set(cells)) == len(WALLS) * (6 * 2 * 2 + 5) * 5


@pytest.mark.parametrize("route", [ONE, MODELS, PROVIDERS])
def test_a_wall_ends_on_every_route(route: str) -> None:
    """A client without tries of its own gets its answer behind the gateway, from whichever model or provider has one."""

    async def ask() -> tuple[str, list[float], float | None]:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": [{"role": "user", "content": "Go."}]}
        async with (
            case_of(cell(route, wall=1), Play(), None) as (url, log, _),
            httpx.AsyncClient(timeout=LONG) as client,
        ):
            answer = (await client.post(f"{url}/v1/messages", json={**body, "tools": [TOOL]})).json()
            return answer["content"][-1]["input"]["row"], log.requests, log.answered

    row, requests, answered = asyncio.run(ask())
    assert row == ROW
    assert len(requests) > 1
    assert answered == requests[-1]
    assert answered >= 1.0 or route != ONE


def result(verdict: str, requests: int, late: float | None = 1.0) -> Result:
    return Result(verdict=verdict, requests=requests, late=late, gave_up=31.0)


def test_the_verdicts_name_the_cells_that_break_them(tmp_path: Path) -> None:
    """A cell that is worse than directly, that does not survive a short wall, or that asks too often is listed."""
    store = WallStore(tmp_path / "walls.jsonl", tmp_path / "saved.jsonl")
    store.add(cell(DIRECT), result(DONE, 10), "2026-11-17")
    store.add(cell(ONE), result(FAILED, 9, None), "2026-11-17")
    store.add(cell(MODELS), result(DONE, 13), "2026-11-17")
    store.add(cell(PROVIDERS), result(DONE, 12, -25.0), "2026-11-17")
    store.add(cell(LITELLM), result(FAILED, 40, None), "2026-11-17")
    store.add(cell(ONE, wall=600), result(FAILED, 60, None), "2026-11-17")
    verdicts = Verdicts(store)
    assert verdicts.worse == verdicts.short_lost == [cell(ONE)]
    assert verdicts.heavy == [cell(MODELS)]
    assert verdicts.lost == [cell(ONE), cell(ONE, wall=600)]
    assert not verdicts.holds
    told = page(store)
    assert "anthropic-python messages whole, tries 10, wall 30 s, one model: **failed** after 31 s, 9" in told
    assert "| messages | whole | 10 | 30 s | +1 s, 10 | **failed** after 31 s, 9 | +1 s, 13 | -25 s, 12 |" in told


def test_results_are_kept(tmp_path: Path) -> None:
    """A run that starts again finds what is measured; the committed file has no notes."""
    path, saved = tmp_path / "walls.jsonl", tmp_path / "saved.jsonl"
    noted = Result(verdict=FAILED, requests=3, late=None, gave_up=2.0, note="/home/somebody")
    WallStore(path, saved).add(cell(ONE), noted, "2026-11-17")
    store = WallStore(path, saved)
    assert store.has(cell(ONE))
    assert not store.is_stale(cell(ONE))
    assert store.found[cell(ONE)].result == noted
    store.save()
    path.unlink()
    assert WallStore(path, saved).found[cell(ONE)].result.note == ""
    assert WallStore(path, saved).has(cell(ONE))
