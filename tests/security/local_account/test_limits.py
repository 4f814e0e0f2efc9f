"""One read token cannot stop the service for the others."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.service.auth import Principal, Role
from rung.service.export_response import ExportResponse
from rung.service.limits import MAX_HEAVY_PER_TOKEN, MAX_REQUESTS_PER_TOKEN, ConcurrencyLimit
from rung.service.problems import ApiProblem
from rung.testing import Script
from tests.service.conftest import TOKEN, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.service.conftest import Running

PARALLEL = 40


@contextmanager
def unread_export(client: httpx.Client) -> Iterator[httpx.Response]:
    with client.stream(
        "GET", "/api/export?what=events&format=jsonl", headers={"accept-encoding": "identity"}
    ) as answer:
        yield answer


def test_parallel_exports(service: Running) -> None:
    """Of 40 exports that nobody reads, two are made and 38 are told to wait; everybody else is served meanwhile."""
    for n in range(80):  # more than the sockets' buffers hold, so that an export stays in progress
        rung.recover_sync(Script("x"), rung.Request(prompt=f"{n}" + "long " * 13_000), journal=service.journal)
    assert service.journal.flush()
    reader = service.token("read")
    with ExitStack() as open_:
        with ThreadPoolExecutor(8) as pool:
            client = service.client(reader)
            answers = list(pool.map(lambda _: open_.enter_context(unread_export(client)), range(PARALLEL)))
        made = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert (len(made), len(refused)) == (MAX_HEAVY_PER_TOKEN, PARALLEL - MAX_HEAVY_PER_TOKEN)
        assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
        assert client.post("/api/backtest", json={"policy": {}}).status_code == 403  # acting needs another role
        assert service.get("/api/me")["role"] == "admin"
        assert service.admin.get("/api/export").status_code == 200
    eventually(lambda: service.client(reader).get("/api/export").status_code == 200)


def test_backtests_count_as_exports(service: Running) -> None:
    """A backtest reads the whole journal, too, and takes one of the same places."""
    admin = service.context.auth.by_token(TOKEN)
    assert admin is not None
    with ExitStack() as held:
        for _ in range(MAX_HEAVY_PER_TOKEN):
            held.enter_context(service.context.heavy.slot(admin))
        for answer in (service.admin.post("/api/backtest", json={"policy": {}}), service.admin.get("/api/export")):
            assert (answer.status_code, answer.json()["title"]) == (429, "Too many requests")
    assert service.admin.post("/api/backtest", json={"policy": {}}).status_code == 200


def test_places_of_one_token() -> None:
    """A token gets its share of the places and no more; each place is free again after use, also after an error."""
    limit = ConcurrencyLimit("requests", 3, 2)
    ada, ben = (Principal(name, Role.READ, name) for name in ("ada", "ben"))
    with limit.slot(ada), limit.slot(ada):
        with pytest.raises(ApiProblem, match="2 of this token"), limit.slot(ada):
            pass
        with limit.slot(ben), pytest.raises(ApiProblem, match="3 in total"), limit.slot(ben):
            pass
    with pytest.raises(ZeroDivisionError), limit.slot(ada):
        _ = 1 / 0
    with limit.slot(ada), limit.slot(ada):
        pass
    assert MAX_REQUESTS_PER_TOKEN < 40  # the threads that run the routes


def test_a_client_that_never_reads() -> None:
    """An export whose client stops reading is given up, and its place is free again."""
    freed: list[bool] = []

    @contextmanager
    def slot() -> Iterator[None]:
        try:
            yield
        finally:
            freed.append(True)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    response = ExportResponse(lambda file: file.write(b"x"), slot(), stall_seconds=0.01)
    with pytest.raises(TimeoutError):
        asyncio.run(response({"type": "http"}, send, send))  # type: ignore[arg-type]  # nothing is received
    assert freed == [True]
