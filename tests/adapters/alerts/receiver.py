"""An HTTP server on loopback that answers as Slack, Teams Workflows, PagerDuty and a signed webhook are documented to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUTING_KEY = "0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes....").decode()

TEXT = {"type": "object", "required": ["type", "text"], "properties": {"text": {"type": "string", "maxLength": 3_000}}}
SLACK: dict[str, Any] = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "blocks": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "oneOf": [
                    {
                        "required": ["type", "text"],
                        "properties": {
                            "type": {"const": "header"},
                            "text": {
                                "type": "object",
                                "properties": {
                                    "type": {"const": "plain_text"},
                                    "text": {"type": "string", "maxLength": 150, "minLength": 1},
                                },
                            },
                        },
                    },
                    {"required": ["type", "text"], "properties": {"type": {"const": "section"}, "text": TEXT}},
                    {
                        "required": ["type", "elements"],
                        "properties": {
                            "type": {"const": "context"},
                            "elements": {"type": "array", "maxItems": 10, "items": TEXT},
                        },
                    },
                ]
            },
        },
    },
}
TEAMS: dict[str, Any] = {
    "type": "object",
    "required": ["type", "attachments"],
    "properties": {
        "type": {"const": "message"},
        "attachments": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["contentType", "content"],
                "properties": {
                    "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                    "contentUrl": {"type": ["string", "null"]},
                    "content": {
                        "type": "object",
                        "required": ["$schema", "type", "version", "body"],
                        "properties": {
                            "type": {"const": "AdaptiveCard"},
                            "version": {"enum": ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]},
                            "body": {
                                "type": "array",
                                "items": {
                                    "oneOf": [
                                        {
                                            "required": ["type", "text"],
                                            "properties": {
                                                "type": {"const": "TextBlock"},
                                                "color": {"enum": ["attention", "good", "accent", "warning"]},
                                            },
                                        },
                                        {
                                            "required": ["type", "facts"],
                                            "properties": {
                                                "type": {"const": "FactSet"},
                                                "facts": {"items": {"required": ["title", "value"]}},
                                            },
                                        },
                                    ]
                                },
                            },
                            "actions": {
                                "items": {
                                    "required": ["type", "title", "url"],
                                    "properties": {"type": {"const": "Action.OpenUrl"}},
                                }
                            },
                        },
                    },
                },
            },
        },
    },
}
PAGERDUTY: dict[str, Any] = {
    "type": "object",
    "required": ["routing_key", "event_action"],
    "properties": {
        "routing_key": {"type": "string", "minLength": 32, "maxLength": 32},
        "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
        "dedup_key": {"type": "string", "maxLength": 255},
        "payload": {
            "type": "object",
            "required": ["summary", "source", "severity"],
            "properties": {
                "summary": {"type": "string", "maxLength": 1_024, "minLength": 1},
                "source": {"type": "string", "minLength": 1},
                "severity": {"enum": ["critical", "warning", "error", "info"]},
                "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:?\d\d)$"},
                "component": {"type": "string"},
                "class": {"type": "string"},
                "custom_details": {"type": "object"},
            },
        },
        "client": {"type": "string"},
        "client_url": {"type": "string"},
    },
    "if": {"properties": {"event_action": {"const": "trigger"}}},
    "then": {"required": ["payload"]},
    "else": {"required": ["dedup_key"]},
}


class Received(NamedTuple):
    """Request that was accepted."""

    service: str
    body: dict[str, Any]
    headers: dict[str, str]


class Receiver:
    """What was accepted and refused, the incidents of PagerDuty, and how many requests fail before one is accepted."""

    def __init__(self) -> None:
        self.accepted: list[Received] = []
        self.refused: list[str] = []
        self.open_pages: dict[str, dict[str, Any]] = {}
        self.failing = 0
        self.unanswered: list[str] = []  # ids of webhooks that got no answer
        self.hangs = 0  # requests that get none
        self.released = threading.Event()
        self.url = ""
        self.lock = threading.Lock()

    def events(self, service: str) -> list[dict[str, Any]]:
        """Return the bodies that a service has accepted."""
        return [one.body for one in self.accepted if one.service == service]

    def environment(self) -> dict[str, str]:
        """Return the variables that channels of the tests read."""
        return {
            "SLACK_URL": f"{self.url}/slack",
            "TEAMS_URL": f"{self.url}/teams",
            "PAGERDUTY_URL": f"{self.url}/pagerduty",
            "PAGERDUTY_KEY": ROUTING_KEY,
            "HOOK_URL": f"{self.url}/webhook",
            "HOOK_SECRET": SECRET,
        }

    def answer(self, service: str, raw: bytes, headers: dict[str, str]) -> tuple[int, str]:
        """Return the status and body of an answer, as the service would give it."""
        if self.hangs:
            self.hangs -= 1
            self.unanswered.append(headers["webhook-id"])
            self.released.wait(120)
        with self.lock:
            if self.failing:
                self.failing -= 1
                return 503, "unavailable"
            body = json.loads(raw)
            try:
                if headers.get("content-type") != "application/json":
                    raise ValueError("content-type")
                status = getattr(self, f"_{service}")(body, raw, headers)
            except (ValueError, jsonschema.ValidationError) as error:
                self.refused.append(f"{service}: {error}")
                return 400, "invalid_payload"
            self.accepted.append(Received(service, body, headers))
            return status, "ok"

    def _slack(self, body: Any, _raw: bytes, _headers: dict[str, str]) -> int:
        jsonschema.validate(body, SLACK)
        return 200

    def _teams(self, body: Any, _raw: bytes, _headers: dict[str, str]) -> int:
        jsonschema.validate(body, TEAMS)
        return 202

    def _pagerduty(self, body: Any, _raw: bytes, _headers: dict[str, str]) -> int:
        jsonschema.validate(body, PAGERDUTY)
        if body["routing_key"] != ROUTING_KEY:
            raise ValueError("routing_key")
        if body["event_action"] == "resolve":
            self.open_pages.pop(body["dedup_key"], None)
        else:
            self.open_pages[body["dedup_key"]] = body
        return 202

    def _webhook(self, _body: Any, raw: bytes, headers: dict[str, str]) -> int:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
        digest = hmac.new(base64.b64decode(SECRET.removeprefix("whsec_")), signed, hashlib.sha256).digest()
        if headers.get("webhook-signature") != f"v1,{base64.b64encode(digest).decode()}":
            raise ValueError("webhook-signature")
        return 204


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve until the end of the block."""
    receiver = Receiver()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, text = receiver.answer(self.path.strip("/"), raw, headers)
            self.send_response(status)
            self.send_header("content-length", str(0 if status == 204 else len(text)))
            self.end_headers()
            if status != 204:
                self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
