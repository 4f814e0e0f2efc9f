"""`rung gateway status`: asks a running gateway for its providers, keys, health, translations and cost."""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Final, NoReturn

import click

from rung.cli.help_text import epilogue
from rung.cli.output import json_option, print_json
from rung.cli.terminal import MAX_WIDTH
from rung.core.domain.errors import ConfigError

DEFAULT_URL: Final = "http://127.0.0.1:8484"
_TIMEOUT_SECONDS: Final = 10.0
_LOCAL: Final = ("http://127.", "http://localhost", "http://[::1]")
_MAX_BYTES: Final = 16 * 1024 * 1024


@click.command(
    "status",
    short_help="Show providers, keys, health and cost of a running gateway.",
    epilog=epilogue(examples=("rung gateway status", "rung gateway status --json")),
)
@click.option("--url", metavar="URL", default=DEFAULT_URL, show_default=True, help="Address of the gateway.")
@click.option("--key-env", metavar="NAME", help="Variable with a key of the gateway, if it runs on another machine.")
@json_option
def status(url: str, key_env: str | None, *, as_json: bool) -> None:
    """Show what a running gateway knows about its providers, since it was started.

    On another machine, the gateway answers only with one of its keys, and without models and error texts.
    """
    if not _is_address(url):
        raise ConfigError("--url", url, f"an address such as {DEFAULT_URL}")
    if key_env and not os.environ.get(key_env):
        raise ConfigError("--key-env", key_env, "the name of an environment variable that is set")
    document = _read_status(url.rstrip("/"), os.environ[key_env] if key_env else "")
    if as_json:
        print_json(document)
        return
    from rung.cli.serve.status_table import status_lines

    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    for line in status_lines(document, url.rstrip("/"), width):
        click.echo(line)


def _is_address(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:  # an open bracket, or a port that is no number
        return False


def _read_status(url: str, key: str) -> dict[str, Any]:
    """Return the status document; exit with a message and code 1 if there is none."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(url + "/status", headers=headers)  # noqa: S310  # checked by the caller
    proxies = urllib.request.ProxyHandler({} if url.startswith(_LOCAL) else None)
    try:
        with urllib.request.build_opener(proxies).open(request, timeout=_TIMEOUT_SECONDS) as response:
            document = json.loads(response.read(_MAX_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            _fail(f"{url} answers {error.code}: {_message(error.read(_MAX_BYTES))}")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        _fail(f"no gateway at {url} ({reason}); start one with `rung gateway`, or give its address with --url")
    if not isinstance(document, dict) or "upstreams" not in document:
        _fail(f"{url} is no gateway of this version: its /status has no upstreams")
    return document


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")


def _fail(text: str) -> NoReturn:
    click.echo(f"rung: {text}", err=True)
    sys.exit(1)
