"""Checks of the service and the gateway: whether they answer, and whether programs are pointed at the gateway."""

from __future__ import annotations

import http.client
import os
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rung.cli.doctor.finding import DoctorFinding, State
from rung.core.domain.errors import RungError
from rung.wiring.request_origin import LOOPBACK_HOSTS

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_SECONDS: Final = 0.7
SERVICE_URL: Final = "http://127.0.0.1:8642"
GATEWAY_HOST: Final = "127.0.0.1"
GATEWAY_PORT: Final = 8484
BASE_URL_VARIABLES: Final = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
_MAX_BODY_BYTES: Final = 4_096


def check_servers(service: str | None, gateway: str | None) -> Iterator[DoctorFinding]:
    """Yield whether the service and the gateway answer. One that was named must; the default one may be off."""
    yield _server("service", service or SERVICE_URL, "rung serve", is_named=service is not None)
    address = gateway or f"http://{GATEWAY_HOST}:{_gateway_port()}"
    found = _server("gateway", address, "rung gateway", is_named=gateway is not None)
    yield found
    yield from _pointed_programs(address, answers=found.state is State.OK)


def _gateway_port() -> int:
    """Return the port of the gateway by the trusted rung.toml of the working directory, or the default."""
    from rung.wiring.settings_file import find

    try:
        file = find(quiet=True)
    except RungError:
        return GATEWAY_PORT
    table = {} if file is None else file.table.get("gateway", {})
    port = table.get("port") if isinstance(table, dict) else None
    return port if isinstance(port, int) else GATEWAY_PORT


def _server(name: str, url: str, command: str, *, is_named: bool) -> DoctorFinding:
    shown = _shown(url)
    problem = _probe(url)
    facts = {"url": shown, "reachable": not problem}
    if not problem:
        return DoctorFinding(name=name, state=State.OK, detail=f"answers at {shown}", facts=facts)
    if problem == "not running" and not is_named:
        detail = f"not running at {shown}; start it if you need it: {command}"
        return DoctorFinding(name=name, state=State.INFO, detail=detail, facts=facts)
    state = State.BROKEN if is_named else State.WARNING
    return DoctorFinding(name=name, state=state, detail=f"{shown}: {problem}", fix=command, facts=facts)


def _probe(url: str) -> str:
    """Return why a server of Rung does not answer; empty if it does. No proxy is used."""
    try:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return "is not an http or https address"
        connection = kind(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
    except ValueError as error:
        return f"is not an address ({error})"
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/healthz")
        response = connection.getresponse()
        body = response.read(_MAX_BODY_BYTES)
    except ConnectionRefusedError:
        return "not running"
    except TimeoutError:
        return f"did not answer within {TIMEOUT_SECONDS:g} s"
    except (OSError, http.client.HTTPException) as error:
        return f"does not answer: {error or type(error).__name__}"
    finally:
        connection.close()
    is_ours = response.status == http.HTTPStatus.OK and b"ok" in body.lower()
    return "" if is_ours else f"another program answers there (HTTP {response.status})"


def _pointed_programs(gateway: str, *, answers: bool) -> Iterator[DoctorFinding]:
    """Yield a finding for each variable that sends SDKs to another address."""
    for name in BASE_URL_VARIABLES:
        value = os.environ.get(name, "")
        if not value:
            continue
        is_gateway = _origin(value) == _origin(gateway)
        facts = {"url": _shown(value), "is_gateway": is_gateway}
        if is_gateway and not answers:
            detail = f"points at the gateway, which does not answer ({_shown(value)}): calls fail"
            yield DoctorFinding(name=name, state=State.BROKEN, detail=detail, fix="rung gateway", facts=facts)
        elif not is_gateway and _is_closed_loopback(value):
            detail = f"points at {_shown(value)}, where nothing answers: calls fail"
            fix = f"unset {name}"
            yield DoctorFinding(name=name, state=State.BROKEN, detail=detail, fix=fix, facts=facts)
        else:
            detail = f"points at {'the gateway' if is_gateway else _shown(value)}"
            yield DoctorFinding(name=name, state=State.OK, detail=detail, facts=facts)


def _is_closed_loopback(url: str) -> bool:
    """Whether an address is one of this machine at which no program listens."""
    host, port = _origin(url)
    if host not in LOOPBACK_HOSTS:
        return False
    try:
        with socket.create_connection((host, port or 80), TIMEOUT_SECONDS):
            return False
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def _origin(url: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        return ("127.0.0.1" if host == "localhost" else host), parts.port
    except ValueError:
        return url, None


def _shown(url: str) -> str:
    """Return an address without login, query and fragment."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
