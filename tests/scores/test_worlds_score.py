"""`bench.worlds` draws recorded trials by their rules, plays Rung's own engine on them, and counts right."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from bench.worlds.__main__ import main
from bench.worlds.goal import goal
from bench.worlds.peers import peers
from bench.worlds.play import Play, Policy
from bench.worlds.records import read_worlds
from bench.worlds.results import Figure, Result, results
from bench.worlds.rung_policies import rung_player
from bench.worlds.world import NONE, Task, Trial, World

from rung.core.domain.failures import Kind
from rung.core.domain.ladder import Action, Ladder, Rung
from rung.core.policy.budget import Budget
from rung.core.policy.templates import preset

if TYPE_CHECKING:
    from pathlib import Path

    from rung.core.policy.policy import Policy as RungPolicy

BAD = Trial(False)
GOOD = Trial(True)


def world(*tasks: dict[tuple[str, str], tuple[Trial, ...]], systems: tuple[str, ...], **options: Any) -> World:
    """A world of tasks with these trials."""
    made = tuple(
        Task(name=f"task {index}", trials=trials, solvable=any(t.success for each in trials.values() for t in each))
        for index, trials in enumerate(tasks)
    )
    return World(name="tiny", about="", tasks=made, systems=systems, **options)


def ladder(*rungs: Rung, **options: Any) -> RungPolicy:
    """A policy whose failed results enter at the first rung."""
    end = Rung(action=Action.SURFACE)
    made = Ladder(name="small", rungs=(*rungs, end), entry={}, default_entry=rungs[0].name)
    return replace(preset(made), **options)


def play(policy: RungPolicy, tiny: World) -> Play:
    """The play of the first task under a policy of ours."""
    return rung_player(policy, tiny.systems)(tiny.tape(tiny.tasks[0], 1, 0))


def played_by(tiny: World) -> dict[str, Play]:
    """The plays of the first task under the policies of others."""
    return {each.name: each.player(tiny.tape(tiny.tasks[0], 1, 0)) for each in peers(tiny) if each.player is not None}


def test_policies_of_others() -> None:
    """Each other policy makes the attempts that its rule says, on the same draws."""
    tiny = world(
        {
            ("a", NONE): (BAD, BAD, BAD, GOOD),
            ("b", NONE): (BAD, GOOD),
            ("c", NONE): (GOOD,),
        },
        systems=("a", "b", "c"),
        is_ranked=True,
    )
    found = {name: (each.solved, each.attempts) for name, each in played_by(tiny).items()}
    assert found == {
        "one attempt": (False, 1),
        "tenacity x 3": (False, 3),
        "retry for ever": (True, 4),
        "always the expensive one": (True, 1),
        "promotion: first, then the expensive one": (True, 2),
        "LangChain, 1 fallback": (False, 2),
        "LangChain, 2 fallbacks": (True, 3),
    }


def test_what_a_world_cannot_play_has_no_figures() -> None:
    """Where nobody recorded a repeat or a second system, the policies that need one are not played."""
    tiny = world({("a", NONE): (BAD,)}, systems=("a",))
    assert list(played_by(tiny)) == ["one attempt"]
    rows = results(tiny, list(peers(tiny)), seed=1, rounds=1, resamples=1)
    assert {row.policy for row in rows if row.is_played} == {"one attempt"}
    assert next(row for row in rows if row.owner == "retry for ever").mean("success") is None


def test_draws_are_without_replacement_and_shared() -> None:
    """A round shuffles the trials of a task, uses each once, and shows every policy the same order."""
    trials = tuple(Trial(number == 4, float(number)) for number in range(5))
    tiny = world({("a", NONE): trials}, systems=("a",), shuffled=True)
    orders = set()
    for number in range(20):
        tape = tiny.tape(tiny.tasks[0], 7, number)
        drawn = [tape.draw("a") for _ in range(5)]
        assert sorted(drawn) == sorted(trials)
        tape.rewind()
        assert [tape.draw("a") for _ in range(5)] == drawn
        assert tiny.tape(tiny.tasks[0], 7, number).signature == tape.signature
        orders.add(tuple(drawn))
    assert len(orders) > 10


def test_rungs_draw_what_they_tell() -> None:
    """A new plan draws a trial with a reflection, a nudge one with the last attempt, a handover another system."""
    told = {
        ("a", NONE): (BAD, Trial(True, 1.0)),
        ("a", "last_attempt"): (BAD, BAD),
        ("a", "reflection"): (BAD,),
        ("b", NONE): (GOOD,),
    }
    tiny = world(told, systems=("a", "b"))
    rungs = (Rung(action=Action.NUDGE, tries=2), Rung(action=Action.REPLAN), Rung(action=Action.FALLBACK))
    assert play(ladder(*rungs), tiny)[:2] == (True, 5)  # first, two nudges, a plan, the other system
    assert play(ladder(*rungs[:2]), tiny)[:2] == (False, 4)  # the plain repeat, which is good, is never drawn
    plain = world({("a", NONE): (BAD, GOOD)}, systems=("a",))
    assert play(ladder(*rungs), plain)[:2] == (True, 2)  # nothing told is recorded: a plain repeat stands for it


def test_an_unrecorded_rung_is_skipped_and_counted() -> None:
    """A rung whose attempt nobody recorded makes no attempt; the ladder climbs, and the row says how many are unknown."""
    tiny = world({("a", NONE): (BAD,), ("b", NONE): (GOOD,)}, systems=("a", "b"))
    rungs = (Rung(action=Action.NUDGE, tries=3), Rung(action=Action.REPLAN), Rung(action=Action.FALLBACK))
    assert play(ladder(*rungs), tiny) == Play(True, 2, None, unknown=2)


def test_the_engine_keeps_its_time_limits() -> None:
    """An attempt that lasts longer than its rung allows is cut off there; waits and attempts move a virtual clock."""
    tiny = world({("a", NONE): (Trial(False, 100.0), Trial(True, 500.0), Trial(True, 50.0))}, systems=("a",))
    timed = ladder(Rung(action=Action.NUDGE, seconds=300), Rung(action=Action.REPLAN, seconds=300))
    assert play(timed, tiny) == Play(True, 3, 100.0 + 300.0 + 50.0)
    short = replace(timed, budget=Budget(attempts=9, seconds=350))
    assert play(short, tiny) == Play(False, 2, 350.0)


def test_a_last_turn_is_no_attempt() -> None:
    """Force-done lets the model report, which no world recorded: it is counted by itself."""
    tiny = world({("a", NONE): (BAD,) * 9}, systems=("a",))
    end = Rung(action=Action.FORCE_DONE)
    made = Ladder(name="small", rungs=(Rung(action=Action.NUDGE), end), entry={}, default_entry="nudge")
    assert play(preset(made), tiny) == Play(False, 2, None, last_turns=1)


def test_the_default_ladder_is_the_real_one() -> None:
    """The default row follows the preset: its entry for failed tests, its tries, its handovers."""
    trials: dict[tuple[str, str], tuple[Trial, ...]] = {(system, NONE): (BAD,) * 9 for system in "abc"}
    tiny = world(trials, systems=("a", "b", "c"))
    task = preset("task")
    rungs = task.ladder.rungs
    entered = task.ladder.index(task.ladder.entry.get(Kind.TEST_FAILURE, task.ladder.default_entry))
    told = sum(rung.tries for rung in rungs[entered:] if rung.action in (Action.NUDGE, Action.REPLAN))
    handovers = min(2, next(rung.tries for rung in rungs if rung.action is Action.FALLBACK))
    assert play(task, tiny) == Play(False, 1 + told + handovers, None, last_turns=1)


def row(policy: str, success: float, attempts: float, waste: float | None, **options: Any) -> Result:
    """A row with these means."""
    means = {"success": success, "attempts": attempts, "waste": waste}
    figures = {name: None if mean is None else Figure(mean=mean, low=mean, high=mean) for name, mean in means.items()}
    fixed = {"owner": policy, "is_default": False, **options}
    return Result(policy=policy, figures=figures, **fixed)


def test_goal() -> None:
    """The goal is missed if another has more success at the same attempts, or for more than half of the endless waste."""
    endless = row("retry for ever", 0.6, 3.0, 5.0)
    ours = row("ours", 0.6, 2.0, 2.5, owner="rung", is_default=True)
    assert goal([ours, endless]).holds
    assert goal([ours, endless, row("equal", 0.6, 1.5, 1.0), row("rung too", 0.9, 1.0, 1.0, owner="rung")]).holds
    assert goal([ours, endless, row("better", 0.61, 2.0, 1.0)]).better == ("better",)
    assert not goal([replace(ours, dead_unknown=0.1), endless]).holds  # unknown attempts count against ours
    assert goal([ours, endless, row("slower", 0.7, 2.1, 1.0)]).holds
    assert not goal([replace(ours, unknown=0.1), endless, row("slower", 0.7, 2.1, 1.0)]).holds
    assert goal([ours, replace(endless, figures={})]).waste is None


def test_intervals_come_from_resampled_tasks() -> None:
    """Means are over tasks and rounds; the interval of equal tasks is a point, that of different ones is not."""
    tasks: list[dict[tuple[str, str], tuple[Trial, ...]]] = [{("a", NONE): (GOOD,)}, {("a", NONE): (BAD,)}] * 10
    one = next(each for each in peers(world(*tasks, systems=("a",))) if each.name == "one attempt")
    (found,) = results(world(*tasks, systems=("a",)), [one], seed=3, rounds=5, resamples=200)
    success, attempts, waste = (found.figures[name] for name in ("success", "attempts", "waste"))
    assert success is not None
    assert success.mean == 0.5
    assert 0.1 < success.low < 0.5 < success.high < 0.9
    assert attempts == Figure(mean=1.0, low=1.0, high=1.0)
    assert waste == Figure(mean=1.0, low=1.0, high=1.0)
    assert found.figures["seconds"] is None


def test_rows_with_equal_plays_are_one_row() -> None:
    """Templates that a world cannot tell apart are named together, under the default if it is one of them."""
    tiny = world({("a", NONE): (BAD, GOOD)}, systems=("a",))
    nudge = rung_player(ladder(Rung(action=Action.NUDGE)), tiny.systems)
    ours = [Policy(name=name, owner="rung", player=nudge, is_default=name == "y") for name in "xyz"]
    (found,) = results(tiny, ours, seed=1, rounds=1, resamples=1)
    assert (found.policy, found.same_as, found.is_default) == ("y", ("x", "z"), True)


RECORDED: dict[str, list[dict[str, Any]]] = {
    "terminal_bench": [
        {"world": "terminal_bench", "task": task, "system": system, "trial": n, "told": "none", "success": n == 2}
        for task in ("t1", "t2")
        for system in ("w", "x", "y", "z")
        for n in (1, 2)
    ],
    "reflexion": [
        {"world": "shop", "task": task, "system": "s", "arm": arm, "trial": n, "told": told, "success": success}
        for task, arm, n, told, success in (
            ("kept", "retry", 1, "none", False),
            ("kept", "retry", 2, "none", False),
            ("kept", "reflexion", 1, "none", False),
            ("kept", "reflexion", 2, "reflection", True),
            ("kept", "reflexion_once", 2, "reflection", False),
            ("differs", "retry", 1, "none", True),
            ("differs", "reflexion", 1, "none", False),
        )
    ],
    "aider": [
        {"world": "aider_x", "task": "*", "system": "m", "told": "error", "n": 200, "pass1": 25.0, "pass2": 40.0}
    ],
}


def write(folder: Path, **files: list[dict[str, Any]]) -> Path:
    """Write recorded files."""
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def test_reading(tmp_path: Path) -> None:
    """Arms are walked from a first try that they share; totals become tasks by what became of them."""
    worlds = {each.name: each for each in read_worlds(write(tmp_path, **RECORDED))}
    assert list(worlds) == ["Terminal-Bench, any three", "shop", "aider x"]
    shop = worlds["shop"]
    assert shop.left_out == 1
    assert shop.tasks[0].trials == {("s", NONE): (BAD, BAD), ("s", "reflection"): (GOOD,)}
    aider = worlds["aider x"]
    assert [task.weight for task in aider.tasks] == pytest.approx([50, 30, 120])
    row = results(
        aider,
        [Policy(name="told", owner="rung", player=rung_player(ladder(Rung(action=Action.NUDGE)), ("model",)))],
        seed=1,
        rounds=1,
        resamples=1,
    )[0]
    assert (row.mean("success"), row.mean("attempts")) == pytest.approx((0.4, 1.75))
    assert row.mean("waste") is None  # nobody recorded which tasks stayed unsolved
    drawn = worlds["Terminal-Bench, any three"].tape(worlds["Terminal-Bench, any three"].tasks[0], 1, 0)
    assert drawn.has("third", NONE)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the same rows for the same seed, checks the goal, and draws well-formed plots."""
    options = [str(write(tmp_path, **RECORDED)), "--rounds", "2", "--resamples", "20"]
    assert main([*options, "--json", "--plot", str(tmp_path / "plots")]) == 0
    first = capsys.readouterr().out
    rows = [json.loads(line) for line in first.splitlines()]
    assert {each["world"] for each in rows} == {"Terminal-Bench, any three", "shop", "aider x"}
    assert sum(each.get("is_default", False) for each in rows) == 3
    assert all("waste_share" in each for each in rows if "goal" in each)
    assert main([*options, "--json"]) == 0
    assert capsys.readouterr().out == first
    svg = ET.parse(tmp_path / "plots" / "attempts.svg").getroot()
    played = [each for each in rows if each.get("figures") and len(each["figures"])]
    assert len(svg.findall(".//{*}circle")) == len(played)
    assert main([*options, "--world", "shop", "--check"]) == 0
    assert "goal holds: on the frontier" in capsys.readouterr().out
    assert main([*options, "--world", "Term", "--markdown"]) == 0
    assert "| **rung task + 2 others (default)**" in capsys.readouterr().out


def test_a_missed_goal_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --check a world in which another policy is better ends with exit code 1, and is named."""
    rows = [{**each, "success": each["system"] == "s" and each["trial"] == 2} for each in RECORDED["reflexion"][:4]]
    told_fails = [{**each, "success": each["arm"] == "retry" and each["trial"] == 2} for each in rows]
    folder = str(write(tmp_path, reflexion=told_fails))
    assert main([folder, "--check", "--resamples", "1"]) == 1
    assert "the goal is missed in shop" in capsys.readouterr().err


def test_bad_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without data, with a line that is no attempt, or with an unknown world, the command says so; exit code 2."""
    assert main([str(tmp_path)]) == 2
    assert "has none of terminal_bench.jsonl" in capsys.readouterr().err
    write(tmp_path, tau_airline=[{"task": "x"}])
    assert main([str(tmp_path)]) == 2
    assert "line 1: not a recorded attempt" in capsys.readouterr().err
    assert main(["--synthetic", "--world", "nowhere"]) == 2
    assert "no world is named nowhere; there are made up" in capsys.readouterr().err


def test_the_report(tmp_path: Path) -> None:
    """The results replace the text between the markers of a page; a page without markers is refused."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n")
    options = [str(write(tmp_path, **RECORDED)), "--rounds", "1", "--resamples", "5", "--report", str(page)]
    assert main(options) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("<!-- measured: end -->\nafter\n")
    assert "old" not in text.splitlines()
    assert "| aider x | **0.400 at 1.75** | 0.250 at 1.00 | – | – | – | – | – | holds |" in text
    assert (tmp_path / "page-attempts.svg").is_file()
    page.write_text("no markers")
    with pytest.raises(ValueError, match="has no text between"):
        main(options)
