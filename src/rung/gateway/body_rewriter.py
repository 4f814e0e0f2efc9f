"""Rewrites request bodies for each rung: output limit, resume message, compacted or repaired history, other model.

The engine asks for a changed request and verifies that it differs from the previous one. Its `Request` only holds
the digest of a body; the body itself stays here, so that no request reaches the journal
(what an upstream quotes in an error does).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from rung.core.conversation.compaction import SIZE_MARGIN, compact_messages, count_characters, target_characters
from rung.core.conversation.media_size import CHARACTERS_PER_TOKEN
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request, json_digest
from rung.core.domain.token_counts import max_answer_tokens
from rung.core.policy.prompts import prompt_id, render
from rung.core.recovery.apply_rung import DEFAULT_MAX_OUTPUT_TOKENS
from rung.core.recovery.stream_rules import why_not_resume
from rung.gateway.inbound_request import NotJson
from rung.gateway.outbound import Outbound, outbound_for
from rung.gateway.upstream.table import Target
from rung.wires.overlap import whole_words
from rung.wires.wire_json import dump_json, load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Model, Policy
    from rung.gateway.proxied_call import ProxiedCall

MIN_ANSWER_TOKENS: Final = 256  # a lower output limit does not resolve a context overflow
_FIT_NOTES: Final = ("compacted", "elided", "output_limit")  # about a body that was fitted to a model's limits
RESUME_QUOTE: Final = (
    "\n\nBegin with the last few words of it, exactly as they stand, so that it can be joined without a gap.\n\n"
    "Your answer so far, word for word:\n<answer_so_far>\n{said}\n</answer_so_far>"
)


class RungNotApplicable(Exception):
    """The rung has nothing to change in this request."""


class _StoredBody(NamedTuple):
    """Body of a request of the engine, the route that it was written for, and what the client is told about it."""

    content: bytes
    model: str
    agent: str
    base: dict[str, Any] | None  # without a resume message; None: the client's
    notes: dict[str, str]


class BodyRewriter:
    """Bodies of one client request, as the rungs rewrite them."""

    def __init__(
        self, proxied: ProxiedCall, policy: Policy, summarise: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self.inbound = proxied.inbound
        self.policy = policy
        self._settings, self._table = proxied.upstreams.settings, proxied.upstreams.table
        self._original = proxied.original
        self._proxied = proxied
        self._summarise = summarise
        self._bodies: dict[str, _StoredBody] = {}  # by digest
        self._rooms: dict[str, int] = {}  # by digest: the same JSON has one size, however it is written
        self._base = proxied.fitted  # current body without a resume message; None: the client's
        self._own_base: dict[str, Any] | None = (
            None  # of the client's own provider: no fit for another model changes it
        )
        self._own_notes: dict[str, str] = {}
        self._accepted_base = proxied.fitted  # last base that an upstream accepted
        self._has_accepted = proxied.accepted  # an upstream accepted some body, at least the original
        self._resume_message = ""
        self._has_changed_model = False
        first = self.inbound.body if proxied.fitted is None else dump_json(proxied.fitted)
        self.first = self.request(first, self.inbound.model, self.inbound.upstream.name)

    def request(self, body: bytes, model: str, agent: str) -> Request:
        """Register a body; return the engine's request with its digest and the room it takes in the context window."""
        digest = body_digest(body)
        notes = {name: text for name, text in self._proxied.writer.notes.items() if name in _FIT_NOTES}
        self._bodies[digest] = _StoredBody(body, model, agent, self._base, notes)
        room = self._rooms.setdefault(digest, len(body) + CHARACTERS_PER_TOKEN * self._output_limit())
        return Request(model=model, agent=agent, params={"wire": self.inbound.wire.name, "body": digest, "room": room})

    def _output_limit(self) -> int:
        try:
            return self.inbound.wire.bodies.limit(self.base) or 0
        except NotJson:  # left to the upstream to reject
            return 0

    def outbound(self, request: Request) -> Outbound:
        """Return the upstream request for a request of the engine."""
        self._use_base_of(request)
        last = self._original.is_last_resort or self._has_changed_model
        return outbound_for(
            self._table,
            self.inbound,
            self._target(request),
            self._body_of(request),
            is_last_resort=last,
            is_resume=bool(self._resume_message),
        )

    def _target(self, request: Request) -> Target:
        """Return the upstream of a request, and the name that it has for the model."""
        if request.model == self.inbound.model and request.agent == self.inbound.upstream.name:
            return Target(self.inbound.upstream, self.inbound.upstream_model)
        return self._table.find(request.model, self._settings.upstream(request.agent))

    def _body_of(self, request: Request) -> bytes:
        """Return the body of a request, with a model or prompt that the engine changed by itself."""
        stored = self._bodies[request.params["body"]]
        if self._has_returned(request, stored):
            stored = stored._replace(content=self._content(self._own_base), model=request.model)
        if request.model == stored.model and not request.prompt:
            return stored.content
        bodies = self.inbound.wire.bodies
        changed = load_json(stored.content)
        if request.model != stored.model:
            changed = self._with_model(changed, self._target(request))
        return dump_json(bodies.with_user_message(changed, request.prompt) if request.prompt else changed)

    def _is_own(self, request: Request) -> bool:
        return (request.model, request.agent) == (self.inbound.model, self.inbound.upstream.name)

    def _has_returned(self, request: Request, stored: _StoredBody) -> bool:
        """Return whether the engine sends a body that was written for another model back to the client's own provider."""
        return self._is_own(request) and (stored.model, stored.agent) != (request.model, request.agent)

    def _use_base_of(self, request: Request) -> None:
        """Continue with the body of this request: the engine may have returned to an earlier one."""
        stored = self._bodies[request.params["body"]]
        self._use_base(self._own_base if self._has_returned(request, stored) else stored.base, stored.notes)

    def _use_base(self, base: dict[str, Any] | None, notes: dict[str, str]) -> None:
        self._base = base
        for name in _FIT_NOTES:
            self._proxied.writer.notes.pop(name, None)
        if base is not None:
            self._proxied.writer.notes |= notes

    def _content(self, base: dict[str, Any] | None) -> bytes:
        """Return a body as it is sent: with the resume message, if there is one; else the client's bytes if it is theirs."""
        if self._resume_message:
            parsed = self.inbound.parsed() if base is None else base
            return dump_json(self.inbound.wire.bodies.with_user_message(parsed, self._resume_message))
        return self.inbound.body if base is None else dump_json(base)

    def _with_model(self, body: dict[str, Any], target: Target) -> dict[str, Any]:
        """Return the body for another model. One that is translated keeps its thinking, which no translator passes on."""
        if self._table.wire_for(target, self.inbound) != self.inbound.wire.name:
            return {**body, "model": target.model} if "model" in body else body  # the path of Gemini's API names it
        known = self._table.provider(target.upstream).known_name(target.model)
        changed = self.inbound.wire.bodies.with_model(body, known)
        return {**changed, "model": target.model} if known != target.model and "model" in changed else changed

    @property
    def base(self) -> dict[str, Any]:
        """Return the current body without a resume message."""
        return self.inbound.parsed() if self._base is None else self._base

    def mark_accepted(self) -> None:
        """Record that an upstream accepted the latest request."""
        self._accepted_base, self._has_accepted = self._base, True

    def rung_handlers(self) -> Mapping[str, Callable[[Request, Incident], Any]]:
        """Return the handler of each rung action."""
        return {
            Action.RAISE_LIMIT: self._raise_limit,
            Action.RESUME: self._resume,
            Action.COMPACT: self._compact,
            Action.REPAIR: self._repair,
            Action.FALLBACK: self._change_model,
            Action.ESCALATE: self._change_model,
        }

    # -- rungs -------------------------------------------------------------------------------------------

    def _raise_limit(self, request: Request, incident: Incident) -> Request:  # noqa: ARG002  # the engine's signature
        self._use_base_of(request)
        limit = self.inbound.wire.bodies.limit(self.base)
        model_settings = self.policy.model(request.model)
        max_tokens = model_settings.max_tokens if model_settings is not None else DEFAULT_MAX_OUTPUT_TOKENS
        if limit is None or limit >= max_tokens:
            raise RungNotApplicable("the output limit is already the model's maximum")
        return self._new_request(self.inbound.wire.bodies.with_limit(self.base, max_tokens), request)

    def _resume(self, request: Request, incident: Incident) -> Request:
        self._set_resume_message(incident)
        return self._new_request(self._last_accepted(), request)

    def _set_resume_message(self, incident: Incident) -> None:
        """Append a user turn that quotes the answer so far to every further request."""
        failure = incident.failure_to_solve
        assert failure is not None  # noqa: S101  # the engine resumes after a failure
        choices = self.inbound.wire.bodies.choices(self.inbound.parsed())
        stream, received = self._proxied.stream, self._proxied.has_received()
        has_media = stream is not None and stream.has_media
        constrained = self.inbound.wire.bodies.is_constrained(self.inbound.parsed())
        why_not = why_not_resume(
            failure, received=received, choices=choices, has_media=has_media, constrained=constrained
        )
        if why_not:
            raise RungNotApplicable(why_not)
        text = self._proxied.text_so_far()
        message = render(prompt_id(Action.RESUME, failure), incident, failure, self.policy.prompts)
        self._resume_message = message + (RESUME_QUOTE.format(said=whole_words(text)) if text else "")
        self._resume_message += "\n" * len(incident.failures)  # the engine rejects an unchanged request

    def _last_accepted(self) -> dict[str, Any]:
        """Return the last body that an upstream accepted; a rejected body cannot be resumed."""
        if not self._has_accepted:
            return self.base
        return self.inbound.parsed() if self._accepted_base is None else self._accepted_base

    async def _compact(self, request: Request, incident: Incident) -> Request:
        assert incident.failure is not None  # noqa: S101  # the engine compacts after a failure
        self._use_base_of(request)
        bodies, body = self.inbound.wire.bodies, self.base
        room = max_answer_tokens(incident.failure.message)
        if room is not None and room >= MIN_ANSWER_TOKENS:
            return self._new_request(bodies.with_limit(body, room), request)
        tokens = incident.failure.tokens
        size = count_characters([body])
        changed = await self._smaller(body, target_characters(incident.failure, size))
        share = count_characters([changed]) / size
        if share >= 1:
            raise RungNotApplicable("history cannot be compacted further")
        self._proxied.writer.notes["compacted"] = f"{size} to {count_characters([changed])} characters"
        if tokens is not None:
            changed = self._with_room(changed, int(tokens.limit * SIZE_MARGIN - tokens.asked * share))
        return self._new_request(changed, request)

    async def _smaller(self, body: dict[str, Any], goal: int) -> dict[str, Any]:
        """Return the body with a history so small that the whole of it fits, if that is possible.

        The history gets what system prompt and tools leave of the goal. A summary takes the place of turns that would be
        left out.
        """
        bodies = self.inbound.wire.bodies
        room = max(0, goal - count_characters([body]) + count_characters(bodies.history(body)))
        summarises, elide_text = self._summarise is not None, self.policy.elide_text
        first = compact_messages(bodies.history(body), room, elide_turns=not summarises)
        changed = bodies.with_history(body, first)
        if self._summarise is not None and count_characters([changed]) > goal:
            with suppress(RungNotApplicable):
                changed = await self._summarise(changed)
        if count_characters([changed]) <= goal:
            return changed
        before = bodies.history(changed)
        last = compact_messages(before, room, elide_text=elide_text)
        if elide_text and compact_messages(before, room) != last:
            self._proxied.writer.notes["elided"] = "the middle of long texts"
        return bodies.with_history(changed, last)

    def _with_room(self, body: dict[str, Any], room: int) -> dict[str, Any]:
        """Return the body with an output limit that fits into the remaining context window."""
        limit = self.inbound.wire.bodies.limit(body)
        if limit is None or limit <= room or room < MIN_ANSWER_TOKENS:
            return body
        return self.inbound.wire.bodies.with_limit(body, room)

    def _repair(self, request: Request, incident: Incident) -> Request:  # noqa: ARG002  # the engine's signature
        self._use_base_of(request)
        return self._new_request(self.inbound.wire.bodies.with_repaired_history(self.base), request)

    async def _change_model(self, request: Request, incident: Incident) -> Request:
        model_settings = self.policy.model(request.model)
        agent = model_settings.provider if model_settings is not None and model_settings.provider else request.agent
        request = request.replace(agent=agent)
        base = await self._on_model(request)
        if incident.resumed_elsewhere:  # the client already received the beginning
            self._set_resume_message(incident)
        self._has_changed_model = True
        return self._new_request(base, request)

    async def _fitted(self, body: dict[str, Any], window: int) -> dict[str, Any]:
        """Return the body with a history that fits into a context window of this many tokens, beside the answer."""
        room = window - min(self.inbound.wire.bodies.limit(body) or 0, window // 2)
        goal = int(CHARACTERS_PER_TOKEN * room * SIZE_MARGIN)
        size = count_characters([body])
        if size <= goal:
            return body
        fitted = await self._smaller(body, goal)
        self._proxied.writer.notes["compacted"] = f"{size} to {count_characters([fitted])} characters"
        return self._with_room(fitted, window - count_characters([fitted]) // CHARACTERS_PER_TOKEN)

    async def fit_first(self, listed: Model) -> None:
        """Fit the first request to the limits of the listed model that serves it."""
        fitted = await self._within(self.base, listed)
        if fitted is not self.base:
            self._proxied.fitted = fitted
            self._proxied.original = self.outbound(self._new_request(fitted, self.first))

    async def on_model(self, model: str) -> Request:
        """Return the original request on another model, used when the session was moved to it."""
        model_settings = self.policy.model(model)
        agent = (
            model_settings.provider
            if model_settings is not None and model_settings.provider
            else self.inbound.upstream.name
        )
        request = self.first.replace(model=model, agent=agent)
        return self._new_request(await self._on_model(request), request)

    async def _on_model(self, request: Request) -> dict[str, Any]:
        """Return the body for the model of a request: its name, and a history and an output limit that it accepts."""
        self._use_base(self._own_base, self._own_notes)
        body, target = self.base, self._target(request)
        if target.model != body.get("model", self.inbound.upstream_model):  # the path of Gemini's API names it
            body = self._with_model(body, target)
        listed = self.policy.model(request.model)
        return body if listed is None else await self._within(body, listed)

    async def _within(self, body: dict[str, Any], listed: Model) -> dict[str, Any]:
        """Return the body within the limits of a listed model; name what is changed in the notes."""
        bodies = self.inbound.wire.bodies
        limit = bodies.limit(body)
        if limit is not None and limit > listed.max_tokens:
            body = bodies.with_limit(body, listed.max_tokens)
        if listed.window:
            body = await self._fitted(body, listed.window)
        lowered = bodies.limit(body)
        if lowered != limit:
            self._proxied.writer.notes["output_limit"] = f"{limit} to {lowered} tokens"
        return body

    def with_nudge(self, request: Request, message: str) -> Request:
        """Return the request with another user turn, which all later rewrites keep."""
        return self._new_request(self.inbound.wire.bodies.with_user_message(self.base, message), request)

    def _new_request(self, base: dict[str, Any], request: Request) -> Request:
        self._base = None if base is self.inbound.parsed() else base
        changed = self.request(self._content(self._base), request.model, request.agent)
        if self._is_own(request) and self._base is not self._proxied.fitted:
            self._own_base = self._base
            self._own_notes = self._bodies[changed.params["body"]].notes
        return changed


def body_digest(body: bytes) -> str:
    """Return the digest of a body, 16 hex digits: of its JSON, so that the same request written otherwise is the same."""
    try:
        return json_digest(orjson.loads(body))
    except orjson.JSONDecodeError:  # left to the upstream to reject
        from hashlib import blake2b

        return blake2b(body, digest_size=8).hexdigest()
