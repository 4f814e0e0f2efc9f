"""The next request of a conversation: the answer of another provider goes back with results, to either provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.behind import WHOLE
from tests.gateway.cross_wire.cells import CLIENTS, UPSTREAMS, Cell
from tests.gateway.cross_wire.contents import ARGUMENTS, CONTENTS, PNG
from tests.gateway.cross_wire.rig import DRIVERS, KEY, KEY_ENV, two_providers
from tests.gateway.cross_wire.talk import Heard, Image, Result, ResultTurn
from tests.wires.translation.upstream_rules import check_request

EACH_CELL = pytest.mark.parametrize(
    "cell",
    [
        Cell(client, upstream, stream, "parallel_calls", "nothing")
        for client in CLIENTS
        for upstream in UPSTREAMS
        if upstream != client
        for stream in (False, True)
    ],
    ids=str,
)


@pytest.fixture(autouse=True)
def other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


def results_of(heard: Heard) -> ResultTurn:
    """The results of all calls: a text, an error, an image, and nothing."""
    said: list[Any] = [("found",), ("failed",), ("seen", Image(data=PNG)), ("",)]
    return ResultTurn(
        tuple(
            Result(call.id, call.name, texts, is_error=texts == ("failed",))
            for call, texts in zip(heard.calls, said, strict=True)
        )
    )


@EACH_CELL
def test_the_next_request_to_the_other_provider(cell: Cell) -> None:
    """The other provider accepts its own calls again, as the client's SDK sends them back with their results."""
    driver = DRIVERS[cell.client]
    with two_providers(cell) as (behind, other):
        first = driver.request(CONTENTS[cell.content].talk)
        heard = driver.send(behind.url, first, stream=cell.stream)
        then = driver.send(behind.url, driver.go_on(first, heard, results_of(heard)), stream=cell.stream)
        assert (then.text, then.calls, then.stop) == (WHOLE, (), "end")
        assert [call.status for call in other.calls] == [200, 200]
        check_request(cell.upstream, other.calls[1].json)


@EACH_CELL
def test_the_next_request_to_the_own_provider(cell: Cell) -> None:
    """The client's own provider, back after an outage, accepts the calls of the other one in the history."""
    driver = DRIVERS[cell.client]
    with two_providers(cell._replace(fault="own_dead")) as (behind, other):
        first = driver.request(CONTENTS[cell.content].talk)
        heard = driver.send(behind.url, first, stream=cell.stream)
        assert other.attempts == 1
        behind.lab.use(**CONTENTS[cell.content].lab)
        then = driver.send(behind.lab.url, driver.go_on(first, heard, results_of(heard)), stream=cell.stream)
        assert (then.text, then.calls, then.stop) == (WHOLE, (), "end")


@EACH_CELL
def test_the_next_request_after_the_own_provider(cell: Cell) -> None:
    """The other provider accepts the calls of the client's own provider in the history, with exact arguments."""
    driver, content = DRIVERS[cell.client], CONTENTS["hard_arguments"]
    with two_providers(cell._replace(content="hard_arguments")) as (behind, other):
        behind.lab.use(**content.lab)
        first = driver.request(content.talk)
        heard = driver.send(behind.lab.url, first, stream=cell.stream)
        results = ResultTurn(tuple(Result(call.id, call.name, ("found",)) for call in heard.calls))
        then = driver.send(behind.url, driver.go_on(first, heard, results), stream=cell.stream)
        assert (then.text, then.stop) == (WHOLE, "end")
        check_request(cell.upstream, other.calls[0].json)
        assert repr(ARGUMENTS) in repr(_objects(other.calls[0].json))


def _objects(value: Any) -> list[Any]:
    """Return all objects of a request, also those that are JSON texts."""
    if isinstance(value, dict):
        return [value, *(each for inner in value.values() for each in _objects(inner))]
    if isinstance(value, list):
        return [each for inner in value for each in _objects(inner)]
    if isinstance(value, str) and value.startswith("{"):
        return _objects(json.loads(value))
    return []
