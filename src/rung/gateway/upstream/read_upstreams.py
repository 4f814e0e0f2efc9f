"""Reading of a gateway's upstreams from its settings, with defaults and the choice of who gets a client's credentials."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import read_settings, read_table
from rung.gateway.http.url import parse_url
from rung.gateway.upstream.defaults import with_defaults
from rung.gateway.upstream.settings import (
    BEDROCK,
    DROP,
    FORWARD,
    PUBLIC_URLS,
    URL,
    VERTEX,
    WIRE_OF_TYPE,
    WIRES,
    UpstreamSettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def read_upstreams(
    source: Mapping[str, Any], *, has_keys: bool, models: Iterable[str] = ()
) -> tuple[UpstreamSettings, ...]:
    """Return the upstreams of the wires, then the named ones, then the providers that `models` name.

    A model such as `bedrock/anthropic.claude-…` needs no table of its upstream: what it needs is found where the SDK of
    the provider looks. The public services are the upstreams of settings that name none. Otherwise a client's request, and its key, would
    go to a provider that nobody has chosen.
    """
    tables = read_table(source.get("upstreams", {}), "gateway.upstreams")
    named = tuple(
        with_defaults(read_settings(UpstreamSettings, row, f"gateway.upstreams.{name}", name=name), os.environ)
        for name, row in tables.items()
    )
    first = []
    for wire in WIRES:
        if wire in source or not (named or any(each in source for each in WIRES)):
            url = URL.read(source.get(wire, PUBLIC_URLS[wire]), f"gateway.{wire}")
            first.append(UpstreamSettings(name=wire, type=wire, wire=wire, url=url))
    known = {upstream.name for upstream in (*first, *named)}
    prefixes = dict.fromkeys(name.partition("/")[0] for name in models if "/" in name)
    listed = (
        with_defaults(UpstreamSettings(name=name, type=name), os.environ)
        for name in prefixes
        if name in WIRE_OF_TYPE and name not in known
    )
    return _with_credentials((*first, *named, *listed), has_keys=has_keys)


def _with_credentials(upstreams: tuple[UpstreamSettings, ...], *, has_keys: bool) -> tuple[UpstreamSettings, ...]:
    """Return the upstreams with their `client_credentials` decided."""
    homes: dict[str, str] = {}
    return tuple(
        replace(upstream, client_credentials=_client_credentials(upstream, homes, has_keys=has_keys))
        for upstream in upstreams
    )


def _client_credentials(upstream: UpstreamSettings, homes: dict[str, str], *, has_keys: bool) -> str:
    """Return whether an upstream gets the credentials of clients; add its host to the `homes` of its API.

    A client's key is meant for the first upstream of its API. Another host gets it only if the settings say so.
    """
    choice, key = upstream.client_credentials, f"gateway.upstreams.{upstream.name}.client_credentials"
    if upstream.key_names or has_keys:
        if choice == FORWARD:
            raise ConfigError(
                key, choice, "drop, because of " + ("key_env" if upstream.key_names else "[[gateway.keys]]")
            )
        choice = DROP
    url = parse_url(upstream.url)
    host = f"{url.scheme}://{url.host}"
    if upstream.type not in WIRES:
        return _cloud_choice(upstream, choice, key)
    home = homes.setdefault(upstream.wire, host)
    if not choice and home != host:
        raise ConfigError(
            key, choice, f"set for another host than {home}: key_env with a key for it, {FORWARD!r} or {DROP!r}"
        )
    return choice or FORWARD


def _cloud_choice(upstream: UpstreamSettings, choice: str, key: str) -> str:
    """Return the choice of an upstream whose credentials no client of the gateway has, unless the settings say so."""
    if choice == FORWARD and upstream.type in (BEDROCK, VERTEX):
        raise ConfigError(key, choice, f"drop, because the gateway signs the requests to {upstream.type}")
    return choice or DROP
