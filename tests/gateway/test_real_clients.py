"""A slice of `make clients` in the gate: Claude Code, Codex, Vercel's SDK and the Python SDKs behind the gateway.

The provider is that of the suite, which shares no code with the lab. `make test` installs Codex and Vercel's SDK.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.clients.across import OUTAGES
from bench.clients.across_report import across_page, across_rows
from bench.clients.cells import ROUTES, Cell, Result
from bench.clients.report import page, rows
from bench.clients.store import SAVED_ACROSS, ResultStore

from tests.hooks.rig import command_line

ROOT = Path(__file__).parents[2]
INSTALLED = Path(sys.prefix) / "clients"
SLICE = [
    ("anthropic-python", "messages", "default", "cut by reset,empty 200,cut in call"),
    ("openai-python", "chat,responses", "default", "error event in text,output limit"),
    ("vercel", "messages,responses", "default", "cut by reset,no end"),
    ("claude-code", "messages", "default", "cut by reset,output limit"),
    ("codex", "responses", "default", "cut by close,error event in text"),
]


def environment(client: str, place: Path) -> None:
    """Make the environment of a client from what is installed: Rung's own has the Python SDKs and Claude Code."""
    if client.endswith("-python"):
        (place / client / "bin").mkdir(parents=True)
        (place / client / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (place / client / "bin/python").chmod(0o755)
    elif client == "claude-code":
        program = command_line()
        if program is None:
            missing(client)
        (place / client / "node_modules/@anthropic-ai/claude-code-linux-x64").mkdir(parents=True)
        (place / client / "node_modules/@anthropic-ai/claude-code-linux-x64/claude").symlink_to(program or "")
    else:
        if not all((INSTALLED / name / ".ready").exists() for name in (client, "node")):
            missing(client)
        for name in (client, "node"):
            (place / name).symlink_to(INSTALLED / name)
        return
    (place / client / ".ready").touch()


def missing(client: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{client} is needed here: make gate-clients")
    pytest.skip(f"{client} is not installed: make gate-clients")


@pytest.mark.parametrize(("client", "wires", "tries", "faults"), SLICE)
def test_a_real_client_gets_whole_answers(client: str, wires: str, tries: str, faults: str, tmp_path: Path) -> None:
    """Behind the gateway, a real client ends with the whole text and one run of its tool under each fault."""
    environment(client, tmp_path)
    words = [
        client,
        "--wire",
        wires,
        "--tries",
        tries,
        "--mode",
        "stream",
        "--fault",
        faults,
        "--route",
        "gateway",
        "--patience",
        "4",
        "--again",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "bench.clients", *words, "--environments", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    expected = {(wire, fault): "done" for wire in wires.split(",") for fault in faults.split(",")}
    assert {(row["wire"], row["fault"]): row["verdict"] for row in found} == expected, done.stdout + done.stderr


ACROSS = [("anthropic-python", "messages", "via chat"), ("openai-python", "chat", "via messages")]


@pytest.mark.parametrize(("client", "wire", "route"), ACROSS)
def test_a_real_client_is_served_across_wires(client: str, wire: str, route: str, tmp_path: Path) -> None:
    """With its own provider dead, or dying in its text or call, a real client gets whole answers from one of another wire."""
    environment(client, tmp_path)
    words = [client, "--across", "--wire", wire, "--mode", "stream", "--route", route, "--patience", "4", "--again"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.clients", *words, "--environments", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = [json.loads(line) for line in (tmp_path / "results-across.jsonl").read_text().splitlines()]
    assert {row["fault"]: row["verdict"] for row in found} == dict.fromkeys(OUTAGES, "done"), done.stdout + done.stderr


def test_parallel_calls_are_whole(tmp_path: Path) -> None:
    """Of calls at once with 30 % of the requests failing, every answer is whole and every tool runs once."""
    clients = ("anthropic-python", "openai-python", "vercel")
    for client in clients:
        environment(client, tmp_path)
    words = ["24", "--no-stalls", "--clients", ",".join(clients), "--environments", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.clients.parallel", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["ends"] == {"whole": 24}, found
    assert found["struck"] > 5


def test_results_are_kept(tmp_path: Path) -> None:
    """Saved results are read again as they were measured, with their state of the gateway; a torn line is skipped."""
    cells = [
        Cell(client="codex", wire="responses", mode="stream", tries="default", fault=fault, route=route)
        for route in ROUTES
        for fault in ("429", "500")
    ]
    result = Result(verdict="done", exit_code=0, text="whole", rows=1, requests=3, seconds=1.5)
    store = ResultStore(tmp_path / "run.jsonl", tmp_path / "saved.jsonl")
    for cell in cells:
        store.add(cell, result, version="1.0", date="2026-11-17")
    with (tmp_path / "run.jsonl").open("a") as file:
        file.write('{"client": "cod')
    assert ResultStore(tmp_path / "run.jsonl", tmp_path / "none.jsonl").found == store.found
    store.save(cells)
    saved = ResultStore(tmp_path / "none.jsonl", tmp_path / "saved.jsonl")
    assert saved.found == store.found
    assert all(saved.has(cell, "1.0") and not saved.has(cell, "1.1") for cell in cells)
    saved.state = "another"
    assert [saved.is_stale(cell) for cell in cells] == [False, False, True, True]


def test_the_page_is_what_was_measured(tmp_path: Path) -> None:
    """The page of real clients is written from the committed results: `make clients`."""
    store = ResultStore(tmp_path / "none.jsonl")
    assert page(store) == (ROOT / "docs/reference/clients.md").read_text(encoding="utf-8")
    assert not any(row.worse() for row in rows(store))


def test_the_page_across_wires_is_what_was_measured(tmp_path: Path) -> None:
    """The page of clients across wires is written from the committed results: `make clients-across`."""
    store = ResultStore(tmp_path / "none.jsonl", SAVED_ACROSS)
    assert across_page(store) == (ROOT / "docs/reference/clients-across.md").read_text(encoding="utf-8")
    assert all(row.is_done for row in across_rows(store))
