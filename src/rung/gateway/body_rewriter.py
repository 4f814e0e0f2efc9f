"""How each rung changes a call: another limit, a resume message, a smaller or mended history, another model.

The engine asks for a new request and proves that it is one. The request it sees stands for a body that is
kept here, by its digest: no prompt reaches the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from rung.core.conversation.compaction import SIZE_MARGIN, compact_messages, count_characters, target_characters
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.domain.token_counts import max_answer_tokens
from rung.core.policy.prompts import prompt_id, render
from rung.core.recovery.apply_rung import DEFAULT_MAX_OUTPUT_TOKENS
from rung.gateway.http.pool import held_key
from rung.gateway.inbound_request import NotJson, passed_headers
from rung.gateway.outbound import Outbound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.domain.incident import Incident
    from rung.core.policy.policy import Policy
    from rung.gateway.proxied_call import ProxiedCall

CHARACTERS_PER_TOKEN: Final = 4
LEAST_ANSWER: Final = 256  # tokens: below this a smaller limit is no answer to an overflow
QUOTE: Final = (
    "\n\nBegin with the last few words of it, exactly as they stand, so that it can be joined without a gap.\n\n"
    "Your answer so far, word for word:\n<answer_so_far>\n{said}\n</answer_so_far>"
)


class RungNotApplicable(Exception):  # it says what happened
    """This rung has nothing to change here."""


class BodyRewriter:
    """The bodies of one call, as the rungs make them."""

    def __init__(
        self, exchange: ProxiedCall, policy: Policy, summarise: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self.call = exchange.call
        self.policy = policy
        self._settings = exchange.upstreams.settings
        self._outbound = exchange.first
        self._said = exchange.said  # what the client, or we, have of the answer so far
        self._summarise = summarise
        self._bodies: dict[str, tuple[bytes, str]] = {}  # and the model each is for
        self._base: dict[str, Any] | None = None  # the body without a resume message
        self._taken: dict[str, Any] | None = None  # the last such that an upstream has accepted
        self._was_taken = exchange.accepted  # one has been, if only as it came
        self._words = ""
        self._handed_over = False
        self.first = self.request(self.call.body, self.call.model, self.call.upstream.name)

    def request(self, body: bytes, model: str, agent: str) -> Request:
        """What stands for a body: its digest, and the room it takes."""
        digest = short_hash_of(body)
        self._bodies[digest] = (body, model)
        room = len(body) + CHARACTERS_PER_TOKEN * self._limit()
        return Request(model=model, agent=agent, params={"wire": self.call.wire.name, "body": digest, "room": room})

    def _limit(self) -> int:
        try:
            return self.call.wire.bodies.limit(self.base) or 0
        except NotJson:  # the upstream's to refuse
            return 0

    def outbound(self, request: Request) -> Outbound:
        """The attempt that a request of the engine's stands for."""
        upstream, headers = self._outbound.upstream, self._outbound.headers
        if request.agent != upstream.name:
            upstream = self._settings.upstream(request.agent)
            headers = passed_headers(list(self.call.headers.items()), held_key(upstream))
        last = self._outbound.last or self._handed_over
        return Outbound(upstream, headers, self._bytes_of(request), last, bool(self._words))

    def _bytes_of(self, request: Request) -> bytes:
        """The body of a request; one that an intervention, or a rung that only adds a message, has changed is made here."""
        body, model = self._bodies[request.params["body"]]
        if request.model == model and not request.prompt:
            return body
        bodies = self.call.wire.bodies
        made = orjson.loads(body)
        if request.model != model:
            made = bodies.with_model(made, request.model)
        return orjson.dumps(bodies.with_user_message(made, request.prompt) if request.prompt else made)

    @property
    def base(self) -> dict[str, Any]:
        """The body as it is now, without a resume message."""
        return self.call.parsed() if self._base is None else self._base

    def taken(self) -> None:
        """An upstream has accepted the request that was made last."""
        self._taken, self._was_taken = self._base, True

    def by_action(self) -> Mapping[str, Callable[[Request, Incident], Any]]:
        """The changers the engine calls."""
        return {
            Action.RAISE_LIMIT: self._raise_limit,
            Action.RESUME: self._resume,
            Action.COMPACT: self._compact,
            Action.REPAIR: self._repair,
            Action.FALLBACK: self._hand_over,
            Action.ESCALATE: self._hand_over,
        }

    # -- rungs -------------------------------------------------------------------------------------------

    def _raise_limit(self, request: Request, incident: Incident) -> Request:  # noqa: ARG002  # the engine's signature
        limit = self.call.wire.bodies.limit(self.base)
        known = self.policy.model(request.model)
        most = known.max_tokens if known is not None else DEFAULT_MAX_OUTPUT_TOKENS
        if limit is None or limit >= most:
            raise RungNotApplicable("the limit is the model's own")
        return self._make(self.call.wire.bodies.with_limit(self.base, most), request)

    def _resume(self, request: Request, incident: Incident) -> Request:
        self._ask_to_go_on(incident)
        return self._make(self._last_taken(), request)

    def _ask_to_go_on(self, incident: Incident) -> None:
        """From here on requests end with a turn of the user's that quotes the answer so far."""
        failure = incident.failure
        assert failure is not None  # noqa: S101  # the engine resumes after a failure
        said = self._said()
        words = render(prompt_id(Action.RESUME, failure), incident, failure, self.policy.prompts)
        self._words = words + (QUOTE.format(said=said) if said else "")
        self._words += "\n" * len(incident.failures)  # the same said again is not the same request

    def _last_taken(self) -> dict[str, Any]:
        """The body that an upstream has taken last: what it turned down is no beginning."""
        if not self._was_taken:
            return self.base
        return self.call.parsed() if self._taken is None else self._taken

    async def _compact(self, request: Request, incident: Incident) -> Request:
        assert incident.failure is not None  # noqa: S101  # as above
        bodies, body = self.call.wire.bodies, self.base
        room = max_answer_tokens(incident.failure.message)
        if room is not None and room >= LEAST_ANSWER:
            return self._make(bodies.with_limit(body, room), request)
        tokens = incident.failure.tokens
        goal = target_characters(incident.failure, count_characters([body]))
        made = bodies.with_history(body, compact_messages(bodies.history(body), goal))
        if count_characters([made]) > goal and self._summarise is not None:
            made = await self._summarise(made)
        share = count_characters([made]) / count_characters([body])
        if share >= 1:
            raise RungNotApplicable("nothing can be left out")
        if tokens is not None:
            made = self._with_room(made, int(tokens.limit * SIZE_MARGIN - tokens.asked * share))
        return self._make(made, request)

    def _with_room(self, body: dict[str, Any], room: int) -> dict[str, Any]:
        """The body with an output limit that fits beside it."""
        limit = self.call.wire.bodies.limit(body)
        if limit is None or limit <= room or room < LEAST_ANSWER:
            return body
        return self.call.wire.bodies.with_limit(body, room)

    def _repair(self, request: Request, incident: Incident) -> Request:  # noqa: ARG002  # the engine's signature
        return self._make(self.call.wire.bodies.with_repaired_history(self.base), request)

    def _hand_over(self, request: Request, incident: Incident) -> Request:
        known = self.policy.model(request.model)
        agent = known.provider if known is not None and known.provider else request.agent
        base = self.base
        if request.model != base.get("model"):
            base = self.call.wire.bodies.with_model(base, request.model)
        if incident.resumed_elsewhere:  # the client has the beginning already
            self._ask_to_go_on(incident)
        self._handed_over = True
        return self._make(base, request.replace(agent=agent))

    def on_model(self, model: str) -> Request:
        """The call as it came, for the model its session is on."""
        known = self.policy.model(model)
        agent = known.provider if known is not None and known.provider else self.call.upstream.name
        body = self.call.wire.bodies.with_model(self.base, model)
        return self._make(body, self.first.replace(model=model, agent=agent))

    def nudged(self, request: Request, words: str) -> Request:
        """The same with a further turn of the user's, which stays whatever else is changed."""
        return self._make(self.call.wire.bodies.with_user_message(self.base, words), request)

    def _make(self, base: dict[str, Any], request: Request) -> Request:
        self._base = base
        body = self.call.wire.bodies.with_user_message(base, self._words) if self._words else base
        return self.request(orjson.dumps(body), request.model, request.agent)


def short_hash_of(body: bytes) -> str:
    """Sixteen hex digits for a body."""
    from hashlib import blake2b

    return blake2b(body, digest_size=8).hexdigest()
