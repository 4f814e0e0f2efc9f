"""Two providers with different wires, one of them dead for a while: do 64 clients of Anthropic's SDK notice?

    python -m bench.gateway.storm_providers [--outage 60] [--clients 64] [--pause 2] [--calm 5]

Provider a has Anthropic's API, provider b OpenAI's and another model. During the outage a refuses connections, is
overloaded, or breaks off its streams. Requirements: every answer is whole; each client's first call in the outage is
answered by b; every client is back on a within a minute of its recovery; the gateway's own costs are those of the table.
`--outage 600` takes the ten minutes of the requirement.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import anthropic
import uvloop

from bench.gateway.storm import WHOLE, count_attempts, print_result, set_script
from bench.gateway.subjects import free_port, start, stop_all
from rung.adapters.system.list_prices import fetch_list_prices
from rung.core.policy.model_prices import MILLION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.policy.model_prices import ModelPrice

A_MODEL, B_MODEL = "claude-sonnet-4-6", "gpt-5.1"
BACK_SECONDS: Final = 60.0
MAX_LOAD: Final = 0.2  # requests to the dead provider, per call
COST_TOLERANCE: Final = 0.05  # a stream that broke off costs at both providers, and counts for one in the table
HEALTHY: Final = {"gap": 0.002}
CUTS: Final = 8  # streams that break off when the outage begins
OUTAGE: Final = {
    **HEALTHY,
    "rules": [{"fault": "cut", "after": 17, "times": CUTS}, {"fault": "overloaded", "every": 2}, {"fault": "reset"}],
}
KEY_ENV: Final = "RUNG_STORM_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """One call: its client, when it began and ended, who answered, and its tokens."""

    client: int
    began: float
    ended: float
    provider: str  # a or b; empty: lost
    tokens: tuple[int, int] = (0, 0)
    problem: str = ""


@dataclass(slots=True)
class Clients:
    """Concurrent clients, each in a session of its own, and the answers that they got."""

    url: str
    number: int
    pause: float
    answers: list[AnsweredCall] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        """Let all clients ask until it is over."""
        async with anthropic.AsyncAnthropic(
            base_url=self.url, api_key="sk-ant-storm", max_retries=0, timeout=120.0
        ) as sdk:
            await asyncio.gather(*(self._client(sdk, number) for number in range(self.number)))

    async def _client(self, sdk: anthropic.AsyncAnthropic, number: int) -> None:
        await asyncio.sleep(self.pause * number / self.number)
        while not self.is_over:
            began = time.perf_counter()
            try:
                answered = await self._ask(sdk, number, began)
            except anthropic.APIError as error:
                problem = f"{type(error).__name__}: {str(error)[:100]}"
                answered = AnsweredCall(
                    client=number, began=began, ended=time.perf_counter(), provider="", problem=problem
                )
            self.answers.append(answered)
            await asyncio.sleep(max(0.0, began + self.pause - time.perf_counter()))

    async def _ask(self, sdk: anthropic.AsyncAnthropic, number: int, began: float) -> AnsweredCall:
        async with sdk.messages.stream(
            model=A_MODEL, max_tokens=4_000, extra_headers={"x-rung-session": f"client-{number}"},
            messages=[{"role": "user", "content": f"count to 40 as apple ({number})"}],
        ) as stream:  # fmt: skip
            message = await stream.get_final_message()
            headers = stream.response.headers
        text = "".join(block.text for block in message.content if block.type == "text")
        provider = "b" if headers.get("x-rung-model", "").startswith("b/") else "a"
        tokens = (message.usage.input_tokens, message.usage.output_tokens)
        is_whole = text == WHOLE
        return AnsweredCall(
            client=number, began=began, ended=time.perf_counter(), provider=provider if is_whole else "", tokens=tokens,
            problem="" if is_whole else f"text of {len(text)} characters",
        )  # fmt: skip

    def of(self, provider: str) -> list[AnsweredCall]:
        return [each for each in self.answers if each.provider == provider]

    def first_in(self, began: float) -> Iterator[AnsweredCall]:
        """Yield the first answer of each client to a call that began after this time."""
        seen: set[int] = set()
        for each in sorted(self.answers, key=lambda answered: answered.began):
            if each.began >= began and each.client not in seen:
                seen.add(each.client)
                yield each

    async def wait_until_back(self, recovered: float) -> None:
        """Wait until every client had an answer from its own provider, or the time for that is over."""
        while time.perf_counter() < recovered + BACK_SECONDS:
            if len(self.back_after(recovered)) == self.number:
                return
            await asyncio.sleep(0.1)

    def back_after(self, recovered: float) -> list[float]:
        """Return how long after the recovery each client that is back had its first answer from its own provider."""
        first: dict[int, float] = {}
        for each in self.of("a"):
            if each.began >= recovered:
                first[each.client] = min(first.get(each.client, each.ended), each.ended)
        return sorted(ended - recovered for ended in first.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run has measured."""

    clients: Clients
    dead_at: float
    recovered_at: float
    to_dead: int  # requests to a during the outage
    to_b: int
    dollars: float  # by the gateway's metrics

    @property
    def lost(self) -> list[AnsweredCall]:
        return self.clients.of("")

    @property
    def in_outage(self) -> list[AnsweredCall]:
        return [each for each in self.clients.answers if self.dead_at <= each.began < self.recovered_at]

    @property
    def handed_over(self) -> list[AnsweredCall]:
        return [each for each in self.clients.of("b") if each.began >= self.dead_at]


async def storm(clients: Clients, labs: tuple[int, int], gateway: int, options: Any) -> Measured:
    """Run the clients through calm, outage and recovery, until all of them are back or a minute has passed."""
    a, b = labs
    await set_script(a, **HEALTHY)
    await set_script(b, **HEALTHY)
    work = asyncio.create_task(clients.run())
    await asyncio.sleep(options.calm)
    await set_script(a, **OUTAGE)
    dead_at = time.perf_counter()
    await asyncio.sleep(options.outage)
    to_dead = await count_attempts(a)
    await set_script(a, **HEALTHY)
    recovered_at = time.perf_counter()
    await clients.wait_until_back(recovered_at)
    await asyncio.sleep(options.pause)
    clients.is_over = True
    await work
    return Measured(
        clients=clients, dead_at=dead_at, recovered_at=recovered_at, to_dead=to_dead, to_b=await count_attempts(b),
        dollars=await metered_dollars(gateway),
    )  # fmt: skip


async def metered_dollars(gateway: int) -> float:
    """Return what the gateway has counted as spent."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{gateway}/metrics") as found:
        text = await found.text()
    return sum(float(value) for value in re.findall(r"^rung_dollars_total(?:\{[^}]*\})? (\S+)", text, re.MULTILINE))


@cache
def list_prices() -> dict[str, ModelPrice]:
    """Return the list prices of both models."""
    found = fetch_list_prices([A_MODEL, B_MODEL])
    return {model: price for model in (A_MODEL, B_MODEL) if (price := found.get(model)) is not None}


def cost_rows(clients: Clients) -> list[tuple[str, str, int, int, int, float]]:
    """Return provider, model, calls, tokens in and out, and US dollars by list price."""
    rows = []
    for provider, (model, price) in zip("ab", list_prices().items(), strict=True):
        answers = clients.of(provider)
        tokens_in, tokens_out = (sum(each.tokens[place] for each in answers) for place in (0, 1))
        dollars = tokens_in * price.input + tokens_out * price.output
        rows.append((provider, model, len(answers), tokens_in, tokens_out, dollars))
    return rows


def report(found: Measured) -> int:
    """Print the result and the cost table; return the number of requirements that are missed."""
    clients, first = found.clients, list(found.clients.first_in(found.dead_at))
    asked, lost = len(clients.answers), found.lost
    words = f"{asked} calls, {asked - len(lost)} whole, {len(lost)} lost {sorted({each.problem for each in lost})[:3]}"
    bad = print_result("answers", words, good=not lost)
    served = sum(bool(each.provider) for each in first)
    handed = min((each.ended for each in found.handed_over), default=float("inf")) - found.dead_at
    longest = max((each.ended - each.began for each in first), default=0.0)
    words = f"first by b {handed:.2f} s after a died; first calls answered {served}/{clients.number}, longest {longest:.1f} s"
    bad += print_result("hand-over", words, good=served == clients.number and bool(found.handed_over))
    load = found.to_dead / max(1, len(found.in_outage))
    words = (
        f"{len(found.in_outage)} calls, requests to a {found.to_dead} ({load:.2f} per call), to b in all {found.to_b}"
    )
    bad += print_result("outage", words, good=found.to_dead <= clients.number + MAX_LOAD * len(found.in_outage))
    back = clients.back_after(found.recovered_at)
    median, last = (back[len(back) // 2], back[-1]) if back else (float("inf"), float("inf"))
    words = f"{len(back)}/{clients.number} clients, first {back[0] if back else 0:.1f} s, median {median:.1f} s, last {last:.1f} s"
    bad += print_result("back on a", words, good=len(back) == clients.number and last <= BACK_SECONDS)
    return bad + print_costs(clients, found.dollars)


def print_costs(clients: Clients, metered: float) -> int:
    print(f"\n{'provider':9} {'model':20} {'calls':>7} {'tokens in':>10} {'tokens out':>11} {'dollars':>9}")
    rows = cost_rows(clients)
    for provider, model, calls, tokens_in, tokens_out, dollars in rows:
        print(f"{provider:9} {model:20} {calls:>7} {tokens_in:>10} {tokens_out:>11} {dollars:>9.4f}")
    total = sum(row[-1] for row in rows)
    print(f"{'':9} {'in all':20} {sum(row[2] for row in rows):>7} {'':>10} {'':>11} {total:>9.4f}\n")
    good = abs(metered - total) <= COST_TOLERANCE * total
    return print_result("costs", f"gateway's metrics {metered:.4f} dollars", good=good)


def settings(a: int, b: int) -> str:
    """Return the gateway's settings, with its defaults for everything but the providers.

    It has the list prices, because it would look them up while its first calls, uncounted, are made.
    """
    prices = "".join(
        f'[gateway.prices."{model}"]\ninput = {MILLION * price.input}\noutput = {MILLION * price.output}\n'
        for model, price in list_prices().items()
    )
    return prices + (
        f'[policy]\nmodels = ["{A_MODEL}", "b/{B_MODEL}"]\n[gateway]\nanthropic = "http://127.0.0.1:{a}"\n'
        f'[gateway.upstreams.b]\nwire = "openai"\napis = ["chat"]\nurl = "http://127.0.0.1:{b}"\nkey_env = "{KEY_ENV}"\n'
    )


async def measure(options: Any) -> Measured:
    """Start both labs and a gateway as processes, and run the clients."""
    a, b, port = free_port(), free_port(), free_port()
    rung = (sys.executable, "-m", "rung")
    os.environ[KEY_ENV] = "sk-storm"
    with tempfile.TemporaryDirectory() as scratch:
        started = [start(name, at, *rung, "lab", "--port", str(at)) for name, at in (("a", a), ("b", b))]
        try:
            await asyncio.to_thread(Path(scratch, "rung.toml").write_text, settings(a, b), "utf-8")
            flags = ("--config", f"{scratch}/rung.toml", "--port", str(port), "--journal", f"{scratch}/journal.db")
            started.append(start("rung", port, *rung, "gateway", *flags, path="/readyz"))
            clients = Clients(f"http://127.0.0.1:{port}", options.clients, options.pause)
            return await storm(clients, (a, b), port, options)
        finally:
            stop_all(started)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.gateway.storm_providers", description=__doc__)
    parser.add_argument("--outage", type=float, default=60.0, help="seconds that provider a is dead")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--pause", type=float, default=2.0, help="seconds from one call of a client to its next")
    parser.add_argument("--calm", type=float, default=5.0, help="seconds before the outage")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(1 if report(uvloop.run(measure(parsed()))) else 0)
