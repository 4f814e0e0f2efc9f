"""`rung pipeline` with real commands: prompts, outputs, recovery, reports and resumption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from rung.core.pipeline.stage_signal import StageEnding, parse_signal
from rung.core.policy.serializer import to_toml
from rung.store import open_journal

if TYPE_CHECKING:
    from pathlib import Path

RUNG = [sys.executable, "-m", "rung", "pipeline"]

# An agent that answers from a script: STAGE.answers holds one answer for each time it is asked, the last one for ever.
# It notes every prompt in STAGE.asked, and when it began and ended in `times`.
AGENT = """
import json, os, pathlib, sys, time
stage = os.environ["RUNG_STAGE"]
asked = pathlib.Path(stage + ".asked")
before = json.loads(asked.read_text()) if asked.exists() else []
new = pathlib.Path(stage + ".new")
new.write_text(json.dumps(before + [{"prompt": sys.stdin.read(), "turns": os.environ["RUNG_TURNS"]}]))
new.replace(asked)
with open("times", "a") as times:
    times.write(f"{stage} begins\\n")
answers = json.loads(pathlib.Path(stage + ".answers").read_text())
answer = answers[min(len(before), len(answers) - 1)]
time.sleep(answer.get("sleep", 0.05))
with open("times", "a") as times:
    times.write(f"{stage} ends\\n")
print(answer.get("says", ""))
sys.exit(answer.get("exit", 0))
"""


class World:
    """A folder with a pipeline and scripted agents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "agent.py").write_text(AGENT)
        self.file = folder / "pipeline.toml"

    def write(self, *stages: dict[str, Any], policy: dict[str, Any] | None = None, **settings: Any) -> None:
        """Write the pipeline file, with the scripted agent for every stage."""
        command = [sys.executable, str(self.folder / "agent.py")]
        text = to_toml({"pipeline": {"name": "demo", "command": command, **settings}, "policy": policy or {}})
        for stage in stages:
            text += "\n[[stage]]\n" + to_toml({"prompt": f"do {stage['id']}", **stage})
        self.file.write_text(text)

    def answers(self, stage: str, *says: str | dict[str, Any]) -> None:
        """Set the answers of a stage's agent."""
        listed = [{"says": one} if isinstance(one, str) else one for one in says]
        (self.folder / f"{stage}.answers").write_text(json.dumps(listed))

    def asked(self, stage: str) -> list[dict[str, str]]:
        """Return the recorded inputs of a stage's agent."""
        path = self.folder / f"{stage}.asked"
        found: list[dict[str, str]] = json.loads(path.read_text()) if path.exists() else []
        return found

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run `rung pipeline run`."""
        return subprocess.run(
            [*RUNG, "run", str(self.file), *words], input=given, capture_output=True, text=True, timeout=90, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `rung pipeline run` in the background."""
        return subprocess.Popen(
            [*RUNG, "run", str(self.file), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def agents(self) -> str:
        """Return the live agents of this pipeline."""
        found = subprocess.run(["pgrep", "-f", f"{self.folder}/agent.py"], capture_output=True, text=True, check=False)
        return found.stdout

    def out(self, stage: str) -> str:
        """Return the output file of a stage."""
        return (self.folder / "tasks" / "demo" / f"{stage}.md").read_text()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def until(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not come about in 30 s"
        time.sleep(0.02)


def test_stages_pass_on_paths(world: World) -> None:
    """A stage runs after its dependencies, gets their output paths, and writes its own output."""
    world.write({"id": "design"}, {"id": "build", "depends_on": ["design"]}, {"id": "test", "depends_on": ["build"]})
    world.answers("design", "PASS|parts:2\n# Design\nall of it")
    world.answers("build", "built")
    world.answers("test", "PASS|ref:docs/result.md\nfine")
    done = world.run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "design  PASS|parts:2|ref:tasks/demo/design.md",
        "build  PASS|ref:tasks/demo/build.md",
        "test  PASS|ref:docs/result.md",
    ]
    assert world.asked("design")[0]["prompt"] == "do design"
    (asked,) = world.asked("build")
    assert asked["prompt"] == (
        "do build\n\nOutput of the stages that this one depends on:\n- design: tasks/demo/design.md (PASS|parts:2)\n"
    )
    assert world.out("design") == "PASS|parts:2\n# Design\nall of it\n"


def test_a_planner_and_an_investigator(world: World) -> None:
    """On a ladder with a replan, the pipeline's investigator and planner are asked."""
    plan = [sys.executable, "-c", "import json, sys; print('as', json.load(sys.stdin)['cause'], 'use jose')"]
    world.write({"id": "a"}, policy={"ladder": "task"}, planner=plan, investigate=["echo", "passport cannot sign"])
    world.answers("a", "FAIL|kind:architectural_blocker|reason:no signing", "signed")
    assert world.run("--no-journal").returncode == 0
    assert "as passport cannot sign use jose" in world.asked("a")[1]["prompt"]


@pytest.mark.parametrize(
    ("given", "told"),
    [("2\n", "SQLite"), ("3\nUse DuckDB, \u00e9tage 2\n", "Use DuckDB, \u00e9tage 2"), ("3\n\nno db\n", "no db")],
)
def test_an_ambiguity_is_answered_in_words(world: World, given: str, told: str) -> None:
    """The question says what was attempted, offers the readings the stage named, and words; the stage gets the answer."""
    world.write({"id": "a"})
    world.answers("a", "BLOCKED|reason:which database?|options:PostgreSQL, SQLite", "PASS")
    done = world.run("--no-journal", "--ask", given=given)
    assert done.returncode == 0, done.stderr
    assert "After 1 attempt: strategic_ambiguity: which database? What should be done?" in done.stderr
    assert "  1. PostgreSQL\n  2. SQLite\n  3. Answer in your own words\n  4. Stop" in done.stderr
    _, asked = world.asked("a")
    assert f"The answer:\n{told}\n" in asked["prompt"]
    assert asked["prompt"].endswith("The task:\ndo a")


def test_the_end_of_input_is_no_answer(world: World) -> None:
    """Without words, the stage is blocked; a case without readings offers the simplest one."""
    world.write({"id": "a"})
    world.answers("a", "BLOCKED|reason:which database?")
    done = world.run("--no-journal", "--ask", given="2\n")
    assert done.returncode == 4
    assert "  1. Take the simplest reading of the task, and say which one you took\n  2. Answer" in done.stderr


def test_a_conflict_changes_the_partition_by_rules(world: World) -> None:
    """The contested file gets one owner; the other stage waits for it, and is told what belongs to whom."""
    world.write({"id": "a", "writes": ["src/api.py"]}, {"id": "b"})
    world.answers("a", {"says": "PASS", "sleep": 3.0})
    world.answers("b", "FAIL|kind:scope_conflict|reason:a edits it too|files:src/api.py|with:a", "PASS")
    done = world.run("--run-id", "r1")
    assert done.returncode == 0, done.stderr
    times = (world.folder / "times").read_text().splitlines()
    assert times.index("a ends") < len(times) - 1 - times[::-1].index("b begins")
    told = world.asked("b")[1]["prompt"]
    assert "src/api.py belongs to a alone; b waits for it" in told
    assert "Do not write what others own: a: src/api.py." in told
    kept = json.loads((world.folder / "tasks" / "demo" / "partition.json").read_text())
    assert (kept["run"], kept["dependencies"]) == ("r1", {"b": ["a"]})


def test_a_planner_divides_the_work_again(world: World) -> None:
    """The planner's partition changes the stage and adds one, which what follows waits for; a resumed run has it, too."""
    rows = [{"id": "b", "prompt": "only the parser"}, {"id": "b2", "prompt": "only the printer", "depends_on": ["b"]}]
    plan = [
        sys.executable,
        "-c",
        f"import json, sys; json.load(sys.stdin)['partition']; print({json.dumps({'stages': rows})!r})",
    ]
    world.write({"id": "b"}, {"id": "c", "depends_on": ["b"]}, planner=plan)
    world.answers("b", "FAIL|kind:scope_conflict|reason:too many hands", "PASS")
    world.answers("b2", "FAIL|kind:missing_credentials|reason:no key", "PASS")
    world.answers("c", "PASS")
    assert world.run("--run-id", "r1").returncode == 4
    assert world.asked("b")[1]["prompt"].endswith("The task:\nonly the parser")
    assert not world.asked("c")
    done = world.run("--resume", "r1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["restructured"] == ["the planner changed b, b2"]
    begun = [line for line in (world.folder / "times").read_text().splitlines() if line.endswith("begins")]
    assert begun == ["b begins", "b begins", "b2 begins", "b2 begins", "c begins"]


@pytest.mark.parametrize(
    "said", ["no idea", '{"stages": []}', '{"stages": [{"id": "a", "prompt": "x", "depends_on": ["b"]}]}']
)
def test_a_partition_that_cannot_be_is_skipped(world: World, said: str) -> None:
    """A planner that writes no partition, or changes a stage that has passed, spends the rung: a person is needed."""
    world.write({"id": "a"}, {"id": "b", "depends_on": ["a"]}, planner=["echo", said])
    world.answers("a", "PASS")
    world.answers("b", "FAIL|kind:scope_conflict|reason:no")
    done = world.run("--no-journal", "--json")
    assert done.returncode == 4
    assert "restructure raised" in done.stdout
    assert len(world.asked("b")) == 1


def test_stages_have_the_notes_of_the_project(world: World) -> None:
    """Each stage's agent gets what is known, and a blocked stage adds an issue."""
    notes = world.folder / "notes"
    notes.mkdir()
    (notes / "learnings.md").write_text("## [TOOL_ERROR] Use make -k\n")
    world.write({"id": "a", "prompt": "do a"}, policy={"attempts": 1})
    world.answers("a", {"exit": 3, "says": "no such table: users"})
    assert world.run("--no-journal", "--notes", str(notes)).returncode == 4
    (asked,) = world.asked("a")
    assert "> Learning (TOOL_ERROR): Use make -k." in asked["prompt"]
    assert "no such table" in (notes / "issues.md").read_text()


def test_stages_that_wait_for_nobody_run_at_once(world: World) -> None:
    """Independent stages run concurrently, unless there is only one worker."""
    world.write({"id": "a"}, {"id": "b"})
    for name in ("a", "b"):
        world.answers(name, {"says": "PASS", "sleep": 1.0})
    assert world.run().returncode == 0
    first, second, *_ = (world.folder / "times").read_text().splitlines()
    assert {first, second} == {"a begins", "b begins"}
    (world.folder / "times").unlink()
    world.write({"id": "a"}, {"id": "b"}, workers=1)
    assert world.run().returncode == 0
    assert (world.folder / "times").read_text().splitlines() == ["a begins", "a ends", "b begins", "b ends"]


def test_missing_sections_are_asked_for_by_themselves(world: World) -> None:
    """A nudge asks only for the missing sections, and its answer completes the output."""
    world.write({"id": "design", "sections": ["Goal", "Parts", "Risks"]})
    world.answers("design", "PASS\n# Goal\nx\n# Parts\ny", "PASS\n# Risks\nz")
    done = world.run()
    assert done.returncode == 0, done.stderr
    first, nudge = world.asked("design")
    assert "Complete only: Risks." in nudge["prompt"]
    assert "Complete only" not in first["prompt"]
    assert world.out("design") == "PASS\n\n# Goal\nx\n# Parts\ny\n\n# Risks\nz\n"


def test_too_many_missing_sections_are_a_fresh_worker_with_less(world: World) -> None:
    """With more than two missing sections, a fresh agent gets a smaller task, and no more turns: they did not run out."""
    world.write({"id": "design", "sections": ["A", "B", "C"], "turns": 10})
    world.answers("design", "nothing of it", "# A\nx\n# B\ny\n# C\nz")
    assert world.run().returncode == 0
    first, fresh = world.asked("design")
    assert (first["turns"], fresh["turns"]) == ("10", "10")
    assert "too broad" in fresh["prompt"]
    assert "A, B, C first" in fresh["prompt"]


@pytest.mark.parametrize(
    ("bad", "words", "turns"),
    [("FAIL|kind:turns_exhausted|reason:20 turns", "ran out of turns", "10"), ("PASS|quality:40", "simplest way", "5")],
)
def test_a_fresh_worker_does_it_otherwise(world: World, bad: str, words: str, turns: str) -> None:
    """Exhausted turns are doubled; low quality leads to a simpler approach."""
    world.write({"id": "build", "quality": 70, "turns": 5})
    world.answers("build", bad, "PASS|quality:90")
    done = world.run()
    assert done.returncode == 0, done.stderr
    assert words in world.asked("build")[1]["prompt"]
    assert world.asked("build")[1]["turns"] == turns


def test_two_writers_of_one_file_take_turns(world: World) -> None:
    """Write conflicts are reported before the run, and the stages run one after the other."""
    world.write({"id": "a", "writes": ["src/"]}, {"id": "b", "writes": ["src/x.py"]})
    for name in ("a", "b"):
        world.answers(name, {"says": "PASS", "sleep": 0.3})
    done = world.run()
    assert done.returncode == 0
    assert "b now waits for a: both write src" in done.stderr
    assert (world.folder / "times").read_text().splitlines() == ["a begins", "a ends", "b begins", "b ends"]


def test_ambiguity_with_nobody_there_blocks_and_nothing_follows(world: World) -> None:
    """A blocked stage exits with 4, writes a report with options, and starts no later stage."""
    world.write({"id": "design"}, {"id": "build", "depends_on": ["design"]})
    world.answers("design", "BLOCKED|reason:the brief can be read in two ways")
    world.answers("build", "PASS")
    done = world.run()
    assert done.returncode == 4
    assert done.stdout.splitlines()[1] == "build  BLOCKED|reason:not started"
    assert len(world.asked("design")) == 1
    assert world.asked("build") == []
    report = (world.folder / "tasks" / "pipeline-blocked.md").read_text()
    told = parse_signal(report)
    assert told is not None
    assert (told.status, told.facts["stage"]) == (StageEnding.BLOCKED, "design")
    assert "the brief can be read in two ways" in report
    assert "- build: not started" in report
    assert "Options" in report


def test_three_respawns_are_enough(world: World) -> None:
    """After four different attempts and without a person, the run is BLOCKED, with a report."""
    world.write({"id": "build", "quality": 70})
    world.answers("build", "PASS|quality:1\nhalf of it")
    done = world.run("--report", str(world.folder / "why.md"))
    assert done.returncode == 4
    prompts = [asked["prompt"] for asked in world.asked("build")]
    assert len(prompts) == len(set(prompts)) == 4
    assert "low_quality" in (world.folder / "why.md").read_text()
    assert "half of it" in (world.folder / "tasks" / "demo" / "build.partial.md").read_text()


def test_a_person_is_asked_with_options(world: World) -> None:
    """An attended run offers two or three options and applies the answer."""
    world.write({"id": "design"})
    world.answers("design", "BLOCKED|kind:beyond_authority|reason:may I?", "PASS")
    done = world.run("--ask", given="1\n")
    assert done.returncode == 0, done.stderr
    assert "1. Retry unchanged" in done.stderr
    assert "3. Stop" in done.stderr
    assert len(world.asked("design")) == 2
    world.answers("design", "BLOCKED|kind:beyond_authority|reason:again")
    stopped = world.run("--ask", given="3\n")
    assert stopped.returncode == 4


def test_whoever_looks_at_the_service_can_answer(world: World) -> None:
    """A stage waits for an answer through the journal and applies it; other stages continue meanwhile."""
    world.write({"id": "a"}, {"id": "b"})
    world.answers("a", "BLOCKED|reason:which of the two?", "PASS")
    world.answers("b", "PASS")
    runner = world.start("--ask-service", "--run-id", "r1")
    until(lambda: world.asked("a") and (world.folder / "tasks" / "demo" / "b.md").exists())
    with open_journal(os.environ["RUNG_JOURNAL"]) as journal:
        until(lambda: journal.read("SELECT 1 FROM ask"))
        ((incident, number),) = journal.read("SELECT incident, n FROM ask")
        assert incident == "r1/a"
        journal.runs.send(f"answer/{incident}/{number}", {"option": "answer:the second", "by": "somebody"})
        _, errors = runner.communicate(timeout=60)
    assert runner.returncode == 0, errors
    assert len(world.asked("a")) == 2


@pytest.mark.parametrize(("ladder", "code"), [("task", 3), ("model", 1), ("pipeline", 4)])
def test_exit_codes_tell_how_it_ended(world: World, ladder: str, code: int) -> None:
    """Partial, failed and blocked runs have different exit codes, and each writes a report."""
    world.write({"id": "a"}, {"id": "b", "depends_on": ["a"]}, policy={"ladder": ladder, "attempts": 2})
    world.answers("a", {"says": "no idea", "exit": 9})
    world.answers("b", "PASS")
    assert world.run().returncode == code
    assert world.asked("b") == []
    assert (world.folder / "tasks" / "pipeline-blocked.md").exists()


def test_a_check_must_pass(world: World) -> None:
    """A failed check leads to a fresh agent, which gets the check's output."""
    mark = world.folder / "good"
    check = [
        sys.executable,
        "-c",
        f"import pathlib, sys; p = pathlib.Path({str(mark)!r}); bad = not p.exists(); p.touch(); sys.exit('3 tests failed' if bad else 0)",
    ]
    world.write({"id": "build", "check": check})
    world.answers("build", "PASS")
    assert world.run().returncode == 0
    assert "3 tests failed" in world.asked("build")[1]["prompt"]


def test_a_killed_runner_goes_on(world: World) -> None:
    """After SIGKILL, the same id resumes: passed stages do not run again, interrupted ones do."""
    world.write({"id": "a"}, {"id": "b", "depends_on": ["a"]}, {"id": "c", "depends_on": ["b"]})
    world.answers("a", "PASS")
    world.answers("b", {"says": "PASS", "sleep": 60}, "PASS")
    world.answers("c", "PASS")
    runner = world.start("--run-id", "r1")
    until(lambda: world.asked("b"))
    runner.kill()
    runner.communicate()
    done = world.run("--resume", "r1")
    assert done.returncode == 0, done.stderr
    assert [len(world.asked(name)) for name in "abc"] == [1, 2, 1]
    again = world.run("--resume", "r1")
    assert again.returncode == 0
    assert [len(world.asked(name)) for name in "abc"] == [1, 2, 1]


def test_the_agent_of_a_killed_runner_does_not_work_on_beside_the_next(world: World) -> None:
    """The agent of a killed runner ends with it, and before its stage runs again."""
    world.write({"id": "a"})
    world.answers("a", {"says": "PASS", "sleep": 60}, "PASS")
    runner = world.start("--run-id", "r1")
    until(lambda: world.asked("a"))
    runner.kill()
    runner.communicate()
    assert world.run("--resume", "r1").returncode == 0
    assert world.agents() == ""
    assert (world.folder / "times").read_text().splitlines() == ["a begins", "a begins", "a ends"]
    assert [path.name for path in (world.folder / "tasks" / "demo").iterdir()] == ["a.md"]


def test_a_stage_that_must_not_run_twice_is_left_to_a_person(world: World) -> None:
    """An interrupted stage that is not idempotent ends partial, and runs again only at the next resume."""
    world.write({"id": "deploy", "idempotent": False})
    world.answers("deploy", {"says": "PASS", "sleep": 60}, "PASS")
    runner = world.start("--run-id", "r1")
    until(lambda: world.asked("deploy"))
    runner.kill()
    runner.communicate()
    assert world.run("--resume", "r1").returncode == 3
    assert len(world.asked("deploy")) == 1
    assert "side effects" in (world.folder / "tasks" / "pipeline-blocked.md").read_text()
    assert world.run("--resume", "r1").returncode == 0


def test_a_blocked_run_is_taken_up_where_it_stopped(world: World) -> None:
    """After a correction, only the failed stage and those after it run."""
    world.write({"id": "a"}, {"id": "b", "depends_on": ["a"]})
    world.answers("a", "PASS")
    world.answers("b", "BLOCKED|reason:which?", "PASS")
    assert world.run("--run-id", "r1").returncode == 4
    done = world.run("--resume", "r1")
    assert done.returncode == 0, done.stderr
    assert [len(world.asked(name)) for name in "ab"] == [1, 2]


@pytest.mark.usefixtures("unmeasured_processes")
def test_ctrl_c_ends_the_agents(world: World) -> None:
    """Ctrl-C exits with 130 and ends all agents; on resumption only the interrupted stages run again."""
    world.write({"id": "first"}, {"id": "a", "depends_on": ["first"]}, {"id": "b", "depends_on": ["first"]})
    world.answers("first", "PASS")
    for name in ("a", "b"):
        world.answers(name, {"says": "PASS", "sleep": 60}, "PASS")
    runner = world.start("--run-id", "r1")
    until(lambda: world.asked("a") and world.asked("b"))
    runner.send_signal(signal.SIGINT)
    _, errors = runner.communicate(timeout=60)
    assert runner.returncode == 130, errors
    assert world.agents() == ""
    assert world.run("--resume", "r1").returncode == 0
    assert [len(world.asked(name)) for name in ("first", "a", "b")] == [1, 2, 2]


def test_a_time_limit_is_kept(world: World) -> None:
    """An attempt that times out is ended and followed by another one."""
    world.write({"id": "a"}, policy={"attempt_seconds": 10.0})  # time for an agent to start on a busy machine
    world.answers("a", {"says": "PASS", "sleep": 60}, "PASS")
    assert world.run().returncode == 0
    assert len(world.asked("a")) == 2


def test_progress_as_json(world: World) -> None:
    """With --json, every line names its stage, and the last one is the outcome of all stages."""
    world.write({"id": "a"}, {"id": "b", "depends_on": ["a"]})
    world.answers("a", "BLOCKED|reason:x")
    world.answers("b", "PASS")
    done = world.run("--json")
    *lines, last = map(json.loads, done.stdout.splitlines())
    assert {line["stage"] for line in lines} == {"a"}
    assert last["name"] == "outcome"
    assert (last["status"], last["stages"]["a"]["status"], last["stages"]["b"]["status"]) == (
        "blocked",
        "blocked",
        "not started",
    )
    assert last["stages"]["a"]["failure"]["failure_level"] == "L4"
    assert last["run"].startswith("demo-")


def test_prompts_from_files_and_in_place(world: World) -> None:
    """A prompt can be a file, and can replace `{prompt}` in the command."""
    (world.folder / "p.md").write_text("from a {file}")
    command = [sys.executable, "-c", "import sys; print('PASS'); print(*sys.argv[1:])", "{stage}:{turns}:{prompt}"]
    world.file.write_text(
        to_toml({"pipeline": {"name": "demo"}})
        + "\n[[stage]]\n"
        + to_toml({"id": "a", "prompt_path": "p.md", "command": command, "turns": 3})
    )
    assert world.run().returncode == 0
    assert world.out("a") == "PASS\na:3:from a {file}\n"


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("[[stage]]\nid = 'a'\nprompt = 'x'\n", (), "stage[0].command"),
        ("[pipeline]\ncommand = ['x']\n", (), "stage: None is invalid"),
        ("[[stage]]\nid = 'a'\nprompt_path = 'gone.md'\ncommand = ['x']\n", (), "gone.md"),
        ("[[stage]]\nid = 'a'\nprompt = 'x'\ncommand = ['x']\n[policy]\nfoo = 1\n", (), "policy.foo"),
        (
            "[[stage]]\nid = 'a'\nprompt = 'x'\ncommand = ['x']\n",
            ("--resume", "nobody"),
            "--resume: 'nobody' is invalid",
        ),
        ("[[stage]]\nid = 'a'\nprompt = 'x'\ncommand = ['x']\n", ("--resume", "r", "--run-id", "r"), "--run-id"),
        ("[[stage]]\nid = 'a'\nprompt = 'x'\ncommand = ['x']\n", ("--no-journal", "--run-id", "r"), "--no-journal"),
        ("not toml", (), "is not TOML"),
    ],
)
def test_what_cannot_run_says_so_in_one_line(world: World, text: str, words: tuple[str, ...], said: str) -> None:
    """An invalid file exits with 2 and one line, and nothing runs."""
    world.file.write_text(text)
    done = world.run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_check_shows_the_turns(world: World) -> None:
    """`check` prints the groups of stages and the added dependencies, and runs nothing."""
    world.write({"id": "a", "writes": ["f"]}, {"id": "b", "writes": ["f"]}, {"id": "c", "depends_on": ["a"]})
    shown = subprocess.run([*RUNG, "check", str(world.file)], capture_output=True, text=True, check=False)
    assert shown.stdout.splitlines() == ["1. a", "2. b, c"]
    assert "b now waits for a" in shown.stderr
    told = subprocess.run([*RUNG, "check", str(world.file), "--json"], capture_output=True, text=True, check=False)
    assert json.loads(told.stdout)["turns"] == [["a"], ["b", "c"]]
    assert not (world.folder / "times").exists()


def test_without_a_journal(world: World) -> None:
    """A run without a journal works and has no id."""
    world.write({"id": "a"})
    world.answers("a", "PASS")
    done = world.run("--no-journal")
    assert done.returncode == 0
    assert not done.stderr.startswith("run ")


def test_a_silent_stage_enters_the_ladder(world: World) -> None:
    """A stage that is silent for longer than it took in earlier runs is ended as stalled, and a fresh agent is started."""
    policy = {"stalls": {"samples": 1, "min_seconds": 3.0, "factor": 1.0}}
    world.write({"id": "a"}, policy=policy)
    world.answers("a", {"says": "one"}, {"sleep": 60}, {"says": "two"})
    assert world.run("--json").returncode == 0
    done = world.run("--json")
    assert done.returncode == 0, done.stderr
    assert "stalled" in done.stdout
