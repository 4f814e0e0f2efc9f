"""Listening sockets of the servers: the gateway, the service and the MCP server."""

from __future__ import annotations

import socket
from typing import Final

from rung.core.domain.errors import AddressUnavailable, ConfigError

BACKLOG: Final = 2_048


def listen(key: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens; 0 picks a free port. `key` is the setting of the port, for messages.

    Raises AddressUnavailable if the port is taken or not allowed, or the host is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise AddressUnavailable(key, host, port, error) from None
    except UnicodeError:  # a label of the name is too long, or empty
        raise ConfigError("host", host, "an address of this machine") from None
