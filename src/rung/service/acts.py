"""Acts that happen once: an idempotency key gets the answer it got the first time."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from fastapi import Header

from rung.core.failures import short_hash
from rung.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from rung.service.access import Who
    from rung.service.hub import Hub
    from rung.store.port import Connection

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="Sent again, it gets the same answer, and nothing is done twice.",
    ),
]
KEPT: Final = 86_400.0  # seconds for which an answer is remembered
M = TypeVar("M", bound="BaseModel")


def once(hub: Hub, key: str | None, who: Who, about: str, asked: BaseModel, kind: type[M], act: Callable[[], M]) -> M:
    """Act, unless this key has been answered; a key that comes with another act is refused."""
    if key is None:
        return act()
    name = f"{who.mark[:16]}/{key}"
    digest = short_hash(f"{about}\n{asked.model_dump_json()}", 16)
    told = hub.journal.write(
        lambda connection: _claim(connection, name, digest),
        lambda connection: bool(connection.execute("SELECT 1 FROM reply WHERE key = ?", (name,))),
    ).result()
    if told is not None:
        if told[0] != digest:
            raise Problem(422, "this Idempotency-Key was used for something else", field="Idempotency-Key")
        if not told[1]:
            raise Problem(409, "the first request with this Idempotency-Key has not ended yet")
        return kind.model_validate(json.loads(told[1]))
    try:
        answer = act()
    except BaseException:
        _write(hub, "DELETE FROM reply WHERE key = ?", (name,))
        raise
    _write(hub, "UPDATE reply SET body = ? WHERE key = ?", (answer.model_dump_json(by_alias=True), name))
    return answer


def _claim(connection: Connection, name: str, digest: str) -> tuple[str, str] | None:
    rows = connection.execute("SELECT digest, body FROM reply WHERE key = ?", (name,))
    if rows:
        return rows[0][0], rows[0][1]
    connection.execute("DELETE FROM reply WHERE at < ?", (time.time() - KEPT,))
    connection.execute(
        "INSERT INTO reply (key, digest, status, body, at) VALUES (?, ?, 0, '', ?)", (name, digest, time.time())
    )
    return None


def _write(hub: Hub, sql: str, values: tuple[str, ...]) -> None:
    hub.journal.write(lambda connection: connection.execute(sql, values), lambda _: True).result()
