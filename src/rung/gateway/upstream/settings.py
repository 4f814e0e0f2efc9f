"""Upstreams of a gateway: type, URL, key, client credentials and TLS; validated and immutable."""

from __future__ import annotations

import re
from string import ascii_letters, digits
from typing import Final

from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import (
    ANY_TEXT,
    Type,
    list_of,
    one_of,
    optional,
    read_table,
    setting,
    settings,
)
from rung.gateway.http.url import parse_url
from rung.wires.registry import ANTHROPIC, CHAT, GOOGLE, OPENAI, RESPONSES

AZURE, BEDROCK, VERTEX, GEMINI = "azure", "bedrock", "vertex", GOOGLE
WIRES: Final = (ANTHROPIC, OPENAI, GEMINI)
# API of each type. A type without one has several.
WIRE_OF_TYPE: Final = {
    ANTHROPIC: ANTHROPIC,
    OPENAI: OPENAI,
    AZURE: OPENAI,
    BEDROCK: ANTHROPIC,
    VERTEX: "",
    GEMINI: GEMINI,
}
FORWARD, DROP = "forward", "drop"
PUBLIC_URLS: Final = {
    ANTHROPIC: "https://api.anthropic.com",
    OPENAI: "https://api.openai.com",
    GEMINI: "https://generativelanguage.googleapis.com",
}
_NAME_CHARACTERS: Final = "-_" + ascii_letters + digits
_USERINFO: Final = re.compile(r"//[^/?#]*@")


def _read_url(value: object, key: str) -> str:
    try:
        return str(parse_url(value))
    except ValueError as error:
        shown = _USERINFO.sub("//…@", value) if isinstance(value, str) else value  # no password in an error message
        raise ConfigError(key, shown, str(error)) from None


def _read_names(value: object, key: str) -> tuple[tuple[str, str], ...]:
    return tuple((model, ANY_TEXT.read(name, f"{key}.{model}")) for model, name in read_table(value, key).items())


URL: Final = Type("an http:// or https:// URL without user, password and fragment", parse=_read_url)


@settings
class UpstreamSettings:
    """One upstream: `[gateway.upstreams.NAME]`. The first one of an API gets its calls, the others are fallbacks.

    `type` or `wire` is required. With a `type`, what is left out comes from where the SDK of the provider looks.
    """

    name: str
    type: str = setting(
        one_of(("", *WIRE_OF_TYPE)),
        "Provider: it decides on URLs, bodies and credentials. Empty: the API in `wire`, with no credentials of the "
        "environment.",
        default="",
    )
    wire: str = setting(one_of(("", *WIRES)), "API of the upstream. Empty: that of its `type`.", default="")
    url: str = setting(
        URL,
        "Base URL; its query is added to every request. Empty: the provider's, by `region`; for azure "
        "`AZURE_OPENAI_ENDPOINT`. Required without a `type`.",
        default="",
    )
    apis: tuple[str, ...] = setting(
        list_of(one_of((CHAT.name, RESPONSES.name))),
        "APIs of an openai or azure upstream, the best first. Empty: both.",
        default=(),
    )
    models: tuple[tuple[str, str], ...] = setting(
        Type("a table: model = its name at this upstream", parse=_read_names),
        "Names of models at this upstream: a deployment of azure, a model id or inference profile of bedrock.",
        default=(),
    )
    region: str = setting(
        ANY_TEXT,
        "Region of bedrock: empty: `AWS_REGION`, `AWS_DEFAULT_REGION`, or that of the profile. Location of vertex: empty: "
        "`GOOGLE_CLOUD_LOCATION`, `CLOUD_ML_REGION`, or global.",
        default="",
    )
    project: str = setting(
        ANY_TEXT,
        "Google Cloud project of vertex. Empty: `ANTHROPIC_VERTEX_PROJECT_ID`, `GOOGLE_CLOUD_PROJECT`, or that of the "
        "credentials.",
        default="",
    )
    profile: str = setting(ANY_TEXT, "AWS profile of bedrock. Empty: as the AWS SDK finds credentials.", default="")
    credentials_file: str = setting(
        ANY_TEXT, "File of a Google service account, for vertex. Empty: application default credentials.", default=""
    )
    api_version: str = setting(
        ANY_TEXT,
        "Version in the path: gemini v1beta, vertex v1. azure: `api-version` of the classic paths, or v1 for the paths "
        "without; empty: `OPENAI_API_VERSION`, or v1.",
        default="",
    )
    betas: tuple[str, ...] | None = setting(
        optional(list_of(ANY_TEXT)),
        "Betas of Anthropic that bedrock or vertex may be asked for; others are left out. Left out: all; vertex: those that it accepts.",
        default=None,
    )
    key_env: str = setting(
        ANY_TEXT,
        "Environment variable with the upstream's key. Empty, with a `type`, on the provider's own hosts: the variable of "
        "its SDK, if that is set.",
        default="",
    )
    key_envs: tuple[str, ...] = setting(
        list_of(ANY_TEXT),
        "Environment variables with several keys, instead of `key_env`. Conversations are spread over them; a key that is "
        "limited, exhausted or refused rests, and the next one is used at once.",
        default=(),
    )
    key_header: str = setting(
        Type("a header name, or empty", lambda value: isinstance(value, str) and not value.strip(_NAME_CHARACTERS)),
        "Header that carries the key. Empty: `x-api-key` for anthropic, `api-key` for azure, `x-goog-api-key` for gemini, "
        "`authorization` for the others.",
        default="",
    )
    client_credentials: str = setting(
        one_of(("", FORWARD, DROP)),
        "Whether the upstream gets the client's key and cookies. Empty: `forward` on the host of the first upstream with "
        "the same API; `drop` with a key of its own, `[[gateway.keys]]` or credentials of a cloud. Required for an upstream on "
        "another host.",
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
        if self.key_envs and self.key_env:
            raise ConfigError("key_envs", list(self.key_envs), "left out, or key_env is")
        if len(set(self.key_envs)) < len(self.key_envs):
            raise ConfigError("key_envs", list(self.key_envs), "names of different variables")
        if not self.type and not self.wire:
            raise ConfigError("type", self.type, "one of " + ", ".join(WIRE_OF_TYPE))
        if self.type and self.wire and self.wire != WIRE_OF_TYPE[self.type]:
            raise ConfigError("wire", self.wire, f"left out: the API follows from the type {self.type}")

    @property
    def key_names(self) -> tuple[str, ...]:
        """Return the variables with the gateway's own keys for this upstream."""
        return self.key_envs or ((self.key_env,) if self.key_env else ())

    @property
    def has_cloud_identity(self) -> bool:
        """Return whether requests get credentials of a cloud, which change, instead of a key."""
        return self.type in (AZURE, BEDROCK, VERTEX) and not self.key_names and self.client_credentials != FORWARD

    @property
    def account(self) -> str:
        """Return the name of the account: upstreams with the same one share its limits. Empty: that of the client."""
        if self.has_cloud_identity:
            return f"{self.type}:{self.profile}:{self.project}:{self.credentials_file}:{self.region}"
        return ",".join(self.key_names)
