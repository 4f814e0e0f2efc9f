"""Runs the real Codex against answers of another wire; a program that reads its task from stdin.

Each answer is a call of one of the client's tools, as another provider would write it: the name of the function that
stands for the tool, and JSON arguments. The stream writer turns it into the events of the Responses API.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[3]))
from rung.wires.translation.answer import CallDelta, CallEnded, CallStarted, Ended, Started, Stop, TextDelta, Usage
from rung.wires.translation.responses import RESPONSES_TRANSLATOR
from tests.hooks.rig import isolate_network

if TYPE_CHECKING:
    from rung.wires.translation.answer import AnswerEvent

SECONDS = 60


def answer(calls: list[list[str]], number: int) -> list[AnswerEvent]:
    """Return the events of an answer: the next call, or the last words."""
    begun: list[AnswerEvent] = [Started(id=f"msg_{number}", model="other"), TextDelta(text="Well.")]
    if number >= len(calls):
        return [*begun, Ended(stop=Stop.END, usage=Usage(input=9, output=3))]
    name, arguments = calls[number]
    middle = len(arguments) // 2
    return [
        *begun,
        CallStarted(index=0, id=f"toolu_{number}", name=name),
        CallDelta(index=0, json=arguments[:middle]),
        CallDelta(index=0, json=arguments[middle:]),
        CallEnded(index=0),
        Ended(stop=Stop.TOOL_CALLS, usage=Usage(input=9, output=3)),
    ]


def serve(calls: list[list[str]], bodies: list[Any]) -> int:
    """Serve the answers; return the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            writer = RESPONSES_TRANSLATOR.stream_writer(RESPONSES_TRANSLATOR.read_request(body))
            data = writer.write(answer(calls, len(bodies)))
            bodies.append(body)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def run(told: dict[str, Any]) -> dict[str, Any]:
    """Run one task; return how it ended, the files that it made, and its requests."""
    isolate_network()
    root = Path(told["root"])
    bodies: list[Any] = []
    port = serve(told["calls"], bodies)
    (root / "home" / ".codex").mkdir(parents=True)
    (root / "project").mkdir()
    (root / "home" / ".codex" / "config.toml").write_text(
        f'model = "{told["model"]}"\nmodel_provider = "lab"\n[model_providers.lab]\nname = "lab"\n'
        f'base_url = "http://127.0.0.1:{port}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        "request_max_retries = 0\nstream_max_retries = 0\n"
    )
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--output-last-message"]
    done = subprocess.run(
        [told["program"], "exec", *flags, str(root / "last.txt"), "do it"],
        cwd=root / "project", env={"PATH": os.environ["PATH"], "HOME": str(root / "home"), "OPENAI_API_KEY": "sk-lab"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    last = root / "last.txt"
    return {
        "exit": done.returncode,
        "errors": done.stderr[-1_500:],
        "said": last.read_text() if last.exists() else "",
        "files": {path.name: path.read_text() for path in (root / "project").iterdir()},
        "bodies": bodies,
    }


if __name__ == "__main__":
    ended = run(json.load(sys.stdin))
    sys.stdout.write(json.dumps(ended))
    sys.stdout.flush()
    os._exit(0)  # without waiting for the threads
