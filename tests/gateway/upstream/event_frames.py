"""Encoder of AWS event stream frames; botocore has the decoder only."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from binascii import crc32
from typing import Any

_STRING = 7  # type of a header


def frame(payload: bytes, **headers: str) -> bytes:
    """Return one frame; an underscore in a header's name stands for a hyphen, and its colon is added."""
    encoded = b"".join(_header(":" + name.replace("_", "-"), value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack("!I", crc32(prelude)) + encoded + payload
    return message + struct.pack("!I", crc32(message))


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + struct.pack("!BH", _STRING, len(value)) + value.encode()


def chunk_frame(event: dict[str, Any], **json_options: Any) -> bytes:
    data = json.dumps(event, **json_options).encode()
    payload = json.dumps({"bytes": b64encode(data).decode(), "p": "abcdef"}).encode()
    return frame(payload, event_type="chunk", content_type="application/json", message_type="event")


def exception_frame(code: str, **body: Any) -> bytes:
    payload = json.dumps(body).encode()
    return frame(payload, exception_type=code, content_type="application/json", message_type="exception")
