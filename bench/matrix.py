"""The recovery matrix: every fault of the lab, streamed and not, over each wire, with and without the gateway.

    python bench/matrix.py [--wire messages] [--fault cut] [--other NAME=BASE_URL]

Each cell is one request of a real SDK (its own retries off) against a lab that fails once, or for good where the
fault never goes away by itself. A cell says what the client got: the whole answer, a well-formed error, or something
worse (cut, doubled, hung), with the attempts the lab counted and the seconds it took.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai
import uvloop

from rung.core.config import book_from
from rung.gateway.serve import Served
from rung.gateway.settings import settings_from
from rung.testing.provider import FAULTS, Lab

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.gateway.behind import WHOLE, chat, messages, responses

WIRES: dict[str, Any] = {"messages": messages, "chat": chat, "responses": responses}
# What no repeat and no model that costs no more can mend: the provider's own error is the right answer.
HOPELESS = (
    "quota",
    "spend_limit",
    "payment",
    "bad_request",
    "unauthorized",
    "forbidden",
    "not_found",
    "unprocessable",
    "redirect",
    "too_large",
)
TOLD: dict[str, dict[str, Any]] = {
    "slow": {"seconds": 6.0},
    "stall": {"after": 7, "seconds": 60.0},
    "cut": {"after": 7},
    "no_end": {"after": 7},
    "stream_error": {"after": 7},
    "truncated_json": {"after": 7},
    "max_tokens": {"after": 7},
    "rate_limit": {"retry_after": 0.3},
}
TOOLS = ("loop", "bad_arguments")
CLOCKS = {"connect": 2.0, "headers": 2.0, "whole": 2.0, "first": 2.0, "gap": 1.0, "grace": 1.0}


class Cell(NamedTuple):
    """What one request came to."""

    got: str  # whole, error, or what else
    attempts: int
    seconds: float

    @property
    def good(self) -> bool:
        return self.got in ("whole", "error")


def rule_of(fault: str) -> dict[str, Any]:
    """A fault that strikes once; or every request, or every one of the first model, where it does not go away."""
    rule = {"fault": fault, **TOLD.get(fault, {})}
    if fault in ("model_gone", "wall"):
        return {**rule, "model": "small"}
    return rule if fault in HOPELESS or fault == "refusal" else {**rule, "request": 1}


def asked(wire: str, base: str, *, stream: bool, tools: bool) -> str:
    """Ask once, and say what came."""
    client: Any
    if wire == "messages":
        client = anthropic.Anthropic(base_url=base, api_key="sk-ant-lab", max_retries=0, timeout=12)
    else:
        client = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-lab", max_retries=0, timeout=12)
    try:
        got = WIRES[wire](client, stream=stream, tools=tools)
    except (anthropic.APIStatusError, openai.APIStatusError) as error:
        return (
            "error"
            if isinstance(error.body, dict) and error.status_code >= 400
            else f"error of status {error.status_code}"
        )
    except Exception as error:
        return f"broken ({type(error).__name__})"
    finally:
        client.close()
    if tools:
        return "whole" if len(got.calls) == 1 and "at" in got.calls[0] else f"{len(got.calls)} calls"
    if got.text == WHOLE:
        return "whole"
    if got.stop in ("refusal", "content_filter") or "can't help" in got.text:
        return "error"
    words = got.text.split()
    return "doubled" if len(words) != len(set(words)) else f"cut ({len(words)} of 40, {got.stop})"


class Gateway:
    """Ours, in a thread, before a lab."""

    def __init__(self, lab: Lab) -> None:
        policy = {"models": ["small", "large"], "backoff": {"base": 0.05, "cap": 0.3}}
        table = {"anthropic": lab.url, "openai": lab.url, "port": 0, "clocks": CLOCKS}
        up = threading.Event()
        self.served = Served(settings_from(table, book_from({"policy": policy})), None, lambda _: up.set())
        self.thread = threading.Thread(target=lambda: uvloop.run(self.served.run()), daemon=True)
        self.thread.start()
        up.wait(10)
        self.url = f"http://127.0.0.1:{self.served.port}"

    def stop(self) -> None:
        self.served.stop()
        self.thread.join(10)


def measure(lab: Lab, base: str, wire: str, fault: str, *, stream: bool) -> Cell:
    lab.use([rule_of(fault)], calls=1 if fault in TOOLS else 0)
    began = time.perf_counter()
    got = asked(wire, base, stream=stream, tools=fault in TOOLS)
    return Cell(got, lab.attempts, time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wire", choices=tuple(WIRES))
    parser.add_argument("--fault", choices=tuple(FAULTS))
    parser.add_argument(
        "--other", action="append", default=[], metavar="NAME=PORT", help="a gateway before the lab at --lab-port"
    )
    parser.add_argument("--lab-port", type=int, default=0)
    options = parser.parse_args()
    wires = [options.wire] if options.wire else list(WIRES)
    faults = [options.fault] if options.fault else [name for name in FAULTS if name not in ("status", "overflow")]
    bad = 0
    with Lab(port=options.lab_port) as lab:
        others = dict(other.split("=", 1) for other in options.other)
        print(f"{'fault':17}{'wire':11}{'':8}" + "".join(f"{name:34}" for name in ("no gateway", "rung", *others)))
        for fault in faults:
            for wire in wires:
                for stream in (False, True):
                    if FAULTS[fault].needs == "stream" and not stream:
                        continue
                    gateway = Gateway(lab)  # a fresh one: no circuit, budget or session of another cell
                    try:
                        bases = {"no gateway": lab.url, "rung": gateway.url}
                        bases |= {name: f"http://127.0.0.1:{port}" for name, port in others.items()}
                        found = {name: measure(lab, base, wire, fault, stream=stream) for name, base in bases.items()}
                    finally:
                        gateway.stop()
                    ours, bare = found["rung"], found["no gateway"]
                    if fault == "refusal":  # an answer like any other: as it came, in one attempt
                        bad += ours[:2] != bare[:2]
                    else:
                        bad += ours.got != ("error" if fault in HOPELESS else "whole")
                    cells = "".join(f"{f'{c.got}, {c.attempts} att., {c.seconds:.1f} s':34}" for c in found.values())
                    print(f"{fault:17}{wire:11}{'stream' if stream else 'whole':8}{cells}", flush=True)
    print(f"\n{bad} cells of ours are worse than they could be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
