"""Upstreams of a gateway: URL, key, client credentials and TLS; validated and immutable."""

from __future__ import annotations

import re
from dataclasses import replace
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import ANY_TEXT, Type, one_of, read_settings, read_table, setting, settings
from rung.gateway.http.url import parse_url
from rung.wires.registry import ANTHROPIC, OPENAI

if TYPE_CHECKING:
    from collections.abc import Mapping

WIRES: Final = (ANTHROPIC, OPENAI)
FORWARD, DROP = "forward", "drop"
_PUBLIC_URLS: Final = {ANTHROPIC: "https://api.anthropic.com", OPENAI: "https://api.openai.com"}
_NAME_CHARACTERS: Final = "-_" + ascii_letters + digits
_USERINFO: Final = re.compile(r"//[^/?#]*@")


def _read_url(value: object, key: str) -> str:
    try:
        return str(parse_url(value))
    except ValueError as error:
        shown = _USERINFO.sub("//…@", value) if isinstance(value, str) else value  # no password in an error message
        raise ConfigError(key, shown, str(error)) from None


_URL: Final = Type("an http:// or https:// URL without user, password and fragment", parse=_read_url)


@settings
class UpstreamSettings:
    """One upstream: `[gateway.upstreams.NAME]`. The first one of an API gets its calls, the others are fallbacks."""

    name: str
    wire: str = setting(one_of(WIRES), "API of the upstream.")
    url: str = setting(_URL, "Base URL; its query is added to every request.")
    key_env: str = setting(ANY_TEXT, "Environment variable with the upstream's key.", default="")
    key_header: str = setting(
        Type("a header name, or empty", lambda value: isinstance(value, str) and not value.strip(_NAME_CHARACTERS)),
        "Header that carries the key. Empty: `x-api-key` for anthropic, `authorization` for openai.",
        default="",
    )
    client_credentials: str = setting(
        one_of(("", FORWARD, DROP)),
        "Whether the upstream gets the client's key and cookies. Empty: `forward` on the host of the first upstream with "
        "the same API; `drop` with `key_env` or `[[gateway.keys]]`. Required for an upstream on another host.",
        default="",
    )
    tls_ca_file: str = setting(
        ANY_TEXT,
        "PEM file with the only CA certificates to trust. Empty: `SSL_CERT_FILE`, or the system's.",
        default="",
    )
    tls_cert_file: str = setting(ANY_TEXT, "PEM file with the gateway's client certificate.", default="")
    tls_key_file: str = setting(ANY_TEXT, "PEM file with its private key, if that is a separate file.", default="")

    def __post_init__(self) -> None:
        if self.tls_key_file and not self.tls_cert_file:
            raise ConfigError("tls_key_file", self.tls_key_file, "set together with tls_cert_file")


def read_upstreams(source: Mapping[str, Any], *, has_keys: bool) -> tuple[UpstreamSettings, ...]:
    """Return the upstreams of the wires, then the named ones.

    The public services are the upstreams of settings that name none. Otherwise a client's request, and its key, would
    go to a provider that nobody has chosen.
    """
    tables = read_table(source.get("upstreams", {}), "gateway.upstreams")
    named = tuple(
        read_settings(UpstreamSettings, row, f"gateway.upstreams.{name}", name=name) for name, row in tables.items()
    )
    first = []
    for wire in WIRES:
        if wire in source or not (named or any(each in source for each in WIRES)):
            url = _URL.read(source.get(wire, _PUBLIC_URLS[wire]), f"gateway.{wire}")
            first.append(UpstreamSettings(name=wire, wire=wire, url=url))
    return _with_credentials((*first, *named), has_keys=has_keys)


def _with_credentials(upstreams: tuple[UpstreamSettings, ...], *, has_keys: bool) -> tuple[UpstreamSettings, ...]:
    """Return the upstreams with their `client_credentials` decided.

    A client's key is meant for the first upstream of its API. Another host gets it only if the settings say so.
    """
    homes: dict[str, str] = {}
    decided = []
    for upstream in upstreams:
        url, choice = parse_url(upstream.url), upstream.client_credentials
        home = homes.setdefault(upstream.wire, f"{url.scheme}://{url.host}")
        key = f"gateway.upstreams.{upstream.name}.client_credentials"
        if upstream.key_env or has_keys:
            if choice == FORWARD:
                raise ConfigError(
                    key, choice, "drop, because of " + ("key_env" if upstream.key_env else "[[gateway.keys]]")
                )
            choice = DROP
        elif not choice and home != f"{url.scheme}://{url.host}":
            raise ConfigError(
                key, choice, f"set for another host than {home}: key_env with a key for it, {FORWARD!r} or {DROP!r}"
            )
        decided.append(replace(upstream, client_credentials=choice or FORWARD))
    return tuple(decided)
