"""Lost calls and upstream load of 200 concurrent calls, with Rung, tenacity and stamina in one run.

Each library makes at most four attempts of a call, with the same backoff. Whether the n-th attempt of a call fails
depends only on the seed, so all libraries meet the same failures. Failures are quick and successes slow, as in an
overloaded service. Rung uses its default retry budget and circuit breaker, new for each run: by default it then waits for
the service, with `patience=0` it gives up as the others do. Exits with 1 if Rung loses a call by default, if it loses more
than another library without waiting at up to 30 %, or if its retries make more than 1.5 requests per call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import stamina
import tenacity

import rung

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

CALLS: Final = 200
SEEDS: Final = range(1, 6)
SHARES: Final = (0.1, 0.2, 0.3, 0.4)
ATTEMPTS: Final = 4
BACKOFF_SECONDS: Final = 0.05
MAX_COMPARED_SHARE: Final = 0.3
MAX_LOAD: Final = 1.5


class Service:
    """Upstream service: decides by seed, call and attempt whether a request fails, and counts the requests."""

    def __init__(self, share: float, seed: int) -> None:
        self.share, self.seed, self.requests = share, seed, 0
        self._attempts: dict[int, int] = {}

    async def request(self, call: int) -> int:
        """Answer one request of a call."""
        self.requests += 1
        attempt = self._attempts[call] = self._attempts.get(call, 0) + 1
        if random.Random(f"{self.seed} {call} {attempt}").random() < self.share:
            await asyncio.sleep(0.001)
            raise ConnectionResetError("reset by the service")
        await asyncio.sleep(0.03)
        return call


class Result(NamedTuple):
    """Calls that were lost, requests per call, and seconds until all calls had ended."""

    lost: int
    load: float
    seconds: float


def with_rung(service: Service, **waiting: Any) -> Callable[[int], Awaitable[Any]]:
    """Return a call that is recovered by Rung, with a new breaker and a new retry budget."""
    policy = rung.policy("call", backoff={"base": BACKOFF_SECONDS}, **waiting)
    ports: Any = {"breakers": rung.BreakerRegistry(), "retry_budget": rung.RetryBudget()}
    return rung.guarded(policy, **ports)(service.request)


def with_tenacity(service: Service) -> Callable[[int], Awaitable[Any]]:
    """Return a call that is retried by tenacity."""
    return tenacity.retry(
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_random_exponential(multiplier=BACKOFF_SECONDS),
        retry=tenacity.retry_if_exception_type(ConnectionError),
        reraise=True,
    )(service.request)


def with_stamina(service: Service) -> Callable[[int], Awaitable[Any]]:
    """Return a call that is retried by stamina."""
    return stamina.retry(
        on=ConnectionError, attempts=ATTEMPTS, wait_initial=BACKOFF_SECONDS, wait_jitter=BACKOFF_SECONDS
    )(service.request)


NO_WAITING: Final = "rung, patience=0"
LIBRARIES: Final[dict[str, Callable[[Service], Callable[[int], Awaitable[Any]]]]] = {
    "rung": with_rung,
    NO_WAITING: partial(with_rung, patience=0),
    "tenacity": with_tenacity,
    "stamina": with_stamina,
}


async def measure(library: str, share: float, seed: int, calls: int = CALLS) -> Result:
    """Make all calls at once."""
    service = Service(share, seed)
    call, begun = LIBRARIES[library](service), time.monotonic()
    results = await asyncio.gather(*(call(number) for number in range(calls)), return_exceptions=True)
    lost = sum(isinstance(result, BaseException) for result in results)
    return Result(lost, service.requests / calls, time.monotonic() - begun)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; return 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures to this file")
    options = parser.parse_args(arguments)
    logging.disable()
    broken = False
    rows: list[dict[str, Any]] = []
    print(f"{CALLS} concurrent calls, {len(SEEDS)} seeds: calls lost in all; the most requests per call, and seconds")
    print("failures  " + "".join(f"{name:>24}" for name in LIBRARIES))
    for share in SHARES:
        results = {name: [asyncio.run(measure(name, share, seed)) for seed in SEEDS] for name in LIBRARIES}
        lost = {name: sum(one.lost for one in ran) for name, ran in results.items()}
        load = {name: max(one.load for one in ran) for name, ran in results.items()}
        seconds = {name: max(one.seconds for one in ran) for name, ran in results.items()}
        cells = (f"{lost[name]:>8} {load[name]:>6.2f}x {seconds[name]:>6.1f} s" for name in LIBRARIES)
        print(f"{share:>7.0%}   " + "".join(cells))
        rows.append({"share": share, "lost": lost, "load": load, "seconds": seconds})
        worse = share <= MAX_COMPARED_SHARE and lost[NO_WAITING] > min(lost["tenacity"], lost["stamina"])
        broken = broken or worse or bool(lost["rung"]) or load[NO_WAITING] > MAX_LOAD
    if options.json:
        options.json.write_text(json.dumps({"calls": CALLS * len(SEEDS), "rows": rows}, indent=1) + "\n")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
