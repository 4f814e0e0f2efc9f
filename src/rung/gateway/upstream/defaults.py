"""Defaults of an upstream with a type: what its settings leave open comes from where the SDK of its provider looks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import ConfigError
from rung.gateway.http.url import parse_url
from rung.gateway.upstream.settings import (
    AZURE,
    BEDROCK,
    FORWARD,
    GEMINI,
    PUBLIC_URLS,
    URL,
    VERTEX,
    WIRE_OF_TYPE,
    UpstreamSettings,
)
from rung.wires.registry import ANTHROPIC, OPENAI

if TYPE_CHECKING:
    from collections.abc import Mapping

    Environment = Mapping[str, str]

# The first that is set counts, as in the SDKs.
_KEYS: Final = {
    ANTHROPIC: ("ANTHROPIC_API_KEY",),
    OPENAI: ("OPENAI_API_KEY",),
    AZURE: ("AZURE_OPENAI_API_KEY",),
    BEDROCK: ("AWS_BEARER_TOKEN_BEDROCK",),
    GEMINI: ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
_REGIONS: Final = {
    BEDROCK: ("AWS_REGION", "AWS_DEFAULT_REGION"),
    VERTEX: ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"),
}
_PROJECTS: Final = ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
_AZURE_ENDPOINT: Final = "AZURE_OPENAI_ENDPOINT"
# Hosts of each provider: the name itself, or any name below one that begins with a dot.
_OWN_HOSTS: Final = {
    ANTHROPIC: ("api.anthropic.com",),
    OPENAI: ("api.openai.com", ".api.openai.com"),
    AZURE: (".azure.com", ".azure.us", ".azure.cn"),
    BEDROCK: (".amazonaws.com", ".amazonaws.com.cn", ".api.aws"),
    GEMINI: ("generativelanguage.googleapis.com",),
}
_REGION_IN_HOST: Final = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")
_MULTI_REGIONS: Final = ("us", "eu")


def with_defaults(upstream: UpstreamSettings, environment: Environment) -> UpstreamSettings:
    """Return the upstream with its type, API, region, project, URL and key decided; raise ConfigError if one is missing.

    An upstream without a type gets nothing from the environment: its client's credentials are forwarded.
    """
    if not upstream.type:
        if not upstream.url:
            raise ConfigError(f"gateway.upstreams.{upstream.name}.url", upstream.url, URL.allowed)
        return replace(upstream, type=upstream.wire)
    upstream = replace(
        upstream,
        wire=WIRE_OF_TYPE[upstream.type],
        region=upstream.region or _region(upstream, environment),
        project=upstream.project or (_first(_PROJECTS, environment) if upstream.type == VERTEX else ""),
    )
    upstream = replace(upstream, url=upstream.url or _url(upstream, environment))
    upstream = replace(upstream, api_version=upstream.api_version or _api_version(upstream, environment))
    return upstream if upstream.key_names else replace(upstream, key_env=_key_env(upstream, environment))


def _first(names: tuple[str, ...], environment: Environment) -> str:
    """Return the value of the first variable that is set."""
    return next((environment[name] for name in names if environment.get(name)), "")


def _region(upstream: UpstreamSettings, environment: Environment) -> str:
    if upstream.type == VERTEX:
        return _first(_REGIONS[VERTEX], environment) or "global"
    if upstream.type != BEDROCK:
        return ""
    if upstream.url and (found := _REGION_IN_HOST.search(parse_url(upstream.url).host)):
        return found[1]
    return _first(_REGIONS[BEDROCK], environment) or _profile_region(upstream.profile)


def _profile_region(profile: str) -> str:
    """Return the region of an AWS profile; empty if there is none. Without botocore, the files are not read."""
    from importlib.util import find_spec

    if find_spec("botocore") is None:
        return ""
    from botocore.exceptions import ProfileNotFound
    from botocore.session import Session

    try:
        return Session(profile=profile or None).get_config_variable("region") or ""
    except ProfileNotFound:
        return ""


def _url(upstream: UpstreamSettings, environment: Environment) -> str:
    where, region = f"gateway.upstreams.{upstream.name}", upstream.region
    if upstream.type in PUBLIC_URLS:
        return PUBLIC_URLS[upstream.type]
    if upstream.type == AZURE:
        if not environment.get(_AZURE_ENDPOINT):
            raise ConfigError(f"{where}.url", "", f"set, or the variable {_AZURE_ENDPOINT}")
        return str(URL.read(environment[_AZURE_ENDPOINT], _AZURE_ENDPOINT))
    if upstream.type == BEDROCK:
        if not region:
            raise ConfigError(f"{where}.region", "", "set, or the variable AWS_REGION, or a profile with a region")
        suffix = ".cn" if region.startswith("cn-") else ""
        return str(URL.read(f"https://bedrock-runtime.{region}.amazonaws.com{suffix}", f"{where}.region"))
    return str(URL.read(_vertex_url(region), f"{where}.region"))


def _vertex_url(region: str) -> str:
    if region == "global":
        return "https://aiplatform.googleapis.com"
    if region in _MULTI_REGIONS:
        return f"https://aiplatform.{region}.rep.googleapis.com"
    return f"https://{region}-aiplatform.googleapis.com"


def _api_version(upstream: UpstreamSettings, environment: Environment) -> str:
    """Return the version of the paths. An Azure URL that ends with /v1, or has an api-version, says it itself."""
    if upstream.type == AZURE:
        url = parse_url(upstream.url)
        for pair in url.query.split("&"):
            if pair.startswith("api-version="):
                return pair.removeprefix("api-version=")
        return "v1" if url.path.endswith("/v1") else environment.get("OPENAI_API_VERSION") or "v1"
    return {GEMINI: "v1beta", VERTEX: "v1"}.get(upstream.type, "")


def _key_env(upstream: UpstreamSettings, environment: Environment) -> str:
    """Return the variable with the key; empty if there is none, or it is not meant for this host."""
    return "" if upstream.client_credentials == FORWARD or upstream.profile else sdk_key_env(upstream, environment)


def sdk_key_env(upstream: UpstreamSettings, environment: Environment) -> str:
    """Return the variable in which the SDK of a provider looks for a key; empty if it is not set, or for another host."""
    name = next((name for name in _KEYS.get(upstream.type, ()) if environment.get(name)), "")
    return name if name and _is_own_host(upstream, environment) else ""


def _is_own_host(upstream: UpstreamSettings, environment: Environment) -> bool:
    """Return whether the host of an upstream is its provider's. Another host must not get the provider's key by default."""
    host = parse_url(upstream.url).host
    if upstream.type == AZURE and environment.get(_AZURE_ENDPOINT):
        return host == parse_url(environment[_AZURE_ENDPOINT]).host
    return any(host == own or (own[0] == "." and host.endswith(own)) for own in _OWN_HOSTS[upstream.type])
