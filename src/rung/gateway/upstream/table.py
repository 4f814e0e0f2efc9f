"""Upstreams of a gateway with their providers: which one serves a model, under which name and in which wire format.

A name such as `openai/gpt-5.1` in a policy's `models` names the upstream and the model. A name without the name of an
upstream belongs to the upstream of the client's own API.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.gateway.upstream.defaults import sdk_key_env
from rung.gateway.upstream.headers import has_own_key
from rung.gateway.upstream.key_pool import KeyPool, with_one_key
from rung.gateway.upstream.make_provider import make_provider
from rung.gateway.upstream.settings import DROP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rung.core.policy.policy import Model
    from rung.gateway.inbound_request import InboundRequest
    from rung.gateway.upstream.provider import UpstreamProvider
    from rung.gateway.upstream.settings import UpstreamSettings

# Why a request cannot be translated.
AT_OWN_PROVIDER: Final = "it refers to history or files that only its own provider has"


class Target(NamedTuple):
    """Upstream and one of its models."""

    upstream: UpstreamSettings
    model: str


class UpstreamTable:
    """Upstreams of one version of the settings. Providers of upstreams that stay keep their tokens."""

    def __init__(self, upstreams: Sequence[UpstreamSettings], former: UpstreamTable | None = None) -> None:
        self._by_name = {upstream.name: upstream for upstream in upstreams}
        self.providers: dict[
            tuple[str, str], UpstreamProvider
        ] = {}  # by name and key: a whole upstream is slow to hash
        for upstream in upstreams:
            kept = None if former is None else former.providers.get((upstream.name, upstream.key_env))
            is_kept = kept is not None and kept.upstream == upstream
            self.providers[upstream.name, upstream.key_env] = kept if kept and is_kept else make_provider(upstream)
        self.key_pools: dict[tuple[str, tuple[str, ...]], KeyPool] = {} if former is None else former.key_pools
        for pool in self.key_pools.values():
            pool.revive()

    def provider(self, upstream: UpstreamSettings) -> UpstreamProvider:
        """Return the provider of an upstream, or of one that has credentials of its own."""
        key = (upstream.name, upstream.key_env)
        provider = self.providers.get(key)
        if provider is None:
            provider = self.providers[key] = make_provider(upstream)
        return provider

    def key_pool(self, upstream: UpstreamSettings) -> KeyPool:
        """Return the pool of an upstream's own keys, which outlives a reload of the settings."""
        place = (upstream.name, upstream.key_names)
        pool = self.key_pools.get(place)
        if pool is None:
            pool = self.key_pools[place] = KeyPool(upstream.key_names)
        return pool

    def with_any_key(self, upstream: UpstreamSettings, now: float) -> UpstreamSettings:
        """Return an upstream with one of its keys that is usable, for a request that belongs to no conversation."""
        return with_one_key(upstream, self.key_pool(upstream).take("", "", now)) if upstream.key_envs else upstream

    def find(self, name: str, default: UpstreamSettings) -> Target:
        """Return the target of a model name; a name without an upstream's is a model of `default`."""
        return self._find_named(name) or Target(default, name)

    def _find_named(self, name: str) -> Target | None:
        prefix, slash, model = name.partition("/")
        upstream = self._by_name.get(prefix) if slash and model else None
        return None if upstream is None else Target(upstream, model)

    def listed_model(self, models: Iterable[Model], target: Target, default: UpstreamSettings) -> Model | None:
        """Return the model of a policy that stands for a target; None if there is none. `default`: as for `find`."""
        return next((model for model in models if self.find(_qualified(model), default) == target), None)

    def warnings(self, models: Iterable[Model]) -> list[str]:
        """Return a line about each listed model that only clients of its own API can use, for want of a key.

        Models with the API of the first one are its clients' own.
        """
        listed = [(each.name, self._by_name.get(each.provider or each.name.partition("/")[0])) for each in models]
        apis = [upstream.wire for _, upstream in listed if upstream is not None]
        return [
            f"{name} serves only clients of the {upstream.type} API: the gateway has no key for it; "
            f"set key_env in [gateway.upstreams.{upstream.name}], or the variable of its SDK"
            for name, upstream in listed
            if upstream is not None and upstream.wire != apis[0] and with_own_credentials(upstream) is None
        ]

    def wire_for(self, target: Target, inbound: InboundRequest) -> str:
        """Return the wire format for a request to a target: the client's, else the best one; empty if there is none."""
        wires = self.provider(target.upstream).wires_for(target.model)
        return inbound.wire.name if inbound.wire.name in wires else next(iter(wires), "")

    def can_serve(self, target: Target, inbound: InboundRequest) -> bool:
        """Return whether a target can serve a request: in the client's wire format, or translated.

        A request whose history lies at its provider cannot be translated.
        """
        if credentialed(target.upstream, inbound) is None:
            return False
        wire = self.wire_for(target, inbound)
        return wire == inbound.wire.name or (bool(wire) and inbound.is_self_contained())

    def loses_history(self, target: Target, inbound: InboundRequest) -> bool:
        """Return whether a request would be translated for a target without history or files that its provider has."""
        return self.wire_for(target, inbound) not in ("", inbound.wire.name) and not inbound.is_self_contained()

    def usable_models(self, models: Sequence[Model], inbound: InboundRequest) -> tuple[Model, ...]:
        """Return the models of a policy that can serve a request. One that names its upstream has it as its provider.

        A model that names none is one of every upstream with the client's API. The model that the client asked for has the
        client's name for it, so that the recovery knows where it begins.
        """
        found, default = [], self._home(models, inbound)
        for model in models:
            qualified = _qualified(model)
            if default is None and self._find_named(qualified) is None:
                continue  # a model of the client's API, which no upstream has
            target = self.find(qualified, default or inbound.upstream)
            if model.provider and target.upstream.name != model.provider:
                continue  # an upstream that this gateway does not have
            if not self.can_serve(target, inbound) or not _may_use(inbound, qualified, target):
                continue
            is_own = target == (inbound.upstream, inbound.upstream_model)
            is_elsewhere = target.upstream is not inbound.upstream or target.model != qualified
            is_bound = is_elsewhere and not is_own  # the own model may be had from other upstreams, too
            provider = target.upstream.name if is_bound else ""
            found.append(replace(model, name=inbound.model if is_own else qualified, provider=provider))
        return tuple(found)

    def _home(self, models: Sequence[Model], inbound: InboundRequest) -> UpstreamSettings | None:
        """Return the upstream of models without an upstream's name: the client's, or the first with the client's API.

        None: there is none, and models that name their upstream serve the client.
        """
        if has_same_api(inbound.upstream, inbound):
            return inbound.upstream
        first = next((upstream for upstream in self._by_name.values() if has_same_api(upstream, inbound)), None)
        is_named = any(self._find_named(_qualified(model)) for model in models)
        return first if first is not None or is_named else inbound.upstream


def has_same_api(upstream: UpstreamSettings, inbound: InboundRequest) -> bool:
    """Return whether an upstream has the API of the client, so that it understands its headers and credentials."""
    return upstream.wire == inbound.wire.upstream


def credentialed(upstream: UpstreamSettings, inbound: InboundRequest) -> UpstreamSettings | None:
    """Return an upstream as it serves a request, with credentials of its own where the client's are for another API.

    The client's key never goes to another provider. None: the upstream has no credentials for the request.
    """
    return upstream if has_same_api(upstream, inbound) else with_own_credentials(upstream)


def with_own_credentials(upstream: UpstreamSettings) -> UpstreamSettings | None:
    """Return an upstream with credentials of the gateway, from the settings or from where its SDK looks; None if it has none."""
    if upstream.has_cloud_identity or has_own_key(upstream):
        return upstream
    variable = sdk_key_env(upstream, os.environ)
    return replace(upstream, key_env=variable, client_credentials=DROP) if variable else None


def _qualified(model: Model) -> str:
    return f"{model.provider}/{model.name}" if model.provider else model.name


def _may_use(inbound: InboundRequest, qualified: str, target: Target) -> bool:
    return inbound.may_use(qualified) or inbound.may_use(target.model)
