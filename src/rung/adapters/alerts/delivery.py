"""Delivery of one notification to one channel: an HTTP request or a command, once. The caller tries again."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.alerts import payloads
from rung.adapters.system.process import run_command
from rung.core.alerts.notifications import RESOLVED, TEST
from rung.core.alerts.rules import PAGERDUTY_URL, ChannelType
from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from rung.core.alerts.notifications import Notification
    from rung.core.alerts.rules import AlertChannel

MAX_ERROR_CHARS: Final = 300
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # of secrets in base64, by the Standard Webhooks specification


def check_channel(channel: AlertChannel, environment: Mapping[str, str], allowed_hosts: Container[str] = ()) -> None:
    """Raise ConfigError if a variable of a channel is not set, or holds no URL that may be used. Sends nothing."""
    where = f"alerts.channels.{channel.name}"
    for key, name in channel.variables.items():
        if not environment.get(name, "").strip():
            raise ConfigError(f"{where}.{key}", name, "the name of an environment variable that is set")
    if channel.type is not ChannelType.COMMAND:
        from rung.adapters.system.webhook import check_webhook

        try:
            check_webhook(_url(channel, environment), allowed_hosts)
        except ConfigError:
            allowed = "a variable with an http or https URL of another machine, or of a host in alerts.allow_hosts"
            raise ConfigError(f"{where}.url_env", channel.url_env, allowed) from None


def deliver(
    channel: AlertChannel,
    made: Notification,
    environment: Mapping[str, str],
    allowed_hosts: Container[str] = (),
    *,
    now: float,
) -> str:
    """Send a notification; return why it was not accepted, without a secret, or an empty text."""
    try:
        _send(channel, made, environment, allowed_hosts, now)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is recorded and tried again
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        for key, name in channel.variables.items():
            if value := environment.get(name):
                text = text.replace(value, f"<{key}>").replace(value.strip(), f"<{key}>")
        return clip(redacted(" ".join(text.split())), MAX_ERROR_CHARS)
    return ""


def _send(
    channel: AlertChannel, made: Notification, environment: Mapping[str, str], allowed_hosts: Container[str], now: float
) -> None:
    check_channel(channel, environment, allowed_hosts)
    if channel.type is ChannelType.COMMAND:
        done = run_command(list(channel.run), json.dumps(made.to_json()), seconds=channel.timeout)
        if done.code:
            raise RuntimeError(f"exit code {done.code}: {done.errors.strip()}")
        return
    from rung.adapters.system.webhook import post_webhook

    for body in _bodies(channel, made, environment):
        raw, headers = json.dumps(body).encode(), {"user-agent": "rung"}
        if channel.type is ChannelType.WEBHOOK:
            secret = environment[channel.secret_env].strip() if channel.secret_env else ""
            headers |= signed_headers(made.id, raw, secret, now)
        post_webhook(_url(channel, environment), raw, allowed_hosts, headers=headers, seconds=channel.timeout)


def _bodies(channel: AlertChannel, made: Notification, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    if channel.type is ChannelType.SLACK:
        return [payloads.slack(made)]
    if channel.type is ChannelType.TEAMS:
        return [payloads.teams(made)]
    if channel.type is ChannelType.PAGERDUTY:
        key = environment[channel.key_env].strip()
        ends = [replace(made, event=RESOLVED)] if made.event == TEST else []  # a test leaves no open page
        return [payloads.pagerduty(each, key) for each in (made, *ends)]
    return [made.to_json()]


def signed_headers(id_: str, body: bytes, secret: str, now: float) -> dict[str, str]:
    """Return the headers of the Standard Webhooks specification; without a secret there is no signature."""
    headers = {"webhook-id": id_, "webhook-timestamp": str(int(now))}
    if not secret:
        return headers
    signed = f"{id_}.{int(now)}.".encode() + body
    digest = hmac.new(_signing_key(secret), signed, hashlib.sha256).digest()
    return {**headers, "webhook-signature": f"v1,{base64.b64encode(digest).decode()}"}


def _signing_key(secret: str) -> bytes:
    if not secret.startswith(_SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ConfigError("secret_env", "…", "a secret; after whsec_ it is base64") from None


def _url(channel: AlertChannel, environment: Mapping[str, str]) -> str:
    return environment.get(channel.url_env, "").strip() if channel.url_env else PAGERDUTY_URL
