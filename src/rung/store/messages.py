"""Messages by topic, from operators and other processes to waiting recoveries: the last one per topic counts.

Topics: `order/INCIDENT`, `answer/INCIDENT/N`, `model/SESSION`, `result/INCIDENT`, `RUN/TOPIC`, `reference/CALLER/ID`,
`usage/SESSION`, `shared/FLEET`, `call/SESSION/INCIDENT`, `replay/INCIDENT`, `rerun/INCIDENT`, `replayer/HOLDER`, `executor/ID`, `executor-drain/ID`,
`executor-lost/ID`, `notice/ITEM`, `alert-state/RULE/SCOPE`, `alert-entry/ID`, `alert-send/CHANNEL/ID`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.store.backends.port import BackendConnection, Database, Readable


def send(database: Database, topic: str, body: Any, at: float) -> None:
    """Send a message; it replaces an earlier one of the same topic."""
    encoded = as_json(body, f"the message to {topic}")

    def work(connection: BackendConnection) -> None:
        connection.execute(
            "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
            " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
            (topic, encoded, at),
        )

    database.write(
        work,
        lambda connection: bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (topic, at))),
    ).result()


def take(database: Database, topic: str) -> Any:
    """Remove a message and return it; None when there is none. Exactly one caller receives it."""
    rows = database.write(
        lambda connection: connection.execute("DELETE FROM message WHERE topic = ? RETURNING body", (topic,)),
        lambda connection: not connection.execute("SELECT 1 FROM message WHERE topic = ?", (topic,)),
    ).result()
    return json.loads(rows[0][0]) if rows else None


def latest(database: Readable, topic: str) -> Any:
    """Return the last message of a topic; None when there is none."""
    rows = database.read("SELECT body FROM message WHERE topic = ?", (topic,))
    return json.loads(rows[0][0]) if rows else None


def incidents_with_intervention(database: Readable) -> set[str]:
    """Return the ids of the incidents with a pending intervention."""
    rows = database.read("SELECT topic FROM message WHERE topic >= 'order/' AND topic < 'order0'")
    return {topic.removeprefix("order/") for (topic,) in rows}


def session_models(database: Readable, sessions: Sequence[str]) -> dict[str, str]:
    """Return the models that operators chose for these sessions, if they chose one."""
    if not sessions:
        return {}
    marks = ", ".join("?" * len(sessions))
    rows = database.read(
        f"SELECT topic, body FROM message WHERE topic IN ({marks})",  # noqa: S608  # placeholders
        [f"model/{name}" for name in sessions],
    )
    bodies = {topic.removeprefix("model/"): json.loads(body) for topic, body in rows}
    models = {name: str(body.get("model", "")) for name, body in bodies.items() if isinstance(body, dict)}
    return {name: model for name, model in models.items() if model}


def has_session_models(database: Readable) -> bool:
    """Return whether an operator chose a model for any session."""
    return bool(database.read("SELECT 1 FROM message WHERE topic >= 'model/' AND topic < 'model0' LIMIT 1"))


def as_json(value: Any, what: str) -> str:
    """Encode a value that another process reads; raise TypeError when JSON cannot represent it."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text if text.isascii() or _is_utf8(text) else json.dumps(value, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be JSON to be resumed by another process: {error}") from None


def _is_utf8(text: str) -> bool:
    """Return whether a store accepts the text: a lone surrogate must be escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
