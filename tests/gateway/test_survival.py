"""The survival table: its document, its page and its picture, and a slice of it with a real client."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from bench.clients.behind import MODELS
from bench.clients.cells import DIRECT, DONE, FAILED, GATEWAY, HUNG, LITELLM, PLAIN, UNMET, WRONG, Cell, Result
from bench.clients.clients import CLIENTS
from bench.clients.litellm_proxy import ProxyPool, SlotProxy
from bench.clients.store import ResultStore, litellm_version
from bench.survival import repeated
from bench.survival.__main__ import commands, options_of, saved_entries
from bench.survival.document import (
    COLUMNS,
    document_of,
    fault_entries,
    text_of,
    wall_entries,
)
from bench.survival.page import page
from bench.survival.picture import BARS, picture
from bench.survival.scores import rows_of
from bench.walls import cells as walls
from bench.walls.store import WallStore

from tests.gateway.agents import RAN, SAID, Task
from tests.gateway.test_real_clients import ROOT, environment

# As `make survival` records it: a cell has the verdicts of no gateway, Rung and LiteLLM; null was not run.
RECORDED: dict[str, Any] = {
    "measured": ["2026-11-16", "2026-11-17"],
    "columns": list(COLUMNS),
    "gateways": {"Rung": "0.1.0", "LiteLLM": "1.106.2"},
    "digests": {"0123456789ab": 7},
    "clients": {"codex": "0.166.0", "llm": "0.36"},
    "took": {
        "fault": {"cells": 1, "no gateway": [1.0, 3], "Rung": [2.5, 3], "LiteLLM": [3.0, 4]},
        "wall": {"cells": 0},
        "repeated": {"cells": 0},
    },
    "rows": [
        {"part": "fault", "client": "codex", "wire": "responses", "mode": "stream", "tries": "default", "cells": {
            PLAIN: [DONE, DONE, FAILED], "429": [DONE, DONE, DONE], "no end": [DONE, WRONG, DONE], "cut in call": [UNMET, DONE, None],
        }},
        {"part": "fault", "client": "llm", "wire": "chat", "mode": "stream", "tries": "default", "cells": {
            PLAIN: [DONE, DONE, None], "429": [DONE, DONE, None], "no end": [WRONG, DONE, None],
        }},
        {"part": "wall", "client": "codex", "wire": "responses", "mode": "stream", "tries": "2", "cells": {
            "30 s": [FAILED, DONE, DONE], "600 s": [FAILED, HUNG, FAILED],
        }},
    ],
}  # fmt: skip


def test_a_cell_in_which_rung_loses_stands_out() -> None:
    """A cell that another column survives is listed by name and marked in the table; one that nobody survives is neither."""
    found = page(RECORDED)
    lines = [line for line in found.splitlines() if line.startswith("- **")]
    assert lines == [
        "- **codex responses (stream, tries default), fault: no end**: wrong behind Rung; survived with no gateway and LiteLLM."
    ]
    assert "- codex responses (stream, tries 2), wall: 600 s: hung behind Rung." in found
    assert (
        "| codex 0.166.0 | responses | stream | 2/2 | **2/3, loses 1** | 2/2, 1 not run (failed without a fault) |"
        in found
    )
    assert "| codex | responses | stream | 2 | overload | 0/2 | 1/2 | 1/2 |" in found


def test_a_page_without_losses_says_so() -> None:
    """Where Rung survives what the others survive, the page says that there is no such cell."""
    without = {**RECORDED, "rows": RECORDED["rows"][1:]}
    assert "does not:\n\n- No cell." in page(without)
    assert "loses 1" not in page(without)


def test_what_was_not_run_is_shown_as_such() -> None:
    """A cell without a result counts neither for nor against a column, and is listed as not run."""
    found = page(RECORDED)
    assert "| llm 0.36 | chat | stream | 1/2 | 2/2 | not run | - | - | - |" in found
    assert "- codex responses, LiteLLM: 1 cells\n- llm chat, LiteLLM: 3 cells" in found
    assert "| no end | 1/2, 1 wrong | 1/2, 1 wrong | 1/1, 1 not run |" in found
    assert "| one fault: seconds | 1 | **2.5** | 3 | 1 |\n| one fault: requests | 3 | 3 | 4 | 1 |" in found
    assert "Measured on 2026-11-16 to 2026-11-17. Gateways: Rung 0.1.0, LiteLLM 1.106.2." in found


def test_the_picture_has_a_bar_for_each_result() -> None:
    """The picture is XML with one bar per column of each cell, one more of each kind in its legend, and a frame where Rung loses."""
    root = ET.fromstring(picture(RECORDED))
    space = "{http://www.w3.org/2000/svg}"
    bars = {path.get("fill"): str(path.get("d")).count("M") - 1 for path in root.iter(f"{space}path")}
    drawn = {verdict: bars[colour] for verdict, (colour, _) in BARS.items()}
    assert drawn == {DONE: 9, WRONG: 2, FAILED: 0, HUNG: 0, UNMET: 1, None: 3}
    frames = [each for each in root.iter(f"{space}rect") if each.get("stroke")]
    assert len(frames) == 2  # that of the legend, and one cell
    assert {"codex · responses", "llm · chat", "cut in call"} <= {each.text for each in root.iter(f"{space}text")}


def _cell(fault: str, route: str) -> Cell:
    return Cell(client="llm", wire="chat", mode="stream", tries="default", fault=fault, route=route)


def test_partial_runs_make_one_table(tmp_path: Path) -> None:
    """Results of several runs are one document; a cell of another version of the client counts as not run."""
    result = Result(verdict=DONE, exit_code=0, text="whole", rows=1, requests=3, seconds=2.0)
    version = CLIENTS["llm"].version
    for route, day in ((DIRECT, "2026-11-15"), (GATEWAY, "2026-11-16"), (LITELLM, "2026-11-17")):
        store = ResultStore(tmp_path / "run.jsonl", tmp_path / "none.jsonl")
        store.add(_cell("429", route), result, version=version, date=day)
    store.add(_cell("500", GATEWAY), result, version="0.0", date="2026-11-18")
    document = document_of(fault_entries(ResultStore(tmp_path / "run.jsonl", tmp_path / "none.jsonl")))
    cells = next(row["cells"] for row in document["rows"] if row["client"] == "llm")
    assert cells["429"] == [DONE, DONE, DONE]
    assert cells["500"] == [None, None, None]
    assert document["measured"] == ["2026-11-15", "2026-11-17"]
    assert document["took"]["fault"] == {"cells": 1, **{column: [2.0, 3] for column in COLUMNS}}
    assert json.loads(text_of(document)) == document
    assert store.found[_cell("429", LITELLM)].state == litellm_version()


def test_walls_are_compared_with_one_model(tmp_path: Path) -> None:
    """Of the routes of the walls, those with a second model or provider are not compared with gateways that have one."""
    store = WallStore(tmp_path / "walls.jsonl", tmp_path / "none.jsonl")
    verdicts = {walls.DIRECT: FAILED, walls.ONE: HUNG, walls.MODELS: DONE, walls.PROVIDERS: DONE, walls.LITELLM: WRONG}
    for route, verdict in verdicts.items():
        cell = walls.Cell(client="codex", wire="responses", mode="stream", tries="2", wall=30, route=route)
        store.add(cell, walls.Result(verdict=verdict, requests=3, late=None, gave_up=3.0), "2026-11-17")
    rows = rows_of(document_of(wall_entries(store)))
    found = next(row for row in rows if (row.client, row.tries) == ("codex", "2"))
    assert list(found.cells["30 s"].values()) == [FAILED, HUNG, WRONG]
    assert not found.is_complete


def test_the_table_is_what_was_measured() -> None:
    """The committed document is made from the committed results, and page and picture from the document: `make survival`."""
    text = (ROOT / "docs/survival.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert text_of(document_of(saved_entries())) == text
    assert page(document) == (ROOT / "docs/survival.md").read_text(encoding="utf-8")
    assert picture(document) == (ROOT / "docs/survival.svg").read_text(encoding="utf-8")


def test_a_part_can_be_selected(capsys: pytest.CaptureFixture[str]) -> None:
    """Clients, faults and columns select the suites that have them; a fault's name may have a comma; an unknown one is refused."""
    chosen = options_of(
        ["--faults=429,rate_limit, ms,90 s", "--clients=codex", "--columns=Rung LiteLLM", "--environments=e"]
    )
    assert commands(chosen) == {
        "fault": ["bench.clients", "codex", "--fault=429", "--route=gateway,litellm", "--workers=4", "--patience=1", "--environments=e"],
        "wall": ["bench.walls", "--clients=codex", "--walls=90", "--routes=one model,litellm", "--environments=e"],
        "repeated": [
            "bench.survival.repeated", "--client=codex", "--fault=rate_limit, ms", "--route=gateway", "--route=litellm", "--environments=e",
        ],
    }  # fmt: skip
    assert set(commands(options_of(["--clients=vercel", "--parts=wall,fault"]))) == {"fault"}
    with pytest.raises(SystemExit):
        options_of(["--faults=429,coffee"])
    assert "unknown: 'coffee'; known: plain, 429, 529" in capsys.readouterr().err


def test_litellm_has_every_model_of_the_clients(tmp_path: Path) -> None:
    """Each model is served by its own provider with the gateway's timeouts, and a proxy in use is not given to another slot."""
    proxy = SlotProxy(tmp_path / "python", patience=2.0)
    config = json.loads(Path(proxy.command()[proxy.command().index("--config") + 1]).read_text())
    told = {each["model_name"]: each["litellm_params"] for each in config["model_list"]}
    assert set(told) == set(MODELS)
    upstream = f"http://127.0.0.1:{proxy.upstream}"
    found = {
        model: (told[model]["model"], told[model]["api_base"]) for model in ("claude-x", "qwen-x", "gemini-2.5-pro")
    }
    assert found == {
        "claude-x": ("anthropic/claude-x", upstream),
        "qwen-x": ("openai/qwen-x", upstream + "/v1"),
        "gemini-2.5-pro": ("gemini/gemini-2.5-pro", upstream + "/v1beta"),
    }
    assert (told["gpt-5.1"]["timeout"], told["gpt-5.1"]["stream_timeout"]) == (12.0, 8.0)
    pool = ProxyPool(tmp_path / "python")
    pool.give(proxy)
    assert pool.take() is proxy
    pool.give(proxy)
    pool.close()
    assert not Path(proxy.home.name).exists()


@pytest.mark.parametrize(
    ("said", "ran", "code", "verdict"),
    [(SAID, RAN, 0, DONE), (SAID, [*RAN, "three"], 0, WRONG), ("", RAN, 1, FAILED), ("hung", [], -1, HUNG)],
)
def test_a_task_under_repeated_faults_is_judged(said: str, ran: list[str], code: int, verdict: str) -> None:
    """A task is survived if it ends without an error, says the last words, and ran each command once."""
    found = repeated.judged(Task(said=said, ran=ran, exit=code, seconds=3.0, struck=4, attempts=8, apart=True))
    assert (found.verdict, found.rows, found.requests) == (verdict, len(ran), 8)
    assert found.exit_code == (None if code < 0 else code)


def test_a_slice_of_the_table(tmp_path: Path) -> None:
    """A real client survives two faults behind the gateway, of which it survives one alone, and the table says so."""
    environment("anthropic-python", tmp_path)
    words = [
        "--parts=fault", "--clients=anthropic-python", "--faults=500,cut by reset", "--columns=no gateway,Rung", "--tries=default",
        "--modes=stream", "--patience=4", "--again", f"--environments={tmp_path}",
    ]  # fmt: skip
    (command,) = commands(options_of(words)).values()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    rows = rows_of(document_of(fault_entries(ResultStore(tmp_path / "results.jsonl", tmp_path / "none.jsonl"))))
    found = rows[0].cells
    assert found["500"] == {"no gateway": DONE, "Rung": DONE, "LiteLLM": None}, done.stdout + done.stderr
    assert found["cut by reset"] == {"no gateway": FAILED, "Rung": DONE, "LiteLLM": None}, done.stdout + done.stderr
