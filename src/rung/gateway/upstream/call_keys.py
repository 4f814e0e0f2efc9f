"""Keys of one call over its attempts: each attempt gets a usable key, and its failure says whether another one is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.classify.classifier import classify
from rung.core.policy.key_pool import KeyState
from rung.gateway.sessions import session_id
from rung.gateway.upstream.headers import credential_header, upstream_key
from rung.gateway.upstream.key_pool import with_one_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.failures import Evidence
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.outbound import Outbound
    from rung.gateway.upstream.key_pool import KeyPool
    from rung.gateway.upstream.table import UpstreamTable


class CallKeys:
    """Keys of one call. A request whose history lies at its provider stays on the key of its session."""

    def __init__(self, table: UpstreamTable, inbound: InboundRequest, now: Callable[[], float]) -> None:
        self._table, self._inbound, self._now = table, inbound, now
        self._session: str | None = None
        self._used: tuple[KeyPool, str, str] | None = None  # pool, key and model of the current attempt
        self._tried: set[str] = set()  # since the ladder last decided

    @property
    def used(self) -> str:
        """Return the name of the key of the current attempt; empty if it has none of the gateway's."""
        return "" if self._used is None else self._used[1]

    def with_key(self, outbound: Outbound) -> Outbound:
        """Return the upstream request of an attempt with one of its upstream's own keys, if there are several."""
        upstream = outbound.upstream
        self._used = None
        if not upstream.key_names:
            return outbound
        pool = self._table.key_pool(upstream)
        key = self._take(pool, outbound.model)
        self._used = (pool, key, outbound.model)
        if not upstream.key_envs:
            return outbound  # its headers have the key
        keyed = with_one_key(upstream, key)
        header = credential_header(keyed, upstream_key(keyed))
        return outbound._replace(upstream=keyed, headers=[*outbound.headers, header])

    def _take(self, pool: KeyPool, model: str) -> str:
        if len(pool.names) == 1:
            return pool.names[0]
        if self._session is None:
            self._session = session_id(self._inbound)
        key, last = pool.take(model, self._session, self._now(), self._tried), pool.key_of(self._session)
        if last and key != last and not self._inbound.is_self_contained():
            return last
        return key

    def note_success(self) -> None:
        """Note that the current attempt succeeded."""
        self._tried.clear()
        if self._used is not None:
            pool, key, model = self._used
            pool.note_success(key, model, self._session or "")

    def note_failure(self, evidence: Evidence) -> Evidence:
        """Return the evidence of a failed attempt with its key, and how many others are left.

        If none is, the ladder decides about the key that reopens first, whichever was tried last.
        """
        if self._used is None:
            return evidence
        pool, key, model = self._used
        now = self._now()
        status = pool.note_failure(key, model, classify(evidence, now), now)
        evidence = evidence._replace(key=key)
        if status is None or len(pool.names) == 1:
            return evidence
        self._tried.add(key)
        spare = pool.spare(model, now, self._tried) if self._inbound.is_self_contained() else 0
        if spare:
            return evidence._replace(spare_keys=spare, retry_after=0.0)
        self._tried.clear()
        return _first_to_reopen(pool, key, model, evidence, now)


def _first_to_reopen(pool: KeyPool, key: str, model: str, evidence: Evidence, now: float) -> Evidence:
    first, status, failure = pool.first_reopening(model, now)
    if first == key or failure is None or status.state is KeyState.DEAD:
        return evidence
    return failure.evidence._replace(key=first, spare_keys=0, retry_after=status.until - now)
