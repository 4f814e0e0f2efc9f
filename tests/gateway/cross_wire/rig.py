"""Runs one cell: a gateway before two labs, and a client with its real SDK. What is wrong is told in words."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from rung.testing.provider import Lab
from tests.gateway.behind import Behind
from tests.gateway.cross_wire import chat_client, gemini_client, messages_client, responses_client
from tests.gateway.cross_wire.contents import CONTENTS, Content
from tests.wires.translation.upstream_rules import check_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.cross_wire.cells import Cell
    from tests.gateway.cross_wire.talk import Heard

KEY_ENV = "OTHER_PROVIDER_KEY"
KEY = "key-of-the-other-provider"
DRIVERS: dict[str, Any] = {
    "messages": messages_client,
    "chat": chat_client,
    "responses": responses_client,
    "gemini": gemini_client,
}
_OTHERS: dict[str, dict[str, Any]] = {
    "messages": {"wire": "anthropic"},
    "chat": {"wire": "openai", "apis": ["chat"]},
    "responses": {"wire": "openai", "apis": ["responses"]},
    "gemini": {"type": "gemini"},
}
_OWN = {"messages": "anthropic", "chat": "openai", "responses": "openai", "gemini": "gemini"}


@contextmanager
def two_providers(cell: Cell, **settings: Any) -> Iterator[tuple[Behind, Lab]]:
    """Run the gateway of a cell, with the client's own provider and the other one."""
    answers = CONTENTS[cell.content].lab
    with ExitStack() as stack:
        other = stack.enter_context(Lab(cell.other_script(), **answers))
        upstreams = {"other": {**_OTHERS[cell.upstream], "url": other.url, "key_env": KEY_ENV}}
        models = ["other/large"] if cell.is_alone else ["small", "other/large"]
        behind = Behind(
            cell.own_script(),
            policy={"models": models, "retries": 1},
            apis=() if cell.is_alone else (_OWN[cell.client],),
            upstreams=upstreams,
            **answers,
            **settings,
        )
        yield stack.enter_context(behind), other


def problems(cell: Cell) -> list[str]:
    """Return what is wrong in a cell."""
    content, driver = CONTENTS[cell.content], DRIVERS[cell.client]
    with two_providers(cell) as (behind, other):
        try:
            heard = driver.send(behind.url, driver.request(content.talk), stream=cell.stream)
        except Exception as error:  # any error of a client is a result of the cell
            refused = [f"{call.status}: {call.path}" for call in other.calls]
            return [f"the client failed: {type(error).__name__}: {error}; the other provider: {refused}"]
        found = _wrong_answer(cell, content, heard)
        found += _wrong_attempts(cell, behind.attempts, other.attempts)
        for call in other.calls:
            found += _wrong_request(cell, content, call)
        return found


def problems_or_error(cell: Cell) -> list[str]:
    """Return what is wrong in a cell, also if the cell itself fails."""
    try:
        return problems(cell)
    except Exception as error:  # shown in the report
        return [f"{type(error).__name__}: {error}"]


def _wrong_attempts(cell: Cell, own: int, other: int) -> list[str]:
    """Return which provider was not asked as often as the fault of the cell demands."""
    found = [] if other >= 1 + (cell.fault == "other_breaks") else [f"the other provider was asked {other} times"]
    return found if cell.is_alone == (own == 0) else [*found, f"the own provider was asked {own} times"]


def _wrong_answer(cell: Cell, content: Content, heard: Heard) -> list[str]:
    found = []
    if content.stop == "refusal":
        spoken = heard.text or heard.refusal
        found += [] if cell.upstream in ("messages", "gemini") or spoken else ["the words of the refusal are lost"]
    elif heard.text != content.text:
        found.append(f"text is {heard.text!r}, not {content.text!r}")
    called = tuple((call.name, call.arguments) for call in heard.calls)
    if not same(called, content.calls):
        found.append(f"calls are {called!r}, not {content.calls!r}")
    ids = [call.id for call in heard.calls]
    if cell.is_translated and (not all(ids) or len(set(ids)) < len(ids)):
        found.append(f"ids of calls are {ids}")
    if heard.stop != content.stop:
        found.append(f"stop is {heard.stop}, not {content.stop}")
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal and of the same types: 1 is not 1.0, and 0.0 is not -0.0."""
    return repr(one) == repr(other)


def _wrong_request(cell: Cell, content: Content, call: Any) -> list[str]:
    found = [] if call.status == 200 or cell.fault == "other_breaks" else [f"the other provider answered {call.status}"]
    try:
        if cell.is_translated:
            check_request(cell.upstream, call.json)
    except Exception as error:  # of a check
        found.append(
            f"the other provider would reject it: {type(error).__name__}: {error}: {json.dumps(call.json)[:2_000]}"
        )
    text = json.dumps(call.json, ensure_ascii=False)
    found += [f"{part[:40]!r} did not reach the other provider" for part in content.reaches if part not in text]
    if content.talk.stop and cell.client != "responses" and cell.upstream != "responses":
        found += [] if list(content.talk.stop) in _stops(call.json) else ["the stop sequences are lost"]
    return found


def _stops(body: dict[str, Any]) -> list[Any]:
    config = body.get("generationConfig", {})
    return [body.get("stop"), body.get("stop_sequences"), config.get("stopSequences")]
