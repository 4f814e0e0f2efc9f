"""A crew of three real Claude Code agents before a provider that fails, watched on the dashboard in a real browser.

`python -m bench.crew.claude_crew [--shots DIR]` prints the story, one line per event, and takes a screenshot of the crew's
page at each stage. One agent meets an error and gets a fix, one is sent back by a review, one warns of its context, hands
over, and its successor goes on in the same session of the agent. Dummy key, a home of its own, nothing but loopback where
the system allows it.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.conftest import ROOT, up
from tests.hooks.rig import command_line, environment, isolate_network

from rung.core.crew.contract import MessageType
from rung.core.policy.serializer import to_toml
from rung.store.crew.table import CrewTable
from rung.testing import lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

SECONDS = 240.0  # until the crew is done
FINDER = runpy.run_path(str(ROOT / "scripts" / "find_chromium.py"))
STEPS = 4  # of each task
# What the agents are told. The provider is scripted: every turn runs `./step N` in the task's folder.
TASKS = {
    "parser": ("Write the parser", "Write the parser of the shop's price list to done.txt. Run ./step for each step."),
    "guide": ("Write the guide", "Write the guide for the shop's owner to done.txt. Run ./step for each step."),
    "prices": ("Move the prices", "Move the prices of the shop to done.txt. Run ./step for each step."),
}
WARNING = (
    "Context Usage: 91%\nSelf-Correction: NO\nDeviations: none\nDistance: 2 steps\nAgents Remaining: 0\n"
    "Proposal: finish chapter 3 of done.txt, then hand over"
)
SCRIPTS = {
    "parser": '[ "$1" = 5 ] || echo "parser, step $1" >> done.txt',
    # The context is nearly full after the second step: the agent says so and waits for the answer.
    "guide": (
        '[ "$1" = 5 ] || echo "guide, step $1" >> done.txt\nif [ "$1" = 2 ] && [ ! -e warned ]; then touch warned; '
        'rung worker context-warning --body "$WARNING"; sleep 60; fi'
    ),
    # The fourth step does nothing, and the agent says that it is done: the check of the review finds it.
    "prices": '[ "$1" = 4 ] || echo "prices, step $1" >> done.txt',
}
FAULTS = [
    {"fault": "too_large", "contains": "the parser of", "tools": True, "request": "2-100", "times": 1},
    {"fault": "cut", "contains": "the prices of", "tools": True, "stream": True, "times": 1},
]
STAGES = {
    MessageType.ERROR: "error",
    MessageType.FIX_PROPOSAL: "fix",
    MessageType.REVIEW_REQUEST: "review",
    MessageType.REJECTION: "sent-back",
    MessageType.CONTEXT_WARNING: "context-warning",
    MessageType.HANDOFF: "hand-over",
    MessageType.RESUMPTION: "successor",
    MessageType.COMPLETION: "complete",
}


def main() -> int:
    """Run the crew, print its story, and check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shots", type=Path, help="folder for the screenshots (default: a temporary one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    options = parser.parse_args()
    if command_line() is None:
        sys.stderr.write("Claude Code is not here: pip install claude-agent-sdk\n")
        return 2
    isolate_network()
    shots = options.shots or Path(tempfile.mkdtemp(prefix="rung-crew-shots-"))
    shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rung-crew-") as root:
        result = run(Path(root), shots)
    print(json.dumps(result) if options.json else f"screenshots: {shots}", flush=True)
    return 0 if result["exit"] == 0 else 1


def run(root: Path, shots: Path) -> dict[str, Any]:
    """Run the crew to its end; return what happened."""
    plan = prepare(root)
    os.environ["HOME"] = str(root / "home")  # the crew's key lies there, for the dashboard too
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
        os.environ.pop(name, None)
    with ExitStack() as stack:
        provider = stack.enter_context(lab(script={"turns": turns(STEPS), "rules": FAULTS}))
        env = environment(root / "home", provider.url, {"CLAUDE_CODE_MAX_RETRIES": "1", "WARNING": WARNING})
        env |= {"RUNG_JOURNAL": str(root / "journal.db"), "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}
        table = stack.enter_context(CrewTable.open(str(root / "crew.db"), create=True))
        page = stack.enter_context(dashboard(root))  # before the crew: its first seconds are shown, too
        command = [sys.executable, "-m", "rung", "crew", "run", str(plan), "--db", str(root / "crew.db")]
        front = stack.enter_context(subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True))
        calls = []

        def ask_for_one_more_step() -> None:
            calls.extend(provider.calls)  # another script begins another record
            provider.use({"turns": turns(STEPS + 1)})

        story = Story(table, page, shots, sent_back=ask_for_one_more_step)
        told = story.follow(front)
        said = front.stderr.read() if front.stderr else ""
        calls.extend(provider.calls)
    said_to_model = [json.dumps(call.json["messages"]) for call in calls if call.json.get("tools")]
    heard = {name: [call for call in said_to_model if text in call] for name, (_, text) in TASKS.items()}
    sys.stderr.write(said)
    done = {name: (root / name / "done.txt").read_text() for name in TASKS}
    return {"exit": front.returncode, "said": said, "story": told, "heard": heard, "done": done}


def turns(steps: int) -> list[dict[str, Any]]:
    """Return the turns of the model: so many commands, then a last text."""
    calls = [{"tool": "Bash", "input": {"command": f"./step {n}"}} for n in range(1, steps + 1)]
    return [*calls, {"text": "Done: all steps of done.txt are written."}]


def prepare(root: Path) -> Path:
    """Write the plan and the folders of the tasks."""
    (root / "home").mkdir()
    agent = [str(command_line()), "-p", "{instruction}", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]
    check = f"sh -c 'test $(sort -u done.txt | grep -c step) -ge {STEPS}'"
    worker = ["rung", "worker", "run", "--check", check, "--poll-interval", "0.5", "--", *agent]
    crew = {"name": "shop", "workers": 3, "worker": worker, "poll": 1.5, "beat": 2.0, "stale_after": 60.0, "grace": 5.0}
    lines = ["[crew]", to_toml(crew)]
    for name, (title, text) in TASKS.items():
        (root / name).mkdir()
        step = root / name / "step"
        step.write_text(f"#!/bin/sh\n{SCRIPTS[name]}\n")
        step.chmod(0o755)
        lines += ["[[task]]", to_toml({"id": name, "title": title, "instruction": text, "workdir": name})]
    plan = root / "plan.toml"
    plan.write_text("\n".join(lines))
    return plan


@contextmanager
def dashboard(root: Path) -> Iterator[Page]:
    """Open the crew's page in Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = FINDER["find"]()
    if chromium is None:
        raise FileNotFoundError("no Chromium: `make browser` installs one")
    with (
        up("--no-gateway", "--crew", str(root / "crew.db"), journal=root / "journal.db") as service,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
        browser.new_context(locale="en-US", viewport={"width": 1360, "height": 860}) as context,
    ):
        page = context.new_page()
        page.goto(service.sign_in)
        page.goto(service.url("/crew"))
        yield page


class Story:
    """What happens in the crew, in order: printed, and kept as screenshots."""

    def __init__(self, table: CrewTable, page: Page, shots: Path, sent_back: Callable[[], object]) -> None:
        self.table, self.page, self.shots = table, page, shots
        self.sent_back = sent_back  # called at the first rejection: from then on the model does one more step
        self.began = time.monotonic()
        self.told: list[dict[str, str]] = []
        self.last = 0

    def follow(self, front: subprocess.Popen[str]) -> list[dict[str, str]]:
        """Tell every message until the crew has ended."""
        self.page.locator(".task-card").first.wait_for()
        self.shoot("start")
        while front.poll() is None:
            if time.monotonic() - self.began > SECONDS:
                front.terminate()
            self.tell()
            time.sleep(0.1)
        self.tell()
        self.shoot("end")
        board = self.page.url
        for name in TASKS:
            self.page.goto(f"{board}/shop/{name}" if "shop" in board else board.replace("/crew", f"/crew/crew/{name}"))
            self.page.locator(".messages").wait_for()
            self.shoot(f"task-{name}")
        return self.told

    def tell(self) -> None:
        """Print the new messages, and take a screenshot after each that begins a stage."""
        for message in self.table.messages(after=self.last):
            self.last = message.id
            line = message.message.strip().splitlines()[0][:110] if message.message.strip() else ""
            seconds = time.monotonic() - self.began
            print(f"{seconds:6.1f} s  {message.task_id:<9} {message.message_type:<16} {line}", flush=True)
            self.told.append({"task": message.task_id, "type": message.message_type, "text": message.message})
            if message.message_type is MessageType.REJECTION:
                self.sent_back()
            if message.message_type in STAGES:
                self.shoot(f"{message.task_id}-{STAGES[message.message_type]}")

    def shoot(self, name: str) -> None:
        """Take a screenshot."""
        self.page.wait_for_timeout(400)  # milliseconds: the page follows the table
        self.page.screenshot(path=self.shots / f"{len(list(self.shots.glob('*.png'))) + 1:02}-{name}.png")


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # whatever the lab's threads are doing
