"""Client of the fleet's tests: submits runs and calls gateways from its host, and writes down what was acknowledged.

`python -m tests.fleet_hosts.client SETTINGS` ends when the file `stop` exists. Nothing is tried again: a request without an
answer may have arrived or not.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import sys
import threading
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

from rung.wiring.engines import engine as make_engine
from tests.fleet_hosts.host_tasks import TASK, append

CLIENT_LOG: Final = "clients.log"
SUBMIT_SECONDS: Final = 15.0  # for which a client waits for an answer
CALL_SECONDS: Final = 5.0
MODEL: Final = "m"
MAX_TOKENS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Where a client is, and whom it asks. `keys`: keys of gateways, by name."""

    name: str
    engine: str
    url: str
    folder: str
    gateways: list[str]
    keys: dict[str, str]
    pause: float

    def text(self) -> str:
        return json.dumps(asdict(self))


class Said(NamedTuple):
    """A line of the log: `what` was said about a run or a call; `where` is a gateway and a key, or empty."""

    what: str
    name: str
    where: str
    at: float


def main(settings: ClientSettings) -> None:
    """Submit runs and call gateways until told to stop."""
    threads = [threading.Thread(target=_call_gateway, args=(settings, gateway)) for gateway in settings.gateways]
    for thread in threads:
        thread.start()
    asyncio.run(_submit(settings))
    for thread in threads:
        thread.join()


async def _submit(settings: ClientSettings) -> None:
    engine, number = make_engine(settings.engine, url=settings.url), 0
    chance = random.Random(settings.name)
    while not _is_over(settings):
        number += 1
        run = f"run-{settings.name}-{number}"
        _say(settings, "submitting", run)
        try:
            arguments = {"folder": settings.folder, "run": run}
            is_new = await asyncio.wait_for(engine.submit(run, TASK, arguments), SUBMIT_SECONDS)
        except Exception as error:  # whatever it is: nothing was acknowledged
            _say(settings, "unknown", run, type(error).__name__)
        else:
            _say(settings, "submitted" if is_new else "rejected", run)
        await asyncio.sleep(settings.pause * chance.uniform(0.5, 1.5))


def _call_gateway(settings: ClientSettings, gateway: str) -> None:
    number, chance = 0, random.Random(f"{settings.name}-{gateway}")
    while not _is_over(settings):
        number += 1
        name = chance.choice(sorted(settings.keys))
        call = f"call-{settings.name}-{gateway.partition(':')[0]}-{number}"
        _say(settings, "asking", call, f"{gateway}/{name}")
        try:
            said = _call(gateway, call, settings.keys[name])
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = type(error).__name__
        _say(settings, said, call, f"{gateway}/{name}")
        time.sleep(settings.pause * chance.uniform(0.5, 1.5))


def _call(gateway: str, call: str, key: str) -> str:
    """Return `answered` for a whole answer, or its status."""
    body = {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": [{"role": "user", "content": call}]}
    headers = {"x-api-key": key, "x-rung-session": call, "content-type": "application/json"}
    host, _, port = gateway.rpartition(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=CALL_SECONDS)) as connection:
        connection.request("POST", "/v1/messages", json.dumps(body), headers)
        answer = connection.getresponse()
        read = json.loads(answer.read())
        return "answered" if answer.status == http.HTTPStatus.OK and read["content"] else str(answer.status)


def _is_over(settings: ClientSettings) -> bool:
    return Path(settings.folder, "stop").exists()


def _say(settings: ClientSettings, what: str, name: str, where: str = "-") -> None:
    append(settings.folder, CLIENT_LOG, f"{what} {name} {where} {time.time()}")


def read_said(folder: str) -> list[Said]:
    """Return what all clients wrote."""
    rows = [line.split() for line in Path(folder, CLIENT_LOG).read_text().splitlines()]
    return [Said(what, name, where, float(at)) for what, name, where, at in rows]


if __name__ == "__main__":
    main(ClientSettings(**json.loads(sys.argv[1])))
