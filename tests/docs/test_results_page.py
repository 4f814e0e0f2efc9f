"""The page of results says what the stored figures say, and nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from bench.gateway.__main__ import Cell as GatewayCell
from bench.gateway.__main__ import as_json as gateway_json
from bench.gateway.load import Measured
from bench.journal.__main__ import as_json as journal_json
from bench.journal.power_cuts import main as power_cuts
from bench.journal.work import Speed
from bench.results import figures
from bench.results.__main__ import main
from bench.results.bars import OURS, bars_of, picture
from bench.results.benchmarks import BENCHMARKS, runs_of
from bench.results.page import files, outdated, sections, write
from bench.results.record import BadRecord, Record, read_records, rounded
from bench.results.run import NotMeasured, measure
from bench.results.section import Comparison, Measure

DOCS = Path(__file__).resolve().parents[2] / "docs"


def record(name: str, found: Any, **more: Any) -> Record:
    fields = {"date": "2026-01-02", "command": f"python -m {name}", "versions": {"rung": "1"}}
    at = {"cores": 2, "python": "3.11.0", "load": 0.5}
    return Record(**{"name": name, **fields, "machine": at, "figures": found, **more})


def page(*records: Record, survival: Any = None) -> str:
    """The texts of all sections."""
    return "\n\n".join(one.text("results") for one in sections({one.name: one for one in records}, survival))


def section(title: str, text: str) -> str:
    """The part of a page below one title."""
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def scored(rows: int, strict: int, retryable: int) -> dict[str, int]:
    return {"rows": rows, "strict": strict, "retryable": retryable}


def corpus(name: str, ours: int, theirs: int) -> Record:
    """A file of ten provider errors, of which ours and a peer name so many."""
    scores = {
        who: {"http+exception": scored(10, right, 10), "tool": None, "output": scored(0, 0, 0)}
        for who, right in (("rung", ours), ("status table", theirs))
    }
    kinds = [{"kind": "rate_limit", "labelled": 10, "answered": 9, "right": ours}]
    return record(
        name, {"scores": scores, "absent": {}, "kinds": kinds, "first_sight": {"rung": 100.0, "status table": 400.0}}
    )


LOOPS = record(
    "loops",
    {
        "detectors": {
            "rung": {"precision": 1.0, "recall": 0.9, "false": 0, "missed": 4, "late": 0},
            "other": {"precision": 0.5, "recall": 0.95, "false": 9, "missed": 2, "late": None},
        },
        "behaviour": {},
    },
)


def test_the_committed_page_is_what_the_stored_figures_say() -> None:
    """docs/results.md and its pictures equal what `make docs` writes."""
    assert outdated(DOCS) == []


def test_a_benchmark_without_figures_is_listed_as_not_measured(tmp_path: Path) -> None:
    """Without stored figures every section stays, with its command and without numbers."""
    text = files(tmp_path)[tmp_path / "results.md"]
    assert text.count("\nNot measured in this version.\n") == text.count("\n## ") == 13
    for name in BENCHMARKS:
        assert f"`make results NAME={name}`" in text


def test_the_check_names_what_differs_and_the_page_option_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed figure or a picture that is left over makes the page outdated until it is written again."""
    shutil.copytree(DOCS / "results", tmp_path / "results", ignore=shutil.ignore_patterns("*.svg"))
    write(tmp_path)
    assert main(["--check", "--docs", str(tmp_path)]) == 0
    (tmp_path / "results" / "loops.json").write_text(LOOPS.text(), encoding="utf-8")
    (tmp_path / "results" / "old.svg").write_text("<svg/>", encoding="utf-8")
    assert main(["--check", "--docs", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    for name in ("results.md", "loops.svg", "old.svg"):
        assert name in told
    assert main(["--page", "--docs", str(tmp_path)]) == 0
    assert outdated(tmp_path) == []
    assert not (tmp_path / "results" / "old.svg").exists()


def test_losses_are_computed_from_the_figures() -> None:
    """A peer that is better is named with both values; an equal one, a worse one and what was not measured are not."""
    text = section("Loops", page(LOOPS))
    assert "- recall: rung 0.900, but other 0.950." in text
    assert "- missed: rung 4, but other 2." in text
    assert text.count("\n- ") == 2
    good = replace(LOOPS, figures={"detectors": {"rung": LOOPS.figures["detectors"]["rung"]}, "behaviour": {}})
    assert "**Where we lose:** nowhere" in section("Loops", page(good))


def test_a_loss_needs_a_difference_that_is_shown() -> None:
    """Values that look the same are no loss, and a yardstick is no peer."""
    rows = {"bare": [1.0], "rung": [2.001], "peer": [2.0], "also ours": [3.0]}
    found = Comparison(
        measures=[Measure(title="cost", form="{:.1f}x", is_lower_better=True)],
        rows=rows,
        ours=("rung", "also ours"),
        yardsticks=("bare",),
    )
    assert found.losses() == ["cost: also ours 3.0x, but peer 2.0x."]
    assert found.headline(0) == "cost: rung 2.0x, best peer peer 2.0x"


def test_a_section_tells_command_date_versions_and_machine() -> None:
    """Below the table stand the command, the day, the versions and the machine of the run."""
    text = section("Loops", page(LOOPS))
    assert "Reproduce: `make results NAME=loops`." in text
    assert "Measured by `python -m loops` on 2026-01-02: rung 1; Python 3.11.0, 2 cores, load 0.5." in text


def test_classification_says_which_files_rung_was_tuned_on() -> None:
    """Files that Rung was tuned on are marked, held-out ones come first, and others are not called held out."""
    text = section(
        "Classification", page(corpus("corpus-errors_public", 10, 4), corpus("corpus-heldout", 8, 9), corpus("corpus-mine", 9, 1))
    )  # fmt: skip
    assert "`errors_public` (Rung was tuned on this file):" in text
    assert (
        "`heldout` (no text of its sources was read or trained on; its scores were seen while rules were written):"
        in text
    )
    assert "`mine` (whether Rung was tuned on it is not recorded):" in text
    assert text.index("`heldout` (") < text.index("`errors_public` (")
    assert "provider errors (10): kind: rung 80.0%, but status code 90.0%." in text
    assert "first sight, of Rung's: rung 1.00x, but status code 4.00x." in text
    assert text.count("\n- ") == 4
    assert "| `rate_limit` | 8 of 10 | 9 of 10 | 10 of 10 |" in text
    assert "not measured in this version" not in text


def test_classification_without_other_data_says_so() -> None:
    """With tuned-on files alone, the page says that other data were not measured."""
    text = section("Classification", page(corpus("corpus-errors_public", 10, 4)))
    assert "Data that Rung was not tuned on: not measured in this version." in text


def world(**policies: tuple[float, float]) -> dict[str, Any]:
    made = {
        name.replace("_", " "): {"success": success, "attempts": attempts, "unknown": 0.0}
        for name, (success, attempts) in policies.items()
    }
    return {"policies": made, "goal": True, "better": [], "waste_share": 0.4}


def test_worlds_list_policies_with_more_success_or_fewer_attempts() -> None:
    """A policy with more success at any price, or the same at fewer attempts, is a loss; so is too much waste."""
    losing = world(rung=(0.5, 2.0), dear=(0.6, 3.0), same=(0.5, 1.5), cheap=(0.4, 1.0))
    wasteful = {**world(rung=(0.5, 2.0)), "goal": False, "waste_share": 0.8}
    found = record("worlds", {"worlds": {"one": losing, "two": wasteful}})
    text = section("Recorded worlds", page(found))
    assert "- one: rung 0.500 at 2.00, but dear 0.600 at 3.00, same 0.500 at 1.50." in text
    assert "- two: 80% of the attempts" in text
    assert "| two | **0.500 at 2.00** | – | – | – | MISSED, waste 80% |" in text
    assert "1 of 2 worlds" in sections({"worlds": found}, None)[7].headline


def test_survival_is_read_from_its_own_document() -> None:
    """Walls and faults come from the survival table, with cells that were not run left out of the shares."""
    cells = {"plain": ["done"] * 3, "429": ["failed", "done", "done"], "500": ["wrong", "failed", "done"]}
    fault = {"part": "fault", "client": "c", "wire": "w", "mode": "whole", "tries": "default", "cells": cells}
    wall = {**fault, "part": "wall", "cells": {"30 s": ["failed", "done", None]}}
    took = {"cells": 1, "no gateway": [1.0, 2.0], "Rung": [2.0, 2.0], "LiteLLM": [1.0, 3.0]}
    document = {
        "measured": ["2026-01-02", "2026-01-03"],
        "columns": ["no gateway", "Rung", "LiteLLM"],
        "gateways": {"Rung": "1", "LiteLLM": "2"},
        "took": {"fault": took, "wall": {"cells": 0}, "repeated": {"cells": 0}},
        "rows": [fault, wall],
    }
    text = page(survival=document)
    faults, walls = section("Faults survived", text), section("Walls of overload", text)
    assert "| one fault, own retries as installed: survived (of 2, 2, 2) | 0.0% | 50.0% | 100.0% |" in faults
    assert "- c w (whole, tries default), 500: failed behind Rung, survived with LiteLLM." in faults
    assert "but LiteLLM 100.0%." in faults
    assert "one fault: median seconds: Rung 2.0, but no gateway 1.0, LiteLLM 1.0." in faults
    assert "| own retries as installed: survived (of 1, 1, 0) | 0.0% | 100.0% | – |" in walls
    assert "**Where we lose:** nowhere" in walls
    assert "Measured 2026-01-02 to 2026-01-03: Rung 1, LiteLLM 2;" in walls


def test_overhead_counts_new_failures_and_the_first_use_as_ours() -> None:
    """A failure never seen before and the first use are rows of their own that can lose; the bare loop is no peer."""
    ratios = {
        f"{mode}/{scenario}/{name}": value
        for mode in ("sync", "async")
        for scenario, values in (("success", (1, 2, 9)), ("one-failure", (1, 8, 9)))
        for name, value in zip(("bare loop", "rung", "peer"), values, strict=True)
    } | {"sync/fresh-failure/rung": 30.0, "async/fresh-failure/rung": 5.0}
    goal = {"name": "sync", "limit": 2.5, "measured": 3.0, "unit": "x", "met": False}
    imports = {"rung": 2.0, "peer": 2.5, "rung + first use": 3.0}
    found = record("overhead", {"ratios": ratios, "imports": imports, "bytes": {}, "goals": [goal]})
    text = section("Overhead of a guarded call", page(found))
    assert text.count("\n- ") == 2
    assert "- sync, one failure: rung, a failure never seen before 30.0x, but peer 9.0x." in text
    assert "- import, of an empty interpreter's: rung, import and first use 3.00x, but peer 2.50x." in text
    assert "Goals: sync 3x (at most 2.5x: MISSED)." in text


def test_the_other_sections_read_their_figures() -> None:
    """Concurrency, gateway, matrix, incidents, power cuts, journal and fleet show their peers and their losses."""
    cell = {
        name: {"per_cpu_second": 10.0, "p50": 1.0, "p99": 1.0, "wrong": 0} for name in ("direct", "rung", "LiteLLM")
    }
    row = {"severity": "full", "client": "SDK", "route": "one model", "survived": 0.5, "requests_per_call": 1.0}
    cuts = {"cuts": 3, "acknowledged": 10, "lost": 0, "journals_with_losses": 0, "damaged": 0}
    goal = {"name": "speed", "limit": 70, "measured": 80.0, "unit": " %", "is_minimum": True, "met": True}
    text = page(
        record("concurrency", {"calls": 9, "rows": [{"share": 0.4, "lost": {"rung": 4, "t": 2}, "load": {"rung": 1.0, "t": 2.0}, "seconds": {"rung": 2.0, "t": 1.0}}]}),
        record("gateway", {"cells": {"c=1": {**cell, "LiteLLM": {**cell["rung"], "p50": 0.5}}}, "memory": {"0": 50.0}, "ready": 0.1}),
        record("matrix", {"columns": {"rung": {"cells": 4, "whole": 4, "silent": 0}, "Portkey": {"cells": 4, "whole": 1, "silent": 2}}}),
        record("incidents", {"rows": [{**row, "gateway": "none"}, {**row, "gateway": "Rung", "survived": 1.0, "requests_per_call": 2.0}]}),
        record("power-cuts", {"rung": cuts, "synchronous=NORMAL": {**cuts, "lost": 5, "journals_with_losses": 2}}),
        record("journal", {"shares": {"1 task": {"ours": 0.8, "SQLite, same writes": 1.0}}, "goals": [goal]}),
        record("fleet", {"rows": [{"engine": "rung dbos", "workers": 1, "rate": 9.0, "leases": 1.5}, {"engine": "bare dbos", "workers": 1, "rate": 10.0}]}),
    )  # fmt: skip
    assert "- 40% fail: lost of 9: rung 4, but t 2." in text
    assert "Median latency, as a multiple of a direct request's, c=1: rung 1.00x, but LiteLLM 0.50x." in text
    assert "| Portkey | 25.0% | 2 |" in text
    assert "- Severity full, one model, SDK: requests per call: Rung 2.00, but none 1.00." in text
    assert "| synchronous=NORMAL | 3 | 50.00% | 2 | 0 |" in text
    assert "speed: 80.0 % (at least 70 %: met)" in text
    assert "- dbos, 1 workers: rung dbos 0.90x, but bare dbos 1.00x." in text
    assert "Takeover, in leases: rung dbos 1.50." in text


def test_figures_that_no_section_shows_are_an_error() -> None:
    """A stored file that the page would ignore is an error that names it and the known ones."""
    with pytest.raises(BadRecord, match=r"no section shows lopps; known: overhead, .*loops"):
        sections({"lopps": replace(LOOPS, name="lopps")}, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"date": "today"}, "date must be YYYY-MM-DD, not 'today'"),
        ({"figures": {"file": "/home/someone/data"}}, "no paths of a machine are allowed: .*/home/"),
        ({"name": "other"}, "loops.json: the name in it is 'other'"),
        ({"more": 1}, "must be an object with the keys command, date, figures"),
    ],
)
def test_an_invalid_file_is_rejected(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """A stored file with a wrong name, date, key or a path of a machine is an error that says so."""
    found = {**json.loads(LOOPS.text()), **change}
    (tmp_path / "loops.json").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(BadRecord, match=message):
        read_records(tmp_path)


def test_a_file_that_is_no_json_is_rejected(tmp_path: Path) -> None:
    """A stored file that is not JSON is an error that names it."""
    (tmp_path / "loops.json").write_text("{", encoding="utf-8")
    with pytest.raises(BadRecord, match=r"loops\.json: "):
        read_records(tmp_path)


def test_figures_are_reduced_to_what_may_be_stored() -> None:
    """Row ids, answers and raw samples stay out of the stored files, and floats have six digits."""
    loops = figures.loops({"rung": {"precision": 1, "recall": 1, "false": ["secret"], "missed": [], "late": [3, 1, 2]}})
    assert loops["detectors"]["rung"] == {"precision": 1, "recall": 1, "false": 1, "missed": 0, "late": 2}
    errors = {
        "scores": {},
        "absent": {},
        "kinds": [],
        "confusions": [{"ids": ["secret"]}],
        "speeds": {"rung": {"first": 2.0}},
    }
    assert "secret" not in json.dumps(figures.corpus({**errors, "answers": {"rung": {"secret": 1}}}))
    imports = {"": [[9, 2.0], [9, 1.0]], "rung": [[9, 5.0], [9, 3.0]]}
    assert figures.overhead({"imports": imports, "ratios": {}, "memory": {}, "goals": []})["imports"] == {"rung": 3.0}
    cells = [{"columns": {"rung": {"got": got, "lost": lost, "doubled": 0}}} for got, lost in (("whole", 0), ("whole", 1), ("error", 0))]  # fmt: skip
    assert figures.matrix(cells) == {"columns": {"rung": {"cells": 3, "whole": 1, "silent": 1}}}
    assert rounded({"a": [1.23456789, 12345678.9, 7]}) == {"a": [1.23457, 12345679, 7]}


def test_only_played_policies_of_others_and_the_default_are_kept() -> None:
    """Of a world's rows the page keeps the default ladder, the policies of others, and the goal."""
    figure = {"success": {"mean": 0.5, "low": 0.4, "high": 0.6}, "attempts": {"mean": 1.0}, "seconds": None}
    row = {"world": "w", "is_default": False, "owner": "rung", "figures": figure, "unknown": 0.0}
    found = figures.worlds(
        [
            {**row, "policy": "default", "is_default": True},
            {**row, "policy": "another ladder"},
            {**row, "policy": "peer", "owner": "peer"},
            {**row, "policy": "cannot", "owner": "peer", "figures": {}},
            {"world": "w", "goal": True, "better": [], "waste_share": None},
        ]
    )
    assert list(found["worlds"]["w"]["policies"]) == ["rung", "peer"]
    assert found["worlds"]["w"]["policies"]["rung"]["success_interval"] == [0.4, 0.6]
    assert found["worlds"]["w"]["goal"] is True


def test_the_gateway_and_the_journal_write_ratios() -> None:
    """Their JSON has latencies as ratios to direct requests, and speeds as ratios to raw SQLite."""
    direct, mine = Measured(took=[0.001], seconds=1, cpu=1), Measured(took=[0.003], seconds=1, cpu=0.5, wrong=1)
    cell = GatewayCell(1, stream=False, large=False, delay=0.0)
    found = gateway_json({cell: {"direct": direct, "rung": mine}}, {0: 50.0}, 0.2)
    assert found["cells"][str(cell)]["rung"] == {"per_cpu_second": 2.0, "p50": 3.0, "p99": 3.0, "wrong": 1}
    speeds = {"1 task": {"ours": [Speed(80.0), Speed(90.0)], "SQLite, same writes": [Speed(100.0), Speed(100.0)]}}
    assert journal_json(speeds, [])["shares"]["1 task"] == {"ours": pytest.approx(0.85), "SQLite, same writes": 1.0}


def test_power_cuts_are_counted_for_both_settings(tmp_path: Path) -> None:
    """The journal and the same one with fewer syncs meet as many power cuts, and ours loses nothing."""
    assert power_cuts(["--seeds", "1", "--json", str(tmp_path / "out.json")]) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert [one["cuts"] for one in found.values()] == [3, 3]
    assert found["rung"]["acknowledged"] > found["rung"]["lost"] == 0


def test_a_picture_has_a_bar_for_each_measured_subject() -> None:
    """Bars are drawn to one scale, ours in its colour, and what was not measured has none."""
    rows: dict[str, list[float | None]] = {"rung": [1.0, 2.0], "peer": [4.0, None]}
    found = Comparison(measures=[Measure(title="a"), Measure(title="b")], rows=rows)
    drawn = ET.fromstring(picture("t", [("a", bars_of(found, 0)), ("b", bars_of(found, 1))]))
    bars = [bar for bar in drawn.iter() if bar.tag.endswith("rect")][1:]
    assert [float(bar.attrib["width"]) for bar in bars] == [105.0, 420.0, 210.0]
    assert [bar.attrib["fill"] == OURS for bar in bars] == [True, False, True]
    logarithmic = ET.fromstring(picture("t", [("a", bars_of(Comparison(measures=[Measure(title="a")], rows={"rung": [10.0], "peer": [100.0], "none": [0.0]}), 0))], is_logarithmic=True))  # fmt: skip
    widths = [
        float(bar.attrib["width"]) for bar in logarithmic.iter() if bar.tag.endswith("rect") and "x" in bar.attrib
    ]
    assert widths == [210.0, 420.0, 0.0]


def test_another_file_never_replaces_the_public_ones() -> None:
    """The name of another file or folder of data is a part of the name of its result."""
    assert [one.name for one in runs_of("corpus")] == ["corpus-errors_public", "corpus-errors_public2"]
    (other,) = runs_of("corpus", Path("/data/heldout.jsonl"))
    assert (other.name, other.command) == ("corpus-heldout", "python -m bench.corpus heldout.jsonl --speed --json OUT")
    (folder,) = runs_of("worlds", Path("/data/later"))
    assert folder.name == "worlds-later"
    assert [one.name for one in runs_of("worlds")] == ["worlds"]
    with pytest.raises(ValueError, match="loops reads no data"):
        list(runs_of("loops", Path("/data/x")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lopps"], "unknown benchmark lopps; known: overhead,"),
        (["loops", "--data", "x"], "--data goes with corpus or worlds alone"),
    ],
)
def test_misuse_fails_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown benchmark, or data for one that reads none, is an error that says what is allowed."""
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_a_run_is_recorded_even_if_its_goal_is_missed(tmp_path: Path) -> None:
    """A real benchmark runs in its own process; exit code 1 means a missed goal, and its figures count."""
    row = {"id": "1", "form": "http", "provider": "p", "status": 418, "body": "tea", "label": "auth_error"}
    data = tmp_path / "mine.jsonl"
    data.write_text(json.dumps({**row, "retryable": False, "retry_after_s": None, "also": []}) + "\n")
    (one,) = runs_of("corpus", data)
    found = measure(
        replace(one, environment="", arguments=("--who", "rung,status", "--need", "strict=100", *one.arguments[1:]))
    )
    assert found.name == "corpus-mine"
    assert found.figures["scores"]["rung"]["http+exception"]["rows"] == 1
    assert "rung" in found.versions
    assert str(tmp_path) not in found.text()


def test_a_benchmark_without_data_gives_no_figures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Without its data or its environment a benchmark is not measured, and stored figures stay as they are."""
    (one,) = runs_of("corpus", tmp_path / "absent.jsonl")
    with pytest.raises(NotMeasured, match="exited with 2"):
        measure(replace(one, environment=""))
    with pytest.raises(NotMeasured, match="does not exist"):
        measure(replace(one, environment="nowhere"))
    with pytest.raises(NotMeasured, match="wrote no JSON"):
        measure(replace(one, environment="", module="platform", file=None, arguments=()))
    arguments = ["worlds", "--data", str(tmp_path / "absent"), "--docs", str(tmp_path)]
    assert main(arguments) == 1
    assert "results: worlds-absent: `python -m bench.worlds absent --json` exited with 2" in capfd.readouterr().err
    assert list((tmp_path / "results").glob("*.json")) == []
