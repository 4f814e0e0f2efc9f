"""Replay of recorded calls: a gateway makes them again with its own upstreams, keys and budgets when an operator asks.

Orders come through the journal, so that a service in another process, or on another machine with the same sealing key, can
give them. Each is carried out by one gateway, as a new incident of the session.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.classify.evidence import clip
from rung.core.domain import events as ev
from rung.core.domain.errors import SealedElsewhere, StoreDamaged
from rung.core.domain.request import Request
from rung.core.recovery.interventions import InterventionType
from rung.gateway.inbound_request import InboundRequest, caller_of
from rung.gateway.keys import RequestRejected, usable_key
from rung.gateway.recovery import recover_ordered
from rung.gateway.sessions import belongs_to
from rung.gateway.spending.paid_attempts import admit, release
from rung.gateway.status import gateway_status
from rung.gateway.upstream.headers import credential_header, has_own_key, headers_for_upstream
from rung.store.recorded_calls import forget_expired, recorded_call
from rung.store.replay_orders import PRESENT_SECONDS, announce, pending_orders, read_order, retire, take_order
from rung.wires.gemini_path import for_whole_answer, generation_path, parse_path
from rung.wires.registry import BY_NAME, GEMINI, PATHS

if TYPE_CHECKING:
    from rung.gateway.gateway import Gateway
    from rung.store.journal.journal import Journal
    from rung.store.recorded_calls import RecordedCall
    from rung.store.replay_orders import ReplayOrder
    from rung.wires.registry import WireFormat

_ANSWER_TOKENS: Final = 4_096  # output limit of a call that is made from a prompt alone
_MAX_RESULT_CHARACTERS: Final = 64 * 1024
_PATHS: Final = {wire.name: path for path, wire in PATHS.items()}


class CallReplays:
    """Orders to make calls again that this gateway carries out."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._holder = f"gateway-{token_hex(8)}"
        self._announced = 0.0
        self._running: set[asyncio.Task[None]] = set()

    async def poll(self) -> None:
        """Register this gateway, and begin the ordered replays."""
        gateway = self._gateway
        if gateway.journal is None:
            return
        now = gateway.clock.now()
        if now - self._announced > PRESENT_SECONDS / 3:
            upstreams = {each.name: has_own_key(each) for each in gateway.settings.upstreams}
            status = gateway_status(gateway)
            await asyncio.to_thread(announce, gateway.journal, self._holder, upstreams, now, status)
            await asyncio.to_thread(forget_expired, gateway.journal, gateway.settings.recording.keep_seconds, now)
            self._announced = now
        for name in await asyncio.to_thread(pending_orders, gateway.journal):
            taken = await asyncio.to_thread(self._take, gateway.journal, name)
            if taken is not None:
                task = asyncio.create_task(self._carry_out(gateway.journal, *taken))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    def close(self, journal: Journal) -> None:
        """Unregister this gateway. Blocks on the journal."""
        if self._announced:
            retire(journal, self._holder)

    def _take(self, journal: Journal, name: str) -> tuple[ReplayOrder, RecordedCall | None] | None:
        """Take an order that this gateway can carry out; leave others to other gateways."""
        try:
            order = read_order(journal, name)
            call = None if order is None else recorded_call(journal, order.session, order.of)
        except (SealedElsewhere, StoreDamaged):
            return None
        names = [upstream.name for upstream in self._gateway.settings.upstreams]
        if order is None or (call is not None and call.content["upstream"] not in names):
            return None
        taken = take_order(journal, name, self._gateway.clock.now())
        return None if taken is None else (taken, call)

    async def _carry_out(self, journal: Journal, order: ReplayOrder, call: RecordedCall | None) -> None:
        gateway, answer = self._gateway, _ReplayedResponse()
        gateway.active_requests += 1
        try:
            inbound = self._inbound(order, call)
            await self._look_up_price(order.intervention.model or inbound.model, inbound)
            spending = await admit(gateway, inbound)
            proxied = gateway.new_proxied_call(inbound, answer.send, spending)
            try:
                ok = await recover_ordered(gateway, proxied, order, is_prompt=call is None)
            finally:
                release(gateway, proxied)
            text = answer.text(inbound.wire)
        except RequestRejected as error:
            ok, text = False, str(error)
            await asyncio.to_thread(_record_refusal, journal, order, text, gateway.clock.now())
        except Exception as error:  # noqa: BLE001  # told on the page; the gateway goes on
            ok, text = False, f"{type(error).__name__}: {error}"
        finally:
            gateway.active_requests -= 1
        result = {"ok": ok, "text": clip(text, _MAX_RESULT_CHARACTERS)}
        await asyncio.to_thread(journal.runs.send, f"result/{order.id}", result)

    async def _look_up_price(self, model: str, inbound: InboundRequest) -> None:
        """Look up the price of the model before the call, so that its cost is booked. Ordinary calls do not wait for it."""
        prices = self._gateway.ledger.prices
        if prices.price(model, self._gateway.settings.prices) is None:
            prices.request(model, inbound.key_hash, self._gateway.clock.now())
            await prices.look_up()

    def _inbound(self, order: ReplayOrder, call: RecordedCall | None) -> InboundRequest:
        """Build the request of an order; reject it if its key or its upstream may no longer be used."""
        gateway, settings = self._gateway, self._gateway.settings
        content = call.content if call is not None else _content_of_prompt(order)
        wire = BY_NAME[content["wire"]]
        upstream = (
            settings.upstream(content["upstream"]) if call is not None else settings.first_upstream(wire.upstream)
        )
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in content["headers"]]
        if order.api_key:
            headers.append(credential_header(upstream, order.api_key.encode("latin-1", "replace")))
        inbound = InboundRequest(
            wire=wire,
            upstream=upstream,
            target=_whole_target(wire, content.get("target") or _PATHS[wire.name]),
            raw_headers=headers,
            headers=dict(headers),
            upstream_headers=headers_for_upstream(headers, upstream),
            body=_whole_answer(content["body"]),
            project=order.project,
            caller=content["key"] or caller_of(headers),
            session=order.session,
        )
        inbound.read_fields()
        digest = content["key"] or next((key.hash for key in settings.keys if belongs_to(key.hash, order.session)), "")
        if settings.keys:
            key = usable_key(settings.keys, digest, gateway.clock.now(), gateway.ledger.spent)
            inbound.key_hash, inbound.allowed_models, inbound.key_dollars = key.hash, key.models, key.dollars
        return inbound


class _ReplayedResponse:
    """Collects the response of a replay, in place of a client."""

    def __init__(self) -> None:
        self._body = bytearray()

    async def send(self, message: dict[str, Any]) -> None:
        """Take an ASGI message."""
        self._body += message.get("body", b"")

    def text(self, wire: WireFormat) -> str:
        """Return the text of the answer; of one without text, and of an error, the whole of it."""
        whole = self._body.decode("utf-8", "replace")
        try:
            answer = orjson.loads(self._body)
        except orjson.JSONDecodeError:
            return whole
        return (wire.bodies.text_of(answer) if isinstance(answer, dict) and not answer.get("error") else "") or whole


def _content_of_prompt(order: ReplayOrder) -> dict[str, Any]:
    """Return the content of a call that was not recorded: the person's prompt is the whole request."""
    wire, model = BY_NAME[order.wire], order.intervention.model
    body = wire.bodies.build_request(model, order.intervention.prompt, _ANSWER_TOKENS)
    target = _PATHS.get(order.wire) or generation_path(model)
    headers = [["content-type", "application/json"]]
    if wire.upstream == "anthropic":
        headers.append(["anthropic-version", "2023-06-01"])
    return {
        "wire": order.wire, "target": target, "headers": headers, "body": orjson.dumps(body).decode(), "key": "",
    }  # fmt: skip


def _whole_target(wire: WireFormat, target: str) -> str:
    """Return the target of a request whose answer comes whole."""
    parsed = parse_path(target.partition("?")[0]) if wire is GEMINI else None
    return target if parsed is None else for_whole_answer(target, parsed.model)


def _whole_answer(text: str) -> bytes:
    """Return the body of a request whose answer comes whole: nobody reads a stream here."""
    body = orjson.loads(text)
    if isinstance(body, dict) and body.get("stream"):
        body = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    return orjson.dumps(body)


def _record_refusal(journal: Journal, order: ReplayOrder, reason: str, now: float) -> None:
    """Record a replay that was refused before its first attempt."""
    intervention = order.intervention
    context = ev.IncidentContext("call", "gateway", project=order.project, session=order.session)
    ordered = ev.Ordered(now, InterventionType.RETRY.value, intervention.by, intervention.model, intervention.prompt)
    events = (
        ev.Opened(now, order.id, context, Request(model=intervention.model)),
        ordered,
        ev.Closed(now, ev.Status.BLOCKED, reason),
    )
    journal.append(order.id, 0, events).result()
