"""Schemas of the provider route: what the running gateways say about their upstreams."""

from __future__ import annotations

from pydantic import ConfigDict

from rung.service.schemas.base import ApiModel


class FromGateway(ApiModel):
    """Part of a gateway's status. A newer gateway may say more, which is left out."""

    model_config = ConfigDict(extra="ignore")


class ProviderKeyOut(FromGateway):
    """One key by the name of its variable. `models`: those that it is limited for."""

    name: str
    state: str
    until: float | None
    models: list[str]


class ProviderErrorOut(FromGateway):
    """Latest failure of a provider, redacted."""

    kind: str
    message: str
    at: float


class ProviderCircuitOut(FromGateway):
    """A circuit that is not closed."""

    model: str
    state: str
    probe_in: float


class TranslationOut(FromGateway):
    """Attempts that were translated from a client's wire format to the upstream's."""

    client: str
    upstream: str
    calls: int


class ProviderOut(FromGateway):
    """One upstream of one running gateway, since that was started. `at`: when the gateway said it."""

    gateway: str
    at: float
    started_at: float
    name: str
    type: str
    host: str
    wires: list[str]
    state: str
    keys: list[ProviderKeyOut]
    successes: int
    failures: dict[str, int]
    last_error: ProviderErrorOut | None
    latency_p50: float | None
    last_seen: float | None
    circuits: list[ProviderCircuitOut]
    translated: list[TranslationOut]
    dropped: dict[str, int]
    dollars: float
